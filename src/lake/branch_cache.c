/* Branches as they were read last. */
#include "lake/branch_cache.h"

#include "base/hash.h"
#include "base/ids.h"
#include "os/thread.h"

#include <stdlib.h>

enum {
    BRANCH_PLACES = 256,
    CACHED_RECORD_MAX = 16 << 10, /* largest record that is cached, in bytes */
};

struct branch_place {
    struct mutex lock;            /* class "lake.branches" */
    struct cached_branch *branch; /* a reference; NULL: the place is free */
};

struct branch_cache {
    uint64_t seed;
    struct branch_place places[BRANCH_PLACES];
};

struct branch_cache *branch_cache_new(void)
{
    struct branch_cache *c = xzalloc(sizeof(*c));

    c->seed = random_u64();
    for (size_t i = 0; i < BRANCH_PLACES; i++)
        mutex_init(&c->places[i].lock, "lake.branches");
    return c;
}

void branch_cache_free(struct branch_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < BRANCH_PLACES; i++) {
        cached_branch_unref(c->places[i].branch);
        mutex_release(&c->places[i].lock);
    }
    free(c);
}

void cached_branch_unref(struct cached_branch *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    arena_release(&b->arena);
    free(b);
}

static struct branch_place *branch_place_of(struct branch_cache *c, struct str partition,
                                            struct str name)
{
    return &c->places[hash_xxh3(name, hash_xxh3(partition, c->seed)) % BRANCH_PLACES];
}

struct cached_branch *branch_cache_get(struct branch_cache *c, struct str partition,
                                       struct str name)
{
    struct branch_place *at = branch_place_of(c, partition, name);

    mutex_lock(&at->lock);
    struct cached_branch *b = at->branch;
    if (b && str_eq(b->branch.id, name) && str_eq(b->partition, partition))
        atomic_fetch_add(&b->refs, 1);
    else
        b = NULL;
    mutex_unlock(&at->lock);
    return b;
}

/* Makes a branch of the cache from its record; NULL: there is no memory for it. */
static struct cached_branch *cached_branch_new(struct str partition, struct str record,
                                               struct str repo, struct str tree)
{
    struct cached_branch *b = xzalloc(sizeof(*b));
    struct str own;

    atomic_init(&b->refs, 1);
    b->partition = arena_str(&b->arena, partition);
    own = arena_str(&b->arena, record);
    b->repo = arena_str(&b->arena, repo);
    b->tree = tree.p ? arena_str(&b->arena, tree) : STR_EMPTY;
    if (arena_error(&b->arena) < 0 || lake_branch_read(&b->branch, &b->arena, own, NULL) < 0) {
        cached_branch_unref(b);
        return NULL;
    }
    b->branch.stamp = own;
    return b;
}

void branch_cache_put(struct branch_cache *c, struct str partition, const struct lake_branch *b,
                      struct str repo, struct str tree)
{
    struct branch_place *at = branch_place_of(c, partition, b->id);
    struct cached_branch *known = branch_cache_get(c, partition, b->id), *fresh = NULL;

    if (known && !repo.len)
        repo = known->repo;
    if (known && !tree.p && str_eq(known->branch.commit_id, b->commit_id))
        tree = known->tree;
    if (b->stamp.len <= CACHED_RECORD_MAX && repo.len <= CACHED_RECORD_MAX)
        fresh = cached_branch_new(partition, b->stamp, repo, tree);
    cached_branch_unref(known);
    if (!fresh)
        return;
    mutex_lock(&at->lock);
    struct cached_branch *old = at->branch;
    at->branch = fresh;
    mutex_unlock(&at->lock);
    cached_branch_unref(old);
}
