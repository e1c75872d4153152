/* The parts of lake_chaos.c share this: the state of the program, and opening the lake. */
#ifndef TESTS_CRASH_LAKE_CHAOS_H
#define TESTS_CRASH_LAKE_CHAOS_H

#include "crash/kv_engines.h"
#include "crash/lake_model.h"
#include "lake/lake_int.h"

/* Where a run is killed, if not by the parent's clock. */
struct chaos_kill {
    const char *step; /* NULL: by the clock */
    bool after;
    _Atomic(unsigned) left; /* how often the step is still passed */
};

struct chaos {
    struct crash crash;
    unsigned runs;
    enum kv_engine engine; /* of this run */
    unsigned processes;    /* of this run */
    struct chaos_kill kill;
    struct model models[KV_ENGINES];
};

/* The model of this run's engine. */
struct model *chaos_model(struct chaos *s);

/* A lake over the engine's rows, with nodes in files of the program's folder. */
struct chaos_lake {
    struct chaos *chaos;
    struct model *model;
    struct kv *kv;
    struct lake *lake;
    struct mutex notes; /* guards the model's list of commits while workers run */
    char folder[96];
};
void chaos_lake_open(struct chaos_lake *out, struct chaos *s, uint64_t drop_again_ms);

/* Reads the whole content of a ref, in one page. ERR_CORRUPT: no operation makes such a path. */
int chaos_content(struct chaos_lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
                  struct content *out, struct err *err) MUST_CHECK;

/* --- what messages of commits say (lake_worker_heads.c) --- */

#define CHAOS_REVERT "revert " /* behind it: the id of the commit that was picked */
#define CHAOS_PICK   "pick "
enum tree_strategy chaos_merge_strategy(struct str message);
/* What a commit must hold that is a revert or a cherry-pick. False: it cannot be, or *err. */
bool chaos_pick(struct chaos_lake *l, struct arena *a, const struct lake_repo *r,
                const struct lake_commit *c, bool is_revert, struct content *want, struct err *err);

/* --- lake_chaos_check.c --- */

bool chaos_check(struct crash *c);
bool chaos_range_is_empty(struct kv *kv, struct str partition, struct str prefix);

/* --- lake_twins.c --- */

/* Judges the twins after a kill, deletes them, and removes what they leave. Prints what is wrong,
 * unless `is_quiet`. True: all is well. */
bool twins_check(struct chaos_lake *l, struct arena *a, bool is_quiet);

/* --- lake_chaos_steps.c --- */

/* From now on, named steps of this process sometimes wait, and the run's kill happens at its step.
 * Every token that is made is noted in the model. */
void chaos_steps_on(struct chaos *s);
void chaos_clock_move(int64_t ms); /* moves the wall clock of this process forward */
extern const char *const chaos_steps[];
extern const size_t chaos_step_count;

#endif
