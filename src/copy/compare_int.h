/* What the files of the comparison share. */
#ifndef COPY_COMPARE_INT_H
#define COPY_COMPARE_INT_H

#include "copy/compare.h"

int compare_watch(const struct compare_options *o, size_t side, uint64_t bytes,
                  struct err *err) MUST_CHECK;

/* What the sides have under one key, or as one version of it. */
struct compared {
    const struct compare_options *o;
    struct str key;
    const struct object_info *infos[COMPARE_SIDES_MAX]; /* NULL: the side has nothing */
    struct difference_side sides[COMPARE_SIDES_MAX];    /* filled from `infos` */
    uint64_t *bytes;                                    /* counts bytes that are read */
    struct arena a;                                     /* the caller releases it */
};

/* Whether all sides are the same; if not, kind and why of `d` are set. */
int compare_one(struct compared *c, bool *same, struct difference *d, struct err *err) MUST_CHECK;

#endif
