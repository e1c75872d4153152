/* Writes sealed bodies (docs/encryption.md), and reads any range of them, a record at a time. */
#include "object/local/local_int.h"
#include "os/file.h"

#include <stdlib.h>

/* A sealed body that is being read. All numbers count plain bytes; only read_at() knows where they
 * are stored. */
struct sealed_body {
    struct reader reader;
    struct local *l;
    struct pin *pin;  /* for an object made of parts; else NULL */
    struct buf bytes; /* the stored bytes of an inline body */
    struct buf list;
    struct str rest; /* the part of the list that follows the open piece */
    int fd;          /* file of the open piece; -1: the body is in `bytes` */
    struct piece piece;
    uint64_t at;   /* offset of the next byte to return, in the open piece */
    uint64_t left; /* bytes not returned yet, of all pieces */
    struct sealed_key key;
    bool unlocked;
    struct sealed_cipher cipher; /* for the open piece; ctx NULL: not made yet */
    unsigned char *record;       /* SEALED_STORED bytes, opened in place */
    struct str plain;            /* the bytes of `record` that were not returned yet */
};

/* --- writing sealed bodies --- */

/* Sets MD5 and ETag of a blob. A hidden ETag is made from the MD5, so it is the same when the same
 * part is sent again. */
static void take_etag(struct sealer *s, const struct put_seal *seal, struct blob *out)
{
    unsigned char hidden[MD5_LEN];
    struct buf text = BUF_INIT(0);

    sealer_md5(s, out->md5);
    sealed_digest(&seal->key, out->md5, hidden);
    buf_append_hex(&text, seal->hide_md5 ? hidden : out->md5, sizeof(hidden));
    if (seal->hide_md5)
        buf_append_z(&text, "-0");
    memcpy(out->etag, text.p, text.len + 1);
    buf_release(&text);
}

int blob_seal(struct local *l, const struct blob_source *from, const struct blob_target *to,
              struct blob *out, struct buf *small, struct err *err)
{
    struct blob_source sealed = *from;
    struct put_seal seal = {0};
    struct sealer sealer;
    int code;

    if (!to->o->seal) /* meta says sealed, so a key is needed (docs/encryption.md, E1) */
        return err_set(err, ERR_INVALID, "no key was given for a body that is to be sealed");
    code = to->o->seal(to->o->seal_ctx, to->meta, &seal, err);
    if (code < 0)
        return code;
    sealer_init(&sealer, from->body, &seal.key, to->part, from->md5 ? l->hasher : NULL);
    sealed.body = &sealer.reader;
    sealed.size = sealed_size(from->size);
    sealed.md5 = false;
    code = blob_write(l, &sealed, out, small, err);
    out->plain = sealer.size;
    if (code == 0 && from->md5)
        take_etag(&sealer, &seal, out);
    sealer_release(&sealer);
    secure_zero(&seal, sizeof(seal));
    return code;
}

/* --- reading sealed bodies --- */

static int read_at(struct sealed_body *b, void *to, size_t len, uint64_t at, struct err *err)
{
    if (b->fd >= 0)
        return file_pread_full(b->fd, to, len, (off_t)(b->piece.offset + at), err);
    if (at > b->bytes.len || len > b->bytes.len - at)
        return err_set(err, ERR_CORRUPT, "an inline body is too short");
    memcpy(to, b->bytes.p + at, len);
    return 0;
}

/* Opens the next piece that has bytes at offset `skip` or later. */
static int sealed_next_piece(struct sealed_body *b, uint64_t skip, struct err *err)
{
    int code = 0;

    fd_close(&b->fd);
    sealed_cipher_release(&b->cipher);
    while (code == 0 && (code = piece_next(&b->rest, &b->piece, err)) == 0 && skip >= b->piece.size)
        skip -= b->piece.size;
    b->at = skip;
    if (code == 0)
        code = blob_open(&b->fd, b->l, b->piece.blob, err);
    return code == ERR_END || code == ERR_NOT_FOUND
               ? err_set(err, ERR_CORRUPT, "a part of the object is missing")
               : code;
}

static int open_cipher(struct sealed_body *b, struct err *err)
{
    unsigned char salt[SEALED_SALT_LEN];
    int code = b->cipher.ctx ? 0 : read_at(b, salt, sizeof(salt), 0, err);

    if (code == 0 && !b->cipher.ctx)
        sealed_cipher_init(&b->cipher, &b->key, salt, b->piece.number);
    return code;
}

/* Reads and opens the record that holds the next byte. */
static int open_record(struct sealed_body *b, struct err *err)
{
    uint64_t index = b->at / SEALED_RECORD, from = index * SEALED_RECORD;
    size_t skip = (size_t)(b->at - from);
    bool last = index + 1 == sealed_records(b->piece.size);
    size_t len = last ? (size_t)(b->piece.size - from) : SEALED_RECORD;
    int code = open_cipher(b, err);

    if (code == 0)
        code = read_at(b, b->record, len + SEALED_TAG_LEN, SEALED_SALT_LEN + index * SEALED_STORED,
                       err);
    if (code == 0)
        code = sealed_get(&b->cipher, index, last, b->record, len + SEALED_TAG_LEN, err);
    if (code < 0)
        return code;
    b->plain = str_n(b->record + skip, len - skip);
    if (b->plain.len > b->left)
        b->plain.len = b->left;
    return 0;
}

static int sealed_read(struct reader *base, void *to, size_t len, size_t *got, struct err *err)
{
    struct sealed_body *b = container_of(base, struct sealed_body, reader);
    int code = 0;

    *got = 0;
    if (!b->unlocked)
        return err_set(err, ERR_DENIED, "the body is sealed");
    if (b->left == 0 || len == 0)
        return 0;
    if (b->plain.len == 0 && b->at == b->piece.size)
        code = sealed_next_piece(b, 0, err);
    if (code == 0 && b->plain.len == 0)
        code = open_record(b, err);
    if (code < 0)
        return code;
    *got = size_min(len, b->plain.len);
    memcpy(to, b->plain.p, *got);
    b->plain = str_skip(b->plain, *got);
    b->at += *got;
    b->left -= *got;
    return 0;
}

static void sealed_close(struct reader *base)
{
    struct sealed_body *b = container_of(base, struct sealed_body, reader);

    sealed_cipher_release(&b->cipher);
    secure_zero(&b->key, sizeof(b->key));
    fd_close(&b->fd);
    pin_end(b->l, b->pin);
    buf_release(&b->bytes);
    buf_release(&b->list);
    free(b->record);
}

int sealed_body_unlock(struct reader *base, const struct sealed_key *key, struct err *err)
{
    struct sealed_body *b = container_of(base, struct sealed_body, reader);
    bool empty = b->piece.size == 0 && b->list.len == 0;
    int code = 0;

    b->key = *key;
    if (!b->record)
        b->record = xzalloc(SEALED_STORED);
    if (b->left > 0 || empty)
        code = open_record(b, err);
    b->unlocked = code == 0;
    return code;
}

static int open_inline(struct sealed_body *b, const struct object_record *r, struct err *err)
{
    struct row row;
    int code =
        db_get(db_latest(b->l->db), b->l->bytes, row_bytes(&row, b->l, r->id), &b->bytes, err);

    if (code == 0 && b->bytes.len != record_stored(r))
        code = err_set(err, ERR_CORRUPT, "an inline body has %zu bytes, not %llu", b->bytes.len,
                       (unsigned long long)record_stored(r));
    return code == ERR_NOT_FOUND ? err_code(err, ERR_AGAIN) : code;
}

static int open_whole(struct sealed_body *b, const struct object_record *r, uint64_t first,
                      struct err *err)
{
    int code;

    b->piece = (struct piece){.blob = r->id, .offset = r->offset, .size = r->size};
    b->at = first;
    if (r->where != WHERE_BLOB)
        return open_inline(b, r, err);
    code = blob_open(&b->fd, b->l, r->id, err);
    return code == ERR_NOT_FOUND ? err_code(err, ERR_AGAIN) : code;
}

static int open_parts(struct sealed_body *b, const struct object_record *r, uint64_t first,
                      struct pin *pin, struct err *err)
{
    int code = stored_parts(&b->list, db_latest(b->l->db), b->l, r, err);

    if (code == 0)
        code = pin_resolve(b->l, pin, buf_str(&b->list), err);
    b->rest = buf_str(&b->list);
    return code == 0 && b->left > 0 ? sealed_next_piece(b, first, err) : code;
}

int sealed_body_open(struct reader **out, struct local *l, struct arena *a,
                     const struct object_record *r, const uint64_t range[2], struct pin **pin,
                     struct err *err)
{
    static const struct reader_ops ops = {.read = sealed_read, .close = sealed_close};
    struct sealed_body *b = arena_new(a, struct sealed_body);
    bool parts = r->where == WHERE_PARTS || r->where == WHERE_PARTED;
    int code;

    if (!b)
        return err_code(err, ERR_NO_MEMORY);
    *b = (struct sealed_body){.reader = {&ops}, .l = l, .fd = -1, .left = range[1]};
    code = parts ? open_parts(b, r, range[0], *pin, err) : open_whole(b, r, range[0], err);
    if (code < 0) {
        sealed_close(&b->reader);
        return code;
    }
    if (parts) {
        b->pin = *pin;
        *pin = NULL;
    }
    *out = &b->reader;
    return 0;
}
