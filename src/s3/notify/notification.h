/* Notification configurations: reads and writes the document, and finds whether a rule matches an
 * event. weir delivers only to webhooks, so a rule is a TopicConfiguration whose Topic is a
 * webhook's ARN. Rules for queues and functions are read as well; the caller refuses those that
 * weir cannot deliver to. */
#ifndef S3_NOTIFY_NOTIFICATION_H
#define S3_NOTIFY_NOTIFICATION_H

#include "base/arena.h"
#include "base/buf.h"
#include "meta/error.h"

enum { NOTIFICATION_MAX_RULES = 100 };

/* clang-format off */
/*    Columns: name; text behind "s3:" */
#define S3_EVENT_TABLE(X) \
    X(CREATED_PUT, "ObjectCreated:Put") \
    X(CREATED_POST, "ObjectCreated:Post") \
    X(CREATED_COPY, "ObjectCreated:Copy") \
    X(CREATED_COMPLETE, "ObjectCreated:CompleteMultipartUpload") \
    X(REMOVED_DELETE, "ObjectRemoved:Delete") \
    X(REMOVED_MARKER, "ObjectRemoved:DeleteMarkerCreated") \
    X(EXPIRED_DELETE, "LifecycleExpiration:Delete") \
    X(EXPIRED_MARKER, "LifecycleExpiration:DeleteMarkerCreated") \
    X(TRANSITION, "LifecycleTransition") \
    X(TAGGING_PUT, "ObjectTagging:Put") \
    X(TAGGING_DELETE, "ObjectTagging:Delete") \
    X(ACL_PUT, "ObjectAcl:Put") \
    X(RESTORE_POST, "ObjectRestore:Post") \
    X(RESTORE_COMPLETED, "ObjectRestore:Completed") \
    X(RESTORE_DELETE, "ObjectRestore:Delete") \
    X(REPLICATION_FAILED, "Replication:OperationFailedReplication") \
    X(REPLICATION_MISSED, "Replication:OperationMissedThreshold") \
    X(REPLICATION_LATE, "Replication:OperationReplicatedAfterThreshold") \
    X(REPLICATION_UNTRACKED, "Replication:OperationNotTracked") \
    X(REDUCED_LOST, "ReducedRedundancyLostObject") \
    X(TIERING, "IntelligentTiering")
/* clang-format on */

enum s3_event {
#define X(name, text) S3_EVENT_##name,
    S3_EVENT_TABLE(X)
#undef X
        S3_EVENTS
};

enum notification_target { NOTIFY_TOPIC, NOTIFY_QUEUE, NOTIFY_FUNCTION };

struct notification_rule {
    struct str id;
    enum notification_target target;
    struct str arn;
    struct str *event_names; /* as in the document, such as "s3:ObjectCreated:*" */
    size_t event_count;
    uint32_t events; /* the events that match, as bits 1 << S3_EVENT_* */
    bool has_prefix, has_suffix;
    struct str prefix, suffix;
};

struct notification {
    struct notification_rule *rules;
    size_t count;
    bool event_bridge;
};

/* Reads the document. MalformedXML or InvalidArgument: S3 would refuse it. A rule without an id
 * gets a random one. An empty document turns notifications off. */
int notification_read(struct notification *out, struct arena *a, struct str xml,
                      struct err *err) MUST_CHECK;
void notification_write(struct buf *out, const struct notification *config);

bool notification_wants(const struct notification_rule *rule, enum s3_event event, struct str key);

const char *s3_event_name(enum s3_event event); /* such as "ObjectCreated:Put" */

#endif
