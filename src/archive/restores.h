/* Restores to other git servers, as tasks of the queue `archive` (docs/archive.md, R4 and R5).
 *
 * One task restores one bundle, or all bundles of an account, one after another: it makes a bare
 * repository in the scratch folder (restore.h), pushes it, and removes it. After each bundle the
 * task writes how far it has come to appDB. So if the worker is killed, the next run of the task
 * goes on behind the last bundle that was done.
 *
 *     w:archive:restore:<id>   hash: state and progress of a restore; expires a week after its end
 *     w:archive:restores       sorted set: id -> when the restore was asked for, ms since 1970
 *
 * The id is computed from the account, the URL and the options, so the same restore does not run
 * twice at the same time. The wish is the payload of the task. The credentials for the server are
 * in it sealed (route/seal.h). Any thread may call these functions; they block. */
#ifndef ARCHIVE_RESTORES_H
#define ARCHIVE_RESTORES_H

#include "archive/archive.h"
#include "archive/names.h"
#include "coord/worker.h"

#define RESTORE_TASK_TYPE "archive:restore"

enum {
    RESTORE_URL_MAX = 2048,
    RESTORE_CREDENTIALS_MAX = 480, /* bytes of USER:PASSWORD */
    RESTORE_ID_LEN = 16,
};

struct restore_wish {
    struct archive_account account;
    struct str name;        /* name of one bundle (saved.h); empty: all bundles of the account */
    struct str url;         /* http:// or https://, without user and password */
    struct str credentials; /* USER:PASSWORD for the server; empty: none */
    bool has_at, all;
    int64_t at_s;
};

/* Queues a restore, and sets *id, in the arena. If the same restore is queued or running, the call
 * adds nothing and returns its id. ERR_INVALID: the URL is none that weir can push to, or the name
 * is none of a bundle. */
int restores_begin(struct archive *x, struct arena *a, const struct restore_wish *w, struct str *id,
                   struct err *err) MUST_CHECK;

enum restore_state {
    RESTORE_QUEUED,
    RESTORE_RUNNING,
    RESTORE_RETRY, /* the last try failed, and another one comes */
    RESTORE_DONE,
    RESTORE_FAILED, /* a bundle could not be restored, or the task was given up */
    RESTORE_CANCELED,
    RESTORE_STATES
};
extern const char *const restore_state_names[RESTORE_STATES];

/* How far a restore has come. Numbers are those of bundles, and bytes are bytes of bundles. */
struct restore_progress {
    struct str id, account, name, url;
    enum restore_state state;
    uint64_t total, total_bytes; /* 0 until the task has counted them */
    uint64_t done, failed, refs, bytes;
    uint64_t rate;  /* bytes a second in the present run of the task */
    struct str now; /* the bundle that is restored now */
    int64_t asked_ms, ended_ms;
    struct str error; /* of the bundle that failed last, or of the task */
};

/* ERR_NOT_FOUND: there is no such restore, or it ended more than a week ago. */
int restores_find(struct archive *x, struct arena *a, struct str id, struct restore_progress *out,
                  struct err *err) MUST_CHECK;
/* Lists the newest 1,000 restores, the oldest of them first. */
int restores_list(struct archive *x, struct arena *a, struct restore_progress **out, size_t *count,
                  struct err *err) MUST_CHECK;
/* Ends a restore. What was pushed stays. A restore that has ended is not an error. */
int restores_cancel(struct archive *x, struct str id, struct err *err) MUST_CHECK;

/* The handler of the tasks; its ctx is the struct archive. */
int restores_handle(struct task_run *run, struct err *err);

#endif
