/* A remote storage: buckets and objects behind any S3 endpoint (the *peer*). docs/remote-storage.md
 * has its promise, its limits, and the error for each failure of the peer.
 *
 * Every request is signed (SigV4) with the credentials that the asking weir user has on that
 * storage, and travels over kept connections (http/upstream.h). Calls block, so only blocking
 * threads and workers make them. While the peer is down, calls fail at once, and a thread of the
 * storage tries to reach the peer until it is back. */
#ifndef OBJECT_REMOTE_REMOTE_H
#define OBJECT_REMOTE_REMOTE_H

#include "base/log.h"
#include "object/bucket.h"

struct remote_credential {
    struct str user; /* id of the weir user */
    struct str access, secret;
};

/* How long the peer may take; 0: the default, see remote_timeouts[]. */
struct remote_times {
    uint64_t connect_ms;  /* limit for connecting, with name look-up and TLS */
    uint64_t response_ms; /* limit from the end of a request to the head of its answer */
    uint64_t idle_ms;     /* longest time in which no byte of a body moves, in either direction */
};

/* The members of struct remote_times as a table, for code that reads, stores or shows them. */
struct remote_timeout {
    const char *name; /* such as "connect_timeout" */
    uint64_t usual_ms, min_ms, max_ms;
    size_t offset; /* offset of the member in struct remote_times */
};
enum { REMOTE_TIMEOUTS = 3 };
extern const struct remote_timeout remote_timeouts[REMOTE_TIMEOUTS];
/* Returns the member that row `i` of remote_timeouts[] describes. */
uint64_t *remote_time(struct remote_times *times, size_t i);
/* Checks the times. ERR_INVALID: a time is out of bounds; the message names it and the bounds. */
int remote_times_check(const struct remote_times *times, struct err *err) MUST_CHECK;

struct remote_options {
    struct str name;
    struct str url;    /* http://host[:port] or https://...; no path */
    struct str region; /* empty: us-east-1 */
    bool virtual_host; /* true: the bucket is in the host name (bucket.host); false: in the path
                          (host/bucket) */
    const char *ca_file;
    bool tls_insecure;
    struct remote_times times;
    const struct log *log; /* must outlive the storage */
};

/* Opens the storage without connecting to the peer. ERR_INVALID: the URL cannot be used. */
int remote_open(struct storage **out, const struct remote_options *o, struct err *err) MUST_CHECK;

/* Sets the credentials of one user, or removes them when `secret` is empty. This may be called at
 * any time, by any thread; requests under way end with the credentials that they began with. The
 * strings are copied; secrets are overwritten before their memory is freed. ERR_INVALID: the user
 * is empty, or a key is malformed. */
int remote_set_credential(struct storage *s, const struct remote_credential *c,
                          struct err *err) MUST_CHECK;
bool remote_has_credential(struct storage *s, struct str user);

/* The peer's own count of what a bucket holds: current and old versions. */
struct remote_count {
    uint64_t versions, bytes;
};
/* Asks the peer for its count of a bucket of a remote storage, by one request (HEAD with Ceph's
 * parameter read-stats). Ceph and weir give a count; it may lag behind changes. ERR_UNSUPPORTED:
 * the peer gives none. */
int remote_count(struct bucket *b, struct remote_count *out, struct err *err) MUST_CHECK;

/* --- notifications (STORAGE_NOTIFIES), beyond a bucket's document "notification" --- */

struct remote_topic {
    struct str user;     /* the user whose credentials sign the request */
    struct str name;     /* an existing topic of this name is changed */
    struct str endpoint; /* the URL that the peer posts events to; may hold a secret */
};

/* Makes a topic, and sets *arn to its ARN (in the arena), for the document "notification".
 * ERR_UNSUPPORTED: the peer has no topics. */
int remote_make_topic(struct storage *s, struct arena *a, const struct remote_topic *t,
                      struct str *arn, struct err *err) MUST_CHECK;
/* Removes the entry with this id from the bucket's document "notification". The call is needed for
 * Ceph, where setting the document adds entries and removes none. */
int remote_drop_notification(struct storage *s, struct str user, struct str bucket, struct str id,
                             struct err *err) MUST_CHECK;

#endif
