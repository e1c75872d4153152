/* The progress of the syncs that run now, for people. It is a hash `w:archive:running` in appDB,
 * with a field for each account that is being synced. So every process can show it. Nothing else
 * depends on these numbers. If the account of a field is not locked any more, the process that
 * wrote the field has died. */
#ifndef ARCHIVE_PROGRESS_H
#define ARCHIVE_PROGRESS_H

#include "archive/archive.h"
#include "archive/repo.h"
#include "archive/schedule.h"

enum { PROGRESS_EVERY_MS = 500 };

struct progress {
    struct str member, worker;
    int64_t started_ms;
    uint64_t total, done, failed; /* numbers of repositories */
    uint64_t bytes;               /* bytes that git servers sent */
};

/* These functions write the progress of a sync. Errors of the store are ignored. progress_note()
 * writes at most every PROGRESS_EVERY_MS. */
void progress_begin(struct archive *x, const struct schedule_claim *c, struct sync_scope *s);
void progress_note(struct archive *x, const struct schedule_claim *c, struct sync_scope *s);
void progress_end(struct archive *x, const struct schedule_claim *c);

/* Lists the syncs that run, in the arena. */
int progress_list(struct archive *x, struct arena *a, struct progress **out, size_t *count,
                  struct err *err) MUST_CHECK;

#endif
