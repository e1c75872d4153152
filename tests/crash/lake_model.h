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
 * Counters are shared: each is a path of `main` that all threads raise by one with a conditional
 * write. No number may be won twice. */
#ifndef TESTS_CRASH_LAKE_MODEL_H
#define TESTS_CRASH_LAKE_MODEL_H

#include "lake/record.h"

#include <stdatomic.h>

enum {
    MODEL_THREADS = 8,
    MODEL_BRANCHES = 3,
    MODEL_PATHS = 6,     /* of a prefix */
    MODEL_STATES = 1024, /* of a prefix in one run; then its owner only reads */
    MODEL_COMMITS = 2048,
    MODEL_COUNTERS = 3,
    MODEL_COUNTS = 4096, /* numbers of a counter in one run */
    MODEL_TAGS = 1024,
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
    bool is_whole; /* not a commit of chosen paths: it is the branch at one moment */
    char id[LAKE_ID_LEN + 1];
    struct model_range range;
};

struct model_counter {
    _Atomic(uint32_t) acked, begun; /* the greatest numbers */
    uint32_t base;                  /* the number at the beginning of the run */
    _Atomic(bool) won[MODEL_COUNTS];
};

struct model_tag {
    char name[MODEL_NAME_SIZE];
    char id[LAKE_ID_LEN + 1];
    _Atomic(int) state; /* enum model_tag_state */
};
enum model_tag_state { TAG_UNKNOWN, TAG_MADE, TAG_IS_REMOVED };

struct model {
    _Atomic(uint64_t) clock;
    _Atomic(bool) is_ready; /* the repository and its branches are there */
    struct model_prefix prefixes[MODEL_BRANCHES][MODEL_THREADS];
    struct model_commit commits[MODEL_COMMITS]; /* those that were acknowledged */
    _Atomic(uint32_t) commit_count;
    struct model_counter counters[MODEL_COUNTERS];
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
};
/* Notes a path of a listing. False: no operation makes such a path or value. */
bool content_add(struct content *c, struct str path, struct str etag);

/* --- changes of the owner --- */

/* Whether the prefix has no room for another state in this run. */
bool model_is_full(const struct model_prefix *p);
const struct model_state *model_now(const struct model_prefix *p);
/* Begins a change; `next` NULL: its outcome is filled later. */
void model_begin(struct model *m, struct model_prefix *p, const struct model_state *next);
void model_fill(struct model_prefix *p, const struct model_state *next);
void model_ack(struct model *m, struct model_prefix *p);

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
                   const struct content *dest);

#endif
