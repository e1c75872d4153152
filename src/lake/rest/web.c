/* Opens the state of the REST API, and lists the tables of its routes. */
#include "lake/rest/web.h"
#include "lake/room.h"
#include "route/seal.h"

const struct rest_table *const lake_routes[] = {
    &web_server_rows, &web_auth_rows,      &web_user_rows,      &web_repo_rows,    &web_branch_rows,
    &web_tag_rows,    &web_commit_rows,    &web_merge_rows,     &web_diff_rows,    &web_object_rows,
    &web_upload_rows, &web_copy_rows,      &web_staging_rows,   &web_setting_rows, &web_gc_rows,
    &web_import_rows, &web_multipart_rows, &web_tree_rows,      &web_pull_rows,    &web_run_rows,
    &web_refs_rows,   &web_migration_rows, &web_diagnosis_rows, &web_refused_rows, NULL,
};

struct lake_web *web_of(const struct rest_call *c)
{
    struct lake_room *room = c->ctx;

    return &room->web;
}

/* Derives a key from the key of the data folder. `use` says what it is for; another use gives
 * another key. */
static void web_derive(struct hmac_key *out, const struct seal_key *key, const char *use)
{
    unsigned char bytes[HMAC_SHA256_LEN];

    hmac_sha256(str_n(key->bytes, sizeof(key->bytes)), str_z(use), bytes);
    hmac_key_init(out, str_n(bytes, sizeof(bytes)));
    secure_zero((char *)bytes, sizeof(bytes));
}

int lake_web_open(struct lake_web *w, struct lake *lake, const struct services *services,
                  struct err *err)
{
    struct buf path = BUF_INIT(4096);
    struct seal_key key = {0};
    bool made;

    w->lake = lake;
    w->services = services;
    guesses_init(&w->guesses);
    services_path(services, "secrets.key", &path);
    int code = buf_error(&path);
    if (code == 0)
        code = seal_key_open(&key, path.p, &made, err);
    if (code == 0) {
        web_derive(&w->token_key, &key, "lake token");
        web_derive(&w->link_key, &key, "lake link");
    }
    seal_key_release(&key);
    buf_release(&path);
    return code;
}

void lake_web_close(struct lake_web *w)
{
    secure_zero((char *)&w->token_key, sizeof(w->token_key));
    secure_zero((char *)&w->link_key, sizeof(w->link_key));
}
