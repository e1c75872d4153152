/* The rule of splitting. It uses a hash of the key, so that a change moves only boundaries near
 * it. */
#include "lake/split.h"

#include "base/hash.h"

size_t split_target(const struct tree_store *t, unsigned level)
{
    if (level)
        return t->index_bytes ? t->index_bytes : SPLIT_INDEX;
    return t->leaf_bytes ? t->leaf_bytes : SPLIT_LEAF;
}

/* Whether a record ends its node, by its hash. Chances are in units of 2^-64. Below the target size
 * the chance of a record is a quarter of its share of the target, above it four times the share. So
 * sizes stay near the target, and a boundary that a change moved is soon followed by one that it
 * did not move. */
static bool split_hits(uint64_t hash, size_t weight, size_t size, size_t target)
{
    size_t share = size < target ? weight : weight * 16; /* in quarters of a byte */
    size_t whole = target * 4;

    return share >= whole || hash < UINT64_MAX / whole * share;
}

bool split_after(const struct node_draft *d, size_t weight)
{
    size_t target = d->target;

    if (d->level && d->records < SPLIT_CHILDREN) /* otherwise long keys could make endless levels */
        return false;
    if (d->weight >= 4 * target)
        return true;
    if (d->weight < target / 4)
        return false;
    /* The level is the seed, so that a key that ended a node is not more likely to end the node
     * above. */
    return split_hits(hash_xxh3(node_draft_last(d), d->level), weight, d->weight, target);
}
