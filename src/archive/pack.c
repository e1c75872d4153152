/* Checks a pack while its bytes arrive: the walk over its entries. */
#include "archive/pack.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "object/digest.h"
#include "os/pages.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

enum {
    PACK_OUT = 64 * 1024,      /* most bytes that are inflated at once */
    STARTS_BITS_MIN = 1 << 19, /* least size of `starts` in bits: 64 KiB */
    STARTS_BITS_MAX = 1 << 26, /* largest size: 8 MiB */
    STARTS_BITS_EACH = 128,    /* bits for each entry */
    CARRY_MAX = 16,            /* most bytes that the inflater has read but not used */
    PACK_VARINT_MAX = 10,      /* most bytes of a size or an offset */
};

enum pack_state { IN_HEADER, IN_SIZE, IN_OFFSET, IN_BASE, IN_DATA, IN_TRAILER };

struct pack_check {
    struct pack_options o;
    size_t hash_len;
    struct digests *digests;
    unsigned char tail[PACK_HASH_MAX]; /* the last bytes so far, which may be the trailer */
    size_t tail_len;
    uint64_t seen; /* bytes that were passed to pack_check_add() so far */

    enum pack_state state;
    uint64_t at; /* offset of the next byte for the walk */
    /* The bytes so far of a pack's header, or of the id of a base. */
    unsigned char field[PACK_HASH_MAX];
    size_t field_len;
    uint32_t count, done;
    unsigned char carry[CARRY_MAX];
    size_t carry_len;

    uint64_t entry_at, data_at;
    enum pack_type type;
    uint64_t size,
        /* Of the current entry: its declared size, and bytes inflated so far. */
        inflated;
    uint64_t offset; /* distance from the entry back to its base */
    unsigned varint; /* bytes of the current number that were read so far */
    uint64_t by_type[PACK_TYPES], inflated_all;
    /* One bit for each hash value; it is set if an entry begins at an offset with this hash. */
    unsigned char *starts; /* NULL: the count of entries is not known yet */
    size_t start_bits;
    struct inflate_state inflate;
    unsigned char out[PACK_OUT];
};

struct pack_check *pack_check_new(const struct pack_options *o)
{
    struct pack_check *p = xzalloc(sizeof(*p));

    p->o = *o;
    p->hash_len = o->is_sha256 ? 32 : 20;
    p->digests = digests_new(1u << (o->is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1));
    return p;
}

void pack_check_free(struct pack_check *p)
{
    if (!p)
        return;
    digests_free(p->digests);
    pages_free(p->starts, p->start_bits / 8);
    if (p->starts && p->start_bits > STARTS_BITS_MIN)
        large_give(p->o.hold, p->start_bits / 8);
    free(p);
}

static int pack_bad(const struct pack_check *p, struct err *err, const char *what)
{
    return err_set(err, ERR_PARSE, "the pack is damaged near byte %" PRIu64 ": %s", p->at, what);
}

/* --- the hash: it lags behind by the length of a trailer --- */

static void pack_hash(struct pack_check *p, struct str bytes)
{
    size_t keep = p->hash_len;

    if (bytes.len >= keep) {
        digests_update(p->digests, str_n(p->tail, p->tail_len));
        digests_update(p->digests, str_head(bytes, bytes.len - keep));
        memcpy(p->tail, bytes.p + bytes.len - keep, keep);
        p->tail_len = keep;
        return;
    }
    size_t over = p->tail_len + bytes.len > keep ? p->tail_len + bytes.len - keep : 0;
    digests_update(p->digests, str_n(p->tail, over));
    memmove(p->tail, p->tail + over, p->tail_len - over);
    p->tail_len -= over;
    memcpy(p->tail + p->tail_len, bytes.p, bytes.len);
    p->tail_len += bytes.len;
}

/* --- places where entries begin --- */

/* Allocates the filter. A pack may lie about its count, so the size has a limit. */
static void starts_init(struct pack_check *p)
{
    size_t bits = STARTS_BITS_MIN;

    while (bits < STARTS_BITS_MAX && bits / STARTS_BITS_EACH < p->count)
        bits *= 2;
    while (bits > STARTS_BITS_MIN && !large_try(p->o.hold, bits / 8))
        bits /= 2;
    p->starts = pages_new(bits / 8);
    p->start_bits = bits;
}

static size_t start_bit(const struct pack_check *p, uint64_t offset)
{
    return hash_xxh3(str_n(&offset, sizeof(offset)), 0) % p->start_bits;
}

static void start_note(struct pack_check *p)
{
    size_t bit = start_bit(p, p->entry_at);

    p->starts[bit / 8] |= (unsigned char)(1u << bit % 8);
}

static bool start_is_known(const struct pack_check *p, uint64_t offset)
{
    size_t bit = start_bit(p, offset);

    return p->starts[bit / 8] >> bit % 8 & 1;
}

/* --- steps: each takes bytes from the front and says how many --- */

/* Collects `len` bytes in p->field. Returns false while some are missing. */
static bool field_collect(struct pack_check *p, size_t len, struct str bytes, size_t *took)
{
    *took = size_min(len - p->field_len, bytes.len);
    memcpy(p->field + p->field_len, bytes.p, *took);
    p->field_len += *took;
    if (p->field_len < len)
        return false;
    p->field_len = 0;
    return true;
}

static void entry_next(struct pack_check *p)
{
    p->state = p->o.walk && p->done < p->count ? IN_SIZE : IN_TRAILER;
    p->varint = 0;
}

static int header_step(struct pack_check *p, struct str bytes, size_t *took, struct err *err)
{
    if (!field_collect(p, PACK_HEADER_LEN, bytes, took))
        return 0;
    if (memcmp(p->field, "PACK", 4) != 0 || be32_read(p->field + 4) != 2)
        return pack_bad(p, err, "it does not begin as a pack of version 2");
    p->count = be32_read(p->field + 8);
    if (p->o.walk)
        starts_init(p);
    entry_next(p);
    return 0;
}

/* Decides what comes after the size of an entry: for a delta its base, otherwise the data. */
static int entry_begin_data(struct pack_check *p, struct err *err)
{
    if (p->size > p->o.limits.object)
        return err_set(err, ERR_TOO_LARGE, "the pack has an object of %" PRIu64 " bytes", p->size);
    p->inflated = 0;
    p->data_at = UINT64_MAX;
    isal_inflate_init(&p->inflate);
    p->inflate.crc_flag = ISAL_ZLIB;
    p->state = IN_DATA;
    return 0;
}

static int size_end(struct pack_check *p, struct err *err)
{
    p->varint = 0;
    if (p->type == PACK_OFS_DELTA || p->type == PACK_REF_DELTA) {
        p->state = p->type == PACK_OFS_DELTA ? IN_OFFSET : IN_BASE;
        p->offset = 0;
        return 0;
    }
    return entry_begin_data(p, err);
}

static int size_step(struct pack_check *p, struct str bytes, size_t *took, struct err *err)
{
    unsigned char c = (unsigned char)bytes.p[0];

    *took = 1;
    if (p->varint == 0) {
        p->entry_at = p->at;
        p->type = c >> 4 & 7;
        p->size = c & 15;
        if (p->type == 0 || p->type == 5)
            return pack_bad(p, err, "an entry has an unknown type");
    } else {
        unsigned shift = 4 + 7 * (p->varint - 1);
        if (p->varint == PACK_VARINT_MAX || (shift > 57 && (c & 127) >> (64 - shift)))
            return pack_bad(p, err, "the size of an entry has too many bytes");
        p->size |= (uint64_t)(c & 127) << shift;
    }
    p->varint++;
    return c & 128 ? 0 : size_end(p, err);
}

static int offset_end(struct pack_check *p, struct err *err)
{
    if (p->offset == 0 || p->offset > p->entry_at - PACK_HEADER_LEN ||
        !start_is_known(p, p->entry_at - p->offset))
        return pack_bad(p, err, "the base of a delta is not an entry before it");
    return entry_begin_data(p, err);
}

static int offset_step(struct pack_check *p, struct str bytes, size_t *took, struct err *err)
{
    unsigned char c = (unsigned char)bytes.p[0];

    *took = 1;
    if (p->varint == PACK_VARINT_MAX || p->offset > UINT64_MAX >> 8)
        return pack_bad(p, err, "the offset of a base has too many bytes");
    p->offset = p->varint ? (p->offset + 1) << 7 | (c & 127) : (uint64_t)(c & 127);
    p->varint++;
    return c & 128 ? 0 : offset_end(p, err);
}

static int base_step(struct pack_check *p, struct str bytes, size_t *took, struct err *err)
{
    return field_collect(p, p->hash_len, bytes, took) ? entry_begin_data(p, err) : 0;
}

static struct pack_seen entry_seen(const struct pack_check *p)
{
    return (struct pack_seen){.at = p->entry_at,
                              .data_at = p->data_at,
                              .type = p->type,
                              .size = p->size,
                              .base_at = p->entry_at - p->offset,
                              .base_id = p->field};
}

static int data_watch(struct pack_check *p, size_t produced, struct err *err)
{
    struct pack_seen seen = entry_seen(p);

    if (!p->o.watch || produced == 0)
        return 0;
    return p->o.watch->data(p->o.watch->ctx, &seen, str_n(p->out, produced), err);
}

static int data_count(struct pack_check *p, size_t produced, struct err *err)
{
    const struct pack_limits *l = &p->o.limits;

    p->inflated += produced;
    p->inflated_all += produced;
    if (p->inflated > p->size)
        return pack_bad(p, err, "an entry has more data than it declares");
    if (p->inflated_all > l->inflated && p->inflated_all / l->inflated_times > p->seen)
        return err_set(err, ERR_TOO_LARGE,
                       "the pack grows from %" PRIu64 " to more than %" PRIu64 " bytes", p->seen,
                       p->inflated_all);
    return data_watch(p, produced, err);
}

/* The inflater reads up to 8 bytes ahead. The bytes that it did not use belong to the next entry.
 * If they came with the present buffer, *took is reduced by their number; otherwise they are kept
 * in p->carry. */
static void data_give_back(struct pack_check *p, size_t *took)
{
    size_t unused = (size_t)p->inflate.read_in_length / 8;
    uint64_t read_in = p->inflate.read_in >> p->inflate.read_in_length % 8;
    size_t back = size_min(unused, *took), carry = unused - back;

    *took -= back;
    BUG_ON(p->carry_len + carry > CARRY_MAX);
    memmove(p->carry + carry, p->carry, p->carry_len);
    for (size_t i = 0; i < carry; i++)
        p->carry[i] = (unsigned char)(read_in >> 8 * i);
    p->carry_len += carry;
    p->at -= carry;
}

static int data_end(struct pack_check *p, size_t *took, struct err *err)
{
    if (p->inflated != p->size)
        return pack_bad(p, err, "an entry has less data than it declares");
    start_note(p);
    p->by_type[p->type]++;
    p->done++;
    data_give_back(p, took);
    entry_next(p);
    if (!p->o.watch)
        return 0;
    struct pack_seen seen = entry_seen(p);
    return p->o.watch->entry(p->o.watch->ctx, &seen, p->at + *took, err);
}

static int data_step(struct pack_check *p, struct str bytes, size_t *took, struct err *err)
{
    struct inflate_state *s = &p->inflate;
    uint32_t len = (uint32_t)size_min(bytes.len, UINT32_MAX);

    if (p->data_at == UINT64_MAX)
        p->data_at = p->at;
    s->next_in = (unsigned char *)(uintptr_t)bytes.p;
    s->avail_in = len;
    do {
        s->next_out = p->out;
        s->avail_out = sizeof(p->out);
        if (isal_inflate(s) != ISAL_DECOMP_OK)
            return pack_bad(p, err, "the data of an entry cannot be inflated");
        int code = data_count(p, sizeof(p->out) - s->avail_out, err);
        if (code < 0)
            return code;
    } while (s->block_state != ISAL_BLOCK_FINISH && s->avail_out == 0);
    *took = len - s->avail_in;
    return s->block_state == ISAL_BLOCK_FINISH ? data_end(p, took, err) : 0;
}

static int trailer_step(struct pack_check *p, struct str bytes, size_t *took, struct err *err)
{
    *took = bytes.len;
    if (!p->o.walk)
        return 0;
    p->field_len += bytes.len;
    return p->field_len <= p->hash_len ? 0 : pack_bad(p, err, "bytes follow its trailer");
}

typedef int pack_step_fn(struct pack_check *p, struct str bytes, size_t *took, struct err *err);

static pack_step_fn *const pack_steps[] = {
    [IN_HEADER] = header_step, [IN_SIZE] = size_step, [IN_OFFSET] = offset_step,
    [IN_BASE] = base_step,     [IN_DATA] = data_step, [IN_TRAILER] = trailer_step,
};

/* Walks over the bytes in p->carry, which are left from earlier calls, and then over `bytes`. */
static int pack_walk(struct pack_check *p, struct str bytes, struct err *err)
{
    unsigned char carried[CARRY_MAX];
    size_t took;

    while (p->carry_len || bytes.len) {
        struct str now = bytes;
        bool is_carried = p->carry_len > 0;
        if (is_carried) {
            memcpy(carried, p->carry, p->carry_len);
            now = str_n(carried, p->carry_len);
            p->carry_len = 0;
        }
        int code = pack_steps[p->state](p, now, &took, err);
        if (code < 0)
            return code;
        p->at += took;
        if (!is_carried) {
            bytes = str_skip(bytes, took);
            continue;
        }
        memcpy(p->carry + p->carry_len, carried + took, now.len - took);
        p->carry_len += now.len - took;
    }
    return 0;
}

int pack_check_add(struct pack_check *p, struct str bytes, struct err *err)
{
    p->seen += bytes.len;
    if (p->seen > p->o.limits.pack)
        return err_set(err, ERR_TOO_LARGE, "the pack has more than %" PRIu64 " bytes",
                       p->o.limits.pack);
    pack_hash(p, bytes);
    return pack_walk(p, bytes, err);
}

int pack_check_end(struct pack_check *p, struct pack_result *out, struct err *err)
{
    struct digest_value sum;

    if (p->state != IN_TRAILER || p->tail_len < p->hash_len ||
        (p->o.walk && p->field_len < p->hash_len) ||
        p->seen < (uint64_t)PACK_HEADER_LEN + p->hash_len)
        return err_set(err, ERR_PARSE,
                       "the pack is cut off: %" PRIu32 " of %" PRIu32 " objects came", p->done,
                       p->count);
    digests_final(p->digests, p->o.is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1, &sum);
    if (memcmp(sum.bytes, p->tail, p->hash_len) != 0)
        return pack_bad(p, err, "its checksum is not that of its bytes");
    *out = (struct pack_result){.objects = p->count,
                                .bytes = p->seen,
                                .trailer_len = p->hash_len,
                                .inflated = p->inflated_all};
    memcpy(out->trailer, p->tail, p->hash_len);
    memcpy(out->by_type, p->by_type, sizeof(out->by_type));
    return 0;
}
