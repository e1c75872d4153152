/* Who is told of changes before they are made: what replication needs of the gateway
 * (docs/replication.md, "Capture"). Declared here, implemented above. */
#ifndef S3_GATEWAY_CAPTURE_H
#define S3_GATEWAY_CAPTURE_H

#include "object/bucket.h"

struct intended {
    struct storage *storage; /* written to */
    struct str bucket;
    struct str user;        /* that asks; empty: nobody */
    unsigned changes;       /* a set of enum thing_kind */
    const struct str *keys; /* of the objects, for changes of objects */
    size_t key_count;
    bool ends_upload; /* made where it was begun, whatever the route says by now */
};

enum outcome {
    OUTCOME_DONE,
    OUTCOME_REFUSED, /* definitely nothing happened */
    OUTCOME_UNKNOWN,
};

/* One change under way; the caller's storage. */
struct capture {
    void *intent, *noted, *locks; /* of who captures */
    size_t member;                /* of an intent that several requests share */
    unsigned phase;
    bool begun;
    uint64_t lease;       /* under which it began; 0: it needs none */
    struct intended what; /* with a lease */
};

struct change_capture {
    /* Before anything is sent. May wait, unless nothing is captured: that costs some loads.
     * ERR_UNAVAILABLE: it cannot be captured, and must not be made (R5). ERR_BUSY: not now, the
     * bucket is being switched, or others may take this process for dead. What a storage captures
     * by itself (local) is only asked about. What `i` points to stays until the end. */
    int (*begin)(void *ctx, const struct intended *i, struct capture *out, struct err *err);
    /* As late as can be before the last bytes are sent to a remote storage: may they be? Never
     * waits. ERR_BUSY: no, as of begin(). */
    int (*check)(void *ctx, const struct capture *c, struct err *err);
    /* Exactly once after each begin() that succeeded. May wait. ERR_BUSY: others may have taken
     * this process for dead meanwhile, so the client must not be told that the change was made. */
    int (*end)(void *ctx, struct capture *c, enum outcome outcome, struct err *err);
    void *ctx;
};

#endif
