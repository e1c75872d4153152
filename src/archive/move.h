/* Moves of slots from one satellite to another (docs/archive.md, "Moves", W1 to W6).
 *
 * A slot is the part of the archive whose accounts share the first byte of their hash; a satellite
 * is a storage. Each slot that moves has one task, which handles the accounts of the slot one after
 * another. For each account the task
 * - takes the account's lock;
 * - copies every object with its metadata to the new satellite, the record last, and checks the
 *   bytes on the way: the trailer of a bundle, size and MD5 of other objects;
 * - compares both satellites, and only then removes each object from the old satellite, on the
 *   condition that it is still the object that was copied.
 *
 * When the slot is empty on the old satellite, the next table of slots ends the move.
 *
 * A sync of an account whose slot moves first moves the account in the same way (archive/shelf.h).
 * Reads work as usual meanwhile. If a task is killed, its next run does not copy objects again that
 * are the same on both satellites. */
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
    /* Start a thread that adds a task for each moving slot without a task. True in processes that
     * run tasks. */
    bool keeps;
    const struct log *log;
};
int moves_open(struct moves **out, const struct moves_options *o, struct err *err) MUST_CHECK;
void moves_close(struct moves *m); /* call it after the worker has stopped; NULL is fine */

/* Adds a task for each moving slot that has no task yet. */
int moves_add_tasks(struct moves *m, struct err *err) MUST_CHECK;
/* Moves the accounts of a slot, and ends the move when the old satellite has no object of the slot.
 * `ended` (may be NULL) is called between two objects; when it returns true, the call stops. *moved
 * is the number of accounts that were moved. ERR_AGAIN: some accounts are being synced, so the
 * caller must try the slot again later. */
int moves_slot(struct moves *m, unsigned slot, bool (*ended)(void *ctx), void *ctx, size_t *moved,
               struct err *err) MUST_CHECK;
/* The handler of MOVE_TASK; its ctx is the struct moves. */
task_fn moves_run;
#endif
