/* The rule of splitting: decides after which records a node of a tree ends. It depends on a hash of
 * the key, so a changed record moves only boundaries near that record. */
#include "lake/split.h"

#include "base/hash.h"

size_t split_target(const struct tree_store *t, unsigned level)
{
    if (level)
        return t->index_bytes ? t->index_bytes : SPLIT_INDEX;
    return t->leaf_bytes ? t->leaf_bytes : SPLIT_LEAF;
}

/* Whether the hash of a record's key ends the node. The chance of that depends on the record's
 * share, which is its weight divided by the target size: while the node is smaller than the
 * target the chance is a quarter of the share, and from there on four times the share. So sizes
 * stay near the target, and soon after a boundary that a change has moved there is one that it
 * has not moved. */
static bool split_hits(uint64_t hash, size_t weight, size_t size, size_t target)
{
    size_t share = size < target ? weight : weight * 16; /* in quarters of a byte */
    size_t whole = target * 4;

    return share >= whole || hash < UINT64_MAX / whole * share;
}

bool split_after(const struct node_draft *d, size_t weight)
{
    size_t target = d->target;

    /* Without this rule, long keys could make nodes of one child, and so a tree of endless
     * height. */
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
