/* Places of the lake's objects: bodies, nodes of trees and claims of namespaces are in ordinary
 * buckets, below the namespace of their repository.
 *
 * A place is one key of a bucket, found for one operation. The bucket is found by the same routes
 * as for a request of the repository's owner. A place that is opened for a change announces the
 * change, so that replication misses none (docs/replication.md, "Capture"); lake_place_end()
 * reports how the change ended. While the bucket is being switched to another storage, the place is
 * on the side that has the key.
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
    struct bucket *bucket; /* a reference, which lake_place_end() releases */
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
 * lake_place_end(). */
int lake_place_open(struct lake_place *out, struct lake *l, struct arena *a, struct str user,
                    struct str bucket, struct str key, enum lake_place_use use,
                    struct err *err) MUST_CHECK;
/* As lake_place_open(), for a key below the repository's namespace, as the owner of the repository.
 * If the bucket does not exist, this returns ERR_UNAVAILABLE. */
int lake_place_open_below(struct lake_place *out, struct lake *l, struct arena *a,
                          const struct lake_repo *r, struct str key, enum lake_place_use use,
                          struct err *err) MUST_CHECK;
/* Checks whether the last bytes of the change may be sent now. Call it as late as possible; it
 * never waits. ERR_BUSY: the change must not be made. */
int lake_place_may(const struct lake_place *p, struct err *err) MUST_CHECK;
/* Reports that the operation ended with `code`, and releases the place. Returns `code`, or the
 * error of the report. In the second case the change may have been made, but the caller must not
 * answer that it was. */
int lake_place_end(struct lake_place *p, int code, struct err *err) MUST_CHECK;

/* Sets the bucket's default encryption in the meta of a new object or upload. The caller that puts
 * the object or its parts passes lake_place_seal_key() as put_options.seal, with the place. */
int lake_place_seal(struct lake_place *p, struct object_meta *meta, struct err *err) MUST_CHECK;
int lake_place_seal_key(void *ctx, const struct object_meta *meta, struct put_seal *out,
                        struct err *err) MUST_CHECK;
/* Makes the body of an object readable if a key of weir's key file sealed it. The place must be the
 * object's own. ERR_UNSUPPORTED: the object needs a customer's key, which weir does not have.
 * ERR_AGAIN: the place was opened with LAKE_PLACE_READ_NOW, and the key or the bytes would have to
 * be waited for. */
int lake_place_unlock(const struct lake_place *p, struct get_result *got,
                      struct err *err) MUST_CHECK;

/* Appends the bytes of the object. ERR_NOT_FOUND: there is no object. `info` (unless NULL) is in
 * the arena of the place. */
int lake_place_read(struct lake_place *p, struct buf *out, struct object_info *info,
                    struct err *err) MUST_CHECK;
/* Puts an object of these bytes; `c` (NULL: none) are conditions. It is durable when the call
 * returns 0. */
int lake_place_put(struct lake_place *p, struct str bytes, const struct object_conditions *c,
                   struct err *err) MUST_CHECK;

#endif
