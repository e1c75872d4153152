/* Declarations that the files of the comparison share. */
#ifndef COPY_COMPARE_INT_H
#define COPY_COMPARE_INT_H

#include "copy/compare.h"

int compare_watch(const struct compare_options *o, size_t side, uint64_t bytes,
                  struct err *err) MUST_CHECK;

/* One key, or one version of a key, with the entry that each side has for it. */
struct compared {
    const struct compare_options *o;
    struct str key;
    const struct object_info *infos[COMPARE_SIDES_MAX]; /* NULL: the side does not have the key */
    struct difference_side sides[COMPARE_SIDES_MAX];    /* filled from `infos` */
    uint64_t *bytes;                                    /* counter of the bytes that were read */
    struct arena a;                                     /* released by the caller */
};

/* Sets *same to whether all sides have the same object. If not, sets d->kind and d->why. */
int compare_one(struct compared *c, bool *same, struct difference *d, struct err *err) MUST_CHECK;

#endif
