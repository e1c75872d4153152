/* Changes of a branch's head that need a clean branch: merge, revert, cherry-pick, import, commit
 * of a tree, hard reset (docs/lake.md, "Commits"). For the files of src/lake/ alone. */
#ifndef LAKE_HEAD_H
#define LAKE_HEAD_H

#include "lake/hooks.h"
#include "lake/keep.h"
#include "lake/lake_int.h"

struct head_change {
    struct lake *lake;
    struct arena *arena;
    const struct lake_repo *asked; /* the repository's record as the caller gave it */
    struct str name;               /* name of the branch */
    bool force;
    /* bits of enum lake_protect: a rule of protection that has one of them refuses the change */
    unsigned protects;
    bool has_event; /* hooks are called, with `event` and `source` */
    enum lake_event event;
    struct str source;
    /* Fills *out with the commit that becomes the head. It must resolve refs in each call anew: the
     * write that follows is made only if the branch has not changed since that call began. If
     * out->id is set, the commit exists already; otherwise make() has called head_commit_finish().
     * make() is called again after a lost race. */
    int (*make)(void *ctx, struct head_change *h, struct lake_commit *out, struct err *err);
    void *ctx;
    bool is_old_commit; /* set by make(): the commit exists already */
    struct str kept;    /* set by make(): the commit whose content the branch gets */
    bool has_old_tree;  /* set by make() (struct branch_change) */
    /* Set by make(): a put that is made in the write that sets the head, with its condition;
     * NULL: none. When the condition fails, make() is called again. */
    const struct kv_change *also;
    struct commit_turn *turn;
    /* The records as they were read last. */
    struct lake_repo repo;
    struct lake_branch branch;
    struct lake_keep keep; /* the state of the collector before make() was called */
    bool is_judged;        /* the hooks before the change have allowed the tree `judged` */
    struct str judged;
};
/* Makes the change. ERR_INVALID: the branch has uncommitted changes. ERR_BUSY: other changes won
 * every race. */
int head_change_run(struct head_change *h, struct lake_commit *out, struct err *err) MUST_CHECK;

/* Sets parents, generation, version, time (if it is 0) and id of a commit. */
int head_commit_finish(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct lake_commit *c, const struct str *parents, size_t count,
                       struct err *err) MUST_CHECK;

/* Commits a tree as it is. */
int head_commit_tree(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                     const struct lake_commit_options *o, struct lake_commit *out,
                     struct err *err) MUST_CHECK;

/* Returns the pairs with one pair added, or with another value for its key; sorted, in the
 * arena. */
struct str_pairs head_pairs_with(struct arena *a, struct str_pairs pairs, struct str key,
                                 struct str value);
/* Refuses a commit whose metadata, with the keys that the operation adds, has more keys than a
 * record may have. Callers check this before they build the commit's tree. */
int head_check_metadata(const struct lake_commit *c, struct err *err) MUST_CHECK;

#endif
