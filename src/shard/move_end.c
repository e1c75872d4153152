/* How a move ends: shards without segments are removed, and a bucket that has all its keys itself
 * becomes plain. */
#include "base/clock.h"
#include "shard/move_int.h"
#include "shard/names.h"

enum { CLEAN_PAGE = 1000 };

/* --- cleaning --- */

static int shard_remove(struct sharded *s, struct str name, struct err *err)
{
    shard_step_begin("shard.clean");
    int code = s->place->remove_shard(s->home, name, err);
    if (code == 0)
        shard_step_end("shard.clean");
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* Whether the name is that of a shard of this bucket that is not in the map. */
static bool shard_is_stray(const struct sharded *s, const struct shard_map *m, struct str name)
{
    struct str mark;
    uint32_t number;

    if (!shard_name_parse(name, s->name, &mark, &number) || !str_eq(mark, m->mark))
        return false;
    const struct shard_place *p = map_place(m, number);
    return m->state == SHARD_PLAIN || !p;
}

/* Returns the start of a shard's name, up to its number. The names of all shards of the map begin
 * with this string. */
static struct str shard_name_start(const struct sharded *s, const struct shard_map *m,
                                   struct arena *a)
{
    struct str one = shard_bucket_name(a, s->name, m->mark, 1);

    return one.len ? str_n(one.p, one.len - 1) : one;
}

/* Calls fn with the name of every shard on the home that has the map's mark. */
static int shards_each(struct sharded *s, const struct shard_map *m,
                       int (*fn)(struct sharded *s, const struct shard_map *m, struct str name,
                                 struct err *err),
                       struct err *err)
{
    struct arena names = {0}, page = {0};
    struct str start = shard_name_start(s, m, &names), after = start;
    size_t count = CLEAN_PAGE;
    int code = arena_error(&names);

    while (code == 0 && count == CLEAN_PAGE) {
        struct bucket_info *found = NULL;
        arena_reset(&page);
        code = s->home->ops->list_buckets(s->home, &page, s->owner, after, CLEAN_PAGE, &found,
                                          &count, err);
        for (size_t i = 0; code == 0 && i < count; i++) {
            if (!str_starts(found[i].name, start)) {
                count = 0;
                break;
            }
            code = fn(s, m, found[i].name, err);
        }
        if (code == 0 && count)
            after = arena_str(&names, found[count - 1].name);
    }
    arena_release(&page);
    arena_release(&names);
    return code;
}

static int stray_remove(struct sharded *s, const struct shard_map *m, struct str name,
                        struct err *err)
{
    if (!shard_is_stray(s, m, name))
        return 0;
    int code = shard_remove(s, name, err);
    return code == ERR_CONFLICT ? 0 : code; /* `verify` reports a shard that is not empty */
}

int move_tidy(struct sharded *s, const struct shard_map *m, struct err *err)
{
    return shards_each(s, m, stray_remove, err);
}

/* Removes the objects of the map bucket, the oldest map first. So if the removal is interrupted,
 * the head of the log is still the newest map. */
static int log_empty(struct bucket *log, struct err *err)
{
    int code = 0;
    bool some = true;

    while (code == 0 && some) {
        struct arena a = {0};
        struct list_options o = {.limit = OBJECT_LIST_MAX};
        struct list_result found = {0};
        code = log->ops->list(log, &a, &o, &found, err);
        for (size_t i = found.count; code == 0 && i > 0; i--) {
            struct remove_result removed;
            struct remove_options plain = {0};
            code = log->ops->remove(log, &a, found.entries[i - 1].info.key, &plain, &removed, err);
        }
        some = found.more;
        arena_release(&a);
    }
    return code;
}

int shard_remove_log(struct storage *home, struct bucket *log, struct err *err)
{
    shard_step_begin("shard.unmap");
    int code = log_empty(log, err);
    if (code == 0)
        code = place_of(home)->remove_log(home, log->name, err);
    if (code == ERR_NO_BUCKET)
        code = 0;
    if (code == 0)
        shard_step_end("shard.unmap");
    return code;
}

static int any_remove(struct sharded *s, const struct shard_map *m, struct str name,
                      struct err *err)
{
    struct str mark;
    uint32_t number;

    return shard_name_parse(name, s->name, &mark, &number) ? move_remove_shard(s, m, name, err) : 0;
}

int move_clean_up(struct sharded *s, struct err *err)
{
    struct shard_map *m = table_map(s->table);

    BUG_ON(m->state == SHARD_ACTIVE); /* no shard owns a key any more */
    int code = shards_each(s, m, any_remove, err);

    if (code == 0)
        code = shard_remove_log(s->home, s->log, err);
    map_unref(m);
    return code;
}

/* --- the end of a move --- */

static bool place_has_segment(const struct shard_map *m, size_t place)
{
    for (size_t i = 0; i < m->segment_count; i++)
        if (m->segments[i].place == place)
            return true;
    return false;
}

/* Removes the places without segments from the draft. */
static void draft_drop_places(struct shard_map *draft)
{
    for (size_t i = draft->place_count; i > 1; i--)
        if (!place_has_segment(draft, i - 1))
            map_remove_place(draft, draft->places[i - 1].number);
}

/* Removes the rows of the shards that end_publish() removes from the map. At this time the map
 * still has these shards, so that the next try finds them if weir is killed in between. */
static int end_remove_garbage(struct sharded *s, const struct shard_map *now, struct err *err)
{
    const struct shard_window all = {STR_EMPTY, STR_EMPTY};
    int code = 0;

    for (size_t i = 1; i < now->place_count && code == 0; i++) {
        struct garbage_removed removed = {.more = !place_has_segment(now, i)};
        while (code == 0 && removed.more)
            code = move_remove_garbage(s, now, now->places[i].number, &all, &removed, err);
    }
    return code;
}

static bool map_is_at_home(const struct shard_map *m)
{
    return m->segment_count == 1 && m->segments[0].place == 0;
}

/* Publishes the map in which the move has ended. */
static int end_publish(struct mover *m, struct sharded *s, const struct shard_map *now, bool plain,
                       struct err *err)
{
    struct shard_map *draft = map_draft(now);

    if (now->move.id.len)
        map_end_move(draft);
    draft_drop_places(draft);
    if (plain) {
        draft->state = SHARD_PLAIN;
        /* Done before the map is published, so that a request that this map refuses finds the plain
         * bucket at once. */
        if (m->o.plain)
            m->o.plain(m->o.ctx, s);
    }
    return move_publish(s, draft, "shard.end", err);
}

int move_end(struct mover *m, struct sharded *s, bool plain, bool *became_plain, struct err *err)
{
    struct shard_map *now = NULL;

    *became_plain = false;
    mutex_lock(&s->changes);
    int code = move_open_map(s, &now, err);
    bool whole = code == 0 && plain && map_is_at_home(now);
    if (code == 0)
        code = end_remove_garbage(s, now, err);
    if (code == 0)
        code = end_publish(m, s, now, whole, err);
    map_unref(now);
    if (code == 0)
        *became_plain = whole;
    if (code == 0 && !whole) { /* under the lock, so that nobody makes a shard meanwhile */
        now = table_map(s->table);
        code = move_tidy(s, now, err);
        map_unref(now);
    }
    mutex_unlock(&s->changes);
    return code;
}
