/* Reads all users from the store.
 *
 * Keys: the set "users" has the names, a hash "user:<name>" has each user, and each change
 * increases the string "users:version". */
#include "route/users_int.h"

#include "base/json.h"
#include "store/fields.h"

#include <stdlib.h>

enum { CHUNK = 64 /* number of users read in one round trip */ };

void users_key_of(struct buf *out, struct str name)
{
    buf_append_z(out, "user:");
    store_key_part(out, name);
}

/* --- one user --- */

static int user_read_keys(struct users *u, struct users_view *view, struct member *m,
                          struct err *err)
{
    json_t *object = NULL;
    struct buf secret = BUF_INIT(SEAL_PLAIN_MAX);
    int code = json_read(&object, m->stored_keys, err);

    if (code < 0 || json_object_size(object) > USER_KEYS_MAX)
        code = err_set(err, ERR_CORRUPT, "the keys of user " STR_FMT " cannot be read",
                       STR_ARG(m->user.name));
    for (void *at = code == 0 ? json_object_iter(object) : NULL; at;
         at = json_object_iter_next(object, at)) {
        struct user_key *key = &m->keys[m->user.key_count];
        const json_t *sealed = json_object_iter_value(at);
        key->access = arena_str(&view->arena, str_z(json_object_iter_key(at)));
        buf_reset(&secret);
        code = unseal(&u->key, key->access,
                      str_n(json_string_value(sealed), json_string_length(sealed)), &secret);
        if (code < 0) {
            code = users_wrong_key(u, err);
            break;
        }
        key->secret = str_n(str_dup(buf_str(&secret)), secret.len);
        m->user.key_count++;
        map_put(&view->by_access, key->access, m);
    }
    if (secret.p)
        secure_zero(secret.p, secret.cap);
    buf_release(&secret);
    json_decref(object);
    return code;
}

static const struct field_row user_rows[] = {
#define USER_FIELD(...) FIELD_ROW(struct member, __VA_ARGS__)
    USER_FIELD("id", FIELD_TEXT, user.id),
    USER_FIELD("display_name", FIELD_TEXT, user.display_name),
    USER_FIELD("email", FIELD_TEXT, user.email),
    USER_FIELD("admin", FIELD_BOOL, user.admin),
    USER_FIELD("keys", FIELD_TEXT, stored_keys),
#undef USER_FIELD
};
static const struct fields user_fields = FIELDS(user_rows);

/* Reads one user into the view. A user that was removed after the names were read is left out. */
static int user_read(struct users *u, struct users_view *view, struct str name,
                     const struct reply *fields, struct err *err)
{
    struct member *m = arena_new(&view->arena, struct member);
    int code = reply_expect(fields, REPLY_ARRAY, err);

    if (code < 0 || fields->count == 0)
        return code;
    if (!m)
        return err_code(err, ERR_NO_MEMORY);
    m->user.name = arena_str(&view->arena, name);
    m->user.keys = m->keys;
    code = fields_read(m, &user_fields, fields, &view->arena, err);
    if (code < 0)
        return code;
    if (arena_error(&view->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    vec_push(&view->members, m);
    map_put(&view->by_name, m->user.name, m);
    map_put(&view->by_id, m->user.id, m);
    if (m->user.email.len)
        map_put(&view->by_email, users_fold(&view->arena, m->user.email), m);
    return user_read_keys(u, view, m, err);
}

/* --- all users --- */

static int users_read_chunk(struct users *u, struct users_view *view, const struct reply *names,
                            size_t count, struct err *err)
{
    struct arena arena = {0};
    struct store_args commands[CHUNK];
    struct reply *replies = NULL;
    int code;

    for (size_t i = 0; i < count; i++) {
        struct buf key = {0};
        struct str *argv = arena_array(&arena, 2, sizeof(*argv));
        users_key_of(&key, names[i].str);
        argv[0] = STR("HGETALL");
        argv[1] = arena_str(&arena, buf_str(&key));
        commands[i] = (struct store_args){argv, 2};
        buf_release(&key);
    }
    code = store_pipeline(u->store, &arena, &replies, commands, count, err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = user_read(u, view, names[i].str, &replies->items[i], err);
    arena_release(&arena);
    return code;
}

static int user_by_name(const void *a, const void *b)
{
    return str_cmp((*(struct member *const *)a)->user.name,
                   (*(struct member *const *)b)->user.name);
}

/* Reads all users. The version is read first, so the users are at least as new as that version. */
static int users_read_all(struct users *u, struct users_view *view, struct err *err)
{
    struct arena arena = {0};
    struct reply *reply = NULL, *names = NULL;
    int code = store_call(u->store, &arena, &reply, err, STR("GET"), STR("users:version"));

    if (code == 0 && reply->type == REPLY_BULK)
        view->version = arena_str(&view->arena, reply->str);
    if (code == 0)
        code = store_call(u->store, &arena, &names, err, STR("SMEMBERS"), STR("users"));
    if (code == 0)
        code = reply_expect(names, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i < names->count; i += CHUNK)
        code = users_read_chunk(u, view, names->items + i, size_min(CHUNK, names->count - i), err);
    if (code == 0 && view->members.len)
        qsort(view->members.items, view->members.len, sizeof(struct member *), user_by_name);
    arena_release(&arena);
    return code;
}

struct users_view *users_view_new(void)
{
    struct users_view *view = xcalloc(1, sizeof(*view));

    view->refs = 1;
    arena_init(&view->arena, 256 * MIB);
    map_init(&view->by_name);
    map_init(&view->by_id);
    map_init(&view->by_email);
    map_init(&view->by_access);
    return view;
}

int users_load(struct users *u, struct err *err)
{
    struct users_view *view = users_view_new(), *old = view;
    int code;

    mutex_lock(&u->lock);
    while (u->loading)
        cond_wait(&u->loaded, &u->lock);
    u->loading = true;
    mutex_unlock(&u->lock);

    code = store_is_known(u->store, err); /* nothing is written to an unknown store */
    if (code == 0)
        code = users_check_key(u, err);
    if (code == 0)
        code = users_read_all(u, view, err);
    if (code == 0)
        code = store_is_known(u->store, err);

    mutex_lock(&u->lock);
    if (code == 0) {
        old = u->view;
        u->view = view;
    }
    u->loading = false;
    cond_broadcast(&u->loaded);
    mutex_unlock(&u->lock);
    users_view_put(u, old);
    return code;
}
