/* A thread of the model test (lake_chaos.c), and its operations. Each operation ends the process
 * when the lake breaks a promise. */
#ifndef TESTS_CRASH_LAKE_WORKER_H
#define TESTS_CRASH_LAKE_WORKER_H

#include "crash/lake_chaos.h"
#include "os/thread.h"

struct worker {
    struct thread thread;
    struct chaos_lake *at;
    struct lake_repo repo;
    unsigned id;
    uint64_t random;
    int pipe;
    bool lie;
    struct arena arena; /* of one operation */
    struct arena own;   /* of the repository's record */
};

uint32_t worker_random(struct worker *w, uint32_t below);
/* Ends the process: a promise is broken. `err` may be NULL. */
void worker_fail(const struct worker *w, const char *what, const struct err *err);
/* An operation must have succeeded. */
void worker_must(const struct worker *w, int code, const char *what, const struct err *err);
/* Operations that change heads may lose a race, or meet a branch with changes. Returns the code. */
int worker_raced(const struct worker *w, int code, const char *what, const struct err *err);
/* An entry whose ETag is the value, with an address of its own. In the arena. */
const struct lake_entry *worker_entry(struct worker *w, uint32_t value);
struct content worker_content(struct worker *w, struct str ref);
/* Commits a branch; `prefix` NULL: the whole of it. */
void worker_commit_some(struct worker *w, unsigned branch, const struct str *prefix);
void worker_note_commit(struct worker *w, unsigned branch, struct str id,
                        const struct model_range *r, bool is_whole);

/* --- lake_worker.c --- */
void worker_stage_one(struct worker *w);
void worker_stage_many(struct worker *w);
void worker_count(struct worker *w);
void worker_prize(struct worker *w);
void worker_reset_path(struct worker *w);
void worker_reset_prefix(struct worker *w);
void worker_list(struct worker *w);
void worker_stat(struct worker *w);

/* --- lake_worker_heads.c --- */
void worker_commit(struct worker *w);
void worker_commit_own(struct worker *w);
void worker_merge(struct worker *w);
void worker_hard_reset_same(struct worker *w);
void worker_hard_reset_back(struct worker *w);
void worker_reset_all(struct worker *w);
void worker_revert(struct worker *w);
void worker_cherry_pick(struct worker *w);
void worker_tag(struct worker *w);
void worker_fleeting(struct worker *w);

/* --- lake_twins.c --- */
void worker_twin(struct worker *w);

#endif
