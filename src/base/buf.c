/* The implementation of struct buf: growable bytes with a limit. */
#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hex.h"

#include <stdio.h>
#include <stdlib.h>

void buf_init(struct buf *b, size_t max)
{
    *b = BUF_INIT(max);
}

void buf_release(struct buf *b)
{
    size_t max = b->max;
    free(b->p);
    *b = BUF_INIT(max);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = b->no_memory = false;
    if (b->p)
        b->p[0] = '\0';
}

/* Grows the memory. The function is not inlined, so that an append that needs no growth needs no
 * stack frame. */
static __attribute__((noinline)) bool buf_grow(struct buf *b, size_t want)
{
    size_t cap = size_max(want, size_max(64, b->cap + b->cap / 2));
    char *p = want > BUF_SURE ? realloc(b->p, cap) : xrealloc(b->p, cap);

    if (!p) {
        b->failed = b->no_memory = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

static inline char *reserve(struct buf *b, size_t len)
{
    size_t max = b->max ? b->max : BUF_DEFAULT_MAX, want;

    if (b->failed || len > max || b->len > max - len) {
        b->failed = true;
        return NULL;
    }
    want = b->len + len + 1;
    if (want > b->cap && !buf_grow(b, want))
        return NULL;
    return b->p + b->len;
}

char *buf_reserve(struct buf *b, size_t len)
{
    return reserve(b, len);
}

void buf_commit(struct buf *b, size_t len)
{
    BUG_ON(b->len + len + 1 > b->cap);
    b->len += len;
    b->p[b->len] = '\0';
}

void buf_append(struct buf *b, const void *p, size_t len)
{
    char *to = reserve(b, len);
    if (!to)
        return;
    if (len)
        memcpy(to, p, len);
    to[len] = '\0';
    b->len += len;
}

void buf_append_str(struct buf *b, struct str s)
{
    buf_append(b, s.p, s.len);
}

void buf_append_z(struct buf *b, const char *z)
{
    buf_append(b, z, strlen(z));
}

void buf_append_char(struct buf *b, char c)
{
    char *to = reserve(b, 1);
    if (!to)
        return;
    to[0] = c;
    to[1] = '\0';
    b->len++;
}

void buf_vappendf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    char *to;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    BUG_ON(n < 0);
    to = buf_reserve(b, (size_t)n);
    if (!to)
        return;
    vsnprintf(to, (size_t)n + 1, fmt, ap);
    buf_commit(b, (size_t)n);
}

void buf_appendf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vappendf(b, fmt, ap);
    va_end(ap);
}

void buf_append_u64(struct buf *b, uint64_t v)
{
    char text[20];
    size_t at = sizeof(text);
    do
        text[--at] = (char)('0' + v % 10);
    while (v /= 10);
    buf_append(b, text + at, sizeof(text) - at);
}

void buf_append_i64(struct buf *b, int64_t v)
{
    if (v < 0)
        buf_append_char(b, '-');
    buf_append_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void buf_append_hex(struct buf *b, const void *p, size_t len)
{
    char *to = buf_reserve(b, len * 2);
    if (!to)
        return;
    hex_write(to, p, len);
    buf_commit(b, len * 2);
}

void buf_append_be16(struct buf *b, uint16_t v)
{
    v = htobe16(v);
    buf_append(b, &v, sizeof(v));
}

void buf_append_be64(struct buf *b, uint64_t v)
{
    v = htobe64(v);
    buf_append(b, &v, sizeof(v));
}

void buf_append_le16(struct buf *b, uint16_t v)
{
    v = htole16(v);
    buf_append(b, &v, sizeof(v));
}

void buf_append_le32(struct buf *b, uint32_t v)
{
    v = htole32(v);
    buf_append(b, &v, sizeof(v));
}

void buf_append_le64(struct buf *b, uint64_t v)
{
    v = htole64(v);
    buf_append(b, &v, sizeof(v));
}

void buf_consume(struct buf *b, size_t n)
{
    BUG_ON(n > b->len);
    b->len -= n;
    if (b->p) {
        memmove(b->p, b->p + n, b->len);
        b->p[b->len] = '\0';
    }
}

void buf_fail(struct buf *b)
{
    b->failed = true;
}

int buf_error(const struct buf *b)
{
    return b->no_memory ? ERR_NO_MEMORY : b->failed ? ERR_TOO_LARGE : 0;
}

char *buf_take(struct buf *b)
{
    char *p = b->p ? b->p : xzalloc(1);
    b->p = NULL;
    buf_release(b);
    return p;
}
