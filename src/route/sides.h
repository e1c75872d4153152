/* Buckets that are on two storages at once, since the one that clients use is being switched
 * without downtime (docs/replication.md, "Reads during a switch"): where each request of such a
 * bucket goes. Declared here, implemented above.
 *
 * Calls may wait, but for `any` and may(). ERR_UNAVAILABLE: the store, or a side, cannot be asked.
 */
#ifndef ROUTE_SIDES_H
#define ROUTE_SIDES_H

#include "object/bucket.h"

/* The sides of a bucket. Of a bucket that is in no switch: no route. */
struct side_pair {
    struct storage *route, *other; /* where the route leads now, and the other one */
    struct storage *begun;         /* where the uploads are that are remembered (S7) */
    /* The route leads to the side that is left: what nothing is known of is there. */
    bool route_only;
    struct str user, bucket; /* whose it is; in the arena */
};

/* What a request reads or changes. */
struct side_ask {
    enum thing_kind thing;
    struct str key, version; /* of an object; version may be empty */
    struct str user;         /* who asks, in whose name a side is looked at */
};

struct side_choice {
    struct storage *storage; /* NULL: the bucket is in no switch */
    struct storage *facts; /* whose policy and lists count; another one only where both are local */
};

/* Keys of one request that are removed. */
struct side_keys {
    const struct str *keys;
    size_t count;
    struct str user; /* as in struct side_ask */
};

struct bucket_sides {
    /* Whether there is such a bucket at all: the only cost while there is none. */
    const _Atomic(bool) *any;
    bool (*may)(void *ctx, struct str bucket); /* whether it may be one; some loads */
    /* `at`: where the request would go without a switch. */
    int (*find)(void *ctx, struct arena *a, const struct storage *at, struct str bucket,
                struct side_pair *out, struct err *err);
    /* The side that a read of the thing goes to. */
    int (*read)(void *ctx, struct arena *a, const struct side_pair *p, const struct side_ask *ask,
                struct side_choice *out, struct err *err);
    /* The side of an upload of the key. */
    int (*upload)(void *ctx, struct arena *a, const struct side_pair *p, const struct side_ask *ask,
                  struct str id, struct side_choice *out, struct err *err);
    /* Before a change of the thing is made at the route's side. `alone`: it neither depends on what
     * is there nor keeps it, so that it may overtake what has yet to be brought over. ERR_BUSY:
     * that takes too long. */
    int (*write)(void *ctx, struct arena *a, const struct side_pair *p, const struct side_ask *ask,
                 bool alone, struct side_choice *out, struct err *err);
    /* `write` for each of the keys, which are looked for at once. */
    int (*removals)(void *ctx, struct arena *a, const struct side_pair *p,
                    const struct side_keys *k, bool alone, struct err *err);
    /* After keys were removed at the route's side, before that is answered: what the other side has
     * of them stays hidden. */
    int (*removed)(void *ctx, struct arena *a, const struct side_pair *p, const struct str *keys,
                   size_t count, struct err *err);
    /* An upload was begun at the route's side; before that is answered. */
    int (*begun)(void *ctx, const struct side_pair *p, struct str key, struct str id,
                 struct err *err);
    /* Listings of both as one; `buckets` are the route's and the other. */
    int (*list)(void *ctx, struct arena *a, const struct side_pair *p, struct bucket *buckets[2],
                const struct list_options *o, bool versions, struct list_result *out,
                struct err *err);
    int (*list_uploads)(void *ctx, struct arena *a, const struct side_pair *p,
                        struct bucket *buckets[2], const struct list_options *o,
                        struct upload_list *out, struct err *err);
    void *ctx;
};

#endif
