/* The lake's tasks on the queue (docs/queue.md): removing the remains of deleted repositories,
 * collections of garbage, imports, dumps and restores of refs, and hooks after events. A task about
 * one repository names the repository and its partition, so a task of a deleted repository does
 * nothing to a new repository of the same name. The task that removes remains names no repository:
 * it works on all of them. */
#ifndef LAKE_TASKS_H
#define LAKE_TASKS_H

#include "lake/lake.h"
#include "os/loop.h"
#include "room/room.h"

#define LAKE_TASK_DELETE "lake:delete"
#define LAKE_TASK_GC     "lake:gc"
#define LAKE_TASK_IMPORT "lake:import"
#define LAKE_TASK_HOOKS  "lake:hooks"
#define LAKE_TASK_REFS   "lake:refs"

struct lake_actions;

/* Adds the task that removes the remains of deleted repositories. The queue has at most one such
 * task. */
int lake_task_add_delete(struct queue *q, struct err *err) MUST_CHECK;
/* Adds the task that runs the garbage collection for which lake_gc_ask() was called. */
int lake_task_add_gc(struct queue *q, const struct lake_repo *r, struct err *err) MUST_CHECK;

/* Adds the task that runs an import (lake_import_start()). */
int lake_task_add_import(struct queue *q, const struct lake_repo *r, struct str id,
                         struct err *err) MUST_CHECK;

/* Adds the task that runs a dump or a restore of refs (lake_refs_task_start()). */
int lake_task_add_refs(struct queue *q, const struct lake_repo *r, struct str id,
                       struct err *err) MUST_CHECK;

/* Adds the task that runs the hooks after an event (lake_actions_work()). */
int lake_task_add_hooks(struct queue *q, struct str payload, struct err *err) MUST_CHECK;

/* Counts of the garbage collections that this process has run since its start. */
struct lake_gc_stats {
    uint64_t running; /* collections under way */
    uint64_t runs, failures;
    /* runs that ended with an error because the files may belong to another lake
     * (docs/lake-keeping.md) */
    uint64_t refused;
    uint64_t bodies, nodes, uploads; /* removed files, removed node files, aborted uploads */
    uint64_t bytes;                  /* size of the removed files */
};

/* The data for the handlers of tasks. It must live until the queue's worker has stopped. */
struct lake_tasks {
    struct lake *lake;
    struct lake_actions *actions;
    struct mutex lock; /* lock class "lake.tasks"; guards the member below */
    struct lake_gc_stats gc;
};
void lake_tasks_init(struct lake_tasks *t, struct lake *l, struct lake_actions *actions);
void lake_tasks_release(struct lake_tasks *t); /* {0} is fine */
/* Copies the counts. Any thread may call this. For a struct that is {0} all counts are 0. */
struct lake_gc_stats lake_tasks_gc_stats(struct lake_tasks *t);
/* Appends the handlers, for struct room. */
void lake_tasks_list(struct lake_tasks *t, room_tasks *out);

/* The keeper: a thread that adds tasks which are due. It adds the task that removes the remains of
 * deleted repositories. Every `lake.gc.every` it also starts the garbage collection of all
 * repositories that have rules, one after another (lake_gc_round()). */
struct lake_keeper {
    struct lake *lake;
    struct queue *queue;
    uint64_t gc_every_ms; /* lake.gc.every in ms; 0: the keeper starts no collections */
    struct loop loop;
};
int lake_keeper_start(struct lake_keeper *k, struct lake *l, struct queue *q, uint64_t gc_every_ms,
                      struct err *err) MUST_CHECK;
void lake_keeper_stop(struct lake_keeper *k); /* {0} is fine */

#endif
