/* Readers over memory and files. */
#include "os/stream.h"
#include "os/file.h"

#include <errno.h>
#include <unistd.h>

int reader_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    return r->ops->read(r, to, len, got, err);
}

int reader_read_full(struct reader *r, void *to, size_t len, struct err *err)
{
    char *p = to;
    while (len) {
        size_t got;
        int code = reader_read(r, p, len, &got, err);
        if (code < 0)
            return code;
        if (got == 0)
            return err_set(err, ERR_CLOSED, "the stream ended %zu bytes early", len);
        p += got;
        len -= got;
    }
    return 0;
}

/* Sets *end to whether the reader is at its end. The function reads one byte to find out, and drops
 * that byte. */
static int reader_at_end(struct reader *r, bool *end, struct err *err)
{
    char byte = 0;
    size_t got = 0;
    int code = reader_read(r, &byte, 1, &got, err);

    *end = got == 0;
    return code;
}

/* Makes room for `len` more bytes in `out` and sets *to to the address of that room. The memory is
 * charged to the budget, which may be NULL. */
static int reserve_within(struct buf *out, size_t len, struct budget *budget, char **to,
                          struct err *err)
{
    size_t before = out->cap;

    *to = buf_reserve(out, len);
    if (!*to)
        return err_code(err, buf_error(out));
    if (!budget || out->cap == before || budget_take(budget, out->cap - before))
        return 0;
    buf_release(out);
    budget_give(budget, before);
    return err_set(err, ERR_BUSY, "other requests hold all the memory that there is for bodies");
}

int reader_read_all(struct reader *r, struct buf *out, struct err *err)
{
    return reader_read_within(r, out, NULL, err);
}

int reader_read_within(struct reader *r, struct buf *out, struct budget *budget, struct err *err)
{
    size_t max = out->max ? out->max : BUF_DEFAULT_MAX, got = 1, room = 4 * KIB;
    bool end = false;
    int code = 0;

    while (code == 0 && got && out->len < max) {
        size_t spare = out->cap > out->len ? out->cap - out->len - 1 : 0; /* a NUL follows */
        size_t len = size_min(spare ? spare : room, max - out->len);
        char *to;
        code = reserve_within(out, len, budget, &to, err);
        if (code == 0)
            code = reader_read(r, to, len, &got, err);
        if (code == 0)
            buf_commit(out, got);
        if (!spare)
            room = size_min(room * 2, MIB);
    }
    if (code < 0 || got == 0)
        return code;
    code = reader_at_end(r, &end, err);
    return code == 0 && !end ? err_set(err, ERR_TOO_LARGE, "more than %zu bytes", max) : code;
}

bool reader_as_file(struct reader *r, struct file_range *out)
{
    return r->ops->as_file && r->ops->as_file(r, out);
}

bool reader_as_socket(struct reader *r, int *fd, uint64_t *len)
{
    return r->ops->as_socket && r->ops->as_socket(r, fd, len);
}

bool reader_as_bytes(struct reader *r, struct str *out)
{
    return r->ops->as_bytes && r->ops->as_bytes(r, out);
}

void reader_skip(struct reader *r, uint64_t n)
{
    r->ops->skip(r, n);
}

void reader_close(struct reader *r)
{
    if (r && r->ops->close)
        r->ops->close(r);
}

static int str_read(struct reader *base, void *to, size_t len, size_t *got, struct err *err)
{
    struct str_reader *r = container_of(base, struct str_reader, reader);
    (void)err;
    *got = size_min(len, r->rest.len);
    if (*got)
        memcpy(to, r->rest.p, *got);
    r->rest = str_skip(r->rest, *got);
    return 0;
}

static bool str_as_bytes(struct reader *base, struct str *out)
{
    *out = container_of(base, struct str_reader, reader)->rest;
    return true;
}

static void str_reader_skip(struct reader *base, uint64_t n)
{
    struct str_reader *r = container_of(base, struct str_reader, reader);
    r->rest = str_skip(r->rest, n);
}

void str_reader_init(struct str_reader *r, struct str s)
{
    static const struct reader_ops ops = {
        .read = str_read,
        .as_bytes = str_as_bytes,
        .skip = str_reader_skip,
    };
    *r = (struct str_reader){{&ops}, s};
}

static int file_reader_read(struct reader *base, void *to, size_t len, size_t *got, struct err *err)
{
    struct file_reader *r = container_of(base, struct file_reader, reader);
    size_t want = size_min(len, r->range.len);
    ssize_t n;

    do
        n = pread(r->range.fd, to, want, r->range.offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(err, errno, "reading a file");
    if (n == 0 && want)
        return err_set(err, ERR_CORRUPT, "a file is %llu bytes shorter than it was",
                       (unsigned long long)r->range.len);
    r->range.offset += n;
    r->range.len -= (uint64_t)n;
    *got = (size_t)n;
    return 0;
}

static bool file_reader_as_file(struct reader *base, struct file_range *out)
{
    *out = container_of(base, struct file_reader, reader)->range;
    return true;
}

static void file_reader_skip(struct reader *base, uint64_t n)
{
    struct file_reader *r = container_of(base, struct file_reader, reader);
    BUG_ON(n > r->range.len);
    r->range.offset += (off_t)n;
    r->range.len -= n;
}

static void file_reader_close(struct reader *base)
{
    struct file_reader *r = container_of(base, struct file_reader, reader);
    if (r->owns_fd)
        fd_close(&r->range.fd);
}

void file_reader_init(struct file_reader *r, struct file_range range, bool owns_fd)
{
    static const struct reader_ops ops = {
        .read = file_reader_read,
        .as_file = file_reader_as_file,
        .skip = file_reader_skip,
        .close = file_reader_close,
    };
    *r = (struct file_reader){{&ops}, range, owns_fd};
}

static int limit_read(struct reader *base, void *to, size_t len, size_t *got, struct err *err)
{
    struct limit_reader *r = container_of(base, struct limit_reader, reader);
    int code;

    *got = 0;
    if (r->left == 0)
        return 0;
    code = reader_read(r->inner, to, size_min(len, r->left), got, err);
    if (code == 0)
        r->left -= *got;
    return code;
}

static bool limit_as_file(struct reader *base, struct file_range *out)
{
    struct limit_reader *r = container_of(base, struct limit_reader, reader);
    if (!reader_as_file(r->inner, out))
        return false;
    out->len = size_min(out->len, r->left);
    return true;
}

static bool limit_as_socket(struct reader *base, int *fd, uint64_t *len)
{
    struct limit_reader *r = container_of(base, struct limit_reader, reader);
    if (!reader_as_socket(r->inner, fd, len))
        return false;
    *len = size_min(*len, r->left);
    return true;
}

static bool limit_as_bytes(struct reader *base, struct str *out)
{
    struct limit_reader *r = container_of(base, struct limit_reader, reader);
    if (!reader_as_bytes(r->inner, out))
        return false;
    *out = str_head(*out, r->left);
    return true;
}

static void limit_skip(struct reader *base, uint64_t n)
{
    struct limit_reader *r = container_of(base, struct limit_reader, reader);
    BUG_ON(n > r->left);
    reader_skip(r->inner, n);
    r->left -= n;
}

void limit_reader_init(struct limit_reader *r, struct reader *inner, uint64_t limit)
{
    static const struct reader_ops ops = {
        .read = limit_read,
        .as_file = limit_as_file,
        .as_socket = limit_as_socket,
        .as_bytes = limit_as_bytes,
        .skip = limit_skip,
    };
    *r = (struct limit_reader){{&ops}, inner, limit};
}
