/* Buckets that are on two storages at once, because clients are being switched from one to the
 * other without downtime (docs/replication.md, "Reads during a switch"). Each of the two storages
 * is a *side*; the *route's side* is the one that the route leads to now. The calls of struct
 * bucket_sides say which side a request goes to. They are declared here and implemented in a higher
 * layer.
 *
 * All calls but may() may wait. They fail with ERR_UNAVAILABLE if the store, or a side, cannot be
 * asked. */
#ifndef ROUTE_SIDES_H
#define ROUTE_SIDES_H

#include "object/bucket.h"

/* The two sides of a bucket. `route` is NULL if the bucket is not being switched. */
struct side_pair {
    struct storage *route, *other; /* the side that the route leads to now, and the other side */
    /* The new side of the switch, also after the switch was aborted. The uploads that begun() has
     * remembered are on this side (S7). */
    struct storage *begun;
    bool route_only; /* the route still leads to the side that is being left, so a key without a
                        version vector (docs/replication.md) is looked for only there */
    struct str user, bucket; /* the bucket's owner and name; in the arena */
};

/* What a request reads or changes: an object, its tags, a document of the bucket and the like (enum
 * thing_kind). */
struct side_ask {
    enum thing_kind thing;
    /* The object, if the thing belongs to an object; version may be empty. */
    struct str key, version;
    struct str user; /* id of the user who asks, whose credentials are used to look at the sides */
};

struct side_choice {
    struct storage *storage;
    struct storage *facts; /* the side whose policy and ACLs decide about access; may differ from
                              `storage` only if weir serves both sides itself */
};

/* The keys that one request removes. */
struct side_keys {
    const struct str *keys;
    size_t count;
    struct str user; /* id of the user who asks */
};

struct bucket_sides {
    /* True while any bucket is being switched. While it is false, nothing else is read. */
    const _Atomic(bool) *any;
    /* Returns false only if this bucket is certainly not being switched. Costs only a few loads
     * from memory. */
    bool (*may)(void *ctx, struct str bucket);
    /* Finds the sides of the bucket, if it is being switched. `at` is the storage that the request
     * would go to without a switch. */
    int (*find)(void *ctx, struct arena *a, const struct storage *at, struct str bucket,
                struct side_pair *out, struct err *err);
    /* Chooses the side for a request that reads the thing. */
    int (*read)(void *ctx, struct arena *a, const struct side_pair *p, const struct side_ask *ask,
                struct side_choice *out, struct err *err);
    /* Finds the side that has this upload of the key. */
    int (*upload)(void *ctx, struct arena *a, const struct side_pair *p, const struct side_ask *ask,
                  struct str id, struct side_choice *out, struct err *err);
    /* Called before a change of the thing is made at the route's side. `alone` true: the change
     * neither depends on the existing thing nor keeps any of it, so the change need not wait until
     * the thing has been copied from the other side. ERR_BUSY: that copy takes too long. */
    int (*write)(void *ctx, struct arena *a, const struct side_pair *p, const struct side_ask *ask,
                 bool alone, struct side_choice *out, struct err *err);
    /* Like write(), but for the removal of several keys, which are looked up together. */
    int (*removals)(void *ctx, struct arena *a, const struct side_pair *p,
                    const struct side_keys *k, bool alone, struct err *err);
    /* Called after keys were removed at the route's side and before the client gets the answer.
     * Hides the objects that the other side still has under these keys. */
    int (*removed)(void *ctx, struct arena *a, const struct side_pair *p, const struct str *keys,
                   size_t count, struct err *err);
    /* Called after an upload was begun at the route's side and before the client gets the answer.
     * Remembers the upload, but only while the route leads to the new side of the switch. */
    int (*begun)(void *ctx, const struct side_pair *p, struct str key, struct str id,
                 struct err *err);
    /* Makes one listing of both sides. buckets[0] is on the route's side, buckets[1] on the other
     * side. */
    int (*list)(void *ctx, struct arena *a, const struct side_pair *p, struct bucket *buckets[2],
                const struct list_options *o, bool versions, struct list_result *out,
                struct err *err);
    int (*list_uploads)(void *ctx, struct arena *a, const struct side_pair *p,
                        struct bucket *buckets[2], const struct list_options *o,
                        struct upload_list *out, struct err *err);
    void *ctx;
};

#endif
