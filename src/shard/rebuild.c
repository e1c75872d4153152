/* Reads a log again, or makes a map from the keys in the shards. */
#include "shard/verify.h"

#include "base/clock.h"
#include "shard/discover.h"
#include "shard/enable.h"
#include "shard/keys.h"
#include "shard/log.h"
#include "shard/names.h"

#include <stdlib.h>

enum { REBUILD_MS = 30 * MS_PER_S };

/* --- reading the log --- */

static int reload_served(struct sharded *x, struct err *err)
{
    struct shard_map *head = NULL;

    mutex_lock(&x->changes);
    int code = log_head(x->log, &head, err);
    if (code == 0)
        table_install(x->table, head);
    mutex_unlock(&x->changes);
    map_unref(head);
    return code;
}

/* Tries again to repair what the recovery at the start could not repair. */
static int reload_repair(struct shards *s, struct sharded *x, struct err *err)
{
    const struct shards_options *o = shards_settings(s);
    struct err why = {0};
    bool serves = true;

    if (shards_state(s, x->home, x->name, &why) != SHARDS_SERVED || why.code == 0 || !o->recover)
        return 0;
    int code = o->recover(o->ctx, x, &serves, err);
    if (code == 0 && serves)
        shards_note(s, x, NULL);
    else if (code == 0)
        shards_gone(s, x);
    return code;
}

int shard_reload(struct shards *s, struct storage *home, struct str name, struct err *err)
{
    struct sharded *x = shards_find(s, home, name);
    int code;

    if (!x) {
        code = discover_bucket(s, home, name, err);
        if (code == ERR_NO_BUCKET ||
            (code == 0 && shards_state(s, home, name, NULL) != SHARDS_SERVED))
            code =
                err_set(err, ERR_NOT_FOUND, "the bucket " STR_FMT " is not sharded", STR_ARG(name));
        return code;
    }
    code = reload_served(x, err);
    if (code == 0)
        code = reload_repair(s, x, err);
    sharded_unref(x);
    return code;
}

/* --- making a map from contents --- */

struct rebuild_place {
    struct str bucket;
    uint32_t number;
    struct bucket *opened;
    struct shard_keys walk;
    bool ended; /* the walk over the place's keys has ended */
};

struct rebuild {
    struct storage *home;
    struct str name;
    const struct rebuild_options *o;
    struct rebuild_result *result;
    struct arena a;
    struct bucket_info info; /* of the bucket */
    struct rebuild_place *places;
    size_t count;
    struct str mark;
    struct shard_map *map;
    struct buf before; /* the key that was handled last */
    size_t owner;      /* index of the place that owns the keys handled last; the first keys are
                          on place 0 */
};

static int rebuild_open(struct rebuild *r, struct rebuild_place *p, struct err *err)
{
    int code = r->home->ops->open_bucket(&p->opened, r->home, STR_EMPTY, p->bucket, err);

    if (code == 0) {
        shard_keys_open(&p->walk, p->opened, STR_EMPTY);
        code = shard_keys_next(&p->walk, err);
    }
    p->ended = code == ERR_END;
    return p->ended ? 0 : code;
}

static int place_by_number(const void *one, const void *two)
{
    const struct rebuild_place *a = one, *b = two;

    return (a->number > b->number) - (a->number < b->number);
}

/* Finds the shards, and opens them. All must have the same mark. Different marks mean that the
 * bucket was sharded twice and the older shards were not all removed; nothing says which are the
 * older. */
static int rebuild_find(struct rebuild *r, struct err *err)
{
    struct found_shard *found = NULL;
    size_t count = 0;
    int code = discover_shards(r->home, &r->a, r->name, &found, &count, err);

    if (code == 0 && count == 0)
        code =
            err_set(err, ERR_NOT_FOUND, "the bucket " STR_FMT " has no shards", STR_ARG(r->name));
    r->places = arena_array(&r->a, count + 1, sizeof(*r->places));
    if (code == 0 && !r->places)
        code = err_code(err, ERR_NO_MEMORY);
    if (code < 0)
        return code;
    r->mark = found[0].mark;
    r->places[r->count++] = (struct rebuild_place){.bucket = r->name};
    for (size_t i = 0; i < count; i++) {
        if (!str_eq(found[i].mark, r->mark))
            return err_set(err, ERR_CONFLICT,
                           "the buckets " STR_FMT " and " STR_FMT
                           " are of two shardings; remove the one that is not in use",
                           STR_ARG(found[0].name), STR_ARG(found[i].name));
        r->places[r->count++] =
            (struct rebuild_place){.bucket = found[i].name, .number = found[i].number};
    }
    qsort(r->places, r->count, sizeof(*r->places), place_by_number);
    for (size_t i = 0; i < r->count && code == 0; i++)
        code = rebuild_open(r, &r->places[i], err);
    return code;
}

static bool place_has(const struct rebuild_place *p, struct str key)
{
    return !p->ended && str_eq(buf_str(&p->walk.key), key);
}

/* Finds the smallest next key of all places. Returns false when all walks have ended. */
static bool rebuild_smallest(const struct rebuild *r, struct str *out)
{
    bool any = false;

    for (size_t i = 0; i < r->count; i++) {
        struct str key = buf_str(&r->places[i].walk.key);
        if (r->places[i].ended || (any && str_cmp(key, *out) >= 0))
            continue;
        *out = key;
        any = true;
    }
    return any;
}

/* Chooses the place that gets the key. If several places have the key, this is the one with the
 * newest version, and the key is reported to o->twice(). */
static size_t rebuild_choose(struct rebuild *r, struct str key, bool *twice)
{
    size_t best = r->count;

    *twice = false;
    for (size_t i = 0; i < r->count; i++) {
        if (!place_has(&r->places[i], key))
            continue;
        if (best < r->count) {
            *twice = true;
            r->result->twice++;
            if (r->o->twice)
                r->o->twice(r->o->ctx, key, r->places[best].bucket, r->places[i].bucket);
        }
        if (best == r->count || r->places[i].walk.modified_ms > r->places[best].walk.modified_ms)
            best = i;
    }
    return best;
}

/* Ends the segment of the current owner at the key that was handled last. The keys above that key
 * belong to the place `owner`. */
static void rebuild_cut(struct rebuild *r, size_t owner)
{
    struct shard_window rest = {buf_str(&r->before), STR_EMPTY};

    map_give(r->map, &rest, r->places[owner].number);
    r->owner = owner;
}

/* Moves past the key in every place that has it. In places that do not own the key it is garbage,
 * and the map notes that. */
static int rebuild_step(struct rebuild *r, struct str key, size_t owner, bool twice,
                        struct err *err)
{
    struct shard_window one = {buf_str(&r->before), key};
    int code = 0;

    for (size_t i = 0; i < r->count && code == 0; i++) {
        struct rebuild_place *p = &r->places[i];
        if (!place_has(p, key))
            continue;
        if (twice && i != owner)
            map_set_unclean(r->map, p->number, &one);
        code = shard_keys_next(&p->walk, err);
        p->ended = code == ERR_END;
        code = p->ended ? 0 : code;
    }
    buf_reset(&r->before);
    buf_append_str(&r->before, key);
    r->result->keys++;
    return code;
}

static int rebuild_walk(struct rebuild *r, struct err *err)
{
    struct buf key = BUF_INIT(0);
    struct str smallest;
    int code = 0;

    while (code == 0 && rebuild_smallest(r, &smallest)) {
        bool twice;
        buf_reset(&key);
        buf_append_str(&key, smallest);
        size_t owner = rebuild_choose(r, buf_str(&key), &twice);
        if (owner != r->owner)
            rebuild_cut(r, owner);
        code = rebuild_step(r, buf_str(&key), owner, twice, err);
    }
    buf_release(&key);
    if (code == 0 && r->result->twice && !r->o->newest)
        code = err_set(err, ERR_CONFLICT,
                       "%ju keys are in two shards; --newest takes the newer versions",
                       (uintmax_t)r->result->twice);
    return code;
}

/* Opens the log of a bucket, or makes it. Raises *number above the numbers of all maps in the
 * log. */
static int rebuild_open_log(struct storage *home, const struct bucket_info *of, struct bucket **log,
                            uint64_t *number, struct err *err)
{
    uint64_t newest = 0;
    int code = shard_make_log(log, home, of, true, err);

    if (code == 0)
        code = log_make_room(*log, &newest, err);
    if (newest >= *number)
        *number = newest + 1;
    return code;
}

/* Writes the map into the log. */
static int rebuild_publish(struct rebuild *r, struct err *err)
{
    struct bucket *log = NULL;
    int code = rebuild_open_log(r->home, &r->info, &log, &r->map->number, err);

    if (code == 0)
        code = map_check(r->map, err);
    if (code == 0)
        code = log_commit(log, r->map, clock_mono_ns() + REBUILD_MS * NS_PER_MS, err);
    if (log)
        log->ops->unref(log);
    return code;
}

static int rebuild_look(struct rebuild *r, struct err *err)
{
    struct bucket *first = NULL;
    int code = r->home->ops->open_bucket(&first, r->home, STR_EMPTY, r->name, err);

    if (code == 0)
        code = first->ops->info(first, &r->a, &r->info, err);
    if (first)
        first->ops->unref(first);
    return code;
}

static int rebuild_make(struct rebuild *r, struct shards *s, struct err *err)
{
    int code = rebuild_look(r, err);

    if (code == 0)
        code = rebuild_find(r, err);
    if (code < 0)
        return code;
    r->map = map_first(r->home->name, r->name, r->info.owner, shards_settings(s)->house, r->mark,
                       (uint64_t)clock_wall_ms());
    for (size_t i = 1; i < r->count; i++)
        map_add_place(r->map, r->places[i].number, r->home->name, r->places[i].bucket);
    code = sharded_id_now(r->home, r->name, &r->map->id, err);
    if (code == 0)
        code = rebuild_walk(r, err);
    if (code == 0)
        code = rebuild_publish(r, err);
    r->result->shards = r->map->place_count;
    r->result->segments = r->map->segment_count;
    return code;
}

/* Decides whether a map may be made; `head` is the code of reading the newest map. 0: the log is
 * destroyed or damaged. ERR_EXISTS: the log has a map, so none is made. */
static int rebuild_refuse(int head, struct str name, struct err *err)
{
    if (head == ERR_NOT_FOUND || head == ERR_NO_BUCKET || head == ERR_CORRUPT)
        return 0;
    if (head < 0)
        return head;
    return err_set(err, ERR_EXISTS,
                   "the map of bucket " STR_FMT " is not destroyed; a map is made from the "
                   "contents only where there is none",
                   STR_ARG(name));
}

/* Makes a map of a broken bucket. Meanwhile the name is claimed, so no other thread changes the
 * bucket's state. */
static int rebuild_broken(struct rebuild *r, struct shards *s, struct err *err)
{
    struct err before;

    if (!shards_recover(s, r->home, r->name, &before))
        return err_set(err, ERR_BUSY, "the bucket " STR_FMT " is being changed", STR_ARG(r->name));
    int code = rebuild_refuse(discover_check(r->home, r->name, err), r->name, err);
    if (code == 0)
        code = rebuild_make(r, s, err);
    if (code < 0) {
        if (before.code < 0)
            shards_break(s, r->home, r->name, &before);
        else /* another thread has just made the bucket plain */
            shards_forget(s, r->home, r->name, NULL);
        return code;
    }
    code = discover_claimed(s, r->home, r->name, &before, err);
    if (code == 0 && shards_state(s, r->home, r->name, NULL) != SHARDS_SERVED)
        code = err_code(err, ERR_NOT_FOUND);
    return code;
}

/* Writes the map in memory into a new log; called when the log of a served bucket was destroyed.
 * That map is exact, while a map that is made from the contents may have guesses. Called under
 * x->changes. */
static int rebuild_served(struct rebuild *r, struct sharded *x, struct err *err)
{
    struct shard_map *head = NULL, *now = table_map(x->table), *next = map_draft(now);
    struct bucket *log = NULL;
    int code = rebuild_refuse(log_head(x->log, &head, err), r->name, err);

    if (code == 0 && now->state != SHARD_ACTIVE)
        code = err_set(err, ERR_BUSY, "the bucket " STR_FMT " is being changed", STR_ARG(r->name));
    if (code == 0)
        code = rebuild_look(r, err);
    if (code == 0)
        code = rebuild_open_log(r->home, &r->info, &log, &next->number, err);
    if (code == 0) {
        struct bucket *old = x->log;
        x->log = log;
        log = old;
        code = sharded_publish(x, next, err);
    }
    r->result->shards = next->place_count;
    r->result->segments = next->segment_count;
    if (log)
        log->ops->unref(log);
    map_unref(head);
    map_unref(next);
    map_unref(now);
    return code;
}

int shard_rebuild(struct shards *s, struct storage *home, struct str name,
                  const struct rebuild_options *o, struct rebuild_result *out, struct err *err)
{
    struct rebuild r = {.home = home, .name = name, .o = o, .result = out, .a = ARENA_INIT(0)};
    struct sharded *x = shards_find(s, home, name);
    int code;

    *out = (struct rebuild_result){0};
    if (x) {
        mutex_lock(&x->changes);
        code = rebuild_served(&r, x, err);
        mutex_unlock(&x->changes);
    } else if (shards_state(s, home, name, NULL) == SHARDS_BROKEN) {
        code = rebuild_broken(&r, s, err);
    } else {
        code = err_set(err, ERR_NOT_FOUND, "the bucket " STR_FMT " is not sharded", STR_ARG(name));
    }
    for (size_t i = 0; i < r.count; i++) {
        shard_keys_close(&r.places[i].walk);
        if (r.places[i].opened)
            r.places[i].opened->ops->unref(r.places[i].opened);
    }
    map_unref(r.map);
    buf_release(&r.before);
    arena_release(&r.a);
    sharded_unref(x);
    return code;
}
