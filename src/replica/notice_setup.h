/* Making a storage tell of a bucket's changes: the notification configuration of the bucket, and
 * where Ceph is asked to, the topic that it names. One that somebody else has set stays. Calls
 * block; any thread. */
#ifndef REPLICA_NOTICE_SETUP_H
#define REPLICA_NOTICE_SETUP_H

#include "object/bucket.h"

struct notice_setup {
    struct storage *storage; /* STORAGE_NOTIFIES; borrowed, as all of these */
    struct str bucket;
    struct str user; /* whose credentials there */
    /* Where it tells: a URL of weir's API, for which a topic is made (Ceph), or the ARN of a target
     * that the storage has (MinIO, another weir). Names the entry in the configuration. */
    struct str target;
    struct str token; /* for the URL */
};

enum { NOTICE_TARGET_MAX = 1024 };

/* ERR_INVALID: neither. */
int notice_target_check(struct str target, struct err *err) MUST_CHECK;

/* Twice is as once. ERR_UNSUPPORTED: the storage makes no topics, or takes no such configuration;
 * else as object/bucket.h. */
int notice_setup(const struct notice_setup *s, struct err *err) MUST_CHECK;
/* Takes the entry away; the topic stays, other buckets may have it. */
int notice_setup_undo(const struct notice_setup *s, struct err *err) MUST_CHECK;

/* The configuration with `entry` in place of the one with this id, or at its end; `entry` empty: it
 * is taken away. Pure. ERR_PEER: it is no such document. */
int notice_splice(struct buf *out, struct str xml, struct str id, struct str entry,
                  struct err *err) MUST_CHECK;

#endif
