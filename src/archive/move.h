/* Moves of slots from one satellite to another (docs/archive.md, "Moves", W1 to W6).
 *
 * A slot is the part of the archive whose accounts share the first byte of their hash; a satellite
 * is a storage. Each slot that moves gets a task. The task handles the accounts of the slot one
 * after another: it takes the lock of the account, copies every object with its metadata to the new
 * satellite, the record last, compares both sides, and only then removes the objects on the old
 * satellite, each on the condition that it is still the object that was copied. A bundle's trailer
 * is checked as it flows, other objects are checked by size and MD5. When the slot is empty on the
 * old satellite, the next table ends its move.
 *
 * A sync of an account whose slot moves does the same for its account first (archive/shelf.h).
 * Reads go on as usual meanwhile. A task that was killed goes on where it stopped: objects that are
 * the same on both sides are not copied again. */
#ifndef ARCHIVE_MOVE_H
#define ARCHIVE_MOVE_H

#include "archive/satellites.h"
#include "coord/worker.h"

struct queue;
struct schedule;

#define MOVE_TASK "archive:move" /* type of the tasks, on the queue ARCHIVE_QUEUE */

struct moves;

struct moves_options {
    struct satellites *satellites; /* borrowed, as everything here */
    struct schedule *schedule;     /* has the locks of accounts */
    struct queue *queue;
    /* Starts a thread that adds a task for each moving slot without a task. Set in processes that
     * run tasks. */
    bool keeps;
    const struct log *log;
};
int moves_open(struct moves **out, const struct moves_options *o, struct err *err) MUST_CHECK;
void moves_close(struct moves *m); /* when the worker has stopped; NULL is fine */

/* Adds a task for each moving slot that has no task yet. */
int moves_add_tasks(struct moves *m, struct err *err) MUST_CHECK;
/* Moves the accounts of a slot, and ends its move when nothing is left. `ended` (may be NULL) is
 * called between objects and returns true when the move must stop. ERR_AGAIN: some accounts are
 * being synced, so the slot must be tried again later; *moved is the number of accounts that were
 * moved. */
int moves_slot(struct moves *m, unsigned slot, bool (*ended)(void *ctx), void *ctx, size_t *moved,
               struct err *err) MUST_CHECK;
/* The handler of MOVE_TASK; its ctx is the struct moves. */
task_fn moves_run;
#endif
