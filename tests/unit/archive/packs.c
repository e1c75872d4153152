/* Packs for tests. */
#include "unit/archive/packs.h"

#include "base/bytes.h"
#include "object/digest.h"
#include "unit/test.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

const struct pack_limits pack_test_limits = {
    .pack = 1u << 30, .object = 1u << 28, .inflated = 1u << 30, .inflated_times = 200};

void pack_begin(struct buf *pack, uint32_t count)
{
    unsigned char n[4];

    be32_write(n, count);
    buf_append(pack, "PACK\0\0\0\2", 8);
    buf_append(pack, n, sizeof(n));
}

static void entry_head(struct buf *pack, enum pack_type type, uint64_t size)
{
    unsigned char c = (unsigned char)((unsigned)type << 4 | (size & 15));

    for (size >>= 4; size; size >>= 7) {
        buf_append_char(pack, (char)(c | 128));
        c = size & 127;
    }
    buf_append_char(pack, (char)c);
}

static void entry_offset(struct buf *pack, uint64_t back)
{
    unsigned char bytes[10];
    size_t at = sizeof(bytes);

    bytes[--at] = back & 127;
    while (back >>= 7)
        bytes[--at] = 128 | (--back & 127);
    buf_append(pack, bytes + at, sizeof(bytes) - at);
}

static void entry_data(struct buf *pack, struct str data)
{
    static unsigned char out[4 << 20];
    struct isal_zstream z;

    isal_deflate_stateless_init(&z);
    z.gzip_flag = IGZIP_ZLIB;
    z.end_of_stream = 1;
    z.next_in = (unsigned char *)(uintptr_t)data.p;
    z.avail_in = (uint32_t)data.len;
    z.next_out = out;
    z.avail_out = sizeof(out);
    CHECK_INT(isal_deflate_stateless(&z), COMP_OK);
    buf_append(pack, out, z.total_out);
}

uint64_t pack_entry(struct buf *pack, size_t begin, enum pack_type type, struct str data,
                    uint64_t base, bool is_sha256)
{
    static const char zeros[PACK_HASH_MAX];
    uint64_t at = pack->len - begin;

    entry_head(pack, type, data.len);
    if (type == PACK_OFS_DELTA)
        entry_offset(pack, at - base);
    if (type == PACK_REF_DELTA)
        buf_append(pack, zeros, is_sha256 ? 32 : 20);
    entry_data(pack, data);
    return at;
}

void pack_finish(struct buf *pack, size_t begin, bool is_sha256)
{
    struct digest_value sum;

    digest_of(is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1, str_skip(buf_str(pack), begin), &sum);
    buf_append(pack, sum.bytes, sum.len);
}

void pack_make(struct buf *pack, uint32_t count, bool is_sha256, unsigned seed)
{
    static const enum pack_type types[] = {PACK_COMMIT, PACK_TREE,      PACK_BLOB,
                                           PACK_TAG,    PACK_OFS_DELTA, PACK_REF_DELTA};
    size_t begin = pack->len;
    char data[300];
    uint64_t last = 0;

    pack_begin(pack, count);
    for (uint32_t i = 0; i < count; i++) {
        enum pack_type type = types[i == 0 ? 0 : (unsigned)rand_r(&seed) % ARRAY_SIZE(types)];
        size_t len = (size_t)rand_r(&seed) % sizeof(data);
        for (size_t b = 0; b < len; b++) /* half of the data can be compressed */
            data[b] = seed & 1 ? 'a' : (char)rand_r(&seed);
        last = pack_entry(pack, begin, type, str_n(data, len), last, is_sha256);
    }
    pack_finish(pack, begin, is_sha256);
}

int pack_check_all(struct str pack, size_t step, const struct pack_options *o,
                   struct pack_result *out, struct err *err)
{
    struct pack_check *p = pack_check_new(o);
    int code = 0;

    while (pack.len && code == 0) {
        /* a copy of its own, so that a byte beyond the piece is noticed */
        size_t len = size_min(step, pack.len);
        char *piece = str_dup(str_head(pack, len));
        code = pack_check_add(p, str_n(piece, len), err);
        free(piece);
        pack = str_skip(pack, len);
    }
    if (code == 0)
        code = pack_check_end(p, out, err);
    pack_check_free(p);
    return code;
}
