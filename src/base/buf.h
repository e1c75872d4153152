/* A growable run of bytes with a limit. Its error is sticky: after an append has failed, all
 * further appends do nothing, so the caller may check for an error once at the end. From the first
 * append on, a NUL that is not counted follows the bytes, so buf.p can be passed to C functions. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

#include <stdarg.h>

struct buf {
    char *p; /* NULL until the first append */
    size_t len;
    size_t cap;
    size_t max;     /* largest len; 0 means BUF_DEFAULT_MAX */
    bool failed;    /* an append failed; the content is all that was appended before it */
    bool no_memory; /* the append failed for lack of memory, not because of max */
};

/* A buf that has to grow past BUF_SURE bytes fails when there is no memory, just as it does past
 * its limit. Callers that let a buf grow so large check for the error. Below BUF_SURE the process
 * ends when there is no memory, as with xzalloc(). */
enum { BUF_DEFAULT_MAX = 64 * 1024 * 1024, BUF_SURE = 64 * 1024 };

#define BUF_INIT(limit) ((struct buf){.max = (limit)})

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b); /* frees the memory; the buf is then empty and usable again */
/* Empties the buf and clears the error, but keeps the memory for reuse. */
void buf_reset(struct buf *b);

void buf_append(struct buf *b, const void *p, size_t len);
void buf_append_str(struct buf *b, struct str s);
void buf_append_z(struct buf *b, const char *z);
void buf_append_char(struct buf *b, char c);
void buf_appendf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vappendf(struct buf *b, const char *fmt, va_list ap);
void buf_append_u64(struct buf *b, uint64_t v); /* in decimal; faster than printf */
void buf_append_i64(struct buf *b, int64_t v);
void buf_append_hex(struct buf *b, const void *p, size_t len); /* lower-case hex digits */

/* These functions append integers of fixed width (base/bytes.h). Database keys use big-endian, so
 * that keys sort in the order of the numbers. */
void buf_append_be16(struct buf *b, uint16_t v);
void buf_append_be64(struct buf *b, uint64_t v);
void buf_append_le16(struct buf *b, uint16_t v);
void buf_append_le32(struct buf *b, uint32_t v);
void buf_append_le64(struct buf *b, uint64_t v);

/* Makes room for `len` more bytes and returns the address of that room, which is valid until the
 * next call on this buf. Returns NULL past the limit or when there is no memory. The caller writes
 * at that address, then calls buf_commit() with the number of bytes that it wrote. */
char *buf_reserve(struct buf *b, size_t len);
void buf_commit(struct buf *b, size_t len);

/* Drops `n` bytes at the front. */
void buf_consume(struct buf *b, size_t n);

/* Marks the buf as failed, as if it had passed its limit. */
void buf_fail(struct buf *b);

/* Returns ERR_TOO_LARGE or ERR_NO_MEMORY when an append failed after the last reset, else 0. */
int buf_error(const struct buf *b) MUST_CHECK;

/* Moves the memory out of the buf and returns it, never NULL. The caller frees it; the buf is
 * empty. */
char *buf_take(struct buf *b);

static inline struct str buf_str(const struct buf *b)
{
    return str_n(b->p, b->len);
}

#endif
