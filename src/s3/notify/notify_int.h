/* Between the files of notify. */
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

/* The last row of one storage that was dealt with (N3). */
struct progress {
    uint32_t storage;
    uint64_t sequence;
    unsigned char rule; /* the last one deleted */
};

/* A webhook and the thread that sends to it. */
struct webhook {
    struct notify *n;
    char *name;
    char *url, *secret; /* under notify.lock */
    bool woken;         /* likewise */
    struct cond wake;   /* with notify.lock */
    _Atomic(bool) stop;
    _Atomic(int64_t) pending; /* below 0 for a moment: delivered before it was counted */
    _Atomic(uint64_t) delivered, failed;
    _Atomic(int64_t) oldest_ms;    /* when the first that waits happened; 0: none waits */
    VEC(struct progress) progress; /* by storage; the thread's own */
    struct thread thread;
};

struct notify {
    struct notify_options o;
    struct db_cf *outbox;
    struct client *client;
    struct seal_key key;
    struct reload reload;
    uint64_t test_sequence; /* touched only inside changes */
    _Atomic(uint64_t) dropped;

    struct mutex lock; /* class "notify" */
    struct cond loaded;
    bool loading;  /* one load at a time */
    bool is_known; /* the store was read once (N5) */
    VEC(struct webhook *) webhooks;
};

/* --- notify.c --- */

struct webhook *notify_find(struct notify *n, struct str name); /* under the lock */
/* One more event waits for the webhook; wakes its thread. */
void notify_wake(struct notify *n, struct str name);

/* --- notify_webhooks.c: the set of them, in the store and here --- */

#define WEBHOOKS_CHANNEL STR("weir:webhooks")

reload_fn webhooks_load;              /* of a notify */
void webhook_free(struct webhook *w); /* its thread has ended */

/* --- notify_event.c --- */

/* The name in an ARN: what is behind the last colon. */
struct str arn_webhook(struct str arn);

enum { OUTBOX_PLACE = 8 + 8 + 1 }; /* bytes of a row's place: storage, sequence, rule */
#define OUTBOX_RECORD 'R'
#define OUTBOX_TEST   'T'

/* The rows of one webhook are a row log, whose prefix is the webhook's name and a 0 byte. */
struct row_log outbox_log(const struct notify *n, struct buf *prefix, struct str webhook);
/* Appends the place of a row. */
void outbox_place(struct buf *out, const struct progress *at);
/* False: `place` does not have the form that outbox_place() writes. */
bool outbox_parse(struct progress *out, struct str place);

/* --- notify_send.c --- */

int sender_start(struct webhook *w, struct err *err) MUST_CHECK;
/* Asks the thread to end and waits for it. */
void sender_stop(struct webhook *w);
/* Counts the rows that wait for the webhook; before its thread starts. */
int sender_count(struct webhook *w, int64_t *out, struct err *err) MUST_CHECK;
/* Drops all rows of the webhook; after its thread has ended. */
void sender_forget(struct webhook *w);

#endif
