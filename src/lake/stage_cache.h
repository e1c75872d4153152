/* The records of branches as a stage read them last, with the records of their repositories, in
 * memory. Other records may be stored by now, so only writes that check both records use these
 * (docs/lake.md, K1). The memory is bounded. Any thread may call these functions. */
#ifndef LAKE_STAGE_CACHE_H
#define LAKE_STAGE_CACHE_H

#include "base/arena.h"

struct stage_cache;

/* The bytes of both records. */
struct stage_records {
    struct str repo, branch;
};

struct stage_cache *stage_cache_new(void);
void stage_cache_free(struct stage_cache *c); /* NULL is fine */

/* Copies the records of the branch to the arena. Returns false when the cache does not have
 * them. */
bool stage_cache_get(struct stage_cache *c, struct arena *a, struct str partition, struct str name,
                     struct stage_records *out);
void stage_cache_put(struct stage_cache *c, struct str partition, struct str name,
                     const struct stage_records *r);
void stage_cache_forget(struct stage_cache *c, struct str partition, struct str name);

#endif
