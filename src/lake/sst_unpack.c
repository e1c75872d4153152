/* Unpacks Snappy: the length of the result, then elements. An element is either literal bytes, or a
 * reference to an earlier piece of the result, which is repeated. Format: google/snappy,
 * format_description.txt. */
#include "lake/sst_unpack.h"

#include "base/bytes.h"

struct unpack {
    struct str in;
    char *to;
    size_t len, at; /* length of the result; number of bytes written so far */
};

enum { SNAPPY_LITERAL = 0, SNAPPY_COPY_1 = 1, SNAPPY_COPY_2 = 2 };

/* Takes a little-endian number of 1 to 4 bytes. */
static bool unpack_number(struct unpack *u, size_t bytes, uint64_t *out)
{
    uint64_t v = 0;

    if (u->in.len < bytes)
        return false;
    for (size_t i = bytes; i-- > 0;)
        v = v << 8 | (unsigned char)u->in.p[i];
    u->in = str_skip(u->in, bytes);
    *out = v;
    return true;
}

/* Copies a literal. The upper six bits of the tag are the length minus 1 if they are less than 60.
 * Otherwise they say that the length minus 1 is in the 1 to 4 bytes after the tag. */
static bool unpack_literal(struct unpack *u, unsigned tag)
{
    enum { INLINE_MAX = 60 };
    uint64_t len = tag >> 2;

    if (len >= INLINE_MAX && !unpack_number(u, (size_t)len - INLINE_MAX + 1, &len))
        return false;
    len++;
    if (len > u->in.len || len > u->len - u->at)
        return false;
    memcpy(u->to + u->at, u->in.p, len);
    u->in = str_skip(u->in, len);
    u->at += len;
    return true;
}

static bool unpack_copy(struct unpack *u, uint64_t offset, size_t len)
{
    if (offset == 0 || offset > u->at || len > u->len - u->at)
        return false;
    /* One byte at a time, because the piece may overlap the place to which it is copied. */
    for (char *to = u->to + u->at, *end = to + len; to < end; to++)
        *to = to[-(ptrdiff_t)offset];
    u->at += len;
    return true;
}

static bool unpack_element(struct unpack *u)
{
    unsigned tag = (unsigned char)u->in.p[0];
    uint64_t offset;

    u->in = str_skip(u->in, 1);
    switch (tag & 3) {
    case SNAPPY_LITERAL:
        return unpack_literal(u, tag);
    case SNAPPY_COPY_1:
        return unpack_number(u, 1, &offset) &&
               unpack_copy(u, (uint64_t)(tag >> 5) << 8 | offset, 4 + (tag >> 2 & 7));
    case SNAPPY_COPY_2:
        return unpack_number(u, 2, &offset) && unpack_copy(u, offset, 1 + (tag >> 2));
    default:
        return unpack_number(u, 4, &offset) && unpack_copy(u, offset, 1 + (tag >> 2));
    }
}

bool sst_unpack(struct buf *out, struct str packed, size_t max)
{
    struct unpack u = {.in = packed};
    uint64_t len;

    if (!varint_take(&u.in, &len) || len > max)
        return false;
    u.to = buf_reserve(out, (size_t)len);
    u.len = (size_t)len;
    if (!u.to)
        return false;
    while (u.in.len)
        if (!unpack_element(&u))
            return false;
    if (u.at != u.len)
        return false;
    buf_commit(out, u.len);
    return true;
}
