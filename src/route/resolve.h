/* Finds where a bucket is: the question that a request asks of the routes, and its answer.
 *
 *     name ── does a space have the name? ────────────────────────────────────► TARGET_SPACE
 *       │ no
 *       ├── do the rules lead to a storage that takes requests as they are? ──► TARGET_RAW
 *       │        (or TARGET_FOREIGN, where the bucket lies over several storages)
 *       ├── is there such a bucket on a storage that weir serves itself? ─────► TARGET_HERE
 *       └── otherwise ────────────────────────────────────────────────────────► TARGET_NONE
 *
 * docs/forward.md, "Which storage", has the rules. Each request asks once. A request that makes a
 * change asks a second time if routes_generation() has changed by the time that the change is
 * announced to replication. A *switch* moves the clients of a replicated bucket from one storage to
 * another (docs/replication.md); while it has downtime, it blocks the bucket. Any thread may call
 * these functions. */
#ifndef ROUTE_RESOLVE_H
#define ROUTE_RESOLVE_H

#include "route/route.h"
#include "route/sides.h"

enum target_kind {
    TARGET_NONE,  /* there is no such bucket; `storage` is where the user's policies lead */
    TARGET_TAKEN, /* only with route_ask.make: the name is in use or reserved, so the bucket cannot
                     be made */
    TARGET_SPACE, /* a bucket of a space (route/space.h) */
    TARGET_HERE,  /* weir serves the bucket and decides about access to it */
    /* The next two are buckets on remote storages, which decide about access by the credentials
     * that the user has there. */
    TARGET_FOREIGN, /* the bucket lies over several storages, so weir serves its requests */
    TARGET_RAW,     /* requests are passed on unchanged */
};

struct target {
    enum target_kind kind;
    /* The storage that the bucket is on. For a bucket that lies over several storages it is the
     * bucket's home (object/overlay.h); for a bucket of a space it is the space's own storage.
     * Borrowed until the routes are closed. */
    struct storage *storage;
    /* A reference to the bucket. NULL: the caller has the bucket open (route_ask.knows), or the
     * bucket was not opened, as with TARGET_FOREIGN, TARGET_RAW and route_ask.at. */
    struct bucket *bucket;
    struct side_pair sides; /* sides.route is NULL unless the bucket is being switched */
    uint64_t generation;    /* value of routes_generation() before the answer was found */
};

struct route_ask {
    struct str user;   /* id of the user who asks; empty: an anonymous request */
    struct str bucket; /* empty: the request names no bucket, and the answer is TARGET_RAW or
                          TARGET_NONE */
    bool make;         /* the request wants to make the bucket */
    bool may_wait;     /* false: the result is ERR_AGAIN if finding the answer would have to wait */
    struct storage *at; /* look only here, whatever the rules say; NULL: follow the rules */
    const struct bucket_sides *sides; /* NULL: the caller does not need target.sides */
    struct arena *arena;              /* memory for target.sides */
    /* Returns whether the caller already has this bucket of this storage open, and sets *owner to
     * the bucket's owner. If that bucket is the answer, route_resolve() does not open it again.
     * NULL: the caller has no bucket open. */
    bool (*knows)(void *ctx, struct storage *s, struct str bucket, struct str *owner);
    void *ctx;
};

/* Finds where the bucket is. ERR_DENIED: the bucket is blocked there. ERR_BUSY: a switch blocks it
 * for a while (docs/replication.md, S1). ERR_UNAVAILABLE: the policies lead to nothing but copies
 * (docs/forward.md, B2), or were never read. ERR_OFFLINE: a policy names a storage that is not
 * there, or the storage's disk is not there. Waits only for `sides` and for spaces. *out is empty
 * after an error. */
int route_resolve(struct routes *r, const struct route_ask *ask, struct target *out,
                  struct err *err) MUST_CHECK;
/* Releases the bucket. An empty target is fine. */
static inline void target_release(struct target *t)
{
    if (t->bucket)
        t->bucket->ops->unref(t->bucket);
    *t = (struct target){.generation = t->generation};
}

/* Hands the bucket over to the caller; t->bucket is NULL afterwards. */
struct bucket *target_take_bucket(struct target *t);

/* Returns whether the storage decides about access to the bucket. */
static inline bool target_is_foreign(const struct target *t)
{
    return t->kind >= TARGET_FOREIGN;
}

/* Resolves the name and opens the bucket; *out is a reference. ERR_NO_BUCKET: there is no such
 * bucket. Other errors are those of route_resolve(). */
int route_bucket(struct routes *r, struct str user, struct str bucket, struct bucket **out,
                 struct err *err) MUST_CHECK;

/* Sets *out to whether a request of the user would find the bucket of this name that the user has
 * on storage `s`. It would not if that bucket is a copy, is hidden by a space or by another bucket,
 * or is blocked, or if its route names a storage that is not there. */
int route_reaches(struct routes *r, struct str user, struct str bucket, struct storage *s,
                  bool *out, struct err *err) MUST_CHECK;

#endif
