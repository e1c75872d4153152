/* The lake's tasks on the queue (docs/queue.md): what is left of deleted repositories, collections,
 * imports, dumps and restores of refs, and hooks behind events. A task names a repository and its
 * partition, so that a task of a deleted repository does nothing to another one of the same name.
 */
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

/* Adds the task that works off the to-delete list; there is at most one. */
int lake_task_add_delete(struct queue *q, struct err *err) MUST_CHECK;
/* Adds the task that carries out the collection that was asked for (lake_gc_ask()). */
int lake_task_add_gc(struct queue *q, const struct lake_repo *r, struct err *err) MUST_CHECK;

/* Adds the task that carries out an import (lake_import_start()). */
int lake_task_add_import(struct queue *q, const struct lake_repo *r, struct str id,
                         struct err *err) MUST_CHECK;

/* Adds the task that carries out a dump or a restore of refs (lake_refs_task_start()). */
int lake_task_add_refs(struct queue *q, const struct lake_repo *r, struct str id,
                       struct err *err) MUST_CHECK;

/* Adds the task that runs the hooks behind an event (lake_actions_work()). */
int lake_task_add_hooks(struct queue *q, struct str payload, struct err *err) MUST_CHECK;

/* What the handlers of tasks work with; borrowed until the worker has stopped. */
struct lake_tasks {
    struct lake *lake;
    struct lake_actions *actions;
};
/* Appends the handlers, for struct room. */
void lake_tasks_list(struct lake_tasks *t, room_tasks *out);

/* A thread that looks at the to-delete list and adds its task. */
struct lake_keeper {
    struct lake *lake;
    struct queue *queue;
    struct loop loop;
};
int lake_keeper_start(struct lake_keeper *k, struct lake *l, struct queue *q,
                      struct err *err) MUST_CHECK;
void lake_keeper_stop(struct lake_keeper *k); /* {0} is fine */

#endif
