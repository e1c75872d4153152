/* Commits that were read recently, in memory. A commit never changes, so its record never becomes
 * stale. The size of the cache in bytes is bounded; the least recently used record is dropped
 * first. Any thread may call these functions. */
#ifndef LAKE_COMMIT_CACHE_H
#define LAKE_COMMIT_CACHE_H

#include "base/arena.h"

struct commit_cache;

struct commit_cache *commit_cache_new(size_t max_bytes);
void commit_cache_free(struct commit_cache *c); /* NULL is fine */

bool commit_cache_has(struct commit_cache *c, struct str partition, struct str id);
/* Copies the record of the commit to the arena. Returns false when the cache does not have it. */
bool commit_cache_get(struct commit_cache *c, struct arena *a, struct str partition, struct str id,
                      struct str *record);
/* Copies the id of the commit's tree to the arena. Look-ups of paths need nothing else of a commit,
 * and need not decode its record. Returns false when the cache does not have the commit, or its
 * record is damaged. */
bool commit_cache_tree(struct commit_cache *c, struct arena *a, struct str partition, struct str id,
                       struct str *tree);
void commit_cache_put(struct commit_cache *c, struct str partition, struct str id,
                      struct str record);
/* Returns the memory of the cached records, in bytes. */
size_t commit_cache_bytes(struct commit_cache *c);

#endif
