/* Where a level of a tree is cut into nodes. docs/lake-trees.md, "The rule of splitting". */
#ifndef LAKE_SPLIT_H
#define LAKE_SPLIT_H

#include "lake/node.h"

enum {
    SPLIT_LEAF = 64 << 10,  /* weight in bytes that leaves are aimed at */
    SPLIT_INDEX = 32 << 10, /* the same for nodes above */
    SPLIT_CHILDREN = 4,     /* a node above the leaves has at least so many children */
};

/* The weight at which nodes of this level are aimed. */
size_t split_target(const struct tree_store *t, unsigned level);
/* Whether the node ends behind the record that was added last, which has this weight. Depends on
 * the keys and the weights of the node's records, and on nothing else. */
bool split_after(const struct node_draft *d, size_t weight);

#endif
