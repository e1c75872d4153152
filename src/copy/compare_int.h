/* Between the files of comparing. */
#ifndef COPY_COMPARE_INT_H
#define COPY_COMPARE_INT_H

#include "copy/compare.h"

int compare_watch(const struct compare_options *o, size_t side, uint64_t bytes,
                  struct err *err) MUST_CHECK;

/* What the sides have of one key, or of one version of it. */
struct compared {
    const struct compare_options *o;
    struct str key;
    const struct object_info *infos[COMPARE_SIDES_MAX]; /* NULL: nothing */
    struct difference_side sides[COMPARE_SIDES_MAX];    /* filled from these */
    uint64_t *bytes;                                    /* adds those that are read */
    struct arena a;                                     /* the caller releases it */
};

/* Whether all are the same; else kind and why of `d`. */
int compare_one(struct compared *c, bool *same, struct difference *d, struct err *err) MUST_CHECK;

#endif
