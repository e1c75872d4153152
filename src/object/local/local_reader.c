/* Bodies of objects as readers: bytes of a row, a range of a file, a chain of files. */
#include "object/local/local_int.h"
#include "os/file.h"

#include <stdlib.h>

/* A body that is held in memory: the bytes of a row, or none. */
struct row_body {
    struct reader reader;
    struct buf bytes;
    struct str rest;
};

/* A body in several files: the rest of a list of parts, beginning with the range of the open
 * file. */
struct chain {
    struct reader reader;
    struct local *l;
    struct pin *pin;
    struct buf list;
    struct str rest; /* the part of the list that follows the open piece */
    struct file_reader file;
    uint64_t left; /* bytes left in all, the open file's included */
};

static int row_read(struct reader *base, void *to, size_t len, size_t *got, struct err *err)
{
    struct row_body *r = container_of(base, struct row_body, reader);

    (void)err;
    *got = size_min(len, r->rest.len);
    if (*got)
        memcpy(to, r->rest.p, *got);
    r->rest = str_skip(r->rest, *got);
    return 0;
}

static bool row_as_bytes(struct reader *base, struct str *out)
{
    *out = container_of(base, struct row_body, reader)->rest;
    return true;
}

static void row_skip(struct reader *base, uint64_t n)
{
    struct row_body *r = container_of(base, struct row_body, reader);

    BUG_ON(n > r->rest.len);
    r->rest = str_skip(r->rest, n);
}

static void row_close(struct reader *base)
{
    buf_release(&container_of(base, struct row_body, reader)->bytes);
}

static int reader_open_row(struct reader **out, struct local *l, struct arena *a,
                           const struct object_record *r, const uint64_t range[2], struct err *err)
{
    static const struct reader_ops ops = {
        .read = row_read,
        .as_bytes = row_as_bytes,
        .skip = row_skip,
        .close = row_close,
    };
    struct row_body *body = arena_new(a, struct row_body);
    struct row row;
    int code = 0;

    if (!body)
        return err_code(err, ERR_NO_MEMORY);
    *body = (struct row_body){.reader = {&ops}};
    if (r->where == WHERE_INLINE)
        code = db_get(db_latest(l->db), l->bytes, row_bytes(&row, l, r->id), &body->bytes, err);
    if (code == 0 && body->bytes.len != r->size)
        code = err_set(err, ERR_CORRUPT, "an inline body has %zu bytes, not %llu", body->bytes.len,
                       (unsigned long long)r->size);
    if (code < 0) {
        buf_release(&body->bytes);
        return code == ERR_NOT_FOUND ? err_code(err, ERR_AGAIN) : code;
    }
    body->rest = str_head(str_skip(buf_str(&body->bytes), range[0]), range[1]);
    *out = &body->reader;
    return 0;
}

static int open_blob(struct reader **out, struct local *l, struct arena *a,
                     const struct object_record *r, const uint64_t range[2], struct err *err)
{
    struct file_reader *file = arena_new(a, struct file_reader);
    int fd = -1, code;

    if (!file)
        return err_code(err, ERR_NO_MEMORY);
    code = blob_open(&fd, l, r->id, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? err_code(err, ERR_AGAIN) : code;
    file_reader_init(file, (struct file_range){fd, (off_t)(r->offset + range[0]), range[1]}, true);
    *out = &file->reader;
    return 0;
}

/* --- bodies that are chains of files --- */

/* Opens the next piece that has bytes, without its first `skip` bytes. */
static int chain_next(struct chain *c, uint64_t skip, struct err *err)
{
    struct piece piece = {0};
    int fd = -1, code = 0;

    reader_close(&c->file.reader);
    file_reader_init(&c->file, (struct file_range){.fd = -1}, false);
    while (code == 0 && (code = piece_next(&c->rest, &piece, err)) == 0 && skip >= piece.size)
        skip -= piece.size;
    if (code == 0)
        code = blob_open(&fd, c->l, piece.blob, err);
    if (code < 0)
        return code == ERR_END || code == ERR_NOT_FOUND
                   ? err_set(err, ERR_CORRUPT, "a part of the object is missing")
                   : code;
    uint64_t len = piece.size - skip;
    if (len > c->left)
        len = c->left;
    file_reader_init(&c->file, (struct file_range){fd, (off_t)(piece.offset + skip), len}, true);
    return 0;
}

static int chain_read(struct reader *base, void *to, size_t len, size_t *got, struct err *err)
{
    struct chain *c = container_of(base, struct chain, reader);
    int code = 0;

    *got = 0;
    if (c->left == 0)
        return 0;
    if (c->file.range.len == 0)
        code = chain_next(c, 0, err);
    if (code == 0)
        code = reader_read(&c->file.reader, to, len, got, err);
    if (code == 0)
        c->left -= *got;
    return code;
}

/* Sets *out to the rest of the body as a range of a file. False: the rest is not in one file. */
static bool chain_as_file(struct reader *base, struct file_range *out)
{
    struct chain *c = container_of(base, struct chain, reader);

    return c->left > 0 && c->file.range.len == c->left && reader_as_file(&c->file.reader, out);
}

static void chain_skip(struct reader *base, uint64_t n)
{
    struct chain *c = container_of(base, struct chain, reader);

    BUG_ON(n > c->file.range.len);
    reader_skip(&c->file.reader, n);
    c->left -= n;
}

static void chain_close(struct reader *base)
{
    struct chain *c = container_of(base, struct chain, reader);

    reader_close(&c->file.reader);
    pin_end(c->l, c->pin);
    buf_release(&c->list);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int pin_resolve(struct local *l, struct pin *pin, struct str list, struct err *err)
{
    VEC(uint64_t) blobs = {0};
    struct piece piece;
    int code;

    while ((code = piece_next(&list, &piece, err)) == 0)
        vec_push(&blobs, piece.blob);
    if (code != ERR_END) {
        vec_release(&blobs);
        return code;
    }
    if (blobs.len > 0)
        qsort(blobs.items, blobs.len, sizeof(uint64_t), by_number);
    mutex_lock(&l->pins.lock);
    pin->blobs = blobs.items;
    pin->count = blobs.len;
    pin->resolving = false;
    cond_broadcast(&l->pins.resolved);
    mutex_unlock(&l->pins.lock);
    return 0;
}

static int open_chain(struct reader **out, struct local *l, struct arena *a,
                      const struct object_record *r, const uint64_t range[2], struct pin **pin,
                      struct err *err)
{
    static const struct reader_ops ops = {
        .read = chain_read, .as_file = chain_as_file, .skip = chain_skip, .close = chain_close};
    struct chain *c = arena_new(a, struct chain);

    if (!c)
        return err_code(err, ERR_NO_MEMORY);
    *c = (struct chain){.reader = {&ops}, .l = l, .left = range[1]};
    file_reader_init(&c->file, (struct file_range){.fd = -1}, false);
    int code = stored_parts(&c->list, db_latest(l->db), l, r, err);
    if (code == 0)
        code = pin_resolve(l, *pin, buf_str(&c->list), err);
    c->rest = buf_str(&c->list);
    if (code == 0 && range[1] > 0)
        code = chain_next(c, range[0], err);
    if (code < 0) {
        chain_close(&c->reader);
        return code;
    }
    c->pin = *pin;
    *pin = NULL;
    *out = &c->reader;
    return 0;
}

int body_open(struct reader **out, struct local *l, struct arena *a, const struct object_record *r,
              const uint64_t range[2], struct pin **pin, struct err *err)
{
    if (r->meta.encryption.len)
        return sealed_body_open(out, l, a, r, range, pin, err);
    switch (r->where) {
    case WHERE_BLOB:
        return open_blob(out, l, a, r, range, err);
    case WHERE_PARTS:
    case WHERE_PARTED:
        return open_chain(out, l, a, r, range, pin, err);
    default:
        return reader_open_row(out, l, a, r, range, err);
    }
}

struct pin *pin_begin(struct local *l)
{
    struct pin *pin = xcalloc(1, sizeof(*pin));

    pin->resolving = true;
    mutex_lock(&l->pins.lock);
    pin->number = ++l->pins.registered;
    list_push(&l->pins.readers, &pin->node);
    mutex_unlock(&l->pins.lock);
    return pin;
}

void pin_end(struct local *l, struct pin *pin)
{
    bool again;

    if (!pin)
        return;
    mutex_lock(&l->pins.lock);
    list_remove(&pin->node);
    again = l->pins.skipped;
    l->pins.skipped = false;
    if (pin->resolving)
        cond_broadcast(&l->pins.resolved);
    mutex_unlock(&l->pins.lock);
    free(pin->blobs);
    free(pin);
    if (again)
        collector_ask(l);
}
