/* Event notifications: webhooks, and the outbox that never loses an event whose change was
 * acknowledged. docs/notifications.md has the promise, its invariants and the crash points.
 *
 * An event takes this way: the caller fills it with notify_event_init() before the change and gives
 * &event.note to the storage; the storage calls the note inside its commit, which writes the
 * event's rows; notify_sent() after the change wakes the webhooks' threads. Any thread. */
#ifndef S3_NOTIFY_NOTIFY_H
#define S3_NOTIFY_NOTIFY_H

#include "base/log.h"
#include "object/bucket.h"
#include "s3/notify/notification.h"

struct db;
struct notify;
struct store;

enum { NOTIFY_WEBHOOKS_MAX = 64, NOTIFY_NAME_MAX = 64, NOTIFY_URL_MAX = 2048 };

struct notify_options {
    struct db *db; /* with family LOCAL_OUTBOX; borrowed, as all pointers here */
    struct store *config;
    const char *key_file; /* with the key that seals the secrets: seal_key_open() */
    struct str region;    /* empty: us-east-1 */
    uint64_t max_age_ms;  /* older events are dropped; 0: a day */
    uint64_t max_pending; /* per webhook; beyond this the oldest events are dropped; 0: a million */
    uint64_t call_timeout_ms; /* 0: 10 s */
    uint64_t retry_ms;        /* the first wait; doubles up to 128 times as long; 0: 500 */
    bool direct;              /* ignore the proxy that the environment names */
    const struct log *log;
};

/* Called before anything can change an object, since it counts the events that wait. A store that
 * is down is no error. */
int notify_open(struct notify **out, const struct notify_options *o, struct err *err) MUST_CHECK;
void notify_close(
    struct notify *n); /* events that wait are sent after the next start; NULL is fine */

/* --- webhooks --- */

struct notify_stats {
    uint64_t pending;
    uint64_t delivered;
    uint64_t failed;    /* calls that failed; their events wait on */
    uint64_t dropped;   /* events dropped */
    uint64_t oldest_ms; /* age of the oldest that waits */
};

struct webhook_info {
    struct str name, url;
    bool is_signed; /* it has a secret */
    struct notify_stats stats;
};

/* Adds or replaces; durable, and used, when it returns. The secret may be empty. ERR_INVALID: the
 * name (letters, digits, '-', '_') or the URL (http, https); ERR_TOO_LARGE. */
int notify_add_webhook(struct notify *n, struct str name, struct str url, struct str secret,
                       struct err *err) MUST_CHECK;
/* Events that wait for the webhook are dropped. ERR_NOT_FOUND. */
int notify_remove_webhook(struct notify *n, struct str name, struct err *err) MUST_CHECK;
/* By name. */
int notify_webhooks(struct notify *n, struct arena *a, struct webhook_info **out, size_t *count,
                    struct err *err) MUST_CHECK;
void notify_stats(struct notify *n, struct notify_stats *out); /* of all together */

/* Whether every rule's ARN names a webhook. InvalidArgument; NotImplemented: EventBridge. */
int notify_check(struct notify *n, const struct notification *config, struct err *err) MUST_CHECK;
/* A test event to each webhook that the configuration names. */
int notify_test(struct notify *n, const struct notification *config, struct str bucket,
                struct str request_id, struct err *err) MUST_CHECK;

/* --- events --- */

/* Who made the change; part of the event's record. */
struct notify_source {
    struct str principal;  /* user id; empty: nobody signed */
    struct str address;    /* of the peer */
    struct str request_id; /* empty: none */
};

/* Fill what is above the line, call notify_event_init(), give &note to the storage. All that it
 * points to must live until the change is done. */
struct notify_event {
    const struct notification *config;
    const struct bucket_info *bucket;
    struct str key;
    enum s3_event event; /* for a removal ...:Delete; if the removal made a marker, the event
                            becomes that of a marker */
    struct notify_source source;
    /* --- */
    struct change_note note;
    struct notify *n;
    unsigned char rules[NOTIFICATION_MAX_RULES]; /* private */
};

/* False: no rule matches the event; the storage gets no note. */
bool notify_event_init(struct notify_event *e, struct notify *n);
/* After the change has succeeded. */
void notify_sent(struct notify_event *e);

/* As notify_event_init(), for a change that weir makes by itself (lifecycle): reads the bucket's
 * configuration, which lives in the arena; *wanted false: no note. `e` needs bucket, key and event.
 */
int notify_event_own(struct notify_event *e, struct notify *n, struct arena *a, struct bucket *b,
                     bool *wanted, struct err *err) MUST_CHECK;

#endif
