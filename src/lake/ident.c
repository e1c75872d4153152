/* Computes the ids of commits and objects: SHA-256 over lakeFS's encoding of their members. */
#include "lake/record.h"

#include "base/clock.h"
#include "base/hex.h"
#include "sign/hmac.h"

/* The types of values in the encoding that is hashed. */
enum ident_type {
    IDENT_BYTES = 0,
    IDENT_STRING = 1,
    IDENT_INT = 2,
    IDENT_STRINGS = 3,
    IDENT_MAP = 4,
    IDENT_HASH = 5
};

static void ident_int(struct buf *out, uint64_t v)
{
    buf_append_char(out, IDENT_INT);
    buf_append_char(out, 8); /* the length of the number */
    buf_append_be64(out, v);
}

static void ident_string(struct buf *out, enum ident_type type, struct str s)
{
    buf_append_char(out, (char)type);
    ident_int(out, s.len);
    buf_append_str(out, s);
}

static void ident_pairs(struct buf *out, const struct str_pairs *p)
{
    buf_append_char(out, IDENT_MAP);
    ident_int(out, p->count);
    for (size_t i = 0; i < p->count; i++) {
        ident_string(out, IDENT_STRING, p->pairs[i].key);
        ident_string(out, IDENT_STRING, p->pairs[i].value);
    }
}

/* Appends the hash of the parents, in the place of the list itself. */
static void ident_parents(struct buf *out, const struct lake_commit *c)
{
    struct buf list = {0};
    unsigned char hash[SHA256_LEN];

    buf_append_char(&list, IDENT_STRINGS);
    ident_int(&list, c->parent_count);
    for (size_t i = 0; i < c->parent_count; i++)
        ident_string(&list, IDENT_STRING, c->parents[i]);
    sha256(buf_str(&list), hash);
    buf_release(&list);
    buf_append_char(out, IDENT_HASH);
    ident_string(out, IDENT_BYTES, str_n(hash, sizeof(hash)));
}

/* Returns the time in whole seconds, as ids have it; rounded down also before 1970. */
static int64_t ident_seconds(int64_t ms)
{
    return ms / MS_PER_S - (ms % MS_PER_S < 0);
}

void lake_commit_id(char out[LAKE_ID_LEN + 1], const struct lake_commit *c)
{
    struct buf text = {0};
    unsigned char hash[SHA256_LEN];

    ident_string(&text, IDENT_STRING, STR("commit:v1"));
    ident_string(&text, IDENT_STRING, c->committer);
    ident_string(&text, IDENT_STRING, c->message);
    ident_string(&text, IDENT_STRING, c->tree);
    ident_int(&text, (uint64_t)ident_seconds(c->created_ms));
    ident_pairs(&text, &c->metadata);
    ident_parents(&text, c);
    sha256(buf_str(&text), hash);
    buf_release(&text);
    hex_write(out, hash, sizeof(hash));
    out[LAKE_ID_LEN] = 0;
}

void lake_entry_identity(unsigned char out[LAKE_IDENTITY_LEN], const struct lake_entry *e)
{
    struct buf text = {0}, extra = {0};

    ident_int(&text, e->size);
    ident_string(&text, IDENT_STRING, e->etag);
    ident_pairs(&text, &e->metadata);
    if (e->content_type.len)
        ident_string(&text, IDENT_STRING, e->content_type);
    lake_entry_write_extra(&extra, e);
    buf_append_str(&text, buf_str(&extra));
    sha256(buf_str(&text), out);
    buf_release(&text);
    buf_release(&extra);
}
