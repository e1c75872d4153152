/* Keys and values of the embedded engine's rows. */
#include "store/rows.h"
#include "base/bytes.h"
#include "base/err.h"

#define SIGN ((uint64_t)1 << 63)

enum { META_EXPIRES = 1, META_SMALL = 2, META_FLAGS = META_EXPIRES | META_SMALL };
enum { PAIR_HEAD = 4 }; /* bytes in front of a pair: the lengths of its field and value */

static char *row_begin(struct row *row, struct arena *a, size_t len)
{
    char *p;

    if (len <= sizeof(row->small)) {
        row->key = str_n(row->small, len);
        return row->small;
    }
    p = arena_alloc(a, len);
    row->key = str_n(p, p ? len : 0);
    return p;
}

static void row_put_str(char *to, struct str s)
{
    if (s.len)
        memcpy(to, s.p, s.len);
}

void row_meta(struct row *row, struct arena *a, uint64_t hash, struct str key)
{
    char *p = row_begin(row, a, ROW_PREFIX + key.len);
    if (!p)
        return;
    *p = ROW_META;
    row_put_str(be64_write(p + 1, hash), key);
}

void row_expiry(struct row *row, struct arena *a, int64_t expire_ms, uint64_t hash, struct str key)
{
    row_hashed(row, a, ROW_EXPIRY, (uint64_t)expire_ms, hash, key);
}

void row_prefix(struct row *row, enum row_tag tag, uint64_t number)
{
    row->small[0] = (char)tag;
    be64_write(row->small + 1, number);
    row->key = str_n(row->small, ROW_PREFIX);
}

void row_hashed(struct row *row, struct arena *a, enum row_tag tag, uint64_t version,
                uint64_t hash_or_score, struct str member)
{
    char *p = row_begin(row, a, ROW_HASHED + member.len);
    if (!p)
        return;
    *p = (char)tag;
    row_put_str(be64_write(be64_write(p + 1, version), hash_or_score), member);
}

void row_position(struct row *row, enum row_tag tag, uint64_t version, uint64_t hash)
{
    row_hashed(row, NULL, tag, version, hash, STR_EMPTY);
}

void row_item(struct row *row, uint64_t version, int64_t index)
{
    row_position(row, ROW_ITEM, version, (uint64_t)index ^ SIGN);
}

int64_t row_item_index(struct str key)
{
    return (int64_t)(be64_read(key.p + ROW_PREFIX) ^ SIGN);
}

uint64_t score_encode(double score)
{
    uint64_t bits;
    score += 0.0; /* -0 becomes 0: both are the same score */
    memcpy(&bits, &score, sizeof(bits));
    return bits & SIGN ? ~bits : bits ^ SIGN;
}

double score_decode(uint64_t bits)
{
    double score;
    bits = bits & SIGN ? bits ^ SIGN : ~bits;
    memcpy(&score, &bits, sizeof(score));
    return score;
}

size_t meta_encode(const struct meta *m, char out[META_MAX])
{
    char *p = out;

    *p++ = (char)m->type;
    *p++ = (char)((m->expire_ms ? META_EXPIRES : 0) | (m->small ? META_SMALL : 0));
    if (m->expire_ms)
        p = be64_write(p, (uint64_t)m->expire_ms);
    if (m->type != TYPE_STRING && !m->small)
        p = be64_write(be64_write(p, m->version), m->count);
    if (m->type == TYPE_LIST)
        p = be64_write(p, (uint64_t)m->head);
    return (size_t)(p - out);
}

size_t pair_size(struct str field, struct str value)
{
    return PAIR_HEAD + field.len + value.len;
}

void pair_write(char *to, struct str field, struct str value)
{
    to = be16_write(be16_write(to, field.len), value.len);
    row_put_str(to, field);
    row_put_str(to + field.len, value);
}

bool pair_next(struct str *rest, struct str *field, struct str *value)
{
    size_t field_len, value_len;

    if (rest->len < PAIR_HEAD)
        return false;
    field_len = be16_read(rest->p);
    value_len = be16_read(rest->p + 2);
    if (rest->len - PAIR_HEAD < field_len + value_len)
        return false;
    *field = str_n(rest->p + PAIR_HEAD, field_len);
    *value = str_n(field->p + field_len, value_len);
    *rest = str_skip(*rest, PAIR_HEAD + field_len + value_len);
    return true;
}

/* Returns the number of pairs; 0: the bytes are not the pairs of a small hash. */
static uint64_t count_pairs(struct str pairs)
{
    struct str field, value;
    uint64_t n = 0;

    if (pairs.len > SMALL_BYTES)
        return 0;
    while (pair_next(&pairs, &field, &value))
        n++;
    return pairs.len == 0 && n <= SMALL_FIELDS ? n : 0;
}

/* Returns the size in bytes of version, count and (in a list) head in a meta row's value; 0 for
 * types that have none of these. */
static size_t head_size(enum value_type type, bool small)
{
    if (type == TYPE_STRING || small)
        return 0;
    return type == TYPE_LIST ? 24 : 16;
}

int meta_decode(struct meta *out, struct str value)
{
    struct meta m = {0};
    struct str rest = str_skip(value, 2);
    size_t need;

    if (value.len < 2 || value.p[0] < TYPE_STRING || value.p[0] > TYPE_HASH)
        return ERR_CORRUPT;
    m.type = (enum value_type)value.p[0];
    m.small = value.p[1] & META_SMALL;
    need = (value.p[1] & META_EXPIRES ? 8 : 0) + head_size(m.type, m.small);
    if (rest.len < need || (m.small && m.type != TYPE_HASH) || value.p[1] & ~META_FLAGS)
        return ERR_CORRUPT;
    if (value.p[1] & META_EXPIRES) {
        m.expire_ms = (int64_t)be64_read(rest.p);
        rest = str_skip(rest, 8);
    }
    if (m.type == TYPE_STRING || m.small) {
        m.value = rest;
        m.count = m.small ? count_pairs(rest) : 0;
    } else {
        m.version = be64_read(rest.p);
        m.count = be64_read(rest.p + 8);
    }
    if (m.type == TYPE_LIST)
        m.head = (int64_t)be64_read(rest.p + 16);
    if (m.small && m.count == 0)
        return ERR_CORRUPT;
    *out = m;
    return 0;
}

enum row_tag type_tag(enum value_type type, enum row_tag *other)
{
    static const struct {
        enum row_tag tag, other;
    } tags[] = {
        [TYPE_LIST] = {ROW_ITEM, 0},
        [TYPE_SET] = {ROW_MEMBER, 0},
        [TYPE_ZSET] = {ROW_SCORE, ROW_ORDER},
        [TYPE_HASH] = {ROW_FIELD, 0},
    };

    BUG_ON(type < TYPE_LIST || type > TYPE_HASH);
    *other = tags[type].other;
    return tags[type].tag;
}
