/* Lets a long call report its progress, and find out whether its caller wants to stop it. */
#ifndef LAKE_PROGRESS_H
#define LAKE_PROGRESS_H

#include "base/err.h"

struct arena;
struct kv_change;

struct lake_progress {
    /* Called repeatedly with the number of rows that were read or written so far. Returns false
     * when the caller wants to stop. */
    bool (*goes_on)(void *ctx, uint64_t rows);
    void *ctx;
    /* Called by a restore before its last write, with the number of rows that it will have written;
     * NULL: the caller keeps no record. Gives a put that records the end of the restore. The last
     * write also makes this put, so no crash can come between the restore and its record. */
    int (*end)(void *ctx, struct arena *a, uint64_t rows, struct kv_change *out, struct err *err);
};

/* Reports the progress; `p` may be NULL. ERR_CANCELED: the caller wants to stop. */
static inline int lake_progress_note(const struct lake_progress *p, uint64_t rows, struct err *err)
{
    return p && !p->goes_on(p->ctx, rows) ? err_code(err, ERR_CANCELED) : 0;
}

#endif
