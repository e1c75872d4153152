/* Removes the version vectors of buckets whose replications were removed (docs/replication.md,
 * V3). */
#include "coord/replication_int.h"
#include "base/clock.h"

enum {
    CALL_ARENA_MAX = 16 * 1024 * 1024,
    PAGE = 500,
    BUCKETS_MAX = 1000, /* most buckets that one call handles */
};

int replication_any_removed(struct replications *r, struct str bucket, bool *out, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct reply *reply;
    int code = store_call(r->o.config, &a, &reply, err, STR("ZSCORE"), STR("w:forget"),
                          replication_escaped(&a, bucket));

    if (code == 0)
        *out = !reply_is_nil(reply);
    arena_release(&a);
    return code;
}

static int forget_now_ms(struct replications *r, struct arena *a, int64_t *out, struct err *err)
{
    struct reply *reply;
    int64_t seconds = 0;
    int code = store_call(r->o.config, a, &reply, err, STR("TIME"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && (reply->count != 2 || str_i64(reply->items[0].str, &seconds) < 0))
        code = err_set(err, ERR_TYPE, "the store's time cannot be read");
    *out = seconds * MS_PER_S;
    return code;
}

/* Reads the names of the buckets whose vectors may be removed by now. The names are escaped as in
 * keys. */
static int forget_due(struct replications *r, struct arena *a, struct reply **out, struct err *err)
{
    int64_t now = 0;
    int code = forget_now_ms(r, a, &now, err);

    if (code == 0)
        code =
            store_call(r->o.config, a, out, err, STR("ZRANGEBYSCORE"), STR("w:forget"), STR("-inf"),
                       queue_number(a, now), STR("LIMIT"), STR("0"), queue_number(a, BUCKETS_MAX));
    return code == 0 ? reply_expect(*out, REPLY_ARRAY, err) : code;
}

/* Sets *out to whether the bucket has a replication, according to a fresh view. *epoch is that
 * view's epoch. */
static int bucket_is_replicated(struct replications *r, struct str bucket, bool *out,
                                int64_t *epoch, struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    int code = replications_refresh(r, err);

    if (code == 0)
        code = replications_view(r, &view, err);
    *out = false;
    for (size_t i = 0, n = code == 0 ? replication_view_all(view, &all) : 0; i < n; i++)
        *out |= str_eq(all[i]->id.bucket, bucket);
    if (code == 0)
        *epoch = replication_view_epoch(view);
    replication_view_unref(view);
    return code;
}

/* Removes some version vectors of the bucket. ERR_AGAIN: a policy was changed since `epoch`, or the
 * time to remove the vectors has not come. */
static int forget_page(struct replications *r, struct str bucket, int64_t epoch, uint64_t *cursor,
                       struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct buf pattern = {0};
    struct reply *reply = NULL;

    store_pattern_part(&pattern, bucket);
    buf_append_z(&pattern, ":*");
    const struct str args[] = {queue_number(&a, store_number(r->o.app)),
                               queue_number(&a, store_number(r->o.config)),
                               queue_number(&a, epoch),
                               bucket,
                               buf_str(&pattern),
                               arena_fmt(&a, "%llu", (unsigned long long)*cursor),
                               queue_number(&a, PAGE)};
    int code = arena_error(&a);
    if (code == 0)
        code =
            coord_eval(r->o.config, &a, &reply, SCRIPT_version_forget, args, ARRAY_SIZE(args), err);
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0 && !reply->str.len)
        code = ERR_AGAIN;
    if (code == 0 && str_u64(reply->str, cursor) < 0)
        code = err_set(err, ERR_TYPE, "the store gave no cursor");
    buf_release(&pattern);
    arena_release(&a);
    return code;
}

static int forget_later(struct replications *r, struct str escaped, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct reply *reply;
    int64_t now = 0;
    int code = forget_now_ms(r, &a, &now, err);

    if (code == 0)
        code = store_call(r->o.config, &a, &reply, err, STR("ZADD"), STR("w:forget"), STR("XX"),
                          queue_number(&a, now + MS_PER_DAY), escaped);
    arena_release(&a);
    return code;
}

/* Removes the version vectors of a bucket. A bucket that has a replication again keeps its vectors.
 * Such a bucket is checked again a day later, because the vectors may still have numbers of earlier
 * destinations. */
static int forget_bucket(struct replications *r, struct str escaped, struct str bucket, bool *done,
                         struct err *err)
{
    bool replicated = false;
    int64_t epoch = 0;
    uint64_t cursor = 0;
    int code = bucket_is_replicated(r, bucket, &replicated, &epoch, err);

    *done = false;
    if (code < 0 || replicated)
        return code < 0 ? code : forget_later(r, escaped, err);
    do {
        code = forget_page(r, escaped, epoch, &cursor, err);
    } while (code == 0 && cursor > 0);
    *done = code == 0;
    return code == ERR_AGAIN ? 0 : code;
}

int replication_forget_unused(struct replications *r, bool (*ended)(void *ctx), void *ctx,
                              size_t *count, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct buf plain = {0};
    struct reply *due = NULL;
    int code = forget_due(r, &a, &due, err);

    *count = 0;
    for (size_t i = 0; code == 0 && i < due->count && !ended(ctx); i++) {
        bool done = false;
        buf_reset(&plain);
        code = store_key_unescape(&plain, due->items[i].str);
        if (code == 0)
            code = forget_bucket(r, due->items[i].str, buf_str(&plain), &done, err);
        *count += done;
    }
    buf_release(&plain);
    arena_release(&a);
    return code;
}
