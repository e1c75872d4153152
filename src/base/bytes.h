/* Integers as bytes: fixed sizes in big-endian and little-endian order, and varints.
 *
 * The addresses need no alignment. A reader such as be32_read() reads as many bits as its name
 * says. A writer returns the address behind the bytes that it wrote, so that calls can be chained.
 * To append to a struct buf, use buf_append_be64() and its siblings. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include "base/buf.h"

#include <endian.h>
#include <string.h>

#define BYTES_DEFINE(order, bits, to_host, from_host)                                              \
    static inline uint##bits##_t order##bits##_read(const void *p)                                 \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof(v));                                                                  \
        return to_host(v);                                                                         \
    }                                                                                              \
    static inline void *order##bits##_write(void *to, uint##bits##_t v)                            \
    {                                                                                              \
        v = from_host(v);                                                                          \
        memcpy(to, &v, sizeof(v));                                                                 \
        return (char *)to + sizeof(v);                                                             \
    }

/* Defines be16_read(p), be16_write(to, v), and so on. */
BYTES_DEFINE(be, 16, be16toh, htobe16)
BYTES_DEFINE(be, 32, be32toh, htobe32)
BYTES_DEFINE(be, 64, be64toh, htobe64)
BYTES_DEFINE(le, 16, le16toh, htole16)
BYTES_DEFINE(le, 32, le32toh, htole32)
BYTES_DEFINE(le, 64, le64toh, htole64)

#undef BYTES_DEFINE

/* These functions read and write big-endian integers of up to eight bytes. */
static inline uint64_t be_read(const void *p, size_t len)
{
    const unsigned char *bytes = p;
    uint64_t v = 0;

    for (size_t i = 0; i < len; i++)
        v = v << 8 | bytes[i];
    return v;
}

static inline void *be_write(void *to, uint64_t v, size_t len)
{
    unsigned char *bytes = to;

    for (size_t i = len; i-- > 0; v >>= 8)
        bytes[i] = (unsigned char)v;
    return bytes + len;
}

/* Varints are integers of variable length, as in protobuf: each byte holds seven bits, the lowest
 * bits first, and all bytes but the last have their top bit set. */
enum { VARINT_MAX = 10 }; /* bytes of the longest varint */

static inline void varint_append(struct buf *out, uint64_t v)
{
    char bytes[VARINT_MAX];
    size_t len = 0;

    for (; v >= 0x80; v >>= 7)
        bytes[len++] = (char)(v | 0x80);
    bytes[len++] = (char)v;
    buf_append(out, bytes, len);
}

/* varint_take() for numbers of any length. */
static inline bool varint_take_any(struct str *in, uint64_t *out)
{
    uint64_t v = 0;

    for (size_t i = 0; i < in->len && i < VARINT_MAX; i++) {
        unsigned char byte = (unsigned char)in->p[i];
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            if (i == VARINT_MAX - 1 && byte > 1)
                return false;
            *in = str_skip(*in, i + 1);
            *out = v;
            return true;
        }
    }
    return false;
}

/* Reads a varint and removes it from the front of `in`. Returns false when the varint is cut short
 * or does not fit into 64 bits; `in` and `out` are then unchanged. Most numbers are below 128, and
 * so have one byte. */
static inline bool varint_take(struct str *in, uint64_t *out)
{
    if (in->len == 0 || (unsigned char)in->p[0] >= 0x80)
        return varint_take_any(in, out);
    *out = (unsigned char)in->p[0];
    *in = str_n(in->p + 1, in->len - 1);
    return true;
}

#endif
