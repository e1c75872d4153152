/* The state that every shard has: versions and object lock (docs/sharding.md, H13).
 *
 *     close      a map that says that the state is being changed; no request waits for it
 *     change     every shard, and the bucket itself last
 *     open       a map in which nothing is closed
 *
 * If weir is killed in between, or if a shard cannot be changed, the newest map still says so. Then
 * move_repair() first brings every shard to the strongest state that one of them has. So no shard
 * keeps fewer versions, or has a weaker lock, than the bucket itself. */
#include "shard/state.h"

#include "shard/move_int.h"

#include <stdlib.h>

/* The shards of a map. */
struct state_shards {
    struct bucket **items; /* references; the first is the bucket itself */
    size_t count;
};

static int state_open_place(struct sharded *s, const struct shard_place *p, struct bucket **out,
                            struct err *err)
{
    return p->number == 0 ? sharded_open_home(s, out, err) : sharded_open_place(s, p, out, err);
}

/* Opens all shards, so that a missing one is noticed before anything is changed. */
static int state_open(struct state_shards *all, struct sharded *s, const struct shard_map *m,
                      struct err *err)
{
    int code = 0;

    *all = (struct state_shards){.items = xcalloc(m->place_count, sizeof(struct bucket *))};
    while (code == 0 && all->count < m->place_count) {
        code = state_open_place(s, &m->places[all->count], &all->items[all->count], err);
        all->count += code == 0;
    }
    return code;
}

static void state_release(struct state_shards *all)
{
    for (size_t i = 0; i < all->count; i++)
        all->items[i]->ops->unref(all->items[i]);
    free(all->items);
}

/* --- changing --- */

int state_change_one(const struct state_change *c, struct bucket *b, struct err *err)
{
    if (!c->lock)
        return b->ops->set_versions(b, c->on, err);
    return b->ops->set_object_lock
               ? b->ops->set_object_lock(b, err)
               : err_set(err, ERR_UNSUPPORTED, "a shard is on a storage without object lock");
}

/* Changes all shards, and the bucket itself last. So the bucket reports the new state only when all
 * shards have it. */
static int state_change_all(const struct state_change *c, struct state_shards *all, struct err *err)
{
    int code = 0;

    for (size_t i = all->count; i > 0 && code == 0; i--) {
        if (c->untapped)
            place_hide(all->items[i - 1]);
        shard_step_begin("shard.state");
        code = state_change_one(c, all->items[i - 1], err);
        if (code == 0)
            shard_step_end("shard.state");
    }
    return code;
}

static int state_close(struct sharded *s, const struct shard_map *m, struct err *err)
{
    struct shard_map *draft = map_draft(m);

    map_close(draft, SHARD_CLOSED_DOCUMENTS, NULL);
    return move_publish(s, draft, "shard.changing", err);
}

static int state_reopen(struct sharded *s, struct err *err)
{
    struct shard_map *m = table_map(s->table), *draft = map_draft(m);

    map_unref(m);
    map_open(draft);
    return move_publish(s, draft, "shard.open", err);
}

/* Changes several shards, between a map that says so and one that does not any more. */
static int state_change_closed(struct sharded *s, const struct shard_map *m,
                               const struct state_change *c, struct state_shards *all,
                               struct err *err)
{
    struct err later; /* the next change, move or start tries again */
    int code = state_close(s, m, err);

    if (code == 0)
        code = state_change_all(c, all, err);
    if (code == 0)
        return state_reopen(s, err);
    (void)!move_repair(s, &later);
    return code;
}

int state_change(struct sharded *s, const struct state_change *c, struct err *err)
{
    struct state_shards all = {0};
    struct shard_map *m = NULL;
    int code = move_open_map(s, &m, err);

    if (code < 0)
        return code == ERR_CONFLICT ? err_code(err, ERR_BUSY) : code;
    code = state_open(&all, s, m, err);
    if (code == 0)
        code = all.count > 1 ? state_change_closed(s, m, c, &all, err)
                             : state_change_all(c, &all, err);
    state_release(&all);
    map_unref(m);
    return code;
}

/* --- repairing --- */

/* Returns the strongest state that one of the shards has. */
static int state_strongest(struct state_shards *all, struct bucket_info *out, struct err *err)
{
    static const int strength[] = {
        [VERSIONS_NEVER] = 0, [VERSIONS_SUSPENDED] = 1, [VERSIONS_ON] = 2};
    struct arena a = {0};
    int code = 0;

    *out = (struct bucket_info){0};
    for (size_t i = 0; i < all->count && code == 0; i++) {
        struct bucket_info info = {0};
        code = all->items[i]->ops->info(all->items[i], &a, &info, err);
        if (strength[info.versions] > strength[out->versions])
            out->versions = info.versions;
        out->object_lock |= info.object_lock;
    }
    arena_release(&a);
    return code;
}

int state_repair(struct sharded *s, const struct shard_map *m, struct err *err)
{
    struct state_shards all = {0};
    struct bucket_info most = {0};
    int code = state_open(&all, s, m, err);

    if (code == 0)
        code = state_strongest(&all, &most, err);
    if (code == 0 && most.versions != VERSIONS_NEVER)
        code =
            state_change_all(&(struct state_change){.on = most.versions == VERSIONS_ON}, &all, err);
    if (code == 0 && most.object_lock)
        code = state_change_all(&(struct state_change){.lock = true}, &all, err);
    state_release(&all);
    return code;
}
