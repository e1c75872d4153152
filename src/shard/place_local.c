/* Shards in a folder of this process. The rows of the database change their bucket, and the files
 * with the bytes stay where they are. */
#include "object/local/local_adopt.h"
#include "shard/place.h"

/* --- buckets --- */

static int local_remove_log(struct storage *home, struct str name, struct err *err)
{
    return local_remove_untapped(home, STR_EMPTY, name, err);
}

/* --- keys of a window --- */

static int local_sample(struct bucket *b, const struct shard_window *w, size_t samples,
                        struct arena *a, struct place_sample *out, struct err *err)
{
    return local_sample_keys(b, w->after, w->upto, samples, a, &out->count, &out->keys,
                             &out->key_count, err);
}

static int local_large(struct bucket *b, const struct shard_window *w, struct arena *a,
                       struct place_large *out, struct err *err)
{
    out->most = LOCAL_ADOPT_KEY_BYTES;
    return local_find_large(b, w->after, w->upto, LOCAL_ADOPT_KEY_BYTES, a, &out->key, &out->before,
                            err);
}

/* Moves all rows of the window. After a crash some of them may be in the target already. */
static int local_give(struct bucket *to, struct bucket *from, const struct shard_window *w,
                      struct err *err)
{
    struct arena a = {0};
    struct str after = w->after;
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        struct str last = STR_EMPTY;
        code = local_adopt(to, from, after, w->upto, LOCAL_ADOPT_MAX, &a, &last, &more, err);
        after = last;
    }
    arena_release(&a);
    return code;
}

static int local_take_back(struct bucket *to, struct bucket *from, const struct shard_window *w,
                           struct err *err)
{
    return local_give(from, to, w, err);
}

static int local_remove_keys(struct bucket *b, const struct shard_window *w, bool *more,
                             uint64_t *removed, struct err *err)
{
    return local_remove_rows(b, w->after, w->upto, LOCAL_ADOPT_MAX, more, removed, err);
}

const struct place_ops place_local_ops = {
    .closed = SHARD_CLOSED_ADOPT,
    .id = local_bucket_id,
    .fence = local_fence,
    .make_log = local_create_untapped,
    .remove_log = local_remove_log,
    .make_shard = local_make_shard,
    .remove_shard = local_remove_shard,
    .remove_home = local_remove_opened,
    .usage = local_usage_of,
    .sample = local_sample,
    .find_large = local_large,
    .give = local_give,
    .take_back = local_take_back,
    .remove_keys = local_remove_keys,
};
