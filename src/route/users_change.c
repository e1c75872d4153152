/* Changes users. Each change is one script: it checks and writes all entries of a user, increases
 * the version and notifies the other weirs, or does nothing.
 *
 * Beside the keys that users_load.c reads there are three indexes: the hashes "users:id",
 * "users:email" (in lower case) and "users:access", which map to the user's name. */
#include "base/ids.h"
#include "base/json.h"
#include "route/users_int.h"

enum {
    ACCESS_LEN = 20,
    SECRET_LEN = 40,
    NAME_MAX_LEN = 64,
    EMAIL_MAX = 254,
    DISPLAY_MAX = 256,
    SECRET_MIN = 8,
    ACCESS_MIN = 3,
    KEY_MAX = 128,
    TRIES = 16, /* most tries of a change while other calls change the same user */
};

const char *const users_script_sources[USERS_SCRIPTS] = {
    /* KEYS: user, users, users:id, users:email, users:access, users:version. ARGV: channel, name,
     * id, display name, email, email in lower case, admin, keys, access keys. Answers which of the
     * values another user has already. */
    [SCRIPT_ADD] =
        "if redis.call('EXISTS', KEYS[1]) == 1 then return 'name' end\n"
        "if redis.call('HEXISTS', KEYS[3], ARGV[3]) == 1 then return 'id' end\n"
        "if ARGV[6] ~= '' and redis.call('HEXISTS', KEYS[4], ARGV[6]) == 1 then\n"
        "  return 'e-mail address'\n"
        "end\n"
        "for i = 9, #ARGV do\n"
        "  if redis.call('HEXISTS', KEYS[5], ARGV[i]) == 1 then return 'access key' end\n"
        "end\n"
        "redis.call('HSET', KEYS[1], 'id', ARGV[3], 'display_name', ARGV[4],\n"
        "  'email', ARGV[5], 'admin', ARGV[7], 'keys', ARGV[8])\n"
        "redis.call('SADD', KEYS[2], ARGV[2])\n"
        "redis.call('HSET', KEYS[3], ARGV[3], ARGV[2])\n"
        "if ARGV[6] ~= '' then redis.call('HSET', KEYS[4], ARGV[6], ARGV[2]) end\n"
        "for i = 9, #ARGV do redis.call('HSET', KEYS[5], ARGV[i], ARGV[2]) end\n"
        "redis.call('INCR', 'w:config')\n"
        "redis.call('PUBLISH', ARGV[1], redis.call('INCR', KEYS[6]))\n"
        "return ''\n",
    /* KEYS as for SCRIPT_ADD. ARGV: channel, name, id, email in lower case, keys, access keys, all
     * as they were read. Answers "changed" if the user differs by now. */
    [SCRIPT_REMOVE] = "local now = redis.call('HMGET', KEYS[1], 'id', 'keys')\n"
                      "if now[1] ~= ARGV[3] or now[2] ~= ARGV[5] then return 'changed' end\n"
                      "redis.call('DEL', KEYS[1])\n"
                      "redis.call('SREM', KEYS[2], ARGV[2])\n"
                      "redis.call('HDEL', KEYS[3], ARGV[3])\n"
                      "if ARGV[4] ~= '' then redis.call('HDEL', KEYS[4], ARGV[4]) end\n"
                      "for i = 6, #ARGV do redis.call('HDEL', KEYS[5], ARGV[i]) end\n"
                      "redis.call('INCR', 'w:config')\n"
                      "redis.call('PUBLISH', ARGV[1], redis.call('INCR', KEYS[6]))\n"
                      "return ''\n",
    /* KEYS: user, users:access, users:version. ARGV: channel, name, id, keys as they were read, new
     * keys, access key to add or '', access key to remove or ''. */
    [SCRIPT_KEYS] = "local now = redis.call('HMGET', KEYS[1], 'id', 'keys')\n"
                    "if now[1] ~= ARGV[3] or now[2] ~= ARGV[4] then return 'changed' end\n"
                    "if ARGV[6] ~= '' then\n"
                    "  if redis.call('HSETNX', KEYS[2], ARGV[6], ARGV[2]) == 0 then\n"
                    "    return 'access key'\n"
                    "  end\n"
                    "end\n"
                    "if ARGV[7] ~= '' then redis.call('HDEL', KEYS[2], ARGV[7]) end\n"
                    "redis.call('HSET', KEYS[1], 'keys', ARGV[5])\n"
                    "redis.call('INCR', 'w:config')\n"
                    "redis.call('PUBLISH', ARGV[1], redis.call('INCR', KEYS[3]))\n"
                    "return ''\n",
};

/* --- which names are allowed --- */

static bool user_is_word(struct str s, const char *also)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || !strchr(also, c)))
            return false;
    }
    return s.len > 0;
}

static bool is_printable(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return true;
}

static bool is_text(struct str s)
{
    for (size_t n; s.len; s = str_skip(s, n)) {
        n = str_utf8_len(s);
        if (n == 0 || str_utf8_is_control(s))
            return false;
    }
    return true;
}

static int check_user_key(const struct user_key *k, struct err *err)
{
    if (!user_is_word(k->access, "._-") || k->access.len < ACCESS_MIN || k->access.len > KEY_MAX)
        return err_set(err, ERR_INVALID,
                       "an access key is %d to %d letters, digits, '.', '_' and '-'", ACCESS_MIN,
                       KEY_MAX);
    if (!is_printable(k->secret) || k->secret.len < SECRET_MIN || k->secret.len > KEY_MAX)
        return err_set(err, ERR_INVALID, "a secret key is %d to %d printable characters",
                       SECRET_MIN, KEY_MAX);
    return 0;
}

static int user_check(const struct user *u, struct err *err)
{
    int code = 0;

    if (!user_is_word(u->name, "._@+-") || u->name.len > NAME_MAX_LEN)
        return err_set(err, ERR_INVALID,
                       "a name is up to %d letters, digits, '.', '_', '@', '+' and '-'",
                       NAME_MAX_LEN);
    if (u->id.len && (!user_is_word(u->id, "._@$+-") || u->id.len > USER_ID_MAX))
        return err_set(err, ERR_INVALID,
                       "an id is up to %d letters, digits, '.', '_', '@', '$', '+' and '-'",
                       USER_ID_MAX);
    if (u->email.len &&
        (!is_printable(u->email) || str_chr(u->email, '@') <= 0 || u->email.len > EMAIL_MAX))
        return err_set(err, ERR_INVALID, "that is not an e-mail address");
    if (!is_text(u->display_name) || u->display_name.len > DISPLAY_MAX)
        return err_set(err, ERR_INVALID, "a display name is up to %d bytes of text", DISPLAY_MAX);
    if (u->key_count > USER_KEYS_MAX)
        return err_set(err, ERR_TOO_LARGE, "a user has at most %d access keys", USER_KEYS_MAX);
    for (size_t i = 0; i < u->key_count && code == 0; i++) {
        code = check_user_key(&u->keys[i], err);
        for (size_t j = 0; j < i && code == 0; j++)
            if (str_eq(u->keys[i].access, u->keys[j].access))
                code = err_set(err, ERR_INVALID, "an access key is given twice");
    }
    return code;
}

static int user_make_key(struct arena *a, struct user_key *out, struct err *err)
{
    char *access = arena_alloc(a, ACCESS_LEN + 1), *secret = arena_alloc(a, SECRET_LEN + 1);

    if (!access || !secret)
        return err_code(err, ERR_NO_MEMORY);
    id_access_key(access, ACCESS_LEN);
    id_secret(secret, SECRET_LEN);
    *out = (struct user_key){str_n(access, ACCESS_LEN), str_n(secret, SECRET_LEN)};
    return 0;
}

static bool is_fixed(const struct users *u, const struct user *wanted)
{
    const struct users_view *f = u->fixed;
    struct arena a = {0};
    bool taken = map_get(&f->by_name, wanted->name) || map_get(&f->by_id, wanted->id) ||
                 (wanted->email.len && map_get(&f->by_email, users_fold(&a, wanted->email)));

    for (size_t i = 0; i < wanted->key_count; i++)
        taken = taken || map_get(&f->by_access, wanted->keys[i].access);
    arena_release(&a);
    return taken;
}

/* Checks that the first administrator and the users of the configuration file do not have the name,
 * id, email or access key. The script cannot check that, because they are not in the store. */
static int check_not_root(struct users *u, const struct user *wanted, struct err *err)
{
    bool taken = str_eq(wanted->name, USER_ROOT) || str_eq(wanted->id, USER_ROOT);

    mutex_lock(&u->lock);
    for (size_t i = 0; u->root && i < wanted->key_count; i++)
        taken = taken || str_eq(wanted->keys[i].access, u->root->keys[0].access);
    mutex_unlock(&u->lock);
    if (taken)
        return err_set(err, ERR_EXISTS,
                       "the name, id or access key belongs to the first administrator");
    return is_fixed(u, wanted) ? err_set(err, ERR_EXISTS,
                                         "the name, id, email or access key belongs to a user of "
                                         "the configuration file")
                               : 0;
}

/* --- running a script --- */

struct user_change {
    enum users_script script;
    struct str name; /* the user's name */
    struct store_args args;
};

/* Runs the script and loads the change before it returns; *answer is in the arena. If loading
 * fails, the change is made all the same and is loaded when its published message arrives. */
static int user_run_change(struct users *u, struct arena *a, const struct user_change *c,
                           struct str *answer, struct err *err)
{
    struct buf user = {0};
    struct reply *reply = NULL;
    int code;

    users_key_of(&user, c->name);
    const struct str few[] = {buf_str(&user), STR("users:access"), STR("users:version")};
    const struct str all[] = {buf_str(&user),     STR("users"),        STR("users:id"),
                              STR("users:email"), STR("users:access"), STR("users:version")};
    const struct script_run script = {
        .script = &u->scripts[c->script],
        .keys = c->script == SCRIPT_KEYS ? (struct store_args){few, ARRAY_SIZE(few)}
                                         : (struct store_args){all, ARRAY_SIZE(all)},
        .args = c->args,
    };
    code = store_eval(u->store, a, &reply, &script, err);
    buf_release(&user);
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0) {
        *answer = reply->str;
        code = users_load(u, err);
    }
    return code;
}

static void user_write_keys(struct buf *out, struct users *u, const struct user_key *keys,
                            size_t count)
{
    struct json_out w;
    struct buf sealed = {0};

    json_out_init(&w, out);
    json_out_open(&w, '{');
    for (size_t i = 0; i < count; i++) {
        buf_reset(&sealed);
        seal(&u->key, keys[i].access, keys[i].secret, &sealed);
        json_out_key_str(&w, keys[i].access);
        json_out_str(&w, buf_str(&sealed));
    }
    json_out_close(&w, '}');
    buf_release(&sealed);
}

/* --- adding a user --- */

static int user_complete(struct arena *a, const struct user *wanted, struct user *out,
                         struct err *err)
{
    struct user_key *keys = arena_array(a, size_max(wanted->key_count, 1), sizeof(*keys));
    char id[ID_HEX_LEN + 1];
    int code = 0;

    if (!keys)
        return err_code(err, ERR_NO_MEMORY);
    id_hex(id);
    *out = (struct user){
        .id = arena_str(a, wanted->id.len ? wanted->id : str_z(id)),
        .name = arena_str(a, wanted->name),
        .display_name = arena_str(a, wanted->display_name),
        .email = arena_str(a, wanted->email),
        .admin = wanted->admin,
        .keys = keys,
        .key_count = size_max(wanted->key_count, 1),
    };
    for (size_t i = 0; i < wanted->key_count; i++)
        keys[i] = (struct user_key){arena_str(a, wanted->keys[i].access),
                                    arena_str(a, wanted->keys[i].secret)};
    if (wanted->key_count == 0)
        code = user_make_key(a, &keys[0], err);
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    return code;
}

int users_add(struct users *u, struct arena *a, const struct user *wanted, struct user *out,
              struct err *err)
{
    enum { FIXED = 8 };
    struct str args[FIXED + USER_KEYS_MAX], taken = STR_EMPTY;
    struct buf keys = {0};
    struct user user = {0};
    int code = user_check(wanted, err);

    if (code == 0)
        code = check_not_root(u, wanted, err);
    if (code == 0)
        code = user_complete(a, wanted, &user, err);
    if (code < 0)
        return code;
    user_write_keys(&keys, u, user.keys, user.key_count);
    memcpy(args,
           ((struct str[FIXED]){USERS_CHANNEL, user.name, user.id, user.display_name, user.email,
                                users_fold(a, user.email), user.admin ? STR("1") : STR("0"),
                                buf_str(&keys)}),
           FIXED * sizeof(args[0]));
    for (size_t i = 0; i < user.key_count; i++)
        args[FIXED + i] = user.keys[i].access;
    code = user_run_change(
        u, a, &(struct user_change){SCRIPT_ADD, user.name, {args, FIXED + user.key_count}}, &taken,
        err);
    buf_release(&keys);
    if (code == 0 && taken.len)
        code = err_set(err, ERR_EXISTS, "the " STR_FMT " is taken", STR_ARG(taken));
    if (code == 0)
        *out = user;
    return code;
}

/* --- users of the configuration file --- */

/* Returns whether the name, id or access key belongs to a user in the store; users of the
 * configuration file are not stored. False also while the store could not be read yet. */
static bool is_stored(struct users *u, const struct user *wanted)
{
    struct users_view *view;
    bool taken;

    if (users_view_get(u, &view, NULL) < 0)
        return false;
    taken = map_get(&view->by_name, wanted->name) || map_get(&view->by_id, wanted->id) ||
            map_get(&view->by_access, wanted->keys[0].access);
    users_view_put(u, view);
    return taken;
}

int users_add_fixed(struct users *u, const struct user *wanted, struct err *err)
{
    struct users_view *f = u->fixed;
    struct member *m = arena_new(&f->arena, struct member);
    struct user user = *wanted;
    int code;

    BUG_ON(user.key_count != 1);
    if (user.id.len == 0)
        user.id = user.name;
    code = m ? user_check(&user, err) : err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        code = check_not_root(u, &user, err);
    if (code == 0 && is_stored(u, &user))
        code = err_set(err, ERR_EXISTS,
                       "its name, id or access key belongs to a user who is in the store");
    if (code < 0)
        return code;
    m->user = (struct user){.id = arena_str(&f->arena, user.id),
                            .name = arena_str(&f->arena, user.name),
                            .display_name = arena_str(&f->arena, user.display_name),
                            .email = arena_str(&f->arena, user.email),
                            .admin = user.admin,
                            .keys = m->keys,
                            .key_count = 1};
    m->keys[0].access = arena_str(&f->arena, user.keys[0].access);
    m->keys[0].secret = str_n(str_dup(user.keys[0].secret), user.keys[0].secret.len);
    vec_push(&f->members, m);
    map_put(&f->by_name, m->user.name, m);
    map_put(&f->by_id, m->user.id, m);
    map_put(&f->by_access, m->keys[0].access, m);
    if (m->user.email.len)
        map_put(&f->by_email, users_fold(&f->arena, m->user.email), m);
    return arena_error(&f->arena) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* --- removing, and changing keys: read, decide, and write if nothing changed meanwhile --- */

static int find_member(struct users *u, struct str name, struct users_view **view,
                       const struct member **out, struct err *err)
{
    int code;

    if (str_eq(name, USER_ROOT))
        return err_set(err, ERR_DENIED,
                       "the first administrator is set by access_key and secret_key");
    if (map_get(&u->fixed->by_name, name))
        return err_set(err, ERR_DENIED, "the user is one of the configuration file");
    code = users_view_get(u, view, err);
    if (code < 0)
        return code;
    *out = map_get(&(*view)->by_name, name);
    if (*out)
        return 0;
    users_view_put(u, *view);
    return err_set(err, ERR_NOT_FOUND, "there is no user " STR_FMT, STR_ARG(name));
}

static int try_remove(struct users *u, struct arena *a, struct str name, struct str *answer,
                      struct err *err)
{
    enum { FIXED = 5 };
    struct str args[FIXED + USER_KEYS_MAX];
    struct users_view *view;
    const struct member *m;
    int code = find_member(u, name, &view, &m, err);

    if (code < 0)
        return code;
    memcpy(args,
           ((struct str[FIXED]){USERS_CHANNEL, name, m->user.id, users_fold(a, m->user.email),
                                m->stored_keys}),
           FIXED * sizeof(args[0]));
    for (size_t i = 0; i < m->user.key_count; i++)
        args[FIXED + i] = m->keys[i].access;
    code = user_run_change(
        u, a, &(struct user_change){SCRIPT_REMOVE, name, {args, FIXED + m->user.key_count}}, answer,
        err);
    users_view_put(u, view);
    return code;
}

int users_remove(struct users *u, struct str name, struct err *err)
{
    struct str answer = STR("changed");
    int code = 0;

    for (int i = 0; i < TRIES && code == 0 && answer.len; i++) {
        struct arena a = {0};
        code = try_remove(u, &a, name, &answer, err);
        if (answer.len)
            answer = STR("changed");
        arena_release(&a);
    }
    if (code == 0 && answer.len)
        code = err_set(err, ERR_CONFLICT, "the user is being changed by others; try again");
    return code;
}

/* Makes the user's new list of keys. Either `added` or `removed` is given. */
static int next_keys(const struct member *m, const struct user_key *added, struct str removed,
                     struct user_key *keys, size_t *count, struct err *err)
{
    *count = 0;
    for (size_t i = 0; i < m->user.key_count; i++)
        if (!str_eq(m->keys[i].access, removed))
            keys[(*count)++] = m->keys[i];
    if (!added && *count == m->user.key_count)
        return err_set(err, ERR_NOT_FOUND, "the user has no such access key");
    if (added && *count == USER_KEYS_MAX)
        return err_set(err, ERR_TOO_LARGE, "a user has at most %d access keys", USER_KEYS_MAX);
    if (added)
        keys[(*count)++] = *added;
    return 0;
}

static int try_keys(struct users *u, struct str name, const struct user_key *added,
                    struct str removed, struct str *answer, struct err *err)
{
    struct user_key keys[USER_KEYS_MAX];
    struct users_view *view;
    const struct member *m;
    struct arena a = {0};
    struct buf text = {0};
    size_t count = 0;
    int code = find_member(u, name, &view, &m, err);

    if (code < 0)
        return code;
    code = next_keys(m, added, removed, keys, &count, err);
    if (code == 0) {
        user_write_keys(&text, u, keys, count);
        struct str args[] = {USERS_CHANNEL,  name,           m->user.id,
                             m->stored_keys, buf_str(&text), added ? added->access : STR_EMPTY,
                             removed};
        code = user_run_change(
            u, &a, &(struct user_change){SCRIPT_KEYS, name, {args, ARRAY_SIZE(args)}}, answer, err);
    }
    if (code == 0 && answer->len)
        *answer = str_eq(*answer, STR("changed")) ? STR("changed") : STR("taken");
    users_view_put(u, view);
    buf_release(&text);
    arena_release(&a);
    return code;
}

static int change_keys(struct users *u, struct str name, const struct user_key *added,
                       struct str removed, struct err *err)
{
    struct str answer = STR("changed");
    int code = 0;

    for (int i = 0; i < TRIES && code == 0 && str_eq(answer, STR("changed")); i++)
        code = try_keys(u, name, added, removed, &answer, err);
    if (code == 0 && str_eq(answer, STR("taken")))
        code = err_set(err, ERR_EXISTS, "the access key is taken");
    else if (code == 0 && answer.len)
        code = err_set(err, ERR_CONFLICT, "the user is being changed by others; try again");
    return code;
}

int users_add_key(struct users *u, struct arena *a, struct str name, const struct user_key *wanted,
                  struct user_key *out, struct err *err)
{
    struct user_key key = {0};
    struct user probe = {.keys = &key, .key_count = 1};
    int code = 0;

    if (wanted && (wanted->access.len || wanted->secret.len)) {
        code = check_user_key(wanted, err);
        key = (struct user_key){arena_str(a, wanted->access), arena_str(a, wanted->secret)};
        if (code == 0 && arena_error(a) < 0)
            code = err_code(err, ERR_NO_MEMORY);
    } else {
        code = user_make_key(a, &key, err);
    }
    if (code == 0)
        code = check_not_root(u, &probe, err);
    if (code == 0)
        code = change_keys(u, name, &key, STR_EMPTY, err);
    if (code == 0)
        *out = key;
    return code;
}

int users_remove_key(struct users *u, struct str name, struct str access, struct err *err)
{
    return change_keys(u, name, NULL, access, err);
}
