/* The merge bases of two commits, and the one tree that a merge uses as its base. Only the files of
 * src/lake/ use this header.
 *
 * A merge base is a common ancestor of both commits that is not an ancestor of another common
 * ancestor. Two branches that were merged into each other crosswise have several merge bases:
 *
 *        P───L1        L1 is a merge of P and Q, and so is R1. The bases of L1 and R1 are P and Q.
 *       / \ /          Suppose Q has changed a path, and P has not. Then L1 and R1 have the value
 * of A   X           Q. A commit L2 after L1 puts back the value of P. A merge of L2 and R1 with P
 *       \ / \          as the only base finds no change on the left side, and brings the value of Q
 *        Q───R1        back. So the last change of the left side would be lost.
 *
 * So the merge bases are merged with each other first, over their own merge bases. The result is
 * the base of the merge (docs/lake-trees.md, "Several merge bases"). */
#ifndef LAKE_MERGE_BASE_H
#define LAKE_MERGE_BASE_H

#include "lake/lake_int.h"

enum { MERGE_BASES_MAX = 16 }; /* most merge bases that are merged with each other */

struct merge_bases {
    struct str ids[MERGE_BASES_MAX]; /* in the arena; the highest generation first */
    size_t count;
    bool has_more; /* there are further merge bases, which `ids` does not have */
};

/* Finds the merge bases between the commit `right` and an imagined commit that is a merge of all
 * commits in `left`. ERR_NOT_FOUND: there is no merge base. */
int lake_merge_bases(struct lake *l, struct arena *a, const struct lake_repo *r,
                     const struct str *left, size_t left_count, struct str right,
                     struct merge_bases *out, struct err *err) MUST_CHECK;

/* --- the tree (base_tree.c) --- */

struct base_nodes;

struct base_tree {
    struct str root;  /* in the arena */
    struct str first; /* id of the first merge base; in the arena */
    /* Reads nodes of this tree and of all trees of the repository. It writes nodes to the same
     * place as the store that base_tree_find() was given. */
    struct tree_store store;
    struct base_nodes *nodes; /* nodes of a tree that is in memory only; NULL: none */
};

/* Finds the tree that a merge of the two commits uses as its base: the tree of their merge base or,
 * if they have several merge bases, a merge of the trees of all bases. If there are too many bases,
 * or they differ too much, it is the tree of the first base. `store` is borrowed until
 * base_tree_release(). ERR_NOT_FOUND: there is no merge base. */
int base_tree_find(struct base_tree *out, struct tree_store *store, struct lake *l, struct arena *a,
                   const struct lake_repo *r, struct str left, struct str right,
                   struct err *err) MUST_CHECK;
void base_tree_release(struct base_tree *b); /* {0} is fine */
/* Whether this identity in a base tree is a mark instead of the identity of an object. The mark
 * says that the merge bases conflict at the path. */
bool base_tree_conflicts(struct str identity);

#endif
