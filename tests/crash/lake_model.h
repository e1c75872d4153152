/* The reference model of lake_chaos.c: what each branch may hold, given the operations that were
 * begun and acknowledged so far. It lies in shared memory and so survives the processes that work.
 *
 * Every thread owns one prefix on each branch, `<branch>/<thread>/`, and nobody else writes below
 * it. So the prefix goes through a sequence of *states*, one for each change of its owner. A read
 * of the prefix must give one of the states between the last one that was acknowledged before the
 * read began and the last one that was begun when it ended (L1, L2). The same holds for a commit
 * (L3). Batches change several paths of a prefix at once, so a mix of two states shows.
 *
 * The outcome of a reset is not known in advance: the branch's head decides it, which others
 * change. The owner reads its prefix behind the reset, and *fills* the state then. It must be a
 * state that a commit can have held: not older than the *floor*, the newest state that an
 * acknowledged commit is known to hold.
 *
 * Some changes are of a *whole* branch: the reset of everything, revert, cherry-pick, hard reset.
 * While one of them is under way a gate keeps the writers of the branch out, and each of its
 * prefixes gets a state whose outcome is filled behind the change. Commits, merges, readers and the
 * cleaner go on. A second gate keeps commits out of a branch whose head is set back, so that the
 * model knows which commit leaves the history.
 *
 * Counters are shared: each is a path of `main` that all threads raise by one with a conditional
 * write. No number may be won twice. *Prizes* are paths of `main` too: threads write them only if
 * they are absent. No prize has two winners.
 *
 * Twins are branches and repositories that are deleted and made again (lake_twins.c). */
#ifndef TESTS_CRASH_LAKE_MODEL_H
#define TESTS_CRASH_LAKE_MODEL_H

#include "lake/tree.h"

#include <stdatomic.h>

enum {
    MODEL_THREADS = 8,
    MODEL_BRANCHES = 3,
    MODEL_PATHS = 6,     /* of a prefix */
    MODEL_STATES = 1024, /* of a prefix in one run; then its owner only reads */
    MODEL_COMMITS = 2048,
    MODEL_COUNTERS = 3,
    MODEL_PRIZES = 6,
    MODEL_COUNTS = 4096, /* numbers of a counter in one run */
    MODEL_TAGS = 1024,
    MODEL_TWINS = 3,
    MODEL_TWIN_WRITES = 4096, /* of a thread to a twin in one run */
    MODEL_PARTITIONS = 1024,
    MODEL_TOKENS = 8192,
    MODEL_TOKEN_SIZE = 128,
    MODEL_NAME_SIZE = 48,
};

/* The values of a prefix's paths; 0: the path is absent. No two writes have the same value. */
struct model_state {
    uint32_t values[MODEL_PATHS];
};

struct model_prefix {
    _Atomic(uint32_t) begun, filled, acked; /* indexes of states */
    _Atomic(uint32_t) floor;
    uint32_t unknown; /* bits of the paths whose values the change under way decides */
    struct model_state states[MODEL_STATES];
    uint64_t began_at[MODEL_STATES]; /* ticks of the model's clock */
    _Atomic(uint64_t) ended_at[MODEL_STATES];
};

/* States that an observation may show: a range of indexes for each prefix of a branch. */
struct model_range {
    uint32_t from[MODEL_THREADS], to[MODEL_THREADS];
};

struct model_commit {
    unsigned branch;
    bool is_whole;         /* not a commit of chosen paths: it is the branch at one moment */
    _Atomic(bool) is_gone; /* a hard reset took it off the branch, or tries to */
    char id[LAKE_ID_LEN + 1];
    struct model_range range;
};

struct model_counter {
    _Atomic(uint32_t) acked, begun; /* the greatest numbers */
    uint32_t base;                  /* the number at the beginning of the run */
    _Atomic(bool) won[MODEL_COUNTS];
};

/* Threads that are inside, and whether others may come in. */
struct model_gate {
    _Atomic(int) inside;
    _Atomic(bool) is_closed;
};
bool gate_enter(struct model_gate *g); /* false: it is closed */
void gate_leave(struct model_gate *g);
/* Waits until nobody is inside. False: somebody else has closed the gate. */
bool gate_close(struct model_gate *g);
void gate_open(struct model_gate *g);

/* The writes of a thread to its path of a twin; they are numbered from 1. */
struct twin_writes {
    _Atomic(uint32_t) begun, acked;
    _Atomic(uint64_t) ended_at[MODEL_TWIN_WRITES]; /* 0: not acknowledged */
    /* The number of losses when the write began; UINT32_MAX: one of them was under way. */
    _Atomic(uint32_t) losses_at[MODEL_TWIN_WRITES];
};

/* A *loss* is an operation that may take writes away: a deletion, a reset, a hard reset, a revert.
 */
struct model_twin {
    _Atomic(uint32_t) losses_begun, losses_ended;
    _Atomic(uint64_t) deleted_at; /* the tick at which the last acknowledged deletion began */
    _Atomic(uint32_t) made_at;    /* 1 + the losses when it was made; 0: it was not */
    struct twin_writes writes[MODEL_THREADS];
};

struct model_tag {
    char name[MODEL_NAME_SIZE];
    char id[LAKE_ID_LEN + 1];
    _Atomic(int) state; /* enum model_tag_state */
};
enum model_tag_state { TAG_UNKNOWN, TAG_MADE, TAG_IS_REMOVED };

/* Changes that are rare. The program says in the end how many of them were made. */
enum model_made {
    MADE_MERGES,
    MADE_REVERTS,
    MADE_PICKS,
    MADE_RESETS,    /* of whole branches */
    MADE_SETS_BACK, /* hard resets to an older commit */
    MADE_PRIZES,    /* wins */
    MADE_DELETIONS, /* of twins */
    MADE_KINDS
};

struct model {
    _Atomic(uint64_t) clock;
    _Atomic(uint32_t) made[MADE_KINDS];
    _Atomic(bool) is_ready; /* the repository and its branches are there */
    struct model_prefix prefixes[MODEL_BRANCHES][MODEL_THREADS];
    struct model_commit commits[MODEL_COMMITS]; /* those that were acknowledged */
    _Atomic(uint32_t) commit_count;
    struct model_counter counters[MODEL_COUNTERS];
    _Atomic(uint32_t) prizes[MODEL_PRIZES]; /* the value of the winner; 0: nobody is known */
    struct model_gate writers[MODEL_BRANCHES], heads[MODEL_BRANCHES];
    _Atomic(bool) is_changing[MODEL_BRANCHES]; /* a whole branch */
    struct model_twin twins[MODEL_TWINS];
    char partitions[MODEL_PARTITIONS][MODEL_TOKEN_SIZE]; /* of twins that are repositories */
    _Atomic(uint32_t) partition_count;
    struct model_tag tags[MODEL_TAGS];
    _Atomic(uint32_t) tag_count;
    _Atomic(uint32_t) last_value, last_name;
    _Atomic(int) quiet[MODEL_BRANCHES]; /* not 0: writers leave the branch to a merge */
    /* Every token that was made, and is not known to be dropped. */
    char tokens[MODEL_TOKENS][MODEL_TOKEN_SIZE];
    _Atomic(uint32_t) token_count;
    char checked[MODEL_BRANCHES][LAKE_ID_LEN + 1]; /* heads up to which history was checked */
};

extern const char *const model_branches[MODEL_BRANCHES];

/* The whole content of a ref. */
struct content {
    struct model_state prefixes[MODEL_BRANCHES][MODEL_THREADS];
    uint32_t counters[MODEL_COUNTERS];
    uint32_t prizes[MODEL_PRIZES];
};
/* Notes a path of a listing. False: no operation makes such a path or value. */
bool content_add(struct content *c, struct str path, struct str etag);

/* --- changes of the owner --- */

/* Whether the prefix has no room for another state in this run. */
bool model_is_full(const struct model_prefix *p);
const struct model_state *model_now(const struct model_prefix *p);
void model_begin(struct model *m, struct model_prefix *p, const struct model_state *next);
/* Begins a change whose outcome is filled later. It decides the paths of these bits. */
void model_begin_unknown(struct model *m, struct model_prefix *p, uint32_t paths);
void model_fill(struct model_prefix *p, const struct model_state *next);
void model_ack(struct model *m, struct model_prefix *p);

/* --- changes of a whole branch --- */

/* Keeps the branch's writers out. False: somebody else does, or the model has no room. */
bool model_whole_close(struct model *m, unsigned branch);
void model_whole_open(struct model *m, unsigned branch);
/* Between the two, the outcome is unknown. `seen` is the outcome; NULL: nothing has changed. */
void model_whole_begin(struct model *m, unsigned branch);
void model_whole_end(struct model *m, unsigned branch, const struct content *seen);

/* --- observations --- */

/* Before and behind an observation of a branch. The second waits until states are filled. */
void model_range_begin(const struct model *m, unsigned branch, struct model_range *out);
void model_range_end(const struct model *m, unsigned branch, struct model_range *r);
/* Finds the first state of the range that the prefix may have been in; -1: there is none. */
int64_t model_find(const struct model_prefix *p, const struct model_state *seen, uint32_t from,
                   uint32_t to);
/* NULL, or what is wrong with the branch's own prefixes in the content. With `is_moment`, all of
 * them must be of one moment. *thread (unless NULL) is the owner of the wrong prefix. */
const char *model_judge(const struct model *m, unsigned branch, const struct content *seen,
                        const struct model_range *r, bool is_moment, unsigned *thread);
/* Raises the floors of the branch: a commit with this range was acknowledged. */
void model_raise_floors(struct model *m, unsigned branch, const struct model_range *r);
void model_raise(_Atomic(uint32_t) *number, uint32_t to); /* never lowers it */

/* Begins another run: the head's content is the first state, the present one the second. */
void model_restart(struct model *m, unsigned branch, const struct content *head,
                   const struct content *now);

/* What a merge must give; false: it must have been refused. */
bool content_merge(struct content *out, const struct content *base, const struct content *source,
                   const struct content *dest, enum tree_strategy strategy);
/* Merges two merge bases. Where they conflict, the value is one that no path has, so that both
 * sides of the merge that is made over the result count as changed. */
void content_join(struct content *out, const struct content *base, const struct content *source,
                  const struct content *dest);
/* Sets the counters and the prizes to what the branch `main` has now. */
void model_set_shared(struct model *m, const struct content *now);

#endif
