/* weir storage: storages of a running weir. */
#include "cli/commands.h"
#include "cli/manage.h"

static const char *const framings[] = {"plain", "trailer", NULL};

const struct flag storage_add_flags[] = {
    {"endpoint", FLAG_TEXT, "URL", NULL, "A remote storage: http://host[:port] or https://..."},
    {"region", FLAG_TEXT, "REGION", NULL, "Its region; default: us-east-1."},
    {"virtual-host", FLAG_SWITCH, NULL, NULL, "It wants bucket.host instead of host/bucket."},
    {"ca", FLAG_FILE, "FILE", NULL, "Certificates that it is checked against, on weir's machine."},
    {"no-verify", FLAG_SWITCH, NULL, NULL, "Do not check its certificate."},
    {"framing", FLAG_CHOICES, "KIND", framings,
     "trailer: it takes checksums behind a body (AWS, weir, Ceph from 20 on); default: plain."},
    {"user", FLAG_TEXT, "USER", NULL, "A user of weir that has the keys that follow there."},
    {"access-key", FLAG_TEXT, "KEY", NULL, "The user's access key there."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The user's secret key there."},
    {"main", FLAG_SWITCH, NULL, NULL, "Make it the main storage."},
    REMOTE_FLAGS,
    {0},
};

const struct flag storage_key_flags[] = {
    {"access-key", FLAG_TEXT, "KEY", NULL, "The user's access key there."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The user's secret key there."},
    {"remove", FLAG_SWITCH, NULL, NULL, "Remove the user's keys there instead."},
    REMOTE_FLAGS,
    {0},
};

static const struct output_column storage_columns[] = {{"name"},   {"kind"},    {"main"}, {"url"},
                                                       {"region"}, {"framing"}, {"users"}};
static const struct output_column user_columns[] = {{"user"}, {"id"}};
static const struct output_column test_columns[] = {{"name"}, {"ok"}, {"error"}};
static const struct output_column damage_columns[] = {
    {"damage"}, {"bucket"}, {"key"}, {"version"}, {"path"}};

static void write_local(struct json_out *w, const struct invocation *inv)
{
    json_out_member_str(w, "kind", STR("local"));
    json_out_member_str(w, "folder", str_z(inv->args.items[1]));
}

static void write_remote(struct json_out *w, const struct invocation *inv)
{
    json_out_member_str(w, "kind", STR("remote"));
    manage_flag(w, inv, "endpoint", "url");
    manage_flag(w, inv, "region", "region");
    manage_flag(w, inv, "ca", "ca");
    manage_flag(w, inv, "framing", "framing");
    manage_flag(w, inv, "user", "user");
    manage_flag(w, inv, "access-key", "access_key");
    manage_flag(w, inv, "secret-key", "secret_key");
    if (invocation_flag(inv, "virtual-host"))
        json_out_member_str(w, "style", STR("host"));
    json_out_member_bool(w, "insecure", invocation_flag(inv, "no-verify") != NULL);
    json_out_member_bool(w, "main", invocation_flag(inv, "main") != NULL);
}

static int add(struct remote *r, const struct invocation *inv, struct output *table,
               struct err *err)
{
    bool is_remote = invocation_flag(inv, "endpoint") != NULL;
    struct buf body = {0};
    struct json_out w;
    json_t *answer = NULL;
    int code = 0;

    if (is_remote == (inv->args.len == 2))
        return err_set(err, ERR_INVALID, "a storage has a FOLDER or an --endpoint");
    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "name", str_z(inv->args.items[0]));
    if (is_remote)
        write_remote(&w, inv);
    else
        write_local(&w, inv);
    json_out_close(&w, '}');
    code = remote_send(r, &answer, "POST", "/api/v1/storages", body.p, err);
    if (code == 0)
        manage_row(table, answer);
    json_decref(answer);
    secure_zero(body.p, body.cap);
    buf_release(&body);
    return code;
}

static int list(struct remote *r, const struct invocation *inv, struct output *table,
                struct err *err)
{
    json_t *answer = NULL, *storage;
    size_t i;
    int code = remote_send(r, &answer, "GET", "/api/v1/storages", NULL, err);

    (void)inv;
    if (code == 0)
        json_array_foreach(json_object_get(answer, "storages"), i, storage)
            manage_row(table, storage);
    json_decref(answer);
    return code;
}

static int remove_storage(struct remote *r, const struct invocation *inv, struct output *table,
                          struct err *err)
{
    (void)table;
    return remote_send(r, NULL, "DELETE",
                       manage_path(r, "/api/v1/storages/", inv->args.items[0], ""), NULL, err);
}

static int make_main(struct remote *r, const struct invocation *inv, struct output *table,
                     struct err *err)
{
    (void)table;
    return remote_send(r, NULL, "POST",
                       manage_path(r, "/api/v1/storages/", inv->args.items[0], "/main"), "{}", err);
}

static int list_keys(struct remote *r, const char *path, struct output *table, struct err *err)
{
    json_t *answer = NULL, *user;
    size_t i;
    int code = remote_send(r, &answer, "GET", path, NULL, err);

    if (code == 0)
        json_array_foreach(json_object_get(answer, "users"), i, user) manage_row(table, user);
    json_decref(answer);
    return code;
}

static int set_key(struct remote *r, const struct invocation *inv, const char *path,
                   struct err *err)
{
    struct buf body = {0};
    struct json_out w;
    int code;

    if (!invocation_flag(inv, "access-key") || !invocation_flag(inv, "secret-key"))
        return err_set(err, ERR_INVALID, "--access-key and --secret-key, or --remove");
    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "user", str_z(inv->args.items[1]));
    manage_flag(&w, inv, "access-key", "access_key");
    manage_flag(&w, inv, "secret-key", "secret_key");
    json_out_close(&w, '}');
    code = remote_send(r, NULL, "POST", path, body.p, err);
    secure_zero(body.p, body.cap);
    buf_release(&body);
    return code;
}

/* Without a user: who has keys there. */
static int key(struct remote *r, const struct invocation *inv, struct output *table,
               struct err *err)
{
    const char *path = manage_path(r, "/api/v1/storages/", inv->args.items[0], "/credentials");
    int code = 0;

    if (inv->args.len == 2 && invocation_flag(inv, "remove")) {
        const char *before =
            manage_path(r, "/api/v1/storages/", inv->args.items[0], "/credentials/");
        code = remote_send(r, NULL, "DELETE", manage_path(r, before, inv->args.items[1], ""), NULL,
                           err);
    } else if (inv->args.len == 2) {
        code = set_key(r, inv, path, err);
    }
    return code < 0 ? code : list_keys(r, path, table, err);
}

/* What is wrong is in the table; the code makes the exit status. */
static int test(struct remote *r, const struct invocation *inv, struct output *table,
                struct err *err)
{
    json_t *answer = NULL;
    int code =
        remote_send(r, &answer, "POST",
                    manage_path(r, "/api/v1/storages/", inv->args.items[0], "/test"), "{}", err);

    if (code == 0) {
        manage_row(table, answer);
        code = json_get_bool(answer, "ok", false) ? 0 : ERR_UNAVAILABLE;
    }
    json_decref(answer);
    return code;
}

static int scrub(struct remote *r, const struct invocation *inv, struct output *table,
                 struct err *err)
{
    json_t *answer = NULL, *finding;
    size_t i;
    int code =
        remote_send(r, &answer, "POST",
                    manage_path(r, "/api/v1/storages/", inv->args.items[0], "/scrub"), "{}", err);

    if (code == 0) {
        int64_t findings = json_get_i64(answer, "findings", 0);
        json_array_foreach(json_object_get(answer, "damaged"), i, finding)
            manage_row(table, finding);
        if (findings)
            code = err_set(err, ERR_CORRUPT, "%jd findings", (intmax_t)findings);
    }
    json_decref(answer);
    return code;
}

int command_storage_add(struct invocation *inv)
{
    return manage(inv, storage_columns, ARRAY_SIZE(storage_columns), add);
}

int command_storage_list(struct invocation *inv)
{
    return manage(inv, storage_columns, ARRAY_SIZE(storage_columns), list);
}

int command_storage_remove(struct invocation *inv)
{
    return manage(inv, NULL, 0, remove_storage);
}

int command_storage_main(struct invocation *inv)
{
    return manage(inv, NULL, 0, make_main);
}

int command_storage_key(struct invocation *inv)
{
    return manage(inv, user_columns, ARRAY_SIZE(user_columns), key);
}

int command_storage_test(struct invocation *inv)
{
    return manage(inv, test_columns, ARRAY_SIZE(test_columns), test);
}

int command_storage_scrub(struct invocation *inv)
{
    return manage(inv, damage_columns, ARRAY_SIZE(damage_columns), scrub);
}
