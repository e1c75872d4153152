/* S3 event notifications from a storage, which report changes that bypassed weir
 * (docs/replication.md, "By notification"). The body is AWS's JSON, as Ceph, MinIO and weir write
 * it:
 *
 *     {"Records":[{"eventName":"ObjectCreated:Put",
 *                  "s3":{"bucket":{"name":"photos"},"object":{"key":"a+b.jpg"}}}]}
 *
 * A *notice* is one record of such a body. It says which object changed. The task that it makes
 * compares both sides, and relies on nothing else in the notice (R2). So a notice may come twice,
 * late or out of order, and a wrong notice does no harm. */
#ifndef REPLICA_NOTICE_H
#define REPLICA_NOTICE_H

#include "coord/replication.h"

enum { NOTICE_BODY_MAX = 1024 * 1024, NOTICE_KEYS = 2 };

/* A change of one object. Some senders write keys as in a query ("a+b", "a%2Bb"), other senders
 * write them as they are, and a body does not say which form it has. Where the two readings differ,
 * the notice has both keys. */
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
 * the body exceeds the limits. ERR_INVALID: the body holds no notifications. A test event is read
 * as a body without records. */
int notices_read(struct notices *out, struct arena *a, struct str body, struct err *err) MUST_CHECK;

/* Records the notices as changes at the storage (R3). The changes are durable when the call
 * returns. *recorded is the number of notices for buckets that are replicated from the storage.
 * ERR_UNAVAILABLE, ERR_BUSY: some notices are not recorded, and the caller may repeat the call with
 * all of them. Any thread may call it. */
int notices_record(struct replications *r, struct str storage, const struct notices *n,
                   size_t *recorded, struct err *err) MUST_CHECK;

#endif
