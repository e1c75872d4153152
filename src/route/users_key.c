/* All weirs of one store must have the same key file, which secrets are sealed with, and should
 * have the same keys of the first administrator. This file checks whether they do.
 *
 * Keys in configDB: the string "users:check" is a known text sealed with the key file, so that a
 * wrong file is found before a secret is sealed with it. The string "users:check:at" is the
 * "<host>:<path>" of a key file that opens it. The string "users:root" is "<digest> <host>:<path>"
 * of the weir that was started last; the digest is an HMAC, by the key file, of the keys of its
 * first administrator. */
#include "route/users_int.h"
#include "sign/hmac.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const struct str CHECK_OWNER = {"users:check", 11}, CHECK_TEXT = {"weir", 4},
                        CHECK_AT = {"users:check:at", 14}, ROOT = {"users:root", 10};

/* Appends "<host>:<absolute path>". */
static void append_place(struct buf *out, const char *path)
{
    char host[256] = "", whole[PATH_MAX];

    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = '\0';
    buf_appendf(out, "%s:%s", host, realpath(path, whole) ? whole : path);
}

/* --- the key file --- */

/* Appends advice for a key file that is missing or is not the right one. */
static void append_remedy(struct users *u, struct buf *out)
{
    struct arena arena = {0};
    struct buf here = {0};
    struct reply *reply = NULL;
    int code = store_call(u->store, &arena, &reply, NULL, STR("GET"), CHECK_AT);

    append_place(&here, u->key_file);
    if (code < 0 || reply->type != REPLY_BULK)
        buf_appendf(out,
                    "copy secrets.key from the data folder of another weir on this store to %s",
                    u->key_file);
    else if (str_eq(reply->str, buf_str(&here)))
        buf_appendf(out, "put the right file back, from a backup or from another weir");
    else
        buf_appendf(out, "copy " STR_FMT " to %s, with mode 0600", STR_ARG(reply->str),
                    u->key_file);
    buf_release(&here);
    arena_release(&arena);
}

static int key_error(struct users *u, const char *what, struct err *err)
{
    struct buf remedy = {0};

    append_remedy(u, &remedy);
    err_set(err, ERR_CORRUPT, "%s %s: " STR_FMT, u->key_file, what, STR_ARG(buf_str(&remedy)));
    buf_release(&remedy);
    return ERR_CORRUPT;
}

int users_wrong_key(struct users *u, struct err *err)
{
    return key_error(u, "is not the key file that the users' secrets are sealed with", err);
}

int users_missing_key(struct users *u, struct err *err)
{
    return key_error(u, "is missing, and the users' secrets are sealed with it", err);
}

/* Stores the place of this process's key file, which has proved to be the right one. A weir without
 * the right file names that place in its error. Only the first place is stored, and a failure is
 * ignored. */
static void tell_place(struct users *u)
{
    struct arena arena = {0};
    struct buf here = {0};
    struct reply *reply;

    append_place(&here, u->key_file);
    if (!u->key_told)
        u->key_told = store_call(u->store, &arena, &reply, NULL, STR("SET"), CHECK_AT,
                                 buf_str(&here), STR("NX")) == 0;
    buf_release(&here);
    arena_release(&arena);
}

/* Checks the key file against "users:check". The first weir stores that text; all other weirs must
 * be able to open it. */
int users_check_key(struct users *u, struct err *err)
{
    struct arena arena = {0};
    struct buf sealed = {0}, plain = {0};
    struct reply *reply = NULL;
    int code = store_call(u->store, &arena, &reply, err, STR("GET"), CHECK_OWNER);

    if (code == 0 && reply_is_nil(reply)) {
        seal(&u->key, CHECK_OWNER, CHECK_TEXT, &sealed);
        code = store_call(u->store, &arena, &reply, err, STR("SET"), CHECK_OWNER, buf_str(&sealed),
                          STR("NX"));
        if (code == 0)
            code = store_call(u->store, &arena, &reply, err, STR("GET"), CHECK_OWNER);
    }
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0 && unseal(&u->key, CHECK_OWNER, reply->str, &plain) < 0)
        code = users_wrong_key(u, err);
    if (code == 0)
        tell_place(u);
    buf_release(&sealed);
    buf_release(&plain);
    arena_release(&arena);
    return code;
}

/* --- the first administrator --- */

/* Appends "<digest> <host>:<path>". False: there is no first administrator. */
static bool describe_root(struct users *u, struct buf *out)
{
    unsigned char digest[HMAC_SHA256_LEN];
    struct buf keys = {0};
    bool found;

    mutex_lock(&u->lock);
    found = u->root != NULL;
    if (found) {
        buf_append_z(&keys, "weir root:");
        buf_append_str(&keys, u->root->keys[0].access);
        buf_append_char(&keys, ':');
        buf_append_str(&keys, u->root->keys[0].secret);
    }
    mutex_unlock(&u->lock);
    hmac_sha256(str_n(u->key.bytes, sizeof(u->key.bytes)), buf_str(&keys), digest);
    buf_append_hex(out, digest, sizeof(digest));
    buf_append_char(out, ' ');
    append_place(out, u->key_file);
    if (keys.p)
        secure_zero(keys.p, keys.len);
    buf_release(&keys);
    return found;
}

void users_compare_root(struct users *u)
{
    struct arena arena = {0};
    struct buf mine = {0};
    struct reply *reply = NULL;
    struct str digest, place, my_digest, my_place;

    if (!describe_root(u, &mine) ||
        store_call(u->store, &arena, &reply, NULL, STR("GET"), ROOT) < 0)
        goto out;
    str_cut(buf_str(&mine), ' ', &my_digest, &my_place);
    str_cut(reply->type == REPLY_BULK ? reply->str : buf_str(&mine), ' ', &digest, &place);
    if (!str_eq(digest, my_digest) && !str_eq(place, my_place))
        log_warn(u->reload.o.log, "users.root_differs", log_s("other", place),
                 log_z("why", "that weir of this store has another first administrator's keys: "
                              "requests signed with the keys of one are refused by the other; "
                              "give all of them the same WEIR_ACCESS_KEY and WEIR_SECRET_KEY"));
    if (reply->type != REPLY_BULK || !str_eq(reply->str, buf_str(&mine)))
        (void)!store_call(u->store, &arena, &reply, NULL, STR("SET"), ROOT, buf_str(&mine));
out:
    buf_release(&mine);
    arena_release(&arena);
}
