/* Limits of storages. The hash "storages:limits" maps a name to "<requests per minute> <bytes per
 * second>". A storage of the configuration file has its limits in that file instead. */
#include "route/remotes_int.h"

enum { REQUESTS_MAX = 1000 * 1000 * 1000 };
static const uint64_t bytes_max = (uint64_t)1 << 50;

void remotes_limit(struct storage *s, const struct remote_limits *limits)
{
    atomic_store(&s->requests_per_minute, limits->requests_per_minute);
    atomic_store(&s->bytes_per_second, limits->bytes_per_second);
}

int remotes_check_limits(const struct remote_limits *limits, struct err *err)
{
    if (limits->requests_per_minute > REQUESTS_MAX)
        return err_set(err, ERR_INVALID, "requests_per_minute is a number up to %d", REQUESTS_MAX);
    if (limits->bytes_per_second > bytes_max)
        return err_set(err, ERR_INVALID, "bytes_per_second is a number up to %llu",
                       (unsigned long long)bytes_max);
    return 0;
}

/* --- reading --- */

/* Finds the storage's limits in the hash. A text that cannot be read means no limit. */
static struct remote_limits remote_limits_of(const struct reply *hash, struct str name)
{
    struct remote_limits found = {0};
    struct str requests, bytes;

    for (size_t i = 0; i + 1 < hash->count; i += 2) {
        if (!str_eq(hash->items[i].str, name))
            continue;
        str_cut(hash->items[i + 1].str, ' ', &requests, &bytes);
        if (str_u64(requests, &found.requests_per_minute) < 0 ||
            str_u64(bytes, &found.bytes_per_second) < 0)
            found = (struct remote_limits){0};
    }
    return found;
}

int remotes_load_limits(struct remotes *r, struct arena *a, struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    struct reply *hash = NULL;
    int code = store_call(r->store, a, &hash, err, STR("HGETALL"), REMOTES_LIMITS);

    if (code == 0)
        code = reply_expect(hash, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    size_t count = routes_storages(r->routes, all, ARRAY_SIZE(all));
    for (size_t i = 0; i < count; i++) {
        const struct opened *o = opened_find(r, all[i]->name);
        struct remote_limits limits = remote_limits_of(hash, all[i]->name);
        if (!o || !o->entry.fixed)
            remotes_limit(all[i], &limits);
    }
    return 0;
}

/* --- changing --- */

static int store_limits(struct remotes *r, struct str name, const struct remote_limits *limits,
                        struct err *err)
{
    bool any = limits->requests_per_minute || limits->bytes_per_second;
    struct buf value = {0};

    buf_appendf(&value, "%llu %llu", (unsigned long long)limits->requests_per_minute,
                (unsigned long long)limits->bytes_per_second);
    struct str set[] = {STR("HSET"), REMOTES_LIMITS, name, buf_str(&value)};
    struct str drop[] = {STR("HDEL"), REMOTES_LIMITS, name};
    struct store_args command = any ? (struct store_args){set, ARRAY_SIZE(set)}
                                    : (struct store_args){drop, ARRAY_SIZE(drop)};
    int code = remotes_change(r, &command, 1, err);
    buf_release(&value);
    return code;
}

int remotes_set_limits(struct remotes *r, struct str name, const struct remote_limits *limits,
                       struct err *err)
{
    int code = remotes_check_limits(limits, err);

    remotes_begin(r);
    const struct opened *o = opened_find(r, name);
    if (code == 0 && !routes_storage(r->routes, name))
        code = err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    if (code == 0 && o && o->entry.fixed)
        code = err_set(err, ERR_INVALID, "the storage is one of the configuration file");
    if (code == 0)
        code = store_limits(r, name, limits, err);
    remotes_end(r);
    return code;
}
