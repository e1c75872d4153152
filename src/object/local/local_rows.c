/* Keys of a local storage's rows, and the ids of versions and uploads. */
#include "object/local/local_int.h"
#include "base/bytes.h"

static void row_add(struct row *r, const void *p, size_t len)
{
    BUG_ON(len > sizeof(r->bytes) - r->len);
    if (len)
        memcpy(r->bytes + r->len, p, len);
    r->len += len;
}

static void row_add_number(struct row *r, uint64_t v, size_t len)
{
    unsigned char bytes[8];

    be_write(bytes, v, len);
    row_add(r, bytes, len);
}

struct str row_tag(struct row *r, const struct local *l, enum tag tag)
{
    char byte = (char)tag;

    r->len = 0;
    row_add_number(r, l->id, 4);
    row_add(r, &byte, 1);
    return row_str(r);
}

struct str row_name(struct row *r, const struct local *l, enum tag tag, struct str name)
{
    row_tag(r, l, tag);
    row_add(r, name.p, name.len);
    return row_str(r);
}

struct str row_owned(struct row *r, const struct local *l, struct str owner, struct str bucket)
{
    row_name(r, l, TAG_OWNED, owner);
    row_add(r, "", 1);
    row_add(r, bucket.p, bucket.len);
    return row_str(r);
}

struct str row_id(struct row *r, const struct local *l, enum tag tag, uint64_t id)
{
    row_tag(r, l, tag);
    row_add_number(r, id, 8);
    return row_str(r);
}

struct str row_bytes(struct row *r, const struct local *l, uint64_t id)
{
    r->len = 0;
    row_add_number(r, l->id, 4);
    row_add_number(r, id, 8);
    return row_str(r);
}

struct str row_key(struct row *r, const struct local_bucket *b, enum tag tag, struct str key)
{
    row_id(r, b->local, tag, b->id);
    row_add(r, key.p, key.len);
    return row_str(r);
}

struct str row_versions(struct row *r, const struct local_bucket *b, struct str key)
{
    row_key(r, b, TAG_VERSION, key);
    row_add(r, "", 1);
    return row_str(r);
}

struct str row_version(struct row *r, const struct local_bucket *b, struct str key,
                       uint64_t sequence)
{
    row_versions(r, b, key);
    row_add_number(r, ~sequence, 8);
    return row_str(r);
}

struct str row_upload(struct row *r, const struct local_bucket *b, struct str key,
                      const unsigned char id[UPLOAD_ID_LEN])
{
    row_key(r, b, TAG_UPLOAD, key);
    row_add(r, "", 1);
    row_add(r, id, UPLOAD_ID_LEN);
    return row_str(r);
}

struct str row_part(struct row *r, const struct local *l, const unsigned char id[UPLOAD_ID_LEN],
                    uint32_t number)
{
    row_name(r, l, TAG_PART, str_n(id, UPLOAD_ID_LEN));
    row_add_number(r, number, 4);
    return row_str(r);
}

uint64_t row_u64(struct str bytes)
{
    BUG_ON(bytes.len < 8);
    return be64_read(bytes.p);
}

/* Computes the check value in a version's id. It binds the id to the logical bucket and the key, so
 * that the id is not valid for another key. The check value is the hash of the key that the
 * version's row would have in the logical bucket. */
static uint64_t version_check(const struct local_bucket *b, struct str key, uint64_t sequence)
{
    struct row r;

    row_version(&r, b, key, sequence);
    be_write((unsigned char *)r.bytes + ROW_PREFIX_LEN, b->logical.id, 8);
    return hash_sip(&b->local->version_key, row_str(&r));
}

struct str version_id(const struct local_bucket *b, struct arena *a, struct str key,
                      uint64_t sequence)
{
    return arena_fmt(a, "%016llx%016llx", (unsigned long long)sequence,
                     (unsigned long long)version_check(b, key, sequence));
}

struct str version_text(const struct local_bucket *b, struct arena *a, struct str key,
                        const struct object_record *r)
{
    return r->is_null ? STR("null") : version_id(b, a, key, r->sequence);
}

bool version_parse(const struct local_bucket *b, struct str key, struct str text,
                   uint64_t *sequence)
{
    unsigned char bytes[VERSION_ID_TEXT / 2];

    if (!hex_parse(text, bytes, sizeof(bytes)))
        return false;
    *sequence = row_u64(str_n(bytes, 8));
    return version_check(b, key, *sequence) == row_u64(str_n(bytes + 8, 8));
}

int key_check(struct str key, struct err *err)
{
    if (key.len == 0 || key.len > OBJECT_KEY_MAX)
        return err_set(err, ERR_INVALID, "a key has 1 to %d bytes", OBJECT_KEY_MAX);
    if (str_chr(key, '\0') >= 0)
        return err_set(err, ERR_INVALID, "a key has no NUL byte");
    return 0;
}

int change_key(struct row_change *c, struct err *err)
{
    int code = key_check(c->key, err);

    if (code == 0)
        row_key(&c->row, c->b, TAG_OBJECT, c->key);
    return code;
}
