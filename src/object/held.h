/* A reader of a body whose end is held back until prove() has accepted the body. The read that
 * would return the last bytes calls prove() first, and fails if prove() fails. The sender has then
 * sent less than it announced, and closes the connection, so no peer stores half a body
 * (docs/remote-storage.md M4, docs/forward.md F4). */
#ifndef OBJECT_HELD_H
#define OBJECT_HELD_H

#include "os/stream.h"

struct held_reader {
    struct reader reader;
    struct reader *from; /* borrowed */
    uint64_t left;       /* bytes of the body not read yet; UINT64_MAX: not known */
    /* The caller sets the next four members. */
    int (*prove)(void *ctx, struct err *err); /* called when all of `from` was read */
    void *ctx;
    uint64_t unspliced; /* bytes at the end that are never spliced, so that they can be held back */
    bool any_file;      /* the whole body may be sent as a file, without calling prove() */
    int failed;         /* the result: the error with which the body ended; 0: none */
};

/* Makes `h` a body of `len` bytes of `from`. UINT64_MAX: the length is not known, and `from` itself
 * fails if it ends too early. */
void held_reader_init(struct held_reader *h, struct reader *from, uint64_t len);

#endif
