/* Makes a plain bucket a sharded one. */
#include "shard/enable.h"

#include "base/clock.h"
#include "object/part_names.h"
#include "shard/discover.h"
#include "shard/log.h"
#include "shard/move.h"
#include "shard/names.h"

enum { FIRST_MAP_MS = 30 * MS_PER_S };

/* --- the map bucket --- */

/* Checks that an existing bucket with the name of the map bucket can be used. It must have the
 * bucket's owner. Unless `used` is true, it must also be empty, as an interrupted enabling leaves
 * it. */
static int log_is_left(struct bucket *log, struct str owner, bool used, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct list_options one = {.limit = 1};
    struct list_result list = {0};
    struct bucket_info info = {0};
    int code = log->ops->info(log, &a, &info, err);

    if (code == 0)
        code = log->ops->list_versions(log, &a, &one, &list, err);
    if (code == 0 && ((list.count && !used) || !str_eq(info.owner, owner)))
        code =
            err_set(err, ERR_EXISTS, "the bucket " STR_FMT ", which would keep the map, is in use",
                    STR_ARG(log->name));
    arena_release(&a);
    return code;
}

int shard_make_log(struct bucket **out, struct storage *home, const struct bucket_info *of,
                   bool used, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct bucket_info info = {.name = shard_map_name(&a, of->name), .owner = of->owner};
    struct bucket *log = NULL;
    int made = place_of(home)->make_log(home, &info, err), code = made == ERR_EXISTS ? 0 : made;

    if (code == 0)
        code = discover_open_log(&log, home, of->name, err);
    if (code == 0 && made == ERR_EXISTS)
        code = log_is_left(log, of->owner, used, err);
    if (code == 0)
        *out = log;
    else if (log)
        log->ops->unref(log);
    arena_release(&a);
    return code;
}

/* --- enabling --- */

/* Returns the error that says why this bucket, which is not plain, cannot be sharded. */
static int enable_refuse(struct shards *s, struct storage *home, struct str name, struct err *err)
{
    struct err why = {0};

    switch (shards_state(s, home, name, &why)) {
    case SHARDS_BROKEN:
    case SHARDS_RECOVERING:
        return err_set(err, why.code, "%s", why.text);
    case SHARDS_REMOVED:
        return err_code(err, ERR_NO_BUCKET);
    default:
        return err_set(err, ERR_BUSY, "the bucket " STR_FMT " is just being sharded or made plain",
                       STR_ARG(name));
    }
}

/* Reads who owns the plain bucket. */
static int enable_look(struct storage *home, struct str name, struct arena *a,
                       struct bucket_info *out, struct err *err)
{
    struct bucket *b = NULL;
    int code = home->ops->open_bucket(&b, home, STR_EMPTY, name, err);

    if (code == 0)
        code = b->ops->info(b, a, out, err);
    out->name = name;
    if (b)
        b->ops->unref(b);
    return code;
}

/* Writes the first map. Its number is the time in ms, and is therefore above the numbers of all
 * maps that the log of this bucket ever had. */
static int enable_write(struct shards *s, struct storage *home, const struct bucket_info *of,
                        struct bucket *log, uint64_t threshold, struct shard_map **out,
                        struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct shard_map *m = map_first(home->name, of->name, of->owner, shards_settings(s)->house,
                                    shard_new_mark(&a), (uint64_t)clock_wall_ms());

    m->threshold = threshold;
    int code = sharded_id_now(home, of->name, &m->id, err);
    if (code == 0)
        code = log_commit(log, m, clock_mono_ns() + FIRST_MAP_MS * NS_PER_MS, err);
    if (code == 0)
        *out = m;
    else
        map_unref(m);
    arena_release(&a);
    return code;
}

/* Makes the change from plain to sharded. From shards_seal() on, new requests fail with ERR_BUSY
 * for a moment. fence() ends the requests that are under way. So when the first request to
 * the sharded bucket begins, no request to the plain bucket can change anything any more (H5). The
 * bucket may have been deleted before the seal, so its existence is checked again. */
static int enable_serve(struct shards *s, struct storage *home, const struct bucket_info *of,
                        struct bucket *log, uint64_t threshold, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct bucket_info info;
    struct shard_map *first = NULL;
    int code;

    shards_seal(s, home, of->name);
    place_of(home)->fence(home, of->name);
    code = enable_look(home, of->name, &a, &info, err);
    if (code == 0)
        code = enable_write(s, home, of, log, threshold, &first, err);
    if (code == 0) {
        struct sharded *x =
            sharded_new(shards_settings(s)->routes, home, log->ops->ref(log), map_ref(first));
        shards_serve(s, x, NULL);
        sharded_unref(x);
    }
    map_unref(first);
    arena_release(&a);
    return code;
}

/* Undoes a failed enabling. If the first map was certainly not written, the bucket stays plain, and
 * the map bucket is removed. If writing the map timed out, the map may be there, and then the map
 * bucket cannot be removed. The next start would shard the bucket by that map, so until then the
 * bucket is broken: its requests fail. `before` is an error that the plain bucket had before, and
 * still has. */
static void enable_undo(struct shards *s, struct storage *home, struct str name, struct bucket *log,
                        const struct err *why, const struct err *before)
{
    struct err err = {0};
    int code = log ? shard_remove_log(home, log, &err) : 0;

    if (code < 0 && why->code == ERR_TIMEOUT)
        shards_break(s, home, name, why);
    else
        shards_forget(s, home, name, before);
}

static int enable_plain(struct shards *s, struct storage *home, struct str name, uint64_t threshold,
                        const struct err *before, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct bucket_info info = {0};
    struct bucket *log = NULL;
    struct err why = {0};
    int code = enable_look(home, name, &a, &info, &why);

    if (code == 0)
        code = shard_make_log(&log, home, &info, false, &why);
    if (code == 0)
        code = shard_probe(log, &why);
    if (code == 0)
        code = enable_serve(s, home, &info, log, threshold, &why);
    if (code < 0) {
        enable_undo(s, home, name, log, &why, before);
        err_set(err, code, "%s", why.text);
    }
    if (log)
        log->ops->unref(log);
    arena_release(&a);
    return code;
}

/* Enables a bucket that is sharded already: this sets its threshold. ERR_CONFLICT: the bucket is
 * being made plain, which would end with a plain bucket in spite of this call. */
static int enable_again(struct sharded *x, int64_t threshold, struct err *err)
{
    struct shard_map *now = table_map(x->table);
    bool ends = now->move.id.len && now->move.kind == SHARD_DISABLE;

    map_unref(now);
    if (ends)
        return err_set(err, ERR_CONFLICT,
                       "the bucket " STR_FMT " is being made plain; `weir shard cancel " STR_FMT
                       "` stops that",
                       STR_ARG(x->name), STR_ARG(x->name));
    return threshold == SHARD_THRESHOLD_KEEP ? 0 : shard_set_threshold(x, (uint64_t)threshold, err);
}

int shard_enable(struct shards *s, struct storage *home, struct str name, int64_t threshold,
                 struct err *err)
{
    struct sharded *x = NULL;
    struct err before = {0};
    int code;

    if (!place_of(home))
        return err_set(err, ERR_UNSUPPORTED,
                       "the storage " STR_FMT " is remote; only a bucket in a folder of this weir "
                       "can be sharded",
                       STR_ARG(home->name));
    if (bucket_name_is_part(name))
        return err_code(err, ERR_NO_BUCKET);
    x = shards_find(s, home, name);
    if (x)
        code = enable_again(x, threshold, err);
    else if (shards_claim(s, home, name, &before))
        code = enable_plain(s, home, name, threshold > 0 ? (uint64_t)threshold : 0, &before, err);
    else
        code = enable_refuse(s, home, name, err);
    sharded_unref(x);
    return code;
}

int shard_set_threshold(struct sharded *x, uint64_t threshold, struct err *err)
{
    int code = 0;

    mutex_lock(&x->changes);
    struct shard_map *now = table_map(x->table);
    if (now->threshold != threshold) {
        struct shard_map *next = map_draft(now);
        next->threshold = threshold;
        code = sharded_publish(x, next, err);
        map_unref(next);
    }
    mutex_unlock(&x->changes);
    map_unref(now);
    return code;
}
