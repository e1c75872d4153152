/* Writes and reads messages in protobuf's encoding, driven by tables of fields. */
#include "base/proto.h"

#include "base/bytes.h"
#include "base/clock.h"

#include <stdlib.h>

enum { PROTO_NUMBER_MAX = 0x1fffffff };

/* --- writing --- */

void proto_put_number(struct buf *out, unsigned field, int64_t v)
{
    if (v == 0)
        return;
    varint_append(out, field << 3 | WIRE_VARINT);
    varint_append(out, (uint64_t)v);
}

static size_t proto_max(const struct proto_field *f)
{
    return f->max ? f->max : PROTO_ITEMS_MAX;
}

/* Appends a field of bytes even if it is empty: an empty item of a list must be written too. */
static void proto_put_item(struct buf *out, unsigned field, struct str s)
{
    varint_append(out, field << 3 | WIRE_BYTES);
    varint_append(out, s.len);
    buf_append_str(out, s);
}

void proto_put_bytes(struct buf *out, unsigned field, struct str s)
{
    if (s.len > 0)
        proto_put_item(out, field, s);
}

void proto_put_time(struct buf *out, unsigned field, int64_t ms)
{
    struct buf inner = {0};
    int64_t rest = ms % MS_PER_S, seconds = ms / MS_PER_S;

    if (ms == 0)
        return;
    if (rest < 0) { /* the nanoseconds of a Timestamp are never negative */
        rest += MS_PER_S;
        seconds--;
    }
    proto_put_number(&inner, 1, seconds);
    proto_put_number(&inner, 2, rest * (int64_t)NS_PER_MS);
    proto_put_bytes(out, field, buf_str(&inner));
    buf_release(&inner);
}

static void proto_put_pairs(struct buf *out, unsigned field, const struct str_pairs *p)
{
    struct buf inner = {0};

    for (size_t i = 0; i < p->count; i++) {
        buf_reset(&inner);
        proto_put_bytes(&inner, 1, p->pairs[i].key);
        proto_put_bytes(&inner, 2, p->pairs[i].value);
        proto_put_item(out, field, buf_str(&inner));
    }
    buf_release(&inner);
}

static void proto_put_packed(struct buf *out, unsigned field, const uint64_t *v, size_t count)
{
    struct buf inner = {0};

    for (size_t i = 0; i < count; i++)
        varint_append(&inner, v[i]);
    proto_put_bytes(out, field, buf_str(&inner));
    buf_release(&inner);
}

static void proto_put_inner(struct buf *out, const struct proto_field *f, const void *record)
{
    struct buf inner = {0};

    proto_write(&inner, f->inner, record);
    if (buf_error(&inner) < 0)
        buf_fail(out);
    proto_put_bytes(out, f->number, buf_str(&inner));
    buf_release(&inner);
}

/* The number of items in a list; 0 for other fields. */
static size_t proto_count(const struct proto_field *f, const char *record)
{
    if (f->type == PROTO_PAIRS)
        return ((const struct str_pairs *)(const void *)(record + f->offset))->count;
    return f->count_offset ? *(const size_t *)(const void *)(record + f->count_offset) : 0;
}

static void proto_put_field(struct buf *out, const struct proto_field *f, const char *record)
{
    const void *member = record + f->offset;
    size_t count = proto_count(f, record);

    if (count > proto_max(f)) {
        buf_fail(out);
        return;
    }
    switch (f->type) {
    case PROTO_STR:
        proto_put_bytes(out, f->number, *(const struct str *)member);
        break;
    case PROTO_BOOL:
        proto_put_number(out, f->number, *(const bool *)member);
        break;
    case PROTO_U64:
    case PROTO_I64:
        proto_put_number(out, f->number, *(const int64_t *)member);
        break;
    case PROTO_U32:
        proto_put_number(out, f->number, *(const uint32_t *)member);
        break;
    case PROTO_I32:
        proto_put_number(out, f->number, *(const int32_t *)member);
        break;
    case PROTO_TIME:
        proto_put_time(out, f->number, *(const int64_t *)member);
        break;
    case PROTO_STRS:
        for (size_t i = 0; i < count; i++)
            proto_put_item(out, f->number, (*(const struct str *const *)member)[i]);
        break;
    case PROTO_U64S:
        proto_put_packed(out, f->number, *(const uint64_t *const *)member, count);
        break;
    case PROTO_PAIRS:
        proto_put_pairs(out, f->number, member);
        break;
    case PROTO_INNER:
        proto_put_inner(out, f, record);
        break;
    }
}

void proto_write(struct buf *out, const struct proto_field *fields, const void *record)
{
    for (; fields->number; fields++)
        proto_put_field(out, fields, record);
}

/* --- reading --- */

static bool proto_take_bytes(struct str *in, uint64_t len, struct str *out)
{
    if (len > in->len)
        return false;
    *out = str_n(in->p, (size_t)len);
    *in = str_skip(*in, (size_t)len);
    return true;
}

bool proto_take(struct str *in, struct proto_value *out)
{
    uint64_t tag, len;

    *out = (struct proto_value){0};
    if (!varint_take(in, &tag) || tag >> 3 == 0 || tag >> 3 > PROTO_NUMBER_MAX)
        return false;
    out->number = (unsigned)(tag >> 3);
    out->wire = (enum proto_wire)(tag & 7);
    switch (out->wire) {
    case WIRE_VARINT:
        return varint_take(in, &out->value);
    case WIRE_BYTES:
        return varint_take(in, &len) && proto_take_bytes(in, len, &out->bytes);
    case WIRE_FIXED64:
        return proto_take_bytes(in, 8, &out->bytes);
    case WIRE_FIXED32:
        return proto_take_bytes(in, 4, &out->bytes);
    }
    return false;
}

bool proto_read_time(struct str in, int64_t *ms)
{
    struct proto_value v;
    int64_t seconds = 0, nanos = 0;

    while (in.len > 0) {
        if (!proto_take(&in, &v) || v.wire != WIRE_VARINT)
            return false;
        if (v.number == 1)
            seconds = (int64_t)v.value;
        else if (v.number == 2)
            nanos = (int64_t)v.value;
    }
    if (nanos < 0 || nanos >= (int64_t)NS_PER_S || seconds > INT64_MAX / MS_PER_S - 1 ||
        seconds < INT64_MIN / MS_PER_S + 1)
        return false;
    *ms = seconds * MS_PER_S + nanos / (int64_t)NS_PER_MS;
    return true;
}

/* The state of reading one message: the struct that it is read into, and the arena of its arrays.
 */
struct proto_reader {
    char *record;
    struct arena *arena;
};

/* Makes room for one more item of a list and returns its address. The memory of the list doubles
 * when `count` is a power of two. Returns NULL when there are too many items or the arena is full.
 */
static void *proto_grow(struct proto_reader *r, const struct proto_field *f, void **items,
                        size_t count, size_t size)
{
    if (count >= proto_max(f))
        return NULL;
    if ((count & (count - 1)) == 0) {
        void *more = arena_array(r->arena, count ? 2 * count : 1, size);
        if (!more)
            return NULL;
        if (count)
            memcpy(more, *items, count * size);
        *items = more;
    }
    return (char *)*items + count * size;
}

static bool proto_add_str(struct proto_reader *r, const struct proto_field *f, struct str s)
{
    size_t *count = (size_t *)(void *)(r->record + f->count_offset);
    struct str *at = proto_grow(r, f, (void **)(void *)(r->record + f->offset), *count, sizeof(s));

    if (!at)
        return false;
    *at = s;
    ++*count;
    return true;
}

static bool proto_add_number(struct proto_reader *r, const struct proto_field *f, uint64_t v)
{
    size_t *count = (size_t *)(void *)(r->record + f->count_offset);
    uint64_t *at = proto_grow(r, f, (void **)(void *)(r->record + f->offset), *count, sizeof(v));

    if (!at)
        return false;
    *at = v;
    ++*count;
    return true;
}

/* Adds the numbers of one field, which has one number, or several when they are packed. */
static bool proto_add_numbers(struct proto_reader *r, const struct proto_field *f,
                              const struct proto_value *v)
{
    struct str rest = v->bytes;
    uint64_t number;

    if (v->wire == WIRE_VARINT)
        return proto_add_number(r, f, v->value);
    if (v->wire != WIRE_BYTES)
        return false;
    while (rest.len > 0)
        if (!varint_take(&rest, &number) || !proto_add_number(r, f, number))
            return false;
    return true;
}

/* Finds the earlier pair with this key, whose value a later value replaces; NULL: there is none. */
static struct str_pair *proto_find_pair(const struct str_pairs *p, struct str key)
{
    for (size_t i = 0; i < p->count; i++)
        if (str_eq(p->pairs[i].key, key))
            return &p->pairs[i];
    return NULL;
}

static bool proto_add_pair(struct proto_reader *r, const struct proto_field *f, struct str in)
{
    struct str_pairs *pairs = (struct str_pairs *)(void *)(r->record + f->offset);
    struct str_pair pair = {0}, *at;
    struct proto_value v;

    while (in.len > 0) {
        if (!proto_take(&in, &v) || v.wire != WIRE_BYTES)
            return false;
        if (v.number == 1)
            pair.key = v.bytes;
        else if (v.number == 2)
            pair.value = v.bytes;
    }
    at = proto_find_pair(pairs, pair.key);
    if (!at && (at = proto_grow(r, f, (void **)&pairs->pairs, pairs->count, sizeof(pair))))
        pairs->count++;
    if (!at)
        return false;
    *at = pair;
    return true;
}

static bool proto_read_number(struct proto_reader *r, const struct proto_field *f, uint64_t v)
{
    void *member = r->record + f->offset;

    switch (f->type) {
    case PROTO_BOOL:
        *(bool *)member = v != 0;
        return true;
    case PROTO_U64:
    case PROTO_I64:
        *(uint64_t *)member = v;
        return true;
    case PROTO_U32:
        *(uint32_t *)member = (uint32_t)v;
        return v <= UINT32_MAX;
    default:
        *(int32_t *)member = (int32_t)(int64_t)v;
        return (int64_t)v >= INT32_MIN && (int64_t)v <= INT32_MAX;
    }
}

static bool proto_read_fields(struct proto_reader *r, const struct proto_field *fields,
                              struct str in);

static bool proto_read_field(struct proto_reader *r, const struct proto_field *f,
                             const struct proto_value *v)
{
    void *member = r->record + f->offset;

    if (f->type == PROTO_U64S)
        return proto_add_numbers(r, f, v);
    if (v->wire == WIRE_VARINT && f->type >= PROTO_BOOL && f->type <= PROTO_I32)
        return proto_read_number(r, f, v->value);
    if (v->wire != WIRE_BYTES)
        return false;
    switch (f->type) {
    case PROTO_STR:
        *(struct str *)member = v->bytes;
        return true;
    case PROTO_TIME:
        return proto_read_time(v->bytes, member);
    case PROTO_STRS:
        return proto_add_str(r, f, v->bytes);
    case PROTO_PAIRS:
        return proto_add_pair(r, f, v->bytes);
    case PROTO_INNER:
        return proto_read_fields(r, f->inner, v->bytes);
    default:
        return false;
    }
}

static int proto_compare_pairs(const void *a, const void *b)
{
    const struct str_pair *left = a, *right = b;

    return str_cmp(left->key, right->key);
}

static bool proto_read_fields(struct proto_reader *r, const struct proto_field *fields,
                              struct str in)
{
    struct proto_value v;
    const struct proto_field *f;

    while (in.len > 0) {
        if (!proto_take(&in, &v))
            return false;
        for (f = fields; f->number && f->number != v.number; f++) {
        }
        if (f->number && !proto_read_field(r, f, &v))
            return false;
    }
    for (f = fields; f->number; f++)
        if (f->type == PROTO_PAIRS) {
            struct str_pairs *p = (struct str_pairs *)(void *)(r->record + f->offset);
            if (p->count)
                qsort(p->pairs, p->count, sizeof(*p->pairs), proto_compare_pairs);
        }
    return true;
}

int proto_read(void *record, const struct proto_field *fields, struct arena *a, struct str in,
               struct err *err)
{
    struct proto_reader r = {record, a};

    if (proto_read_fields(&r, fields, in))
        return 0;
    if (a && arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return err_set(err, ERR_PARSE, "a stored message is malformed");
}
