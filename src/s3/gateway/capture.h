/* Capture: the gateway announces each change before it is made and reports afterwards how it ended,
 * so that replication misses no change (docs/replication.md, "Capture"). While this process's
 * *lease* (docs/replication.md, E1) lasts, other processes wait for this process's changes to end.
 * When the lease is over, this process makes no changes. The calls are declared here and
 * implemented in a higher layer. */
#ifndef S3_GATEWAY_CAPTURE_H
#define S3_GATEWAY_CAPTURE_H

#include "object/bucket.h"

/* A change that a request is about to make. */
struct intended {
    struct storage *storage; /* the storage that the change is made on; never NULL */
    struct str bucket;
    struct str user;        /* id of the user who asks; empty: an anonymous request */
    unsigned changes;       /* what changes: a set of enum thing_kind */
    const struct str *keys; /* keys of the objects that change */
    size_t key_count;
    bool ends_upload; /* the change ends an upload, so it is made where the upload was begun, not
                         where the route leads now */
};

enum outcome {
    OUTCOME_DONE,
    OUTCOME_REFUSED, /* certainly nothing was changed */
    OUTCOME_UNKNOWN,
};

/* One change under way. The caller provides the memory; begin() fills it. */
struct capture {
    void *intent, *noted, *locks; /* only for the implementation, as are `member` and `phase` */
    /* This request's number in an intent (docs/replication.md) that requests share. */
    size_t member;
    unsigned phase;
    bool begun;           /* end() has to be called */
    uint64_t lease;       /* number of the lease under which the change began; 0: none needed */
    struct intended what; /* the change; set only if there is a lease */
};

struct change_capture {
    /* Announces a change, before anything of it is sent. May wait. Where nothing is captured, the
     * call costs only a few loads from memory. If the storage reports its changes itself
     * (STORAGE_TELLS_CHANGES), the call announces nothing and only checks whether the change may be
     * made.
     *
     * After an error the change must not be made. ERR_STORE: the change cannot be captured
     * (docs/replication.md, R5), or this process's lease is over, so that other processes may go on
     * without it. ERR_BUSY: the bucket is being switched. The memory that `i` points to must stay
     * until end(). */
    int (*begin)(void *ctx, const struct intended *i, struct capture *out, struct err *err);
    /* Asks whether the last bytes of a change may be sent to a remote storage. Call it as late as
     * possible. Never waits. ERR_STORE: the lease is over, so the bytes must not be sent. */
    int (*check)(void *ctx, const struct capture *c, struct err *err);
    /* Reports how the change ended. Call it exactly once after a begin() that succeeded. May wait.
     * ERR_STORE: the lease ended during the change, so other processes may have gone on without
     * this process. Then the client must not get the answer that the change was made. */
    int (*end)(void *ctx, struct capture *c, enum outcome outcome, struct err *err);
    void *ctx;
};

#endif
