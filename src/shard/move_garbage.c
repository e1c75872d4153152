/* Removes garbage: rows that a shard has outside of its segments (docs/sharding.md, H10). No
 * request reads them. They are removed before the shard gets the window that they are in, and
 * before the shard itself is removed. */
#include "shard/move_int.h"
#include "shard/names.h"

/* Whether the place owns at least one key of the window. */
static bool place_owns(const struct shard_map *m, uint32_t number, const struct shard_window *w)
{
    for (size_t i = map_segment_after(m, w->after); i < m->segment_count; i++) {
        struct shard_window segment = map_window(m, i);
        if (!window_overlaps(&segment, w))
            break;
        if (map_place_at(m, i)->number == number)
            return true;
    }
    return false;
}

int move_remove_garbage(struct sharded *s, const struct shard_map *m, uint32_t number,
                        const struct shard_window *w, struct garbage_removed *out, struct err *err)
{
    struct bucket *b = NULL;

    mutex_assert_held(&s->changes);
    struct shard_map *newest = table_map(s->table);
    bool is_newest = newest->number == m->number;
    map_unref(newest);
    if (!is_newest) /* under a newer map the window may have another owner */
        return err_set(err, ERR_AGAIN, "the map has changed");
    BUG_ON(m->closed != SHARD_OPEN); /* rows on their way are outside of segments too */
    BUG_ON(place_owns(m, number, w));
    int code = move_open_place(s, m, number, &b, err);
    if (code < 0)
        return code;
    code = s->place->remove_keys(b, w, &out->more, &out->versions, err);
    b->ops->unref(b);
    return code;
}

static int shard_empty(struct sharded *s, struct str name, struct err *err)
{
    const struct shard_window all = {STR_EMPTY, STR_EMPTY};
    struct bucket *b = NULL;
    uint64_t removed = 0;
    bool more = true;
    int code = s->home->ops->open_bucket(&b, s->home, s->owner, name, err);

    if (code < 0)
        return code;
    while (code == 0 && more)
        code = s->place->remove_keys(b, &all, &more, &removed, err);
    b->ops->unref(b);
    return code;
}

int move_remove_shard(struct sharded *s, const struct shard_map *m, struct str name,
                      struct err *err)
{
    struct str mark;
    uint32_t number;

    BUG_ON(!shard_name_parse(name, s->name, &mark, &number));
    BUG_ON(m->state == SHARD_ACTIVE && str_eq(mark, m->mark) && map_place(m, number));
    shard_step_begin("shard.clean");
    int code = s->place->remove_shard(s->home, name, err);
    if (code == ERR_CONFLICT) {
        code = shard_empty(s, name, err);
        if (code == 0)
            code = s->place->remove_shard(s->home, name, err);
    }
    if (code == 0)
        shard_step_end("shard.clean");
    return code == ERR_NO_BUCKET ? 0 : code;
}
