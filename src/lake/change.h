/* Changes of a branch's record, each in one atomic write; and draft tokens, whose rows are written
 * before the branch names them. For the files of src/lake/ alone. */
#ifndef LAKE_CHANGE_H
#define LAKE_CHANGE_H

#include "lake/keep.h"
#include "lake/layers.h"

/* --- draft tokens (draft.c) --- */

/* A token that is filled before it becomes a sealed token of a branch. Until then its name is on
 * the cleanup list with a mark, so a crash leaves nothing behind. The write that puts the token on
 * the branch takes the marked row off the list. A cleaner that gives the draft up changes the row
 * first. So of the two only one succeeds, and no token of a branch is ever dropped. */
struct lake_draft {
    struct str token;    /* empty: there is no draft */
    struct kv_value row; /* its row of the cleanup list */
    size_t count;        /* rows that were written */
    bool frees;          /* set by the caller: the draft is part of a reset (kv_change.frees) */
};

/* Changes a row before it is written to the draft; *keep false: the row is left out. The arena is
 * emptied with each row. ERR_END: no further row is wanted. */
typedef int draft_row_fn(void *ctx, struct arena *a, struct layers_row *row, bool *keep,
                         struct err *err);

/* Makes a draft of the rows of the walk. The token is empty when no row was kept. */
int draft_make(struct lake_draft *out, struct lake *l, struct arena *a, const struct lake_repo *r,
               struct str branch, struct layers *walk, draft_row_fn *fn, void *ctx,
               struct err *err) MUST_CHECK;
/* Leaves a draft that no branch names to the cleaner. */
void draft_give_up(struct lake_draft *d, struct lake *l, struct arena *a); /* {0} is fine */

/* --- changing the record (change.c) --- */

struct branch_change {
    const char *step; /* the name of the step for tests */
    const struct lake_repo *repo;
    const struct lake_branch *old;    /* as it was read */
    struct lake_branch next;          /* as it shall be; the revision is set by the write */
    const struct lake_commit *commit; /* to put too; NULL: none */
    const struct lake_draft *draft;   /* a token of `next` that was a draft; NULL: none */
    /* The branch gets content of this commit, so a collection must learn of it (lake/keep.h).
     * Empty: of none but its head. */
    struct str kept;
    /* The caller gave the commit a tree that was written earlier. Perhaps no commit names it, so a
     * collection may be removing it. */
    bool has_old_tree;
    /* The state of the collector that was read before the first node of the commit's tree was put;
     * NULL: no tree was built. */
    const struct lake_keep *built;
    /* A put that is made in the same write; NULL: none. If its condition fails, nothing is
     * written, and the write returns ERR_AGAIN. */
    const struct kv_change *also;
    bool frees; /* the change is part of a reset, which goes on when the disk is full */
};
/* Begins a change of the branch: `next` is a copy of the record. */
struct branch_change branch_change_of(const struct lake_repo *r, const struct lake_branch *b,
                                      const char *step);
/* Writes the change if the repository and the branch are still those that were read. Tokens of the
 * old record that the new one does not have go to the cleanup list in the same write. *now (unless
 * NULL) is the branch as it is behind the write. ERR_AGAIN: the branch or the repository is another
 * one, or a collection began, and nothing was written. ERR_GONE: the commit `kept` has expired.
 * ERR_BUSY: the branch would have more than LAKE_SEALED_MAX sealed tokens. */
int branch_change_write(struct lake *l, struct arena *a, struct branch_change *c,
                        struct lake_branch *now, struct err *err) MUST_CHECK;

/* --- sealing (seal.c) --- */

/* C1: gives the branch a new staging token if the present one has rows, so that the sealed tokens
 * have everything that was acknowledged before the call. Fills the records of the repository and
 * the branch. */
int lake_seal(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
              struct lake_repo *repo, struct lake_branch *out, struct err *err) MUST_CHECK;
/* The same for a reset, which goes on when the disk is full. */
int lake_seal_to_reset(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct str branch, struct lake_repo *repo, struct lake_branch *out,
                       struct err *err) MUST_CHECK;
int lake_token_is_empty(struct lake *l, struct str token, bool *is_empty,
                        struct err *err) MUST_CHECK;
/* Whether the rows of the tokens differ from the tree. */
int lake_is_dirty(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_branch *b, bool *is_dirty, struct err *err) MUST_CHECK;

/* Sleeps 1 to 20 ms, so that callers that lost a race do not meet again. */
void lake_pause_short(void);

/* --- compaction (compact.c) --- */

enum {
    LAKE_SEALED_KEPT = 4,  /* more sealed tokens than this are rewritten into one */
    LAKE_SEALED_FULL = 128 /* a branch with so many is compacted before it gets another one */
};

struct compactions *compactions_new(void);
void compactions_free(struct compactions *c); /* NULL is fine */

/* Rewrites the sealed tokens of a branch into one. ERR_AGAIN: the branch changed meanwhile. */
int lake_compact(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                 struct err *err) MUST_CHECK;
/* Asks the cleaner's thread to compact the branch if it has too many sealed tokens. Sealed tokens
 * are left by commits that failed behind their seal; each one costs every reader a look. */
void lake_compact_ask(struct lake *l, const struct lake_repo *r, const struct lake_branch *b);
/* Does what was asked for; for the cleaner's thread. */
void lake_compact_work(struct lake *l);

#endif
