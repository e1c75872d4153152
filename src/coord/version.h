/* Version vectors. The vector of a thing (an object or a bucket, or the tags or access list of one)
 * is a hash in appDB, with Chorus's key. It has a number for each place where the thing is, and a
 * higher number is a newer change (docs/replication.md, V1 to V5). The parameter `app` is appDB.
 * Each call is one script. Any thread may call these functions. */
#ifndef COORD_VERSION_H
#define COORD_VERSION_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "object/change.h"
#include "store/store.h"

enum { VERSION_THINGS_MAX = 3 /* an object or a bucket, its tags, its access list */ };

/* The thing that a vector is for. `object` and `version` are empty for a bucket; `version` may be
 * empty for an object. */
struct thing {
    enum thing_kind kind; /* exactly one kind */
    struct str bucket, object, version;
};

/* A place where a thing is. `bucket` is empty when the bucket has the same name as at the
 * source. */
struct place {
    struct str storage, bucket;
};

/* These append the key of a thing's vector, and the name of a place's field in that hash. */
void version_key(struct buf *out, const struct thing *t);
void version_field(struct buf *out, const struct place *p);
/* Like version_key() and version_field(), but they return a text in the arena. */
struct str version_key_in(struct arena *a, const struct thing *t);
struct str version_field_in(struct arena *a, const struct place *p);

struct vector {
    struct place *places; /* the array is in the arena */
    int64_t *numbers;
    size_t count;
};
int version_read(struct store *app, struct arena *a, const struct thing *t, struct vector *out,
                 struct err *err) MUST_CHECK;
/* Reads many vectors at one moment, in one round trip; `out` has room for `count`. */
int version_read_many(struct store *app, struct arena *a, const struct thing *things, size_t count,
                      struct vector *out, struct err *err) MUST_CHECK;
/* Returns the number of a place; 0: the vector does not have the place. */
int64_t vector_at(const struct vector *v, const struct place *p);

/* Raises the place's number in the thing's vector (V1). *out is the new number; `out` may be
 * NULL. */
int version_bump(struct store *app, const struct thing *t, const struct place *p, int64_t *out,
                 struct err *err) MUST_CHECK;
/* The numbers of two places in one vector (V4). version_read_pairs() reads such pairs for several
 * vectors in one round trip. */
struct version_pair {
    int64_t from, to; /* 0: the vector does not have the place */
};
struct version_places {
    const struct place *from, *to;
};
int version_read_pairs(struct store *app, struct arena *a, const struct thing *things, size_t count,
                       const struct version_places *places, struct version_pair *out,
                       struct err *err) MUST_CHECK;

/* The arguments of version_confirm(), which records that a copy has brought the destination up to
 * these numbers (V2). All vectors change in one step. ERR_CONFLICT: the lock is not held with the
 * token any more (C2). */
struct version_confirmation {
    const struct thing *things;
    const int64_t *numbers; /* the source's numbers before the copy; 0: there was no vector */
    size_t count;           /* at most VERSION_THINGS_MAX */
    const struct place *source, *destination;
    bool gone;           /* the things were deleted: vectors whose places all agree expire (V3) */
    struct store *locks; /* lockDB, joined with appDB */
    struct str lock_key, lock_token; /* key empty: no lock is checked */
};
int version_confirm(struct store *app, const struct version_confirmation *c,
                    struct err *err) MUST_CHECK;
/* Removes a place from the vectors of a bucket and of all its objects. Each call handles some of
 * them; the caller calls again with the same `cursor` until *cursor is 0. */
int version_strip(struct store *app, struct str bucket, const struct place *p, uint64_t *cursor,
                  struct err *err) MUST_CHECK;

#endif
