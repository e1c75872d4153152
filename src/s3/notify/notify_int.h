/* Types and functions that the files of notify share. */
#ifndef S3_NOTIFY_NOTIFY_INT_H
#define S3_NOTIFY_NOTIFY_INT_H

#include "base/vec.h"
#include "db/row_log.h"
#include "http/client.h"
#include "os/thread.h"
#include "store/reload.h"
#include "route/seal.h"
#include "s3/notify/notify.h"

#include <stdatomic.h>

/* The place of a row in a webhook's outbox. webhook.progress has one for each storage: the place of
 * the last row that was delivered or dropped (docs/notifications.md, N3). */
struct progress {
    uint32_t storage;
    uint64_t sequence;
    unsigned char rule; /* index of the rule in the configuration */
};

/* A webhook and the thread that sends to it. */
struct webhook {
    struct notify *n;
    char *name;
    char *url, *secret; /* guarded by notify.lock */
    bool woken;         /* guarded by notify.lock */
    struct cond wake;   /* used with notify.lock */
    _Atomic(bool) stop;
    /* How many rows wait. Below 0 for a moment when a row is delivered before it is counted. */
    _Atomic(int64_t) pending;
    _Atomic(uint64_t) delivered, failed;
    _Atomic(int64_t) oldest_ms;    /* time of the oldest event that waits; 0: no event waits */
    VEC(struct progress) progress; /* ordered by storage; only the thread uses it */
    struct thread thread;
};

struct notify {
    struct notify_options o;
    struct db_cf *outbox;
    struct client *client;
    struct seal_key key;
    struct reload reload;
    uint64_t test_sequence; /* used only inside commits of the database */
    _Atomic(uint64_t) dropped;

    struct mutex lock; /* lock class "notify"; guards the members below */
    struct cond loaded;
    bool loading;  /* a thread is loading the webhooks; other threads wait for it */
    bool is_known; /* the webhooks were loaded from the store at least once */
    VEC(struct webhook *) webhooks;
};

/* --- notify.c --- */

struct webhook *notify_find(struct notify *n, struct str name); /* the caller holds notify.lock */
/* Counts one more event that waits for the webhook, and wakes its thread. */
void notify_wake(struct notify *n, struct str name);

/* --- notify_webhooks.c: the set of webhooks, in the store and in memory --- */

#define WEBHOOKS_CHANNEL STR("weir:webhooks")

reload_fn webhooks_load;              /* its `ctx` is a struct notify */
void webhook_free(struct webhook *w); /* call it after the thread has ended */

/* --- notify_event.c --- */

/* Returns the webhook's name in an ARN: the part behind the last colon. */
struct str arn_webhook(struct str arn);

enum { OUTBOX_PLACE = 8 + 8 + 1 }; /* bytes of a row's place: storage, sequence, rule */
#define OUTBOX_RECORD 'R'
#define OUTBOX_TEST   'T'

/* Returns the row log (db/row_log.h) of one webhook; its prefix is the webhook's name and a 0 byte.
 */
struct row_log outbox_log(const struct notify *n, struct buf *prefix, struct str webhook);
/* Appends the place of a row, which is the part of its key behind the log's prefix. */
void outbox_place(struct buf *out, const struct progress *at);
/* Parses a row's place. Returns false when `place` does not have the form that outbox_place()
 * writes. */
bool outbox_parse(struct progress *out, struct str place);

/* --- notify_send.c --- */

int sender_start(struct webhook *w, struct err *err) MUST_CHECK;
/* Asks the webhook's thread to end and waits until it has. */
void sender_stop(struct webhook *w);
/* Counts the rows that wait for the webhook. Call it before its thread starts. */
int sender_count(struct webhook *w, int64_t *out, struct err *err) MUST_CHECK;
/* Drops all rows of the webhook; the events in them are lost. Call it after its thread has
 * ended. */
void sender_forget(struct webhook *w);

#endif
