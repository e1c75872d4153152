/* A bucket in front of another one that loses requests and answers. It passes on what the log of
 * maps uses: get, put, remove, list. */
#ifndef TESTS_UNIT_SHARD_LOSSY_H
#define TESTS_UNIT_SHARD_LOSSY_H

#include "object/bucket.h"

enum lossy_fault {
    LOSSY_NONE,
    LOSSY_BEFORE,  /* the request is lost: no effect, ERR_TIMEOUT */
    LOSSY_AFTER,   /* the answer is lost: the effect, but ERR_TIMEOUT */
    LOSSY_ERROR,   /* no effect, ERR_UNAVAILABLE */
    LOSSY_REFUSED, /* no effect, ERR_DENIED */
    LOSSY_BUSY,    /* no effect, ERR_CONFLICT: another request for the key is under way */
    LOSSY_SILENT,  /* the list or the get answers as if nothing were there */
};

/* Says what happens to a call; called by the thread that calls. */
typedef enum lossy_fault lossy_fn(void *ctx, const char *call);

struct lossy {
    struct bucket bucket;
    struct bucket *inner; /* borrowed */
    lossy_fn *fault;
    void *ctx;
};

void lossy_init(struct lossy *l, struct bucket *inner, lossy_fn *fault, void *ctx);

#endif
