/* Declarations that the files copy*.c share. */
#ifndef COPY_COPY_INT_H
#define COPY_COPY_INT_H

#include "copy/copy.h"
#include "meta/envelope.h"

enum { COPY_STEP = 4 * 1024 * 1024 /* bytes between two calls of copy_options.watch */ };

/* The state of one copy while it is made. */
struct copying {
    const struct copy *c;
    struct copy_options o; /* with the defaults filled in */
    struct arena *a;
    struct object_info source;          /* the source's object as it was compared */
    struct object_conditions source_is; /* If-Match on the source's ETag */
    struct get_result there;            /* the destination's object */
    bool found;                         /* the destination has the object */
    struct put_options put;             /* metadata and conditions of the write */
    struct sealed_key source_key, key;  /* source_key opens the source; key seals the copy */
    bool sealed, hide_md5;
    /* True for each thing that the destination has refused, so that the copy is made without it.
     * The three are conditions, storage class and retention, and parts of the same sizes as the
     * source's. */
    bool no_conditions, no_extras, no_own_parts;
    bool bare_etags; /* the destination wants the ETags in conditions without quotes */
};

/* Calls copy_options.watch, if it is set. */
int copy_watch(const struct copying *w, uint64_t bytes, struct err *err) MUST_CHECK;

/* A reader of the source's bytes that calls copy_options.watch while it is read. Closing it closes
 * `from`. */
struct copy_body {
    struct reader reader;
    struct reader *from; /* owned */
    const struct copying *w;
    uint64_t since; /* bytes read since copy_options.watch was called */
};
/* Opens a range of the source's object for reading. `range` NULL: the whole object. ERR_CONFLICT:
 * the source has changed. *body must not be moved until reader_close(). */
int copy_open(struct copy_body *body, const struct copying *w, struct arena *a,
              const struct object_range *range, struct err *err) MUST_CHECK;

/* Turns the code of a write into ERR_CONFLICT if the code says that the destination has changed. */
int copy_written(int code, struct err *err);

/* Sets *can to whether the bucket has object lock. In a bucket without it no object may be locked,
 * because nobody could ever unlock the object again. */
int copy_can_lock(struct bucket *b, struct arena *a, bool *can, struct err *err) MUST_CHECK;

/* --- copy_seal.c --- */

/* Reads the envelope of a sealed object, which is in the meta of `info`, and opens the object's
 * key, which is in the envelope. *e points into `info`. ERR_UNSUPPORTED: the key is a customer's,
 * or `keys` is NULL. The caller overwrites the key after use. */
int copy_unseal(struct envelope *e, struct keyring *keys, struct bucket *b,
                const struct object_info *info, struct sealed_key *out, struct err *err) MUST_CHECK;

/* Finds the key that opens the source's bytes, and fills w->put with the way in which the
 * destination seals them. */
int copy_seal_prepare(struct copying *w, struct err *err) MUST_CHECK;
void copy_seal_release(struct copying *w); /* overwrites the keys */

/* --- copy_plan.c --- */

struct copy_part {
    uint32_t number;
    uint64_t first, size;
};
struct copy_plan {
    struct copy_part *parts;
    size_t count; /* 0: the object is put whole */
};
int copy_plan(struct copy_plan *out, struct copying *w, struct err *err) MUST_CHECK;

/* --- copy_parts.c --- */

/* Copies the object by the parts of the plan. ERR_INVALID with the text EntityTooSmall: the
 * destination wants larger parts. */
int copy_by_parts(struct copying *w, const struct copy_plan *plan, uint64_t *moved,
                  struct err *err) MUST_CHECK;

#endif
