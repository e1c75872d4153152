/* Branches as this process read them last, in memory.
 *
 * A cached branch may be out of date, so every use of it is checked. A reader (docs/lake-s3.md, S7)
 * takes the branch's tokens from the cache, to know which rows to read. In the same round trip,
 * after those rows, it reads the branch's record, and compares the record with `branch.stamp`. A
 * stage (docs/lake.md, K1) writes on the condition that the records of the branch and of the
 * repository are still those of the cache.
 *
 * The cache has a fixed number of places. Several branches share a place, and the branch that was
 * put last occupies it. Any thread may call these functions. */
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
    struct lake_branch branch; /* the branch, with its stamp */
    /* The repository's record as it was when the rules of protection were last checked and let a
     * stage write to the branch. Empty: no stage has checked them yet. */
    struct str repo;
    struct str tree; /* the tree of the branch's head; p NULL: not known */
};

struct branch_cache *branch_cache_new(void);
void branch_cache_free(struct branch_cache *c); /* NULL is fine */

/* Returns a reference to the branch; NULL: the cache does not have it. */
struct cached_branch *branch_cache_get(struct branch_cache *c, struct str partition,
                                       struct str name);
/* Puts the branch into the cache; its record is b->stamp. `repo` and `tree` are the values for the
 * members of cached_branch. If `repo` is empty, the value in the cache stays; if tree.p is NULL, it
 * stays as long as the head is the same. A large record is not cached. */
void branch_cache_put(struct branch_cache *c, struct str partition, const struct lake_branch *b,
                      struct str repo, struct str tree);
void cached_branch_unref(struct cached_branch *b); /* NULL is fine */

#endif
