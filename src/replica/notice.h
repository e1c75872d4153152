/* S3 event notifications from a storage: they report changes that bypassed weir
 * (docs/replication.md, "By notification"). The body is AWS's JSON, as Ceph, MinIO and weir write
 * it:
 *
 *     {"Records":[{"eventName":"ObjectCreated:Put",
 *                  "s3":{"bucket":{"name":"photos"},"object":{"key":"a+b.jpg"}}}]}
 *
 * A notice says which object changed; the task compares both sides and relies on nothing else in
 * the notice (R2). So a notice may come twice, late or out of order, and a wrong one does no harm.
 */
#ifndef REPLICA_NOTICE_H
#define REPLICA_NOTICE_H

#include "coord/replication.h"

enum { NOTICE_BODY_MAX = 1024 * 1024, NOTICE_KEYS = 2 };

/* A change of one object. Some senders write keys as in a query ("a+b", "a%2Bb"), others as they
 * are, and a body does not say which. Where the two readings differ, the notice has both keys. */
struct notice {
    struct str bucket;
    struct str keys[NOTICE_KEYS];
    size_t key_count;
    unsigned changes; /* the things of the object that changed: a set of enum thing_kind */
};

struct notices {
    struct notice *list; /* in the arena */
    size_t count;
    size_t other;   /* records of events that do not concern replication */
    size_t unclear; /* records that are left out, because they name no object */
};

/* Parses the body of a notification, without I/O. ERR_PARSE: the body is not JSON. ERR_TOO_LARGE:
 * it exceeds the limits. ERR_INVALID: it holds no notifications. A test event is read as a body
 * without records. */
int notices_read(struct notices *out, struct arena *a, struct str body, struct err *err) MUST_CHECK;

/* Records the notices as changes at the storage (R3). They are durable when the call returns.
 * *recorded: how many notices concern buckets that are replicated from the storage.
 * ERR_UNAVAILABLE, ERR_BUSY: some are not recorded, and the call may be repeated with all. Any
 * thread may call it. */
int notices_record(struct replications *r, struct str storage, const struct notices *n,
                   size_t *recorded, struct err *err) MUST_CHECK;

#endif
