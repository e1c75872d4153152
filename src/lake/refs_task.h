/* Dumps and restores of refs (docs/lake-moving.md) that run as tasks. Such a task is a record
 * `tasks/<id>` in the repository's partition, and a task on the queue (lake/tasks.h). The record is
 * kept for 24 hours. */
#ifndef LAKE_REFS_TASK_H
#define LAKE_REFS_TASK_H

#include "lake/dump.h"

enum lake_refs_kind { LAKE_REFS_DUMP, LAKE_REFS_RESTORE };

struct lake_refs_task {
    struct str id;
    uint32_t kind; /* enum lake_refs_kind */
    bool done;
    int64_t updated_ms;
    uint64_t rows;         /* rows that were read or written so far */
    struct str error;      /* why the task has failed for good; empty: it has not */
    struct str last_error; /* why the last try failed; empty: it did not fail */
    struct lake_refs refs; /* the ids of the dump that was made, or that is to be restored */
    bool force;
    struct str stamp; /* the row as it was read, for conditions of writes; not in the record */
};

void lake_refs_task_write(struct buf *out, const struct lake_refs_task *t);
/* Reads a record; the strings point into it. ERR_CORRUPT: it is damaged. */
int lake_refs_task_read(struct lake_refs_task *out, struct str record, struct err *err) MUST_CHECK;

/* Writes the record of a new task of this kind. Only a restore uses `refs` and `force`. *id is in
 * the arena. */
int lake_refs_task_start(struct lake *l, struct arena *a, const struct lake_repo *r,
                         const struct lake_refs_task *wanted, struct str *id,
                         struct err *err) MUST_CHECK;
/* Reads the record. ERR_NOT_FOUND: there is no such task of this kind. */
int lake_refs_task_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                       enum lake_refs_kind kind, struct str id, struct lake_refs_task *out,
                       struct err *err) MUST_CHECK;
/* Runs the task. If the task fails for good, the error is written into the record and this function
 * returns 0. After other errors, which the record gets as `last_error`, the caller should try
 * again. This function calls `ended` repeatedly; if `ended` returns true, it returns ERR_CANCELED,
 * and the next call begins the task from the start. */
int lake_refs_task_work(struct lake *l, const struct lake_repo *r, struct str id,
                        bool (*ended)(void *ctx), void *ctx, struct err *err) MUST_CHECK;

#endif
