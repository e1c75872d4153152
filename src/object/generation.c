/* Numbers for the state of buckets. The low bits count the changes under way, the high bits those
 * that have ended. */
#include "object/generation.h"

#include "base/hash.h"

enum { GENERATION_STEP = 1 << 16 };

static _Atomic(uint64_t) *generation_of(struct generations *g, struct str bucket)
{
    return &g->counts[hash_xxh3(bucket, 0) % GENERATIONS];
}

void generations_init(struct generations *g)
{
    for (size_t i = 0; i < GENERATIONS; i++)
        atomic_init(&g->counts[i], GENERATION_STEP);
}

uint64_t generation_get(struct generations *g, struct str bucket)
{
    uint64_t value = g ? atomic_load(generation_of(g, bucket)) : 0;

    return value % GENERATION_STEP ? 0 : value;
}

void generation_begin(struct generations *g, struct str bucket)
{
    atomic_fetch_add(generation_of(g, bucket), 1);
}

void generation_end(struct generations *g, struct str bucket)
{
    atomic_fetch_add(generation_of(g, bucket), GENERATION_STEP - 1);
}
