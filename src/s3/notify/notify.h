/* Event notifications: webhooks, and the outbox that never loses an event whose change was
 * acknowledged. docs/notifications.md has the promise, its invariants and the crash points.
 *
 * The way of an event: notify_event_init() before the change; the storage gets &event.note and
 * tells it inside its commit, which keeps the event's rows; notify_sent() after the change wakes
 * the webhooks' threads. Any thread. */
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
    struct db *db; /* with family LOCAL_OUTBOX; borrowed, as all of these */
    struct store *config;
    const char *key_file;     /* what secrets are sealed with: seal_key_open() */
    struct str region;        /* empty: us-east-1 */
    uint64_t max_age_ms;      /* older events are given up; 0: a day */
    uint64_t max_pending;     /* of one webhook, more than that: the oldest are; 0: a million */
    uint64_t call_timeout_ms; /* 0: 10 s */
    uint64_t retry_ms;        /* the first wait; doubles up to 128 times as long; 0: 500 */
    bool direct;              /* not by the proxy that the environment names */
    const struct log *log;
};

/* Before anything can change an object: what waits is counted. A store that is down is no error. */
int notify_open(struct notify **out, const struct notify_options *o, struct err *err) MUST_CHECK;
void notify_close(struct notify *n); /* what waits, waits for the next start; NULL is fine */

/* --- webhooks --- */

struct notify_stats {
    uint64_t pending;
    uint64_t delivered;
    uint64_t failed;    /* calls that were not taken; the event waits */
    uint64_t dropped;   /* events given up */
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
/* What waits for it is given up. ERR_NOT_FOUND. */
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

/* Who did it, for the record. */
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
    enum s3_event event; /* of a removal the ...:Delete; what made a marker is told as that */
    struct notify_source source;
    /* --- */
    struct change_note note;
    struct notify *n;
    unsigned char rules[NOTIFICATION_MAX_RULES]; /* private */
};

/* False: no rule wants it, give no note. */
bool notify_event_init(struct notify_event *e, struct notify *n);
/* After the change has succeeded. */
void notify_sent(struct notify_event *e);

/* The same for what weir does by itself (lifecycle): reads the bucket's configuration, which lives
 * in the arena; *wanted false: no note. `e` needs bucket, key and event. */
int notify_event_own(struct notify_event *e, struct notify *n, struct arena *a, struct bucket *b,
                     bool *wanted, struct err *err) MUST_CHECK;

#endif
