/* S3 event notifications that a storage sends: changes that went past weir (docs/replication.md,
 * "By notification"). The body is AWS's JSON, as Ceph, MinIO and weir write it:
 *
 *     {"Records":[{"eventName":"ObjectCreated:Put",
 *                  "s3":{"bucket":{"name":"photos"},"object":{"key":"a+b.jpg"}}}]}
 *
 * A notice says which object; what it says of it is not believed, the task compares (R2). So it may
 * come twice, late or out of order, and a wrong one does no harm. */
#ifndef REPLICA_NOTICE_H
#define REPLICA_NOTICE_H

#include "coord/replication.h"

enum { NOTICE_BODY_MAX = 1024 * 1024, NOTICE_KEYS = 2 };

/* Some senders write keys as in a query ("a+b", "a%2Bb"), others as they are, and a body does not
 * say which: where the two read differently, both keys are meant. */
struct notice {
    struct str bucket;
    struct str keys[NOTICE_KEYS];
    size_t key_count;
    unsigned changes; /* a set of enum thing_kind, of objects */
};

struct notices {
    struct notice *list; /* in the arena */
    size_t count;
    size_t other;   /* records of events that are none of replication's business */
    size_t unclear; /* records that name no object, and so are left out */
};

/* Pure. ERR_PARSE, ERR_TOO_LARGE: no JSON, or past its limits; ERR_INVALID: no notifications. A
 * test event is one without records. */
int notices_read(struct notices *out, struct arena *a, struct str body, struct err *err) MUST_CHECK;

/* Records them as changes at the storage (R3); they are durable when it returns. *recorded: those
 * of buckets that are replicated from there. ERR_UNAVAILABLE, ERR_BUSY: some are not; all may be
 * tried again. Any thread. */
int notices_record(struct replications *r, struct str storage, const struct notices *n,
                   size_t *recorded, struct err *err) MUST_CHECK;

#endif
