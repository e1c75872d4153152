/* Branches as they were read last, in memory.
 *
 * A branch of the cache may be old, so nobody relies on it. For a reader (docs/lake-s3.md, S7) it
 * only says which rows to ask for: the reader reads the branch's record behind those rows, in the
 * same step, and compares it with `branch.stamp`. A stage (docs/lake.md, K1) writes on the
 * condition that the records of the branch and of the repository are still those of the cache.
 *
 * The cache has a fixed number of places. A branch has one of them, which it shares with other
 * branches; the branch that was kept last has it. Any thread may call these functions. */
#ifndef LAKE_BRANCH_CACHE_H
#define LAKE_BRANCH_CACHE_H

#include "base/arena.h"
#include "lake/record.h"

struct branch_cache;

/* A branch of the cache. Shared; it never changes. */
struct cached_branch {
    _Atomic(unsigned) refs;
    struct arena arena; /* memory of the members below */
    struct str partition;
    struct lake_branch branch; /* with its stamp */
    /* The record of the repository under which the rules of protection let a stage write to the
     * branch. Empty: no stage has asked yet. */
    struct str repo;
};

struct branch_cache *branch_cache_new(void);
void branch_cache_free(struct branch_cache *c); /* NULL is fine */

/* Returns a reference to the branch; NULL: the cache does not have it. */
struct cached_branch *branch_cache_get(struct branch_cache *c, struct str partition,
                                       struct str name);
/* Keeps the branch, whose record is b->stamp. `repo` is for cached_branch.repo; if it is empty, the
 * cache keeps the one that it has. A large record is not kept. */
void branch_cache_put(struct branch_cache *c, struct str partition, const struct lake_branch *b,
                      struct str repo);
void cached_branch_unref(struct cached_branch *b); /* NULL is fine */

#endif
