/* Places of objects that other parts of weir keep in ordinary buckets, such as the lake's trees and
 * the archive's bundles.
 *
 * A place is one key of a bucket, found for one operation. The bucket is found by the same routes
 * as for a request of the given user. A place that is opened for a change announces the change, so
 * that replication misses none (docs/replication.md, "Capture"); object_place_end() reports how the
 * change ended. While the bucket is being switched to another storage, the place is on the side
 * that has the key.
 *
 *     object_place_open() ── to read ──► p.bucket->ops->get(p.bucket, a, p.key, …)
 *           │
 *           └── to change ──► object_place_may() ──► p.bucket->ops->put(p.bucket, a, p.key, …)
 *                                                        │
 *     object_place_end() ◄───────────────────────────────┘
 *
 * A place belongs to one thread. It must not be moved or copied between its opening and its end.
 * Errors: ERR_NO_BUCKET, ERR_INVALID (the bucket is a repository of the lake), and those of the
 * routes and of the storage. */
#ifndef S3_PLACE_PLACE_H
#define S3_PLACE_PLACE_H

#include "route/resolve.h"
#include "s3/gateway/capture.h"

struct keyring;
struct object_place;
struct users;

/* The services that places need, all borrowed. */
struct place_env {
    struct routes *routes;
    /* Finds objects whose bucket is being switched to another storage (route/sides.h), and
     * announces changes (s3/gateway/capture.h). NULL: nothing is replicated. */
    const struct bucket_sides *sides;
    const struct change_capture *capture;
    struct keyring *keys; /* NULL: encrypted objects cannot be read, and none are made */
    struct users *users;  /* to look up the user who opens a place; NULL: only the id is known */
    /* Judges a place when its bucket is known, before a change is announced; NULL: every place may
     * be opened. It returns ERR_AGAIN if the use is PLACE_READ_NOW and it would have to wait. */
    int (*judge)(void *ctx, const struct object_place *p, struct err *err);
    void *judge_ctx; /* must live until the place is open */
};

/* The name of a place: a key of a bucket, and the id of the user who asks. */
struct place_name {
    struct str user, bucket, key;
};

enum place_use {
    PLACE_READ,
    /* To read without waiting. ERR_AGAIN: the place cannot be found, or the object cannot be read,
     * without waiting. */
    PLACE_READ_NOW,
    /* To list: the key is the prefix of the keys, and may be empty. ERR_BUSY: the bucket is being
     * switched to another storage. Each of the two storages has only some of the keys then, so a
     * listing of one of them would silently lack the others. */
    PLACE_LIST,
    PLACE_PUT,
    PLACE_REMOVE,
};

struct object_place {
    struct bucket *bucket; /* a reference, which object_place_end() releases */
    struct str key;        /* the key in that bucket; in the arena */
    /* The members below are for place.c alone. */
    struct place_env env;
    struct arena *arena;
    struct str name, user;
    enum place_use use;
    struct target target;
    struct capture capture;
};

/* Opens the place of a key of a bucket. The arena must live until object_place_end(); `env` is
 * copied. */
int object_place_open(struct object_place *out, const struct place_env *env, struct arena *a,
                      struct place_name name, enum place_use use, struct err *err) MUST_CHECK;
/* Checks whether the last bytes of the change may be sent now. Call it as late as possible; it
 * never waits. ERR_STORE: the change must not be made, because the lease is over
 * (s3/gateway/capture.h). */
int object_place_may(const struct object_place *p, struct err *err) MUST_CHECK;
/* Reports that the operation ended with `code`, and releases the place. Returns `code`, or the
 * error of the report. In the second case the change may have been made, but the caller must not
 * answer that it was. */
int object_place_end(struct object_place *p, int code, struct err *err) MUST_CHECK;

/* Sets the bucket's default encryption in the meta of a new object or upload. The caller that puts
 * the object or its parts passes object_place_seal_key() as put_options.seal, with the place. */
int object_place_seal(struct object_place *p, struct object_meta *meta, struct err *err) MUST_CHECK;
int object_place_seal_key(void *ctx, const struct object_meta *meta, struct put_seal *out,
                          struct err *err) MUST_CHECK;
/* Makes the body of an object readable if a key of weir's key file sealed it. The place must be the
 * object's own. ERR_UNSUPPORTED: the object needs a customer's key, which weir does not have.
 * ERR_AGAIN: the place was opened with PLACE_READ_NOW, and the key or the bytes would have to
 * be waited for. */
int object_place_unlock(const struct object_place *p, struct get_result *got,
                        struct err *err) MUST_CHECK;

/* Appends the bytes of the object. ERR_NOT_FOUND: there is no object. `info` (unless NULL) is in
 * the arena of the place. */
int object_place_read(struct object_place *p, struct buf *out, struct object_info *info,
                      struct err *err) MUST_CHECK;
/* Lists a page of keys, or of uploads in parts, as bucket->ops does. The place must have been
 * opened with PLACE_LIST, and o->prefix is the place's key. */
int object_place_list(struct object_place *p, const struct list_options *o, struct list_result *out,
                      struct err *err) MUST_CHECK;
int object_place_list_uploads(struct object_place *p, const struct list_options *o,
                              struct upload_list *out, struct err *err) MUST_CHECK;
/* Puts an object of these bytes; `c` (NULL: none) are conditions. It is durable when the call
 * returns 0. */
int object_place_put(struct object_place *p, struct str bytes, const struct object_conditions *c,
                     struct err *err) MUST_CHECK;
/* Puts `count` objects: the bytes bytes[i] at the place places[i]. The places must be different
 * keys of one bucket. If the bucket has put_all(), this costs fewer syncs than single puts. After
 * an error some of the objects may have been put. */
int object_place_put_all(struct object_place *places, const struct str *bytes, size_t count,
                         struct err *err) MUST_CHECK;

#endif
