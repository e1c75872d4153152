/* Between the files of copying. */
#ifndef COPY_COPY_INT_H
#define COPY_COPY_INT_H

#include "copy/copy.h"
#include "meta/envelope.h"

enum { COPY_STEP = 4 * 1024 * 1024 /* bytes between two questions to the watch */ };

/* One copy under way. */
struct copying {
    const struct copy *c;
    struct copy_options o; /* defaults filled in */
    struct arena *a;
    struct object_info source; /* as it was compared */
    struct object_conditions source_is;
    struct get_result there; /* at the destination */
    bool found;              /* `there` is something */
    struct put_options put;  /* what is written: meta, conditions */
    struct sealed_key source_key, key;
    bool sealed, hide_md5;
    /* what the destination was found not to take */
    bool no_conditions, no_extras, no_own_parts;
    bool bare_etags; /* it wants them without quotes */
};

/* The watch's answer. */
int copy_watch(const struct copying *w, uint64_t bytes, struct err *err) MUST_CHECK;

/* A body that asks the watch as it is read; closing it closes `from`. */
struct copy_body {
    struct reader reader;
    struct reader *from; /* owned */
    const struct copying *w;
    uint64_t since; /* bytes that the watch has not been told of */
};
/* Opens a range of the source under its condition: ERR_CONFLICT when it changed. NULL: all of it.
 * *body must stay where it is until reader_close(). */
int copy_open(struct copy_body *body, const struct copying *w, struct arena *a,
              const struct object_range *range, struct err *err) MUST_CHECK;

/* Of a write to the destination: what says that it changed is ERR_CONFLICT. */
int copy_written(int code, struct err *err);

/* Whether the bucket has object lock: elsewhere what is locked could never be let go of. */
int copy_can_lock(struct bucket *b, struct arena *a, bool *can, struct err *err) MUST_CHECK;

/* --- copy_seal.c --- */

/* The key of a sealed object (key and meta of `info`), and its envelope, which points into `info`.
 * ERR_UNSUPPORTED: it is a customer's, or there is no ring. The caller overwrites the key. */
int copy_unseal(struct envelope *e, struct sealed_key *out, struct keyring *keys, struct bucket *b,
                const struct object_info *info, struct err *err) MUST_CHECK;

/* What opens the source's bytes, and what seals them at the destination, into w->put. */
int copy_seal_prepare(struct copying *w, struct err *err) MUST_CHECK;
void copy_seal_release(struct copying *w); /* overwrites the keys */

/* --- copy_plan.c --- */

struct copy_part {
    uint32_t number;
    uint64_t first, size;
};
struct copy_plan {
    struct copy_part *parts;
    size_t count; /* 0: whole */
};
int copy_plan(struct copy_plan *out, struct copying *w, struct err *err) MUST_CHECK;

/* --- copy_parts.c --- */

/* ERR_INVALID with the text EntityTooSmall: the destination wants larger parts. */
int copy_by_parts(struct copying *w, const struct copy_plan *plan, uint64_t *moved,
                  struct err *err) MUST_CHECK;

#endif
