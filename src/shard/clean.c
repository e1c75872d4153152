/* Removes garbage: keys that a shard has outside of its segments (H10). */
#include "shard/verify.h"

#include "base/vec.h"
#include "shard/move_int.h"

struct garbage {
    struct str shard;
    struct shard_window window;
};

struct cleaning {
    struct sharded *x;
    struct arena a;
    VEC(struct garbage) unknown; /* garbage that the map does not know of */
    uint64_t removed;
};

static void garbage_note(void *ctx, const struct verify_finding *f)
{
    struct cleaning *c = ctx;
    struct shard_window w = {arena_str(&c->a, f->window.after), arena_str(&c->a, f->window.upto)};

    if (f->kind == VERIFY_GARBAGE && !f->known)
        vec_push(&c->unknown, ((struct garbage){arena_str(&c->a, f->shard), w}));
}

/* Returns the newest map, if no move is under way and nothing is closed in it. The caller holds
 * x->changes, so the owners of all windows stay the same until the caller releases it. */
static int cleaning_map(struct cleaning *c, struct shard_map **out, struct err *err)
{
    struct shard_map *m = NULL;
    int code = move_open_map(c->x, &m, err);

    if (code == 0 && m->move.id.len == 0) {
        *out = m;
        return 0;
    }
    map_unref(m);
    return code < 0
               ? code
               : err_set(err, ERR_BUSY, "keys of the bucket are being moved; clean it afterwards");
}

/* Notes in the map which windows have garbage, before anything is removed. The windows were found
 * under an older map, so a window of which the shard owns a part by now is left out. */
static int garbage_publish(struct cleaning *c, struct err *err)
{
    struct shard_map *m = NULL;
    int code = c->unknown.len ? cleaning_map(c, &m, err) : 0;

    if (!m)
        return code;
    struct shard_map *next = map_draft(m);
    vec_each (&c->unknown, struct garbage *, g)
        for (size_t i = 0; i < m->place_count; i++) {
            bool owns = false;
            for (size_t k = 0; k < m->segment_count; k++) {
                struct shard_window w = map_window(m, k);
                owns |= m->segments[k].place == i && window_overlaps(&w, &g->window);
            }
            if (str_eq(m->places[i].bucket, g->shard) && !owns)
                map_set_unclean(next, m->places[i].number, &g->window);
        }
    code = sharded_publish(c->x, next, err);
    map_unref(next);
    map_unref(m);
    return code;
}

/* Removes some thousands of rows in the first unclean window of a place. If no garbage is left in
 * the window, marks it as clean. */
static int garbage_step(struct cleaning *c, const struct shard_map *m, const struct shard_place *p,
                        struct err *err)
{
    struct garbage_removed removed = {0};
    int code = move_remove_garbage(c->x, m, p->number, &p->unclean[0], &removed, err);

    c->removed += removed.versions;
    if (code < 0 || removed.more)
        return code;
    struct shard_map *next = map_draft(m);
    map_set_clean(next, p->number, &p->unclean[0]);
    code = sharded_publish(c->x, next, err);
    map_unref(next);
    return code;
}

/* Does one step, and sets *done when no place has an unclean window. */
static int garbage_clean(struct cleaning *c, bool *done, struct err *err)
{
    struct shard_map *m = NULL;
    const struct shard_place *dirty = NULL;

    mutex_lock(&c->x->changes);
    int code = cleaning_map(c, &m, err);
    for (size_t i = 0; code == 0 && i < m->place_count && !dirty; i++)
        if (m->places[i].unclean_count)
            dirty = &m->places[i];
    if (dirty)
        code = garbage_step(c, m, dirty, err);
    *done = !dirty;
    mutex_unlock(&c->x->changes);
    map_unref(m);
    return code;
}

int shard_clean(struct shards *s, struct storage *home, struct str name, uint64_t *removed,
                struct err *err)
{
    struct cleaning c = {.x = shards_find(s, home, name), .a = ARENA_INIT(0)};
    bool done = false;
    int code =
        c.x ? shard_verify(s, home, name, garbage_note, &c, err)
            : err_set(err, ERR_NOT_FOUND, "the bucket " STR_FMT " is not sharded", STR_ARG(name));

    if (code == 0) {
        mutex_lock(&c.x->changes);
        code = garbage_publish(&c, err);
        mutex_unlock(&c.x->changes);
    }
    while (code == 0 && !done)
        code = garbage_clean(&c, &done, err);
    *removed = c.removed;
    vec_release(&c.unknown);
    sharded_unref(c.x);
    arena_release(&c.a);
    return code;
}
