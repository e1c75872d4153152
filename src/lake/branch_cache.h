/* Branches as they were read last, in memory. docs/lake-s3.md, S7.
 *
 * A branch of the cache may be old, so nobody relies on it: it only says which rows a reader has to
 * ask for. The reader reads the branch's record behind those rows, in the same step, and compares
 * it with `branch.stamp`.
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
};

struct branch_cache *branch_cache_new(void);
void branch_cache_free(struct branch_cache *c); /* NULL is fine */

/* Returns a reference to the branch; NULL: the cache does not have it. */
struct cached_branch *branch_cache_get(struct branch_cache *c, struct str partition,
                                       struct str name);
/* Keeps the branch, whose record is b->stamp. A large record is not kept. */
void branch_cache_put(struct branch_cache *c, struct str partition, const struct lake_branch *b);
void cached_branch_unref(struct cached_branch *b); /* NULL is fine */

#endif
