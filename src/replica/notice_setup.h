/* Makes a storage report a bucket's changes: sets the notification configuration of the bucket and,
 * for Ceph, makes the topic that it names. Entries that somebody else has set stay. Calls block;
 * any thread. */
#ifndef REPLICA_NOTICE_SETUP_H
#define REPLICA_NOTICE_SETUP_H

#include "object/bucket.h"

struct notice_setup {
    struct storage *storage; /* has STORAGE_NOTIFIES; borrowed, as the others */
    struct str bucket;
    struct str user; /* whose keys are used at the storage */
    /* Where the storage reports to: a URL of weir's API, for which a topic is made (Ceph), or the
     * ARN of a target that the storage has (MinIO, another weir). The entry in the configuration is
     * named after it. */
    struct str target;
    struct str token; /* is added to the URL */
};

enum { NOTICE_TARGET_MAX = 1024 };

/* ERR_INVALID: the target is neither a URL nor an ARN. */
int notice_target_check(struct str target, struct err *err) MUST_CHECK;

/* May be called again with the same result. ERR_UNSUPPORTED: the storage makes no topics, or takes
 * no such configuration. Other errors as in object/bucket.h. */
int notice_setup(const struct notice_setup *s, struct err *err) MUST_CHECK;
/* Removes the entry; the topic stays, as other buckets may use it. */
int notice_setup_undo(const struct notice_setup *s, struct err *err) MUST_CHECK;

/* Appends to `out` the configuration `xml` with `entry` in place of the entry with this id, or at
 * the end. An empty `entry` removes it. Does no I/O. ERR_PEER: `xml` is no such document. */
int notice_splice(struct buf *out, struct str xml, struct str id, struct str entry,
                  struct err *err) MUST_CHECK;

#endif
