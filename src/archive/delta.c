/* Deltas of packs. */
#include "archive/delta.h"

#include "base/bytes.h"

enum { COPY_SIZE_ZERO = 0x10000 }; /* a copy instruction with length 0 stands for this length */

static int delta_bad(struct err *err, const char *what)
{
    return err_set(err, ERR_PARSE, "a delta of the pack is damaged: %s", what);
}

int delta_sizes_read(struct delta_sizes *out, struct str *delta, struct err *err)
{
    struct delta_sizes sizes;

    if (!varint_take(delta, &sizes.base) || !varint_take(delta, &sizes.result))
        return delta_bad(err, "it has no sizes");
    *out = sizes;
    return 0;
}

/* Reads the offset and the length of the copy instruction `op`, and removes them from the front of
 * `delta`. Returns false when the delta ends too early. */
static bool delta_take_range(unsigned char op, struct str *delta, size_t *offset, size_t *len)
{
    size_t value[2] = {0, 0};

    for (unsigned bit = 0; bit < 7; bit++) {
        if (!(op >> bit & 1))
            continue;
        if (delta->len == 0)
            return false;
        unsigned shift = 8 * (bit < 4 ? bit : bit - 4);
        value[bit >= 4] |= (size_t)(unsigned char)delta->p[0] << shift;
        *delta = str_skip(*delta, 1);
    }
    *offset = value[0];
    *len = value[1] ? value[1] : COPY_SIZE_ZERO;
    return true;
}

int delta_apply(unsigned char *to, size_t result, struct str base, struct str delta,
                struct err *err)
{
    while (delta.len) {
        unsigned char op = (unsigned char)delta.p[0];
        size_t offset = 0, len = op;
        delta = str_skip(delta, 1);
        if (op == 0)
            return delta_bad(err, "it has an unknown instruction");
        if (op & 128 && !delta_take_range(op, &delta, &offset, &len))
            return delta_bad(err, "it is cut off");
        struct str from = op & 128 ? base : delta;
        if (len > result)
            return delta_bad(err, "it makes more bytes than it says");
        if (offset > from.len || len > from.len - offset)
            return delta_bad(err, "it copies bytes that are not there");
        memcpy(to, from.p + offset, len);
        to += len;
        result -= len;
        if (!(op & 128))
            delta = str_skip(delta, len);
    }
    return result ? delta_bad(err, "it makes fewer bytes than it says") : 0;
}
