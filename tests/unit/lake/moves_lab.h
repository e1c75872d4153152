/* Short forms for tests of dumps and restores: each ends the test when it fails. */
#ifndef TESTS_UNIT_LAKE_MOVES_LAB_H
#define TESTS_UNIT_LAKE_MOVES_LAB_H

#include "lake/dump.h"
#include "unit/lake/gc_lab.h"

/* Dumps the hand's repository; the ids are in the hand's arena. */
struct lake_refs moves_dump(struct hand *h);
/* Deletes the repository, and makes a bare one of the same name in the same namespace. */
void moves_make_bare(struct hand *h);
int moves_try_restore(struct hand *h, const struct lake_refs *refs);
void moves_check_same(const struct lake_refs *a, const struct lake_refs *b);

/* A tree of a dump that a test makes itself. */
struct moves_tree {
    struct tree_record records[8]; /* sorted by key */
    size_t count;
};
/* Adds a record with this key, and a commit, a tag or a branch as its data. */
void moves_add_commit(struct hand *h, struct moves_tree *t, struct str key,
                      const struct lake_commit *c);
void moves_add_tag(struct hand *h, struct moves_tree *t, struct str key,
                   const struct lake_tag *tag);
void moves_add_branch(struct hand *h, struct moves_tree *t, struct str key,
                      const struct lake_branch *b);
/* Writes the tree into the namespace; the id is in the hand's arena. */
struct str moves_write_tree(struct hand *h, struct moves_tree *t);
/* Puts the tree into the namespace as lakeFS has it: one range and its metarange. The records must
 * be sorted. */
struct str moves_put_tables(struct hand *h, const struct moves_tree *t);

#endif
