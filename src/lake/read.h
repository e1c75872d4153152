/* Reads paths of a branch or a commit. Opens a *moment*: the state of a branch that a reader sees.
 * A branch has its newest changes in a staging token, older changes in sealed tokens, and the rest
 * in the tree of its head commit (docs/lake.md). Only the files of src/lake/ use this header. */
#ifndef LAKE_READ_H
#define LAKE_READ_H

#include "lake/lake_int.h"

/* --- the tree of a commit --- */

struct head_tree {
    struct tree_store store;
    struct str root; /* empty: the empty tree */
    bool is_open;    /* head_tree_release() must release `store` */
};
/* Opens the tree of the commit; an empty id stands for the empty tree. */
int head_tree_open(struct head_tree *out, struct lake *l, struct arena *a,
                   const struct lake_repo *r, struct str commit_id, struct err *err) MUST_CHECK;
void head_tree_release(struct head_tree *t, struct lake *l); /* {0} is fine */

/* Reads the root of the commit's tree. ERR_GONE: the root is missing or damaged; the error's text
 * names it. */
int lake_check_tree(struct lake *l, struct arena *a, const struct lake_repo *r,
                    struct str commit_id, struct err *err) MUST_CHECK;

/* Finds the tree of a commit; an empty id stands for the empty tree. */
int lake_commit_tree(struct lake *l, struct arena *a, const struct lake_repo *r,
                     struct str commit_id, struct str *root, struct err *err) MUST_CHECK;

/* --- single paths of a branch --- */

struct lake_path {
    struct str path;
    /* set by the caller if it needs `is_below` even if the staging token has the path */
    bool asks_below;
    /* set by the caller: the tree is read without waiting, and lake_read_paths() returns ERR_AGAIN
     * if that is not possible */
    bool now;
    /* A commit and its tree, so that the tree of the branch's head need not be looked up. Set by
     * the caller if it knows a tree, and by lake_read_paths() if it reads one. `commit` empty: none
     * is known. */
    struct str commit, tree;
    /* The answer: */
    struct kv_value staged;    /* the row of the staging token */
    bool is_below;             /* a sealed token or the tree has the path */
    bool is_there;             /* the branch has the path */
    struct str identity, data; /* identity and data of the present object, in the arena */
};

/* Reads the paths from the staging token, the sealed tokens and the tree of the head. After them it
 * reads the records of the repository and the branch. ERR_AGAIN: the branch is no longer *b, so
 * rows of its tokens may have been dropped; the caller reads the branch and the paths again. */
int lake_read_paths(struct lake *l, struct arena *a, const struct lake_repo *r,
                    const struct lake_branch *b, struct lake_path *paths, size_t count,
                    struct err *err) MUST_CHECK;

/* Makes an object from the identity and the data of a row. These strings must live as long as the
 * object. */
int lake_object_read(struct lake_object *out, struct arena *a, struct str path, struct str identity,
                     struct str data, struct err *err) MUST_CHECK;
/* Whether two entries have the same stored body, the same metadata and the same tags. If a body is
 * put again, its address is new, even if its bytes are the same. */
bool lake_object_is_same(const struct lake_object *a, const struct lake_object *b);

/* --- a moment of a branch --- */

/* The state of a branch that a reader sees. If the driver of the key-value store has KV_MOMENTS, it
 * is a view of one moment. Otherwise the reader must call moment_check() after its last read, to
 * find out whether the branch has changed. */
struct lake_moment {
    struct kv_view *view; /* NULL: the driver has no moments */
    struct lake_repo repo;
    struct lake_branch branch;
};
int moment_open(struct lake_moment *out, struct lake *l, struct arena *a, const struct lake_repo *r,
                struct str branch, struct err *err) MUST_CHECK;
/* Checks that the branch has not changed since moment_open(). ERR_AGAIN: it has changed, and the
 * caller must open the moment and read everything again. */
int moment_check(struct lake_moment *m, struct lake *l, struct arena *a,
                 struct err *err) MUST_CHECK;
void moment_close(struct lake_moment *m, struct lake *l); /* {0} is fine */

#endif
