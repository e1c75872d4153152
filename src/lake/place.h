/* Places of the lake's objects: bodies, nodes of trees and claims of namespaces lie in ordinary
 * buckets, below the namespace of their repository.
 *
 * A place is one key of a bucket, found for one operation. The routes lead to the bucket, as they
 * lead a request of the repository's owner. A place that is opened for a change has announced the
 * change, so that replication misses none (docs/replication.md, "Capture"), and its end reports how
 * the change ended. While the bucket is being switched to another storage, the place is on the side
 * that has the key.
 *
 *     lake_place_open() ── to read ──► p.bucket->ops->get(p.bucket, a, p.key, …)
 *           │
 *           └── to change ──► lake_place_may() ──► p.bucket->ops->put(p.bucket, a, p.key, …)
 *                                                        │
 *     lake_place_end() ◄─────────────────────────────────┘
 *
 * A place belongs to one thread. It must not be moved or copied between its opening and its end.
 * Errors: ERR_NO_BUCKET, ERR_INVALID (the bucket is a repository), and those of the routes and of
 * the storage. */
#ifndef LAKE_PLACE_H
#define LAKE_PLACE_H

#include "lake/lake.h"
#include "route/resolve.h"
#include "s3/gateway/capture.h"

enum lake_place_use {
    LAKE_PLACE_READ,
    /* To read without waiting. ERR_AGAIN: the place cannot be found, or the object cannot be read,
     * without waiting. */
    LAKE_PLACE_READ_NOW,
    LAKE_PLACE_PUT,
    LAKE_PLACE_REMOVE,
};

struct lake_place {
    struct bucket *bucket; /* a reference, which the end releases */
    struct str key;        /* the key in that bucket; in the arena */
    /* The members below are for place.c alone. */
    struct lake *lake;
    struct arena *arena;
    struct str name, user;
    enum lake_place_use use;
    struct target target;
    struct capture capture;
};

/* Opens the place of a key of a bucket, as the user whose id is `user`. The arena must live until
 * the end. */
int lake_place_open(struct lake_place *out, struct lake *l, struct arena *a, struct str user,
                    struct str bucket, struct str key, enum lake_place_use use,
                    struct err *err) MUST_CHECK;
/* The same for a key below the repository's namespace, as the owner of the repository. A bucket
 * that does not exist is ERR_UNAVAILABLE. */
int lake_place_open_below(struct lake_place *out, struct lake *l, struct arena *a,
                          const struct lake_repo *r, struct str key, enum lake_place_use use,
                          struct err *err) MUST_CHECK;
/* Asks whether the last bytes of the change may be sent now. Call it as late as possible; it never
 * waits. ERR_BUSY: the change must not be made. */
int lake_place_may(const struct lake_place *p, struct err *err) MUST_CHECK;
/* Reports how the operation ended, which is `code`, and releases the place. Returns `code`, or the
 * error of the report: then the change may have been made, but the caller must not say so. */
int lake_place_end(struct lake_place *p, int code, struct err *err) MUST_CHECK;

/* Gives the meta of a new object, or of an upload, the default encryption of the bucket. Whoever
 * puts the object or its parts gives lake_place_seal_key() as put_options.seal, with the place. */
int lake_place_seal(struct lake_place *p, struct object_meta *meta, struct err *err) MUST_CHECK;
int lake_place_seal_key(void *ctx, const struct object_meta *meta, struct put_seal *out,
                        struct err *err) MUST_CHECK;
/* Makes the body of an object readable that the keys of weir's key file have sealed. The place must
 * be the object's own. ERR_UNSUPPORTED: a customer's key is needed, which weir does not have.
 * ERR_AGAIN: with LAKE_PLACE_READ_NOW, and the key or the bytes must be waited for. */
int lake_place_unlock(const struct lake_place *p, struct get_result *got,
                      struct err *err) MUST_CHECK;

/* Appends the bytes of the object. ERR_NOT_FOUND: there is none. `info` (unless NULL) is in the
 * arena of the place. */
int lake_place_read(struct lake_place *p, struct buf *out, struct object_info *info,
                    struct err *err) MUST_CHECK;
/* Puts an object of these bytes; `c` (NULL: none) are conditions. It is durable when the call
 * returns 0. */
int lake_place_put(struct lake_place *p, struct str bytes, const struct object_conditions *c,
                   struct err *err) MUST_CHECK;

#endif
