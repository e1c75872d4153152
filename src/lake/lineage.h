/* The lineage of commits that come from another lake: their ids and parents are collected, and
 * their generations are computed from these. Old versions of lakeFS kept no generations, and others
 * kept wrong ones, so weir trusts no stored generation (D4 of docs/lake-moving.md).
 *
 *     struct lineage g = {0};
 *     for each commit in the order of ids:
 *         code = lineage_add(&g, &commit, err);
 *     code = lineage_settle(&g, err);
 *     lineage_find(&g, id)->generation
 *
 * Memory: 28 bytes for each commit and 16 bytes for each parent. Belongs to one thread. */
#ifndef LAKE_LINEAGE_H
#define LAKE_LINEAGE_H

#include "base/vec.h"
#include "lake/record.h"

/* first bytes of a SHA-256 that are kept; they are enough to tell ids apart */
enum { LINEAGE_ID_LEN = 16 };

struct lineage_id {
    unsigned char bytes[LINEAGE_ID_LEN];
};

struct lineage_commit {
    struct lineage_id id;
    uint32_t parents_at; /* index of the first parent in lineage.parents */
    uint32_t parent_count : 31;
    bool is_first : 1;  /* the commit is the first parent of another commit */
    int32_t generation; /* 1 + the greatest generation of the parents */
};

/* {0} is an empty lineage. */
struct lineage {
    VEC(struct lineage_commit) commits; /* sorted by id */
    /* the parents of all commits; those of one commit are side by side, its first parent first */
    VEC(struct lineage_id) parents;
};
void lineage_release(struct lineage *g);

/* Adds a commit. Ids must ascend. ERR_INVALID: the id is not the one that lake_commit_id()
 * computes, or ids do not ascend. */
int lineage_add(struct lineage *g, const struct lake_commit *c, struct err *err) MUST_CHECK;
/* Computes the generations, once all commits are added. ERR_INVALID: a parent is missing. */
int lineage_settle(struct lineage *g, struct err *err) MUST_CHECK;
/* Finds a commit by its id; NULL: there is no such commit. */
const struct lineage_commit *lineage_find(const struct lineage *g, struct str id);

#endif
