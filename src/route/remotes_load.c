/* Reads the remote storages from the store, and makes the routes agree with it.
 *
 * Keys:
 * - set "storages": the names
 * - hash "storage:<name>": url, region, ca, style (path or host), insecure (0 or 1), framing (plain
 *   or trailer), and the names of remote_timeouts[] in milliseconds where they are not the default
 * - hash "storage_keys:<name>": maps a user's id to "<access key> <sealed secret>"
 * - string "storages:main": the name of the main storage
 * - hash "storages:limits": see remotes_limits.c */
#include "route/remotes_int.h"
#include "store/fields.h"

void remotes_key(struct buf *out, const char *prefix, struct str name)
{
    buf_append_z(out, prefix);
    store_key_part(out, name);
}

void remotes_seal_owner(struct buf *out, struct str storage, struct str user, struct str access)
{
    buf_append_z(out, "storage:");
    store_key_part(out, storage);
    buf_append_char(out, ':');
    store_key_part(out, user);
    buf_append_char(out, ':');
    store_key_part(out, access);
}

static const struct field_row remote_rows[] = {
#define REMOTE_FIELD(...) FIELD_ROW(struct remote_entry, __VA_ARGS__)
    REMOTE_FIELD("url", FIELD_TEXT, url),
    REMOTE_FIELD("region", FIELD_TEXT, region),
    REMOTE_FIELD("ca", FIELD_TEXT, ca),
    REMOTE_FIELD("style", FIELD_BOOL, virtual_host, .word = "host"),
    REMOTE_FIELD("insecure", FIELD_BOOL, insecure),
    REMOTE_FIELD("framing", FIELD_BOOL, trailers, .word = "trailer"),
#undef REMOTE_FIELD
};
static const struct fields remote_fields = FIELDS(remote_rows);

/* Reads a storage from its hash. A timeout that cannot be read gets the default. */
static int remote_read(struct remote_entry *out, const struct reply *hash, struct err *err)
{
    for (size_t i = 0; i < REMOTE_TIMEOUTS; i++) {
        const struct reply *value = fields_find(hash, str_z(remote_timeouts[i].name));
        if (value && str_u64(value->str, remote_time(&out->times, i)) < 0)
            *remote_time(&out->times, i) = 0;
    }
    return fields_read(out, &remote_fields, hash, NULL, err);
}

static int hash_of(struct remotes *r, struct arena *a, const char *prefix, struct str name,
                   struct reply **out, struct err *err)
{
    struct buf key = {0};
    int code;

    remotes_key(&key, prefix, name);
    code = store_call(r->store, a, out, err, STR("HGETALL"), buf_str(&key));
    buf_release(&key);
    return code < 0 ? code : reply_expect(*out, REPLY_ARRAY, err);
}

/* --- credentials --- */

static int read_credential(struct remotes *r, struct opened *o, struct str user, struct str value,
                           struct err *err)
{
    struct buf owner = {0}, secret = BUF_INIT(SEAL_PLAIN_MAX);
    struct remote_credential c = {.user = user};
    struct str sealed;
    int code;

    str_cut(value, ' ', &c.access, &sealed);
    remotes_seal_owner(&owner, o->entry.name, user, c.access);
    code = unseal(&r->key, buf_str(&owner), sealed, &secret);
    c.secret = buf_str(&secret);
    if (code == 0)
        code = opened_credential(o, &c, err);
    else
        code = err_set(err, ERR_CORRUPT,
                       "the credentials on storage " STR_FMT
                       " are not sealed with this weir's key file",
                       STR_ARG(o->entry.name));
    if (secret.p)
        secure_zero(secret.p, secret.cap);
    buf_release(&secret);
    buf_release(&owner);
    return code;
}

static int load_credentials(struct remotes *r, struct arena *a, struct opened *o, struct err *err)
{
    struct reply *hash = NULL;
    int code = hash_of(r, a, "storage_keys:", o->entry.name, &hash, err);

    for (size_t i = o->users.len; code == 0 && i-- > 0;)
        if (!fields_find(hash, str_z(o->users.items[i])))
            code = opened_credential(
                o, &(struct remote_credential){.user = str_z(o->users.items[i])}, err);
    for (size_t i = 0; code == 0 && i + 1 < hash->count; i += 2)
        code = read_credential(r, o, hash->items[i].str, hash->items[i + 1].str, err);
    return code;
}

/* --- storages --- */

static bool remote_is_same(const struct remote_entry *a, const struct remote_entry *b)
{
    return str_eq(a->url, b->url) && str_eq(a->region, b->region) && str_eq(a->ca, b->ca) &&
           a->virtual_host == b->virtual_host && a->insecure == b->insecure &&
           a->trailers == b->trailers && memcmp(&a->times, &b->times, sizeof(a->times)) == 0;
}

static void remote_drop(struct remotes *r, size_t i)
{
    struct opened *o = r->opened.items[i];

    routes_retire_storage(r->routes, o->entry.name);
    vec_remove(&r->opened, i);
    opened_free(o);
}

static void drop_named(struct remotes *r, struct str name)
{
    for (size_t i = 0; i < r->opened.len; i++)
        if (str_eq(r->opened.items[i]->entry.name, name)) {
            remote_drop(r, i);
            return;
        }
}

static int remote_load(struct remotes *r, struct arena *a, struct str name, struct err *err)
{
    struct remote_entry e = {.name = name};
    struct opened *o = opened_find(r, name);
    struct reply *hash = NULL;
    int code = hash_of(r, a, "storage:", name, &hash, err);

    if (code < 0 || hash->count == 0 || (o && o->entry.fixed))
        return code; /* the storage was removed after its name was read, or it is fixed */
    code = remote_read(&e, hash, err);
    if (code < 0)
        return code;
    if (o && !remote_is_same(&o->entry, &e)) {
        drop_named(r, name);
        o = NULL;
    }
    if (!o)
        code = opened_add(r, &e, &o, err);
    return code < 0 ? code : load_credentials(r, a, o, err);
}

static bool is_named(const struct reply *names, struct str name)
{
    for (size_t i = 0; i < names->count; i++)
        if (str_eq(names->items[i].str, name))
            return true;
    return false;
}

static int set_main(struct remotes *r, const struct reply *name, struct err *err)
{
    if (r->main_is_fixed)
        return 0;
    struct str wanted = name->type == REPLY_BULK && name->str.len ? name->str : r->local_main;
    int code = routes_set_main(r->routes, wanted, err);
    if (code == ERR_NOT_FOUND) /* the main storage is a folder of another weir, so requests for it
                                  are refused here */
        log_warn(r->log, "storages.main_absent", log_s("storage", wanted));
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Reads which storages there are, and which is the main one. A store that was emptied would answer
 * that there are none, and this process's own folder would become the main storage. So before the
 * answers are used, store_is_known() checks that this is still the store that weir has worked with
 * before. */
static int remotes_read_names(struct remotes *r, struct arena *a, struct reply **names,
                              struct reply **main, struct err *err)
{
    int code = store_call(r->store, a, names, err, STR("SMEMBERS"), REMOTES_NAMES);

    if (code == 0)
        code = reply_expect(*names, REPLY_ARRAY, err);
    if (code == 0)
        code = store_call(r->store, a, main, err, STR("GET"), REMOTES_MAIN);
    return code == 0 ? store_is_known(r->store, err) : code;
}

/* Loads all storages. A storage that cannot be opened does not prevent the other storages from
 * being opened, but its error is returned. */
int remotes_load(struct remotes *r, struct err *err)
{
    struct arena a = {0};
    struct reply *names = NULL, *main = NULL;
    int code, failed = 0;

    BUG_ON(!r->busy);
    code = remotes_read_names(r, &a, &names, &main, err);
    for (size_t i = 0; code == 0 && i < names->count; i++) {
        code = remote_load(r, &a, names->items[i].str, err);
        if (code < 0 && err_kind(code) == ERR_KIND_EXPECTED) {
            failed = code;
            code = 0;
        }
    }
    for (size_t i = r->opened.len; code == 0 && i-- > 0;)
        if (!r->opened.items[i]->entry.fixed && !is_named(names, r->opened.items[i]->entry.name))
            remote_drop(r, i);
    if (code == 0)
        code = set_main(r, main, err);
    if (code == 0)
        code = remotes_load_limits(r, &a, err);
    arena_release(&a);
    if (code == 0)
        routes_know_storages(r->routes, true);
    return code < 0 ? code : failed;
}
