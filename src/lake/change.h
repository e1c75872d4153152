/* Changes of a branch's record, each in one atomic write; and draft tokens, whose rows are written
 * before a branch names the token. For the files of src/lake/ alone. */
#ifndef LAKE_CHANGE_H
#define LAKE_CHANGE_H

#include "lake/keep.h"
#include "lake/layers.h"

/* --- draft tokens (draft.c) --- */

/* A token that is filled with rows before it becomes a sealed token of a branch. Until then it is
 * on the cleanup list with a mark, so that the cleaner removes its rows after a crash. The write
 * that puts the token on the branch removes the marked row from the list. A cleaner that abandons
 * the draft changes the marked row first. Only one of these two writes can succeed, so no token of
 * a branch is ever dropped. Each write of rows checks the marked row, too, so no row gets into a
 * token that was dropped. */
struct lake_draft {
    struct str token;    /* empty: there is no draft */
    struct kv_value row; /* the row of the token on the cleanup list */
    size_t count;        /* number of rows that were written */
    bool frees;          /* set by the caller: the draft is part of a reset (kv_change.frees) */
};

/* Changes a row before it is written to the draft. *keep false: the row is left out. The arena is
 * emptied for each row. ERR_END: the walk ends before this row. */
typedef int draft_row_fn(void *ctx, struct arena *a, struct layers_row *row, bool *keep,
                         struct err *err);

/* Makes a draft from the rows of the walk. The token is empty when no row was kept. ERR_AGAIN: the
 * cleaner has abandoned the draft, because it was not renewed for an hour. */
int draft_make(struct lake_draft *out, struct lake *l, struct arena *a, const struct lake_repo *r,
               struct str branch, struct layers *walk, draft_row_fn *fn, void *ctx,
               struct err *err) MUST_CHECK;
/* Abandons a draft that no branch names. The cleaner removes its rows. */
void draft_give_up(struct lake_draft *d, struct lake *l, struct arena *a); /* {0} is fine */

/* --- changing the record (change.c) --- */

struct branch_change {
    const char *step; /* name of the step in crash tests */
    const struct lake_repo *repo;
    const struct lake_branch *old; /* the branch as it was read */
    /* the branch as it is to be written; the write sets its revision */
    struct lake_branch next;
    const struct lake_commit *commit; /* a commit that the same write adds; NULL: none */
    const struct lake_draft *draft; /* the draft whose token is a new token of `next`; NULL: none */
    /* The commit whose content the branch gets. The write leaves a mark for it, so that a
     * collection keeps it (lake/keep.h). Empty: the branch gets content of its head only. */
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
    bool later; /* a crash may undo the change until a later write has returned */
};
/* Begins a change of the branch. `next` is a copy of the record. */
struct branch_change branch_change_of(const struct lake_repo *r, const struct lake_branch *b,
                                      const char *step);
/* Writes the change if the records of the repository and the branch are still those that were read.
 * Tokens that only the old record has are put on the cleanup list in the same write. *now (unless
 * NULL) is the branch after the write. ERR_AGAIN: the branch or the repository has changed, or a
 * collection began, and nothing was written. ERR_GONE: the commit `kept` has expired. ERR_BUSY: the
 * branch would have more than LAKE_SEALED_MAX sealed tokens. */
int branch_change_write(struct lake *l, struct arena *a, struct branch_change *c,
                        struct lake_branch *now, struct err *err) MUST_CHECK;

/* --- sealing (seal.c) --- */

/* Gives the branch a new staging token if the present one has rows (C1). After that the sealed
 * tokens have every change that was acknowledged before the call. Fills the records of the
 * repository and the branch. */
int lake_seal(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
              struct lake_repo *repo, struct lake_branch *out, struct err *err) MUST_CHECK;
/* Like lake_seal(), but for a reset, which goes on when the disk is full. */
int lake_seal_to_reset(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct str branch, struct lake_repo *repo, struct lake_branch *out,
                       struct err *err) MUST_CHECK;
int lake_token_is_empty(struct lake *l, struct str token, bool *is_empty,
                        struct err *err) MUST_CHECK;
/* Whether the rows of the tokens differ from the tree. */
int lake_is_dirty(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_branch *b, bool *is_dirty, struct err *err) MUST_CHECK;

/* Sleeps 1 to 20 ms, so that callers that lost a race do not collide again. */
void lake_pause_short(void);

/* Waits for the turn of a change of the branch (lake/commit_queue.h). The caller ends the turn.
 * ERR_BUSY: too many changes wait for changes whose hooks have not answered yet. */
int lake_take_turn(struct lake *l, const struct lake_repo *r, struct str branch,
                   struct commit_turn **out, struct err *err) MUST_CHECK;

/* --- compaction (compact.c) --- */

enum {
    LAKE_SEALED_KEPT = 4, /* more sealed tokens than this are rewritten into one */
    /* a branch with this many sealed tokens is compacted before it gets another one */
    LAKE_SEALED_FULL = 128
};

struct compactions *compactions_new(void);
void compactions_free(struct compactions *c); /* NULL is fine */

/* Rewrites the sealed tokens of a branch into one. ERR_AGAIN: the branch changed meanwhile, and
 * this call has not changed it. */
int lake_compact(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                 struct err *err) MUST_CHECK;
/* Asks the cleaner's thread to compact the branch if it has too many sealed tokens. A commit that
 * fails after its seal leaves a sealed token, and each sealed token costs every reader a
 * look-up. */
void lake_compact_ask(struct lake *l, const struct lake_repo *r, const struct lake_branch *b);
/* Makes the compactions that were asked for; for the cleaner's thread. */
void lake_compact_work(struct lake *l);

#endif
