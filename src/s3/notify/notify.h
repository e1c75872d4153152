/* Event notifications: webhooks, and the outbox, the table of events that wait to be sent. A crash
 * loses no event whose change was acknowledged. docs/notifications.md has this promise, its
 * invariants (N1 to N5) and the crash points.
 *
 * The path of an event: the caller fills in a struct notify_event and calls notify_event_init()
 * before the change, and gives &event.note to the storage. The storage calls the note inside its
 * commit, which writes the event's rows in the outbox. After the change the caller calls
 * notify_sent(), which wakes the webhooks' threads. The functions may be called from any thread. */
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
    struct db *db; /* has the family LOCAL_OUTBOX; all pointers here are borrowed */
    struct store *config;
    /* The file with the key that encrypts the webhooks' secrets, for seal_key_open(). */
    const char *key_file;
    struct str region;   /* empty: us-east-1 */
    uint64_t max_age_ms; /* events older than this are dropped; 0: a day */
    /* The limit on the events that wait for one webhook; beyond it the oldest are dropped. 0: a
     * million. */
    uint64_t max_pending;
    uint64_t call_timeout_ms; /* 0: 10 s */
    /* Milliseconds to wait after the first failure; each further failure doubles the wait, up to
     * 128 times this value. 0: 500. */
    uint64_t retry_ms;
    bool direct; /* do not use the proxy that the environment names */
    const struct log *log;
};

/* Opens notifications and counts the events that wait. Call it before anything can change an
 * object. A store that is down is not an error. */
int notify_open(struct notify **out, const struct notify_options *o, struct err *err) MUST_CHECK;
/* Closes notifications; `n` may be NULL. Events that wait are sent after the next start. */
void notify_close(struct notify *n);

/* --- webhooks --- */

struct notify_stats {
    uint64_t pending;
    uint64_t delivered;
    uint64_t failed;    /* calls that failed; their events are sent again */
    uint64_t dropped;   /* events that were dropped */
    uint64_t oldest_ms; /* age of the oldest event that waits */
};

struct webhook_info {
    struct str name, url;
    bool is_signed; /* the webhook has a secret, so calls to it are signed */
    struct notify_stats stats;
};

/* Adds or replaces a webhook. On return the change is durable and in effect. The secret may be
 * empty. ERR_INVALID: the name has other characters than letters, digits, '-' and '_', or the URL
 * is not http or https. ERR_TOO_LARGE: there are NOTIFY_WEBHOOKS_MAX webhooks already. */
int notify_add_webhook(struct notify *n, struct str name, struct str url, struct str secret,
                       struct err *err) MUST_CHECK;
/* Removes a webhook and drops the events that wait for it. ERR_NOT_FOUND: there is no such webhook.
 */
int notify_remove_webhook(struct notify *n, struct str name, struct err *err) MUST_CHECK;
/* Lists the webhooks, ordered by name. */
int notify_webhooks(struct notify *n, struct arena *a, struct webhook_info **out, size_t *count,
                    struct err *err) MUST_CHECK;
/* Sets *out to the sums over all webhooks. */
void notify_stats(struct notify *n, struct notify_stats *out);

/* Checks that every rule's ARN names a webhook. InvalidArgument: a rule's ARN does not.
 * NotImplemented: the configuration asks for EventBridge. */
int notify_check(struct notify *n, const struct notification *config, struct err *err) MUST_CHECK;
/* Sends a test event to each webhook that the configuration names. */
int notify_test(struct notify *n, const struct notification *config, struct str bucket,
                struct str request_id, struct err *err) MUST_CHECK;

/* --- events --- */

/* Who made the change; part of the event's record. */
struct notify_source {
    struct str principal;  /* user id; empty: anonymous */
    struct str address;    /* the client's address */
    struct str request_id; /* empty: none */
};

/* An event of one change. Fill in the members up to `source`, call notify_event_init(), and give
 * &note to the storage. Everything that the members point to must live until the change is done. */
struct notify_event {
    const struct notification *config;
    const struct bucket_info *bucket;
    struct str key;
    /* For a removal this is S3_EVENT_..._DELETE. If the removal creates a delete marker, weir sends
     * the event for a new delete marker instead. */
    enum s3_event event;
    struct notify_source source;
    /* --- set by notify_event_init() --- */
    struct change_note note;
    struct notify *n;
    unsigned char rules[NOTIFICATION_MAX_RULES]; /* the enum rule_state of each rule; private */
};

/* Prepares the event's note for the storage. Returns false when no rule matches the event; then the
 * storage gets no note. */
bool notify_event_init(struct notify_event *e, struct notify *n);
/* Wakes the threads of the event's webhooks. Call it after the change has succeeded. */
void notify_sent(struct notify_event *e);

/* Does what notify_event_init() does, for a change that weir makes by itself, such as an action of
 * a lifecycle rule. The caller has set bucket, key and event of `e`. The bucket's configuration is
 * read into the arena. *wanted is false when the storage gets no note. */
int notify_event_own(struct notify_event *e, struct notify *n, struct arena *a, struct bucket *b,
                     bool *wanted, struct err *err) MUST_CHECK;

#endif
