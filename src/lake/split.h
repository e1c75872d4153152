/* The rule that cuts a level of a tree into nodes. docs/lake-trees.md, "The rule of splitting". */
#ifndef LAKE_SPLIT_H
#define LAKE_SPLIT_H

#include "lake/node.h"

enum {
    SPLIT_LEAF = 64 << 10,  /* target size of leaves: the intended weight, in bytes */
    SPLIT_INDEX = 32 << 10, /* target size of nodes above the leaves, in bytes */
    SPLIT_CHILDREN = 4,     /* fewest children of a node above the leaves */
};

/* Returns the target size of nodes of this level. */
size_t split_target(const struct tree_store *t, unsigned level);
/* Whether the node ends after the record that was added last, whose weight is `weight`. The answer
 * depends only on the level, and on the keys and the weights of the node's records. */
bool split_after(const struct node_draft *d, size_t weight);

#endif
