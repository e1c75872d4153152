/* The rule of splitting. It uses a hash of the key, so that a changed record moves only boundaries
 * near that record. */
#include "lake/split.h"

#include "base/hash.h"

size_t split_target(const struct tree_store *t, unsigned level)
{
    if (level)
        return t->index_bytes ? t->index_bytes : SPLIT_INDEX;
    return t->leaf_bytes ? t->leaf_bytes : SPLIT_LEAF;
}

/* Whether a record ends its node, by its hash. Chances are in units of 2^-64. The share of a record
 * is its weight divided by the target size. In a node below the target size the chance of a record
 * is a quarter of its share; above the target size it is four times the share. So sizes stay near
 * the target, and a boundary that a change moved is soon followed by one that it did not move. */
static bool split_hits(uint64_t hash, size_t weight, size_t size, size_t target)
{
    size_t share = size < target ? weight : weight * 16; /* in quarters of a byte */
    size_t whole = target * 4;

    return share >= whole || hash < UINT64_MAX / whole * share;
}

bool split_after(const struct node_draft *d, size_t weight)
{
    size_t target = d->target;

    /* Without this the number of levels would have no limit if keys are long. */
    if (d->level && d->records < SPLIT_CHILDREN)
        return false;
    if (d->weight >= 4 * target)
        return true;
    if (d->weight < target / 4)
        return false;
    /* The level is the seed of the hash. So a key that has ended a node on one level is not more
     * likely to end a node on the level above. */
    return split_hits(hash_xxh3(node_draft_last(d), d->level), weight, d->weight, target);
}
