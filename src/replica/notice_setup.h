/* Makes a storage report a bucket's changes: sets the notification configuration of the bucket and,
 * for Ceph, makes the topic that the configuration names. Entries that somebody else has set stay.
 * Calls block. Any thread may make them. */
#ifndef REPLICA_NOTICE_SETUP_H
#define REPLICA_NOTICE_SETUP_H

#include "object/bucket.h"

struct notice_setup {
    struct storage *storage; /* must have STORAGE_NOTIFIES; borrowed, like the strings */
    struct str bucket;
    struct str user; /* id of the user whose keys are used at the storage */
    /* Where the storage reports to. It is a URL of weir's API, for which a topic is made (Ceph), or
     * the ARN of a target that the storage has (MinIO, another weir). The name of the entry in the
     * configuration is made from this target. */
    struct str target;
    struct str token; /* secret that is added to the URL of `target` */
};

enum { NOTICE_TARGET_MAX = 1024 };

/* Checks a target. ERR_INVALID: the target is neither a URL nor an ARN. */
int notice_target_check(struct str target, struct err *err) MUST_CHECK;

/* Sets the entry in the bucket's configuration, and makes the topic if needed. The call may be
 * repeated. ERR_UNSUPPORTED: the storage makes no topics, or refuses such a configuration. Other
 * errors are those of object/bucket.h. */
int notice_setup(const struct notice_setup *s, struct err *err) MUST_CHECK;
/* Removes the entry from the bucket's configuration. The topic stays, because other buckets may use
 * it. */
int notice_setup_undo(const struct notice_setup *s, struct err *err) MUST_CHECK;

/* Appends to `out` the configuration `xml` in which `entry` replaces the entry with this id, or is
 * added at the end. If `entry` is empty, the entry with this id is removed. Does no I/O. ERR_PEER:
 * `xml` is not a notification configuration. */
int notice_splice(struct buf *out, struct str xml, struct str id, struct str entry,
                  struct err *err) MUST_CHECK;

#endif
