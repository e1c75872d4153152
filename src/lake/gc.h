/* Garbage collection: removes from the repository's namespace the bodies of objects that no kept
 * commit and no staged change names, and the node files that no kept commit leads to.
 * docs/lake-keeping.md has the steps, and why they are safe beside every other operation
 * (docs/lake.md, L10).
 *
 * The rules of retention say for how many days the ancestors of a branch's head are kept. A
 * repository without rules keeps every commit; a collection then removes only files that no commit
 * has ever used.
 *
 * One collection of one repository is a *run*. A repository has at most one run at a time. */
#ifndef LAKE_GC_H
#define LAKE_GC_H

#include "lake/lake.h"

enum { LAKE_GC_BRANCHES_MAX = 1000, LAKE_GC_DAYS_MAX = 36500 };

struct lake_gc_branch_rule {
    struct str branch;
    uint32_t days;
};

/* The row `settings/gc_rules`, in lakeFS's message GarbageCollectionRules. */
struct lake_gc_rules {
    uint32_t default_days;
    struct lake_gc_branch_rule *branches; /* sorted by name, each name once */
    size_t count;
};
/* Encodes the rules in the arena. An empty string without bytes: the arena is full. */
struct str lake_gc_rules_write(struct arena *a, const struct lake_gc_rules *rules);
/* Reads encoded rules. The names point into `in`. ERR_CORRUPT: the bytes are not rules. */
int lake_gc_rules_read(struct lake_gc_rules *out, struct arena *a, struct str in,
                       struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: the repository has no rules. */
int lake_gc_rules_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                      struct lake_gc_rules *out, struct err *err) MUST_CHECK;
int lake_gc_rules_set(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_gc_rules *rules, struct err *err) MUST_CHECK;
int lake_gc_rules_delete(struct lake *l, struct arena *a, const struct lake_repo *r,
                         struct err *err) MUST_CHECK;

/* Lets collections of a bare repository begin. Such a repository starts without collections,
 * because no ref leads to the files of its namespace yet. The caller has restored its refs. */
int lake_gc_allow(struct lake *l, struct arena *a, const struct lake_repo *r,
                  struct err *err) MUST_CHECK;

/* The result of a run, or its progress so far. */
struct lake_gc_report {
    struct str run; /* the run's id */
    enum lake_gc_stage {
        LAKE_GC_NEVER, /* there was no run yet */
        LAKE_GC_ASKED, /* the run was asked for and has not begun */
        LAKE_GC_MARKING,
        LAKE_GC_REMOVING,
        LAKE_GC_DONE,
        LAKE_GC_FAILED, /* the run has ended early, because another lake may use the files */
    } stage;
    bool mark_only; /* the run finds the files that could be removed, and removes nothing */
    int64_t started_ms, updated_ms;
    int64_t cutoff_ms;        /* younger files are left alone */
    uint64_t commits_expired; /* commits that became expired in this run */
    uint64_t bodies_listed, bodies_dead, bodies_dead_bytes, bodies_removed;
    uint64_t nodes_listed, nodes_dead, nodes_dead_bytes, nodes_removed;
    uint64_t uploads_aborted; /* uploads in parts that no branch could receive any more */
    /* why the last call of lake_gc_work() failed or has to wait; empty: it did not. Unless the
     * stage is LAKE_GC_FAILED, the next call goes on with the run */
    struct str error;
};
/* Asks for a run, and returns its report. ERR_BUSY: a run is under way. */
int lake_gc_ask(struct lake *l, struct arena *a, const struct lake_repo *r, bool mark_only,
                struct lake_gc_report *out, struct err *err) MUST_CHECK;
/* Reads the report of the last run. */
int lake_gc_report(struct lake *l, struct arena *a, const struct lake_repo *r,
                   struct lake_gc_report *out, struct err *err) MUST_CHECK;

/* Carries out the run that was asked for, or goes on with a run that was interrupted. If there is
 * no such run, returns 0 and does nothing. A task on the queue calls this. `ended` (NULL: never) is
 * called again and again; if it returns true, this call returns ERR_CANCELED, and the next call
 * goes on with the run. ERR_IN_USE: the run has ended and removed nothing more, because the files
 * may be another lake's (lake/claim.h); the report has the reason. ERR_BUSY: it is not known yet
 * whether another lake uses the files, or another call carries out the same run, which does no
 * harm. */
int lake_gc_work(struct lake *l, const struct lake_repo *r, bool (*ended)(void *ctx), void *ctx,
                 struct err *err) MUST_CHECK;

/* --- rounds --- */

/* How collections start by themselves. */
struct lake_gc_round_options {
    uint64_t every_ms; /* time between the beginnings of two rounds; at least 1 */
    /* Makes a worker carry out the run that was asked for (lake_gc_work()). It is called repeatedly
     * until the run has ended, and does nothing if the work is under way. */
    int (*begin)(void *ctx, const struct lake_repo *r, struct err *err);
    void *ctx;
};
/* Takes the next step of the present round, if one is due. A round collects every repository that
 * has rules, one after the other, in the order of their names. The position of the round is in the
 * key-value store and all processes share it, so any number of them may call this. *wait_ms says
 * when to call again. */
int lake_gc_round(struct lake *l, const struct lake_gc_round_options *o, uint64_t *wait_ms,
                  struct err *err) MUST_CHECK;

#endif
