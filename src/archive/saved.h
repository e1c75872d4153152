/* A saved repository: finds the bundle of an account by its name, for restores, clones and audits.
 *
 * A *name* is the key of a bundle without the folder of its account and without `.bundle`:
 *
 *     Hello-World                        a repository
 *     Hello-World@wiki                   its wiki
 *     Hello-World@1296269                a repository that had the name before
 *     Hello-World@20260131T030000Z       a bundle of the repository that was kept aside
 *     Hello-World@damaged-…, @moved-…    a *copy*: a damaged bundle, or the one of two different
 *                                        bundles that the satellites had
 *     @gists/abc123                      a gist of the account
 *
 * Bundles of wikis and gists are kept aside in the same way: `Hello-World@wiki@…`. */
#ifndef ARCHIVE_SAVED_H
#define ARCHIVE_SAVED_H

#include "archive/archive.h"
#include "archive/audit.h"
#include "archive/shelf_bucket.h"
#include "coord/worker.h"

/* Whether the text can be a name of a bundle. */
bool saved_name_ok(struct str name);
/* The keys of a bundle and of the verdict about it. */
struct str saved_key(const struct archive_account *c, struct arena *a, struct str name);
struct str saved_verdict_key(const struct archive_account *c, struct arena *a, struct str name);
/* The name of the bundle that has this key, borrowed from the key. Empty: the key is not that of a
 * bundle. */
struct str saved_name(struct str key);
/* Whether the key is that of a verdict. */
bool saved_is_verdict(struct str key);
/* Whether a name is that of a copy. Lists leave copies out unless they are asked for. */
bool saved_is_copy(struct str name);
/* Whether a name is that of a repository, and not that of a wiki or a gist. */
bool saved_is_repo(struct str name);

struct saved {
    struct shelf shelf;
    struct shelf_bucket bucket;
    struct audit_job job; /* keys, bucket and scratch */
};

/* Opens the shelf of the account. A missing bundle is not an error here. ERR_INVALID: the name is
 * not valid. `s` must stay at its address until saved_close(). */
int saved_open(struct saved *s, struct archive *x, struct arena *a, const struct archive_account *c,
               struct str name, struct err *err) MUST_CHECK;
void saved_close(struct saved *s); /* {0} is fine */

/* --- tasks of the queue `archive` --- */

#define AUDIT_TASK_TYPE "archive:audit"
#define TIDY_TASK_TYPE  "archive:tidy"

/* Queues an audit or tidying of one bundle. If such a task is already queued or running, the call
 * adds nothing and returns 0. */
int saved_queue(struct archive *x, const struct archive_account *c, struct str name,
                enum audit_due what, struct err *err) MUST_CHECK;
/* Looks for such a task. out->state is TASK_STATES if there is none, because it has ended or was
 * never queued. */
int saved_task(struct archive *x, struct arena *a, const struct archive_account *c, struct str name,
               enum audit_due what, struct task_info *out, struct err *err) MUST_CHECK;
/* Handlers of these tasks (coord/worker.h); their ctx is the struct archive. */
int audit_handle(struct task_run *run, struct err *err);
int tidy_handle(struct task_run *run, struct err *err);

/* Decides after a sync whether the bundle needs an audit or tidying, and queues the task. Each week
 * one hundredth of all bundles is audited. A bundle that was appended to often, or has grown much,
 * is tidied. `bucket` is that of the account, and `bundle` describes the present object. A failure
 * is logged; the next sync decides again. */
void saved_consider(struct archive *x, struct bucket *bucket, struct arena *a,
                    const struct archive_account *c, struct str name,
                    const struct object_info *bundle);

#endif
