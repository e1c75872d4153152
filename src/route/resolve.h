/* Where a bucket is: the one question that a request asks of the routes, and its answer.
 *
 *     name ── has a space the name? ──────────────────────────────────────────► TARGET_SPACE
 *       │ no
 *       ├── do the rules lead to a storage that takes requests as they are? ──► TARGET_RAW
 *       │        (or TARGET_FOREIGN, where the bucket lies over several storages)
 *       ├── is there such a bucket on a storage that weir serves itself? ─────► TARGET_HERE
 *       └── otherwise ────────────────────────────────────────────────────────► TARGET_NONE
 *
 * docs/forward.md, "Which storage", has the rules. A request asks once, and once more only when
 * routes_generation() has changed before its change is made. Any thread. */
#ifndef ROUTE_RESOLVE_H
#define ROUTE_RESOLVE_H

#include "route/route.h"
#include "route/sides.h"

enum target_kind {
    TARGET_NONE,  /* there is no such bucket; `storage` is where the user's policies lead */
    TARGET_TAKEN, /* only with route_ask.make: others have the name, so it cannot be made */
    TARGET_SPACE, /* a bucket of a space (route/space.h) */
    TARGET_HERE,  /* weir serves the bucket and decides about access to it */
    /* The storage decides about access, by the user's credentials there: */
    TARGET_FOREIGN, /* weir does each request in several steps */
    TARGET_RAW,     /* requests are passed on as they are */
};

struct target {
    enum target_kind kind;
    /* The storage that the bucket is on; the home of a bucket that lies over several; a space's
     * own. Borrowed until the routes are closed. */
    struct storage *storage;
    /* A reference. NULL: route_ask.knows has it, or it was not opened (TARGET_FOREIGN and
     * TARGET_RAW, and with route_ask.at). */
    struct bucket *bucket;
    struct side_pair sides; /* no route, unless the bucket is being switched between two storages */
    uint64_t generation;    /* routes_generation() before the answer was found */
};

struct route_ask {
    struct str user;    /* id of the user who asks; empty: an anonymous request */
    struct str bucket;  /* empty: the request names no bucket; TARGET_RAW or TARGET_NONE */
    bool make;          /* the bucket is to be made */
    bool may_wait;      /* false: ERR_AGAIN where the answer would have to wait */
    struct storage *at; /* the bucket on this storage, whatever the rules say; NULL: by the rules */
    const struct bucket_sides *sides; /* NULL: target.sides is not asked for */
    struct arena *arena;              /* for target.sides */
    /* Whether the caller has this bucket of this storage open; then *owner is the bucket's. The
     * bucket is not opened again where that makes sure that it is the answer. NULL: it has none. */
    bool (*knows)(void *ctx, struct storage *s, struct str bucket, struct str *owner);
    void *ctx;
};

/* ERR_DENIED: blocked there. ERR_BUSY: blocked by a switch, for a while (docs/replication.md, S1).
 * ERR_UNAVAILABLE: the policies lead to nothing but copies (docs/forward.md, B2), or were never
 * read. ERR_OFFLINE: a policy names a storage that is not there, or its disk is not there. Waits
 * only for `sides` and for spaces. *out is empty after an error. */
int route_resolve(struct routes *r, const struct route_ask *ask, struct target *out,
                  struct err *err) MUST_CHECK;
void target_release(struct target *t); /* lets go of the bucket; the empty target is fine */
/* The bucket; *t has none any more. */
struct bucket *target_take_bucket(struct target *t);

/* Does the storage decide about access to the bucket? */
static inline bool target_is_foreign(const struct target *t)
{
    return t->kind >= TARGET_FOREIGN;
}

/* Resolves and opens: a reference. ERR_NO_BUCKET; else as route_resolve(). */
int route_bucket(struct routes *r, struct str user, struct str bucket, struct bucket **out,
                 struct err *err) MUST_CHECK;

/* Would a request of the user for this name, which is that of a bucket of the user's on storage
 * `s`, find that bucket? No, when the bucket is a copy, hidden by a space or by another bucket, or
 * blocked, or when its route names a storage that is not there. */
int route_reaches(struct routes *r, struct str user, struct str bucket, struct storage *s,
                  bool *out, struct err *err) MUST_CHECK;

#endif
