/* Encodes and decodes the values of records: identity and data in leaves, a child in nodes above
 * them. */
#include "lake/node.h"

#include "base/hex.h"
#include "base/proto.h"

int node_id_parse(struct node_id *out, struct str text, struct err *err)
{
    if (!hex_parse(text, out->bytes, NODE_ID_LEN))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not the id of a tree: 64 hex digits",
                       STR_ARG(str_head(text, 100)));
    return 0;
}

void node_id_text(char out[LAKE_ID_LEN + 1], const struct node_id *id)
{
    hex_write(out, id->bytes, NODE_ID_LEN);
    out[LAKE_ID_LEN] = 0;
}

void node_child_write(struct buf *out, const struct node_child *c)
{
    buf_append(out, c->id.bytes, NODE_ID_LEN);
    varint_append(out, c->count);
    varint_append(out, c->bytes);
    varint_append(out, c->min.len);
    buf_append_str(out, c->min);
    buf_append_char(out, c->foreign ? 1 : 0);
}

/* Moves the first `len` bytes of `in` to `out`. */
static bool node_value_take(struct str *in, uint64_t len, struct str *out)
{
    if (len > in->len)
        return false;
    *out = str_head(*in, (size_t)len);
    *in = str_skip(*in, (size_t)len);
    return true;
}

int node_child_read(struct node_child *out, struct str value)
{
    struct node_child c = {0};
    struct str id, hint;
    uint64_t len;

    if (!node_value_take(&value, NODE_ID_LEN, &id) || !varint_take(&value, &c.count) ||
        !varint_take(&value, &c.bytes) || !varint_take(&value, &len) ||
        !node_value_take(&value, len, &c.min) || !node_value_take(&value, NODE_CHILD_HINT, &hint))
        return ERR_CORRUPT;
    if (value.len || c.min.len > NODE_KEY_MAX || (hint.p[0] & ~1))
        return ERR_CORRUPT;
    memcpy(c.id.bytes, id.p, NODE_ID_LEN);
    c.foreign = hint.p[0] == 1;
    *out = c;
    return 0;
}

/* Encodes a length in zigzag, which maps signed numbers to unsigned ones. (Lengths are never
 * negative.) */
static uint64_t value_zigzag(size_t len)
{
    return (uint64_t)len << 1;
}

static size_t value_varint_len(uint64_t v)
{
    size_t len = 1;

    for (; v >= 0x80; v >>= 7)
        len++;
    return len;
}

static bool value_take_string(struct str *in, struct str *out)
{
    uint64_t zigzag;

    return varint_take(in, &zigzag) && !(zigzag & 1) && node_value_take(in, zigzag >> 1, out);
}

void node_record_write(struct buf *out, struct str identity, struct str data)
{
    varint_append(out, value_zigzag(identity.len));
    buf_append_str(out, identity);
    varint_append(out, value_zigzag(data.len));
    buf_append_str(out, data);
}

size_t node_record_size(struct str identity, struct str data)
{
    return value_varint_len(value_zigzag(identity.len)) + identity.len +
           value_varint_len(value_zigzag(data.len)) + data.len;
}

int node_record_read(struct tree_record *out, struct str key, struct str value)
{
    struct str identity, data;

    if (!value_take_string(&value, &identity) || !value_take_string(&value, &data) || value.len)
        return ERR_CORRUPT;
    *out = (struct tree_record){key, identity, data};
    return 0;
}

/* --- RangeData of lakeFS, a protobuf --- */

enum { RANGE_MIN_KEY = 1, RANGE_SIZE = 3, RANGE_COUNT = 4 };

int node_child_read_foreign(struct node_child *out, struct str value)
{
    struct node_child c = {.foreign = true};
    struct tree_record r;
    struct proto_value f;

    if (node_record_read(&r, STR_EMPTY, value) || node_id_parse(&c.id, r.identity, NULL))
        return ERR_CORRUPT;
    while (r.data.len) {
        if (!proto_take(&r.data, &f))
            return ERR_CORRUPT;
        if (f.number == RANGE_MIN_KEY)
            c.min = f.bytes;
        else if (f.number == RANGE_SIZE)
            c.bytes = f.value;
        else if (f.number == RANGE_COUNT)
            c.count = f.value;
    }
    if (c.min.len == 0 || c.min.len > NODE_KEY_MAX)
        return ERR_CORRUPT;
    *out = c;
    return 0;
}
