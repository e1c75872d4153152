/* A body whose end is held back until the body is proved: the read that would give its last bytes
 * asks first, and fails in their place when the answer is no. Who sends the body has then sent less
 * than announced and closes the connection, and no peer stores half a body (docs/remote-storage.md
 * M4, docs/forward.md F4). */
#ifndef OBJECT_HELD_H
#define OBJECT_HELD_H

#include "os/stream.h"

struct held_reader {
    struct reader reader;
    struct reader *from; /* borrowed */
    uint64_t left;       /* of `from`; UINT64_MAX: not known */
    /* Set by who makes one: */
    int (*prove)(void *ctx, struct err *err); /* all of `from` was read */
    void *ctx;
    uint64_t unspliced; /* bytes of the end that are always read, and so proved */
    bool any_file;      /* a file of the right length needs no other proof */
    /* What came of it: */
    int failed; /* the code that the body ended with */
};

/* `len` bytes of `from`; UINT64_MAX: not known, and then `from` itself fails in place of an end
 * that is wrong. */
void held_reader_init(struct held_reader *h, struct reader *from, uint64_t len);

#endif
