/* Opens, lists and changes remote storages. */
#include "route/remotes.h"
#include "route/remotes_int.h"
#include "route/route_int.h"

#include "http/wire.h"
#include "sign/hmac.h"

#include <stdlib.h>

enum { FIELDS_MAX = 14 + 2 * REMOTE_TIMEOUTS }; /* most arguments of add_script */

/* Adds a storage, unless the name is in use. KEYS: storage, storages. ARGV: channel, name, fields
 * and values. Answers "taken" or "". */
static const char add_script[] = "if redis.call('EXISTS', KEYS[1]) == 1 then return 'taken' end\n"
                                 "for i = 3, #ARGV, 2 do\n"
                                 "  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])\n"
                                 "end\n"
                                 "redis.call('SADD', KEYS[2], ARGV[2])\n"
                                 "redis.call('INCR', 'w:config')\n"
                                 "redis.call('PUBLISH', ARGV[1], ARGV[2])\n"
                                 "return ''\n";

void remotes_begin(struct remotes *r)
{
    mutex_lock(&r->lock);
    while (r->busy)
        cond_wait(&r->idle, &r->lock);
    r->busy = true;
    mutex_unlock(&r->lock);
}

void remotes_end(struct remotes *r)
{
    mutex_lock(&r->lock);
    r->busy = false;
    cond_broadcast(&r->idle);
    mutex_unlock(&r->lock);
}

static int remotes_load_now(void *ctx, struct err *err)
{
    struct remotes *r = ctx;
    int code;

    remotes_begin(r);
    code = remotes_load(r, err);
    remotes_end(r);
    return code;
}

/* --- opening and closing --- */

/* Starts loading the storages. A store that cannot be reached, or a storage that cannot be opened,
 * is tried again later and does not keep weir from starting. */
static int remotes_first_load(struct remotes *r, struct err *err)
{
    routes_know_storages(r->routes, false);
    return reload_open(&r->reload,
                       &(struct reload_options){.store = r->store,
                                                .channel = REMOTES_CHANNEL,
                                                .load = remotes_load_now,
                                                .ctx = r,
                                                .log = r->log,
                                                .failed = "storages.not_loaded",
                                                .done = "storages.loaded",
                                                .fatal = RELOAD_CORRUPT},
                       err);
}

int remotes_reload(struct remotes *r, struct err *err)
{
    return reload_now(&r->reload, err);
}

int remotes_open(struct remotes **out, struct routes *routes, struct store *config,
                 const char *key_file, const struct log *log, struct err *err)
{
    struct remotes *r = xcalloc(1, sizeof(*r));
    struct storage *main_storage = routes_main(routes);
    bool made;
    int code = seal_key_open(&r->key, key_file, &made, err);

    r->routes = routes;
    r->store = config;
    r->log = log;
    r->local_main = main_storage ? main_storage->name : STR_EMPTY;
    r->add = (struct script){.name = "storages/add", .source = str_z(add_script)};
    script_init(&r->add);
    mutex_init(&r->lock, "remotes");
    cond_init(&r->idle);
    if (code == 0)
        code = remotes_first_load(r, err);
    if (code < 0)
        remotes_close(r);
    else
        *out = r;
    return code;
}

void remotes_close(struct remotes *r)
{
    if (!r)
        return;
    reload_close(&r->reload);
    while (r->opened.len)
        opened_free(vec_pop(&r->opened));
    vec_release(&r->opened);
    seal_key_release(&r->key);
    cond_release(&r->idle);
    mutex_release(&r->lock);
    free(r);
}

/* --- storages that are open --- */

void opened_free(struct opened *o)
{
    while (o->users.len)
        free(vec_pop(&o->users));
    vec_release(&o->users);
    free((char *)o->entry.name.p);
    free((char *)o->entry.url.p);
    free((char *)o->entry.region.p);
    free((char *)o->entry.ca.p);
    free(o);
}

struct opened *opened_find(struct remotes *r, struct str name)
{
    BUG_ON(!r->busy);
    vec_each (&r->opened, struct opened **, o)
        if (str_eq((*o)->entry.name, name))
            return *o;
    return NULL;
}

static struct str remote_keep(struct str s)
{
    return str_n(str_dup(s), s.len);
}

int opened_add(struct remotes *r, const struct remote_entry *e, struct opened **out,
               struct err *err)
{
    struct opened *o = xcalloc(1, sizeof(*o));
    int code;

    o->entry = *e;
    o->entry.name = remote_keep(e->name);
    o->entry.url = remote_keep(e->url);
    o->entry.region = remote_keep(e->region);
    o->entry.ca = remote_keep(e->ca);
    struct remote_options options = {.name = o->entry.name,
                                     .url = o->entry.url,
                                     .region = o->entry.region,
                                     .virtual_host = e->virtual_host,
                                     .ca_file = e->ca.len ? o->entry.ca.p : NULL,
                                     .tls_insecure = e->insecure,
                                     .times = e->times,
                                     .log = r->log};
    code = remote_open(&o->storage, &options, err);
    if (code == 0) {
        o->storage->takes_trailers = e->trailers;
        remotes_limit(o->storage, &e->limits);
        code = routes_add_storage(r->routes, o->storage, err);
    }
    if (code < 0) {
        opened_free(o);
        return code;
    }
    vec_push(&r->opened, o);
    *out = o;
    return 0;
}

int opened_credential(struct opened *o, const struct remote_credential *c, struct err *err)
{
    int code = remote_set_credential(o->storage, c, err);
    size_t at = 0;

    if (code < 0)
        return code;
    while (at < o->users.len && !str_eq(str_z(o->users.items[at]), c->user))
        at++;
    if (c->secret.len && at == o->users.len) {
        vec_push(&o->users, str_dup(c->user));
    } else if (!c->secret.len && at < o->users.len) {
        free(o->users.items[at]);
        vec_remove(&o->users, at);
    }
    return 0;
}

/* --- changing --- */

static int check_entry(const struct remote_entry *e, struct err *err)
{
    struct str name = e->name;

    for (size_t i = 0; i < name.len; i++)
        if (!name.p[i] || !strchr("abcdefghijklmnopqrstuvwxyz0123456789-", name.p[i]))
            name.len = 0;
    if (name.len == 0 || name.len > REMOTE_NAME_MAX)
        return err_set(err, ERR_INVALID,
                       "a storage's name is up to %d lower-case letters, digits and '-'",
                       REMOTE_NAME_MAX);
    if (e->url.len > REMOTE_URL_MAX ||
        !(str_starts(e->url, STR("http://")) || str_starts(e->url, STR("https://"))))
        return err_set(err, ERR_INVALID, "the endpoint must be http://host[:port] or https://...");
    for (size_t i = 0; i < e->region.len; i++)
        if (e->region.p[i] <= ' ' || e->region.p[i] > '~' || e->region.p[i] == '/')
            return err_set(err, ERR_INVALID, "the region may not hold blanks or '/'");
    if (e->region.len > REMOTE_REGION_MAX)
        return err_set(err, ERR_INVALID, "the region is too long");
    if (e->ca.len && e->ca.p[0] != '/')
        return err_set(err, ERR_INVALID, "the file of certificates must be an absolute path");
    int code = remotes_check_limits(&e->limits, err);
    return code < 0 ? code : remote_times_check(&e->times, err);
}

/* Opens the storage as a trial and closes it again, so that every error is found before anything is
 * stored. */
static int try_entry(struct remotes *r, const struct remote_entry *e, struct err *err)
{
    struct arena a = {0};
    struct storage *s = NULL;
    int code = check_entry(e, err);

    if (code == 0 && routes_storage(r->routes, e->name))
        code = err_set(err, ERR_EXISTS, "there is a storage " STR_FMT " already", STR_ARG(e->name));
    if (code == 0)
        code =
            remote_open(&s,
                        &(struct remote_options){.name = e->name,
                                                 .url = e->url,
                                                 .region = e->region,
                                                 .ca_file = e->ca.len ? arena_z(&a, e->ca) : NULL,
                                                 .tls_insecure = e->insecure,
                                                 .log = r->log},
                        err);
    if (s)
        s->ops->close(s);
    arena_release(&a);
    return code;
}

int remotes_add_fixed(struct remotes *r, const struct remote_entry *e, struct err *err)
{
    struct remote_entry fixed = *e;
    struct opened *o;
    int code = check_entry(e, err);

    fixed.fixed = true;
    remotes_begin(r);
    if (code == 0 && (o = opened_find(r, e->name)) && !o->entry.fixed)
        code = err_set(err, ERR_EXISTS,
                       "there is a storage " STR_FMT
                       " already that was added while weir ran; remove one of them",
                       STR_ARG(e->name));
    if (code == 0)
        code = opened_add(r, &fixed, &o, err);
    remotes_end(r);
    return code;
}

/* Appends the timeouts that are set, as names and milliseconds; 0 stands for the default and is
 * left out. Returns the new number of arguments. */
static size_t add_times(struct str *args, size_t count, struct arena *a,
                        const struct remote_entry *e)
{
    struct remote_times times = e->times;

    for (size_t i = 0; i < REMOTE_TIMEOUTS; i++) {
        uint64_t ms = *remote_time(&times, i);
        if (ms == 0)
            continue;
        args[count++] = str_z(remote_timeouts[i].name);
        args[count++] = arena_fmt(a, "%llu", (unsigned long long)ms);
    }
    return count;
}

static int store_entry(struct remotes *r, const struct remote_entry *e, struct err *err)
{
    struct arena a = {0};
    struct buf key = {0};
    struct reply *reply = NULL;
    int code;

    remotes_key(&key, "storage:", e->name);
    struct str keys[] = {buf_str(&key), REMOTES_NAMES};
    struct str args[FIELDS_MAX] = {
        REMOTES_CHANNEL, e->name,
        STR("url"),      e->url,
        STR("region"),   e->region,
        STR("ca"),       e->ca,
        STR("style"),    e->virtual_host ? STR("host") : STR("path"),
        STR("insecure"), e->insecure ? STR("1") : STR("0"),
        STR("framing"),  e->trailers ? STR("trailer") : STR("plain"),
    };
    size_t count = add_times(args, FIELDS_MAX - 2 * REMOTE_TIMEOUTS, &a, e);
    code = arena_error(&a);
    if (code == 0)
        code = store_eval(r->store, &a, &reply,
                          &(struct script_run){.script = &r->add,
                                               .keys = {keys, ARRAY_SIZE(keys)},
                                               .args = {args, count}},
                          err);
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0 && reply->str.len)
        code = err_set(err, ERR_EXISTS, "there is a storage " STR_FMT " already", STR_ARG(e->name));
    buf_release(&key);
    arena_release(&a);
    return code;
}

int remotes_add(struct remotes *r, const struct remote_entry *e, struct err *err)
{
    int code;

    remotes_begin(r);
    code = try_entry(r, e, err);
    if (code == 0)
        code = store_entry(r, e, err);
    if (code == 0)
        code = remotes_load(r, err);
    remotes_end(r);
    return code;
}

int remotes_change(struct remotes *r, const struct store_args *commands, size_t count,
                   struct err *err)
{
    const struct str count_up[] = {STR("INCR"), STORE_CONFIG_COUNT};
    const struct str publish[] = {STR("PUBLISH"), REMOTES_CHANNEL, STR("changed")};
    struct arena a = {0};
    struct store_args *all = arena_array(&a, count + 2, sizeof(*all));
    struct reply *reply = NULL;
    int code;

    if (!all)
        return err_code(err, ERR_NO_MEMORY);
    memcpy(all, commands, count * sizeof(*commands));
    all[count] = (struct store_args){count_up, ARRAY_SIZE(count_up)};
    all[count + 1] = (struct store_args){publish, ARRAY_SIZE(publish)};
    code = store_atomic(r->store, &a, &reply, all, count + 2, err);
    for (size_t i = 0; code == 0 && i < count; i++)
        if (reply->items[i].type == REPLY_ERROR)
            code = err_set(err, ERR_TYPE, STR_FMT, STR_ARG(reply->items[i].str));
    arena_release(&a);
    return code < 0 ? code : remotes_load(r, err);
}

static int need(struct remotes *r, struct str name, struct opened **out, struct err *err)
{
    *out = opened_find(r, name);
    if (!*out && routes_storage(r->routes, name))
        return err_set(err, ERR_NOT_FOUND, "the storage " STR_FMT " is not a remote one",
                       STR_ARG(name));
    if (!*out)
        return err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    return 0;
}

static int remote_check_removal(struct remotes *r, struct str name, struct err *err)
{
    struct storage *main_storage = routes_main(r->routes);
    struct opened *o;
    int code = need(r, name, &o, err);

    if (code < 0)
        return code;
    if (o->entry.fixed)
        return err_set(err, ERR_INVALID, "the storage is one of the configuration file");
    if (main_storage && str_eq(main_storage->name, name))
        return err_set(err, ERR_IN_USE,
                       "it is the main storage; make another storage the main one first");
    return 0;
}

int remotes_check_removal(struct remotes *r, struct str name, struct err *err)
{
    remotes_begin(r);
    int code = remote_check_removal(r, name, err);
    remotes_end(r);
    return code;
}

static int remove_locked(struct remotes *r, struct str name, struct err *err)
{
    struct buf key = {0}, keys = {0};
    int code = remote_check_removal(r, name, err);

    if (code < 0)
        return code;
    remotes_key(&key, "storage:", name);
    remotes_key(&keys, "storage_keys:", name);
    struct str del[] = {STR("DEL"), buf_str(&key), buf_str(&keys)};
    struct str forget[] = {STR("SREM"), REMOTES_NAMES, name};
    struct str unlimit[] = {STR("HDEL"), REMOTES_LIMITS, name};
    struct store_args commands[] = {
        {del, ARRAY_SIZE(del)}, {forget, ARRAY_SIZE(forget)}, {unlimit, ARRAY_SIZE(unlimit)}};
    code = remotes_change(r, commands, ARRAY_SIZE(commands), err);
    buf_release(&key);
    buf_release(&keys);
    return code;
}

int remotes_remove(struct remotes *r, struct str name, struct err *err)
{
    int code;

    remotes_begin(r);
    code = remove_locked(r, name, err);
    remotes_end(r);
    return code;
}

/* Checks a credential before it is stored, by the rules of remote_set_credential(). */
static int check_credential(size_t users, const struct remote_credential *c, struct err *err)
{
    if (c->user.len == 0)
        return err_set(err, ERR_INVALID, "whose credentials are they?");
    if (c->secret.len && users >= REMOTES_USERS_MAX)
        return err_set(err, ERR_TOO_LARGE, "%d users have credentials there already",
                       REMOTES_USERS_MAX);
    if (c->secret.len == 0)
        return 0;
    for (size_t i = 0; i < c->access.len; i++)
        if (c->access.p[i] <= ' ' || c->access.p[i] > '~' || strchr(",/", c->access.p[i]))
            return err_set(err, ERR_INVALID, "an access key has no blanks, ',' or '/'");
    if (c->access.len == 0 || c->access.len > 128 || c->secret.len > 256)
        return err_set(err, ERR_INVALID,
                       "an access key is up to 128 characters, a secret key up to 256");
    return 0;
}

static int store_credential(struct remotes *r, struct str storage,
                            const struct remote_credential *c, struct err *err)
{
    struct buf key = {0}, owner = {0}, value = {0};
    int code;

    remotes_key(&key, "storage_keys:", storage);
    remotes_seal_owner(&owner, storage, c->user, c->access);
    buf_append_str(&value, c->access);
    buf_append_char(&value, ' ');
    if (c->secret.len)
        seal(&r->key, buf_str(&owner), c->secret, &value);
    struct str set[] = {STR("HSET"), buf_str(&key), c->user, buf_str(&value)};
    struct str remove[] = {STR("HDEL"), buf_str(&key), c->user};
    struct store_args command = c->secret.len ? (struct store_args){set, ARRAY_SIZE(set)}
                                              : (struct store_args){remove, ARRAY_SIZE(remove)};
    code = remotes_change(r, &command, 1, err);
    buf_release(&key);
    buf_release(&owner);
    buf_release(&value);
    return code;
}

int remotes_set_credential(struct remotes *r, struct str storage, const struct remote_credential *c,
                           struct err *err)
{
    struct opened *o;
    int code;

    remotes_begin(r);
    code = need(r, storage, &o, err);
    if (code == 0 && o->entry.fixed)
        code = err_set(err, ERR_DENIED, "the storage is one of the configuration file");
    if (code == 0)
        code = check_credential(o->users.len, c, err);
    if (code == 0)
        code = store_credential(r, storage, c, err);
    remotes_end(r);
    return code;
}

int remotes_set_credential_fixed(struct remotes *r, struct str storage,
                                 const struct remote_credential *c, struct err *err)
{
    struct opened *o;
    int code;

    remotes_begin(r);
    code = need(r, storage, &o, err);
    BUG_ON(code == 0 && !o->entry.fixed);
    if (code == 0)
        code = check_credential(o->users.len, c, err);
    if (code == 0)
        code = opened_credential(o, c, err);
    remotes_end(r);
    return code;
}

static int forget_locked(struct remotes *r, struct arena *a, struct str user, struct err *err)
{
    struct store_args *commands;
    struct reply *names = NULL;
    int code = store_call(r->store, a, &names, err, STR("SMEMBERS"), REMOTES_NAMES);

    if (code == 0)
        code = reply_expect(names, REPLY_ARRAY, err);
    if (code < 0 || names->count == 0)
        return code;
    commands = arena_array(a, names->count, sizeof(*commands));
    for (size_t i = 0; commands && i < names->count; i++) {
        struct str *argv = arena_array(a, 3, sizeof(*argv));
        struct buf key = {0};
        remotes_key(&key, "storage_keys:", names->items[i].str);
        if (argv) {
            argv[0] = STR("HDEL");
            argv[1] = arena_str(a, buf_str(&key));
            argv[2] = user;
        }
        commands[i] = (struct store_args){argv, 3};
        buf_release(&key);
    }
    if (!commands || arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return remotes_change(r, commands, names->count, err);
}

int remotes_forget_user(struct remotes *r, struct str user, struct err *err)
{
    struct arena a = {0};
    int code;

    remotes_begin(r);
    code = forget_locked(r, &a, user, err);
    remotes_end(r);
    arena_release(&a);
    return code;
}

static int check_main(const struct remotes *r, struct err *err)
{
    return r->main_is_fixed ? err_set(err, ERR_INVALID,
                                      "the configuration file says which storage is the main one")
                            : 0;
}

int remotes_check_new(struct remotes *r, const struct remote_credential *c, bool as_main,
                      struct err *err)
{
    int code;

    remotes_begin(r);
    code = c ? check_credential(0, c, err) : 0;
    if (code == 0 && as_main)
        code = check_main(r, err);
    remotes_end(r);
    return code;
}

int remotes_set_main(struct remotes *r, struct str name, struct err *err)
{
    struct str set[] = {STR("SET"), REMOTES_MAIN, name};
    struct str change[] = {STR("main"), REMOTES_MAIN, name};
    int code;

    remotes_begin(r);
    code = check_main(r, err);
    if (code == 0 && !routes_storage(r->routes, name))
        code = err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    if (code == 0)
        code = routes_change(r->store, (struct store_args){change, ARRAY_SIZE(change)}, err);
    if (code == 0)
        code = remotes_change(r, &(struct store_args){set, ARRAY_SIZE(set)}, 1, err);
    remotes_end(r);
    return code;
}

int remotes_set_main_fixed(struct remotes *r, struct str name, struct err *err)
{
    int code;

    remotes_begin(r);
    code = routes_set_main(r->routes, name, err);
    r->main_is_fixed |= code == 0;
    remotes_end(r);
    return code;
}

/* --- listing --- */

static int endpoint_by_text(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static int remote_by_name(const void *a, const void *b)
{
    return str_cmp(((const struct remote_entry *)a)->name, ((const struct remote_entry *)b)->name);
}

static void remote_copy_entry(struct arena *a, const struct opened *o, struct remote_entry *out)
{
    *out = o->entry;
    out->name = arena_str(a, out->name);
    out->url = arena_str(a, out->url);
    out->region = arena_str(a, out->region);
    out->ca = arena_str(a, out->ca);
    out->users = arena_array(a, o->users.len + 1, sizeof(*out->users));
    out->user_count = out->users ? o->users.len : 0;
    for (size_t i = 0; i < out->user_count; i++)
        out->users[i] = arena_str(a, str_z(o->users.items[i]));
    if (out->user_count)
        qsort(out->users, out->user_count, sizeof(*out->users), endpoint_by_text);
}

int remotes_list(struct remotes *r, struct arena *a, struct remote_entry **out, size_t *count,
                 struct err *err)
{
    struct remote_entry *list;

    remotes_begin(r);
    list = arena_array(a, r->opened.len + 1, sizeof(*list));
    for (size_t i = 0; list && i < r->opened.len; i++)
        remote_copy_entry(a, r->opened.items[i], &list[i]);
    *count = r->opened.len;
    remotes_end(r);
    if (!list || arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (*count)
        qsort(list, *count, sizeof(*list), remote_by_name);
    *out = list;
    return 0;
}

/* --- tokens --- */

void remotes_notify_token(struct remotes *r, struct str name, struct buf *out)
{
    unsigned char digest[HMAC_SHA256_LEN];
    struct buf text = {0};

    buf_append_z(&text, "weir notify token:");
    buf_append_str(&text, name);
    hmac_sha256(str_n(r->key.bytes, sizeof(r->key.bytes)), buf_str(&text), digest);
    buf_append_hex(out, digest, sizeof(digest));
    secure_zero(digest, sizeof(digest));
    buf_release(&text);
}
