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

static int delta_step(struct delta_run *r, struct err *err)
{
    unsigned char op = (unsigned char)r->delta.p[0];
    size_t offset = 0, len = op;

    r->delta = str_skip(r->delta, 1);
    if (op == 0)
        return delta_bad(err, "it has an unknown instruction");
    if (op & 128 && !delta_take_range(op, &r->delta, &offset, &len))
        return delta_bad(err, "it is cut off");
    struct str from = op & 128 ? r->base : r->delta;
    if (len > r->left)
        return delta_bad(err, "it makes more bytes than it says");
    if (offset > from.len || len > from.len - offset)
        return delta_bad(err, "it copies bytes that are not there");
    memcpy(r->to, from.p + offset, len);
    r->to += len;
    r->left -= len;
    if (!(op & 128))
        r->delta = str_skip(r->delta, len);
    return 0;
}

int delta_run_some(struct delta_run *r, size_t most, bool *done, struct err *err)
{
    size_t until = r->left > most ? r->left - most : 0;
    int code = 0;

    while (code == 0 && r->delta.len && (r->left > until || until == 0))
        code = delta_step(r, err);
    *done = r->delta.len == 0;
    if (code == 0 && *done && r->left)
        return delta_bad(err, "it makes fewer bytes than it says");
    return code;
}

int delta_apply(unsigned char *to, size_t result, struct str base, struct str delta,
                struct err *err)
{
    struct delta_run r = {to, result, base, delta};
    bool done;

    return delta_run_some(&r, result, &done, err);
}
