/* RESP2, Redis's wire protocol: an incremental reader, which builds replies in the caller's arena,
 * and a writer of commands. This code is used instead of hiredis because Debian's version 0.14 has
 * no TLS, owns its socket and timeouts, and builds a tree of its own that would have to be copied.
 *
 * The peer is not trusted: lengths that it announces are checked against the limits below and the
 * limit of the arena before memory is allocated. Each connection has a reader of its own. */
#ifndef STORE_RESP_H
#define STORE_RESP_H

#include "base/err.h"
#include "store/reply.h"

enum { RESP_MAX_DEPTH = 16, RESP_MAX_BULK = 512 * 1024 * 1024, RESP_MAX_LINE = 64 * 1024 };

struct resp {
    struct arena *arena;
    struct reply *root; /* the reply being read; NULL between replies */
    struct reply *slot; /* where the next value is stored */
    struct resp_level {
        struct reply *array;
        size_t next; /* index of the item being read */
    } levels[RESP_MAX_DEPTH];
    size_t depth;
    /* The string being read, with its CRLF, in the arena; NULL: none. */
    char *bulk;
    size_t bulk_size, bulk_done; /* size and received part of `bulk`, in bytes */
    struct buf line;             /* the start of a line whose end has not arrived yet */
};

void resp_init(struct resp *r);
void resp_release(struct resp *r);

/* Begins a reply in `arena`, which is borrowed until the reply is complete. */
void resp_begin(struct resp *r, struct arena *arena);

/* Reads bytes of the stream. *used: how many were used, which is all of them unless the reply ends
 * earlier. 0: *out is the complete reply. ERR_AGAIN: more bytes are needed. ERR_PARSE: the bytes
 * are not RESP2. ERR_TOO_LARGE: a line, a string or the depth is above its limit. ERR_NO_MEMORY:
 * the arena is full. After any error but ERR_AGAIN the stream cannot be read further. The result
 * does not depend on how the stream is cut into calls. */
int resp_read(struct resp *r, struct str in, size_t *used, struct reply **out,
              struct err *err) MUST_CHECK;

/* Appends a command to *out, as an array of strings. */
void resp_write(struct buf *out, const struct str *argv, size_t argc);

#endif
