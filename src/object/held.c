/* Reads bodies whose end is held back. */
#include "object/held.h"

static bool knows_end(const struct held_reader *h)
{
    return h->left != UINT64_MAX;
}

static int held_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct held_reader *h = container_of(r, struct held_reader, reader);
    int code = 0;

    *got = 0;
    if (h->left == 0)
        return 0;
    code = reader_read(h->from, to, len < h->left ? len : (size_t)h->left, got, err);
    if (code == 0 && *got == 0 && knows_end(h))
        code = err_set(err, ERR_CLOSED, "the body ended early");
    if (code == 0 && *got == h->left)
        code = h->prove(h->ctx, err);
    if (code < 0)
        *got = 0;
    if (knows_end(h))
        h->left -= *got;
    h->failed = code;
    return code;
}

static bool held_as_socket(struct reader *r, int *fd, uint64_t *len)
{
    struct held_reader *h = container_of(r, struct held_reader, reader);

    if (h->left <= h->unspliced || !reader_as_socket(h->from, fd, len))
        return false;
    if (*len > h->left - h->unspliced)
        *len = h->left - h->unspliced;
    return true;
}

static bool held_as_file(struct reader *r, struct file_range *out)
{
    struct held_reader *h = container_of(r, struct held_reader, reader);

    return h->any_file && h->left && reader_as_file(h->from, out) && out->len == h->left;
}

static void held_skip(struct reader *r, uint64_t n)
{
    struct held_reader *h = container_of(r, struct held_reader, reader);

    reader_skip(h->from, n);
    if (knows_end(h))
        h->left -= n;
}

static const struct reader_ops held_ops = {
    .read = held_read,
    .as_file = held_as_file,
    .as_socket = held_as_socket,
    .skip = held_skip,
};

void held_reader_init(struct held_reader *h, struct reader *from, uint64_t len)
{
    *h = (struct held_reader){.reader.ops = &held_ops, .from = from, .left = len};
}
