/* The progress of the syncs that run now. Every process can see it: it is a hash
 * `w:archive:running` in appDB, with a field for each account that is being synced. The numbers are
 * for people; nothing depends on them. A field whose account is not locked any more is left over
 * from a process that has died. */
#ifndef ARCHIVE_PROGRESS_H
#define ARCHIVE_PROGRESS_H

#include "archive/archive.h"
#include "archive/repo.h"
#include "archive/schedule.h"

enum { PROGRESS_EVERY_MS = 500 };

struct progress {
    struct str member, worker;
    int64_t started_ms;
    uint64_t total, done, failed; /* repositories */
    uint64_t bytes;               /* from git servers */
};

/* These write the progress of a sync. Errors of the store are ignored. progress_note() writes at
 * most every PROGRESS_EVERY_MS. */
void progress_begin(struct archive *x, const struct schedule_claim *c, struct sync_scope *s);
void progress_note(struct archive *x, const struct schedule_claim *c, struct sync_scope *s);
void progress_end(struct archive *x, const struct schedule_claim *c);

/* Lists the syncs that run, in the arena. */
int progress_list(struct archive *x, struct arena *a, struct progress **out, size_t *count,
                  struct err *err) MUST_CHECK;

#endif
