/* Capture: the gateway announces each change before it is made and says afterwards how it ended, so
 * that replication loses none (docs/replication.md, "Capture"). Declared here, implemented above.
 */
#ifndef S3_GATEWAY_CAPTURE_H
#define S3_GATEWAY_CAPTURE_H

#include "object/bucket.h"

/* A change that a request is about to make. */
struct intended {
    struct storage *storage; /* that the change is made on; never NULL */
    struct str bucket;
    struct str user;        /* id of the user who asks; empty: an anonymous request */
    unsigned changes;       /* a set of enum thing_kind */
    const struct str *keys; /* of the objects that change */
    size_t key_count;
    bool ends_upload; /* it is made where the upload was begun, wherever the route leads by now */
};

enum outcome {
    OUTCOME_DONE,
    OUTCOME_REFUSED, /* definitely nothing happened */
    OUTCOME_UNKNOWN,
};

/* One change under way; the caller's storage. */
struct capture {
    void *intent, *noted, *locks; /* the implementer's own, as the next two */
    size_t member;                /* this request's number in an intent that several share */
    unsigned phase;
    bool begun;           /* end() has to be called */
    uint64_t lease;       /* the lease under which it began; 0: it needs none */
    struct intended what; /* the change; only with a lease */
};

struct change_capture {
    /* Announces a change, before anything of it is sent. May wait; where nothing is captured it
     * costs some loads. A storage that tells its changes itself (STORAGE_TELLS_CHANGES) needs no
     * announcement, and only the errors matter. ERR_UNAVAILABLE: the change cannot be captured and
     * must not be made (R5). ERR_BUSY: it must not be made now, because the bucket is being
     * switched, or because others may take this process for dead. The memory that `i` points to
     * must stay until end(). */
    int (*begin)(void *ctx, const struct intended *i, struct capture *out, struct err *err);
    /* Asked as late as possible before the last bytes are sent to a remote storage. Never waits.
     * ERR_BUSY: they must not be sent, for the reasons of begin(). */
    int (*check)(void *ctx, const struct capture *c, struct err *err);
    /* Called exactly once after a begin() that succeeded. May wait. ERR_BUSY: others may have taken
     * this process for dead meanwhile, so the client must not be told that the change was made. */
    int (*end)(void *ctx, struct capture *c, enum outcome outcome, struct err *err);
    void *ctx;
};

#endif
