/* A reader of bytes in memory that gives at most `step` of them at a time. */
#ifndef TESTS_UNIT_SLOW_READER_H
#define TESTS_UNIT_SLOW_READER_H

#include "os/stream.h"

struct slow_reader {
    struct reader reader;
    struct str rest;
    size_t step;
};

static inline int slow_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct slow_reader *s = container_of(r, struct slow_reader, reader);

    (void)err;
    *got = size_min(size_min(len, s->step), s->rest.len);
    if (*got)
        memcpy(to, s->rest.p, *got);
    s->rest = str_skip(s->rest, *got);
    return 0;
}

__attribute__((unused)) static const struct reader_ops slow_ops = {.read = slow_read};

#endif
