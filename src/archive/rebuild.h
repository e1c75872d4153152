/* The rebuild of the schedule from the storages (docs/archive.md, "Rebuild", V1 to V6).
 *
 * The objects of every account include one beside its folder, such as its record. So a listing of
 * the storages, without a delimiter, tells which accounts are archived and when each was last
 * synced. The rebuild has 256 tasks in the queue `archive`, one for each slot. A task lists the
 * keys that begin with the slot's folder, in the buckets of all forges. The accounts of a slot can
 * be claimed while other slots are still being listed. A satellite that is down delays only its own
 * slots.
 *
 * Any thread may call these functions. */
#ifndef ARCHIVE_REBUILD_H
#define ARCHIVE_REBUILD_H

#include "archive/schedule.h"
#include "coord/worker.h"
#include "object/bucket.h"

#define ARCHIVE_QUEUE        "archive" /* the queue of all tasks of the archive */
#define ARCHIVE_QUEUE_WEIGHT 2
#define REBUILD_TASK_TYPE    "archive:rebuild"

struct rebuild;

/* Lists one page of a bucket of a forge on a satellite, as bucket->list() does. A satellite or
 * bucket that does not exist yet has no keys. A satellite that does not answer is an error. */
typedef int rebuild_list_fn(void *ctx, struct arena *a, const struct schedule_set *where,
                            const struct list_options *o, struct list_result *out, struct err *err);

struct rebuild_options {
    struct schedule *schedule; /* borrowed, as everything here */
    struct queue *queue;
    rebuild_list_fn *list;
    /* Returns the hosts of all forges, in the arena. An error fails the slot. It must not leave out
     * a host: the slot counts as built afterwards. */
    int (*hosts)(void *ctx, struct arena *a, struct str **out, size_t *count, struct err *err);
    void (*table)(void *ctx, struct slots *out); /* copies the table of slots */
    void *ctx;                                   /* argument of the three functions above */
    const struct log *log;
};
int rebuild_open(struct rebuild **out, const struct rebuild_options *o, struct err *err) MUST_CHECK;
void rebuild_close(struct rebuild *r); /* NULL is fine */

/* Puts a task on the queue for each slot that is not rebuilt yet and has no task. *added is the
 * number of new tasks; `added` may be NULL. */
int rebuild_missing(struct rebuild *r, size_t *added, struct err *err) MUST_CHECK;
/* Adds tasks that rebuild all slots, even slots that are marked as built. It serves the command
 * `weir archive rebuild`. The schedule keeps its accounts meanwhile. */
int rebuild_all(struct rebuild *r, struct err *err) MUST_CHECK;

/* Rebuilds one slot. *accounts is the number of accounts that were found. `run` is the task that
 * makes the call, or NULL. When that task must end, the call returns ERR_SHUTDOWN. ERR_AGAIN: the
 * store was emptied meanwhile, or the slot has moved; the slot must be rebuilt once more. */
int rebuild_slot(struct rebuild *r, unsigned slot, const struct task_run *run, uint64_t *accounts,
                 struct err *err) MUST_CHECK;
/* The handler of the tasks; task_handler.ctx is the struct rebuild. If the slot's satellite is
 * down, the task goes back to the queue, and the run is not counted as a try. */
int rebuild_handle(struct task_run *run, struct err *err);

#endif
