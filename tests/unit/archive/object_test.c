/* The objects of a pack: ids, chains of deltas by offset and by id, and limits. */
#include "archive/object.h"
#include "base/bytes.h"
#include "object/digest.h"
#include "unit/archive/packs.h"
#include "unit/test.h"

static struct packed_options options(bool is_sha256)
{
    return (struct packed_options){.is_sha256 = is_sha256,
                                   .folder = test_dir(),
                                   .limits = pack_test_limits,
                                   .work_max = 1u << 30};
}

static int open_pack(struct packed **out, const struct buf *pack, const struct packed_options *o,
                     struct err *err)
{
    struct str_reader r;

    str_reader_init(&r, buf_str(pack));
    return packed_open(out, &r.reader, o, err);
}

static void id_of(unsigned char id[GIT_ID_MAX], const char *type, struct str data, bool is_sha256)
{
    struct digest_value sum;
    struct buf text = {0};

    buf_appendf(&text, "%s %zu", type, data.len);
    buf_append_char(&text, '\0');
    buf_append_str(&text, data);
    digest_of(is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1, buf_str(&text), &sum);
    memcpy(id, sum.bytes, sum.len);
    buf_release(&text);
}

/* A delta that puts `text` before all of a base of `base` bytes, which are less than 2,097,152. */
static void delta_prepend(struct buf *out, size_t base, struct str text)
{
    buf_reset(out);
    varint_append(out, base);
    varint_append(out, base + text.len);
    buf_append_char(out, (char)text.len);
    buf_append_str(out, text);
    if (base) {
        buf_append_char(out, (char)0xf0);
        buf_append_char(out, (char)(base & 255));
        buf_append_char(out, (char)(base >> 8 & 255));
        buf_append_char(out, (char)(base >> 16));
    }
}

static void check_object(struct packed *p, const char *type, struct str data, bool is_sha256)
{
    unsigned char id[GIT_ID_MAX] = {0};
    struct packed_object o;
    struct digest_value crc;
    struct str got;
    struct err err = {0};

    id_of(id, type, data, is_sha256);
    CHECK_OK(packed_find(&o, p, id, &err));
    CHECK_INT(o.size, data.len);
    digest_of(DIGEST_CRC32, data, &crc);
    CHECK_INT(o.crc, be32_read(crc.bytes));
    CHECK_OK(packed_read(p, &o, UINT64_MAX, &got, &err));
    CHECK_STR(got, data);
    if (data.len)
        CHECK_ERR(packed_read(p, &o, data.len - 1, &got, &err), ERR_TOO_LARGE);
}

TEST(archive_object, whole_objects_are_found_by_their_ids)
{
    for (int sha256 = 0; sha256 < 2; sha256++) {
        struct packed_options o = options(sha256);
        struct buf pack = {0};
        struct packed *p;
        struct err err = {0};
        unsigned char none[GIT_ID_MAX] = {9};
        struct packed_object object;
        pack_begin(&pack, 3);
        pack_entry(&pack, 0, PACK_BLOB, STR("hello"), 0, sha256);
        pack_entry(&pack, 0, PACK_BLOB, STR(""), 0, sha256);
        pack_entry(&pack, 0, PACK_TREE, STR(""), 0, sha256);
        pack_finish(&pack, 0, sha256);
        CHECK_OK(open_pack(&p, &pack, &o, &err));
        check_object(p, "blob", STR("hello"), sha256);
        check_object(p, "blob", STR(""), sha256);
        check_object(p, "tree", STR(""), sha256);
        CHECK_ERR(packed_find(&object, p, none, &err), ERR_NOT_FOUND);
        packed_close(p);
        buf_release(&pack);
    }
}

/* Each object is the one before it with another letter in front. */
static void make_chain(struct buf *pack, uint32_t count, bool by_id, struct buf *last)
{
    struct buf delta = {0};
    unsigned char id[GIT_ID_MAX];
    uint64_t at;

    buf_append_z(last, "the base");
    pack_begin(pack, count);
    at = pack_entry(pack, 0, PACK_BLOB, buf_str(last), 0, false);
    for (uint32_t i = 1; i < count; i++) {
        char letter = (char)('a' + i % 26);
        delta_prepend(&delta, last->len, str_n(&letter, 1));
        if (by_id) {
            id_of(id, "blob", buf_str(last), false);
            size_t begins = pack->len;
            pack_entry(pack, 0, PACK_REF_DELTA, buf_str(&delta), 0, false);
            size_t head = begins;
            while (pack->p[head] & 128)
                head++;
            memcpy(pack->p + head + 1, id, 20);
        } else {
            at = pack_entry(pack, 0, PACK_OFS_DELTA, buf_str(&delta), at, false);
        }
        struct buf next = {0};
        buf_append_char(&next, letter);
        buf_append_str(&next, buf_str(last));
        buf_release(last);
        *last = next;
    }
    pack_finish(pack, 0, false);
    buf_release(&delta);
}

TEST(archive_object, chains_of_deltas_are_solved)
{
    for (int by_id = 0; by_id < 2; by_id++) {
        struct packed_options o = options(false);
        struct buf pack = {0}, last = {0};
        struct packed_counts counts;
        struct packed *p;
        struct err err = {0};
        make_chain(&pack, 400, by_id, &last);
        CHECK_OK(open_pack(&p, &pack, &o, &err));
        packed_count(p, &counts);
        CHECK_INT(counts.entries, 400);
        CHECK_INT(counts.deltas, 399);
        CHECK_INT(counts.doubles, 0);
        for (size_t i = 0; i < 400; i += 57) /* the objects are the ends of the last one */
            check_object(p, "blob", str_skip(buf_str(&last), i), false);
        check_object(p, "blob", STR("the base"), false);
        packed_close(p);
        buf_release(&last);
        buf_release(&pack);
    }
}

TEST(archive_object, a_chain_that_is_too_long_is_refused)
{
    struct packed_options o = options(false);
    struct buf pack = {0}, last = {0};
    struct packed *p;
    struct err err = {0};

    make_chain(&pack, PACKED_CHAIN_MAX + 1, false, &last);
    CHECK_OK(open_pack(&p, &pack, &o, &err));
    check_object(p, "blob", buf_str(&last), false);
    packed_close(p);
    buf_reset(&pack);
    buf_reset(&last);
    make_chain(&pack, PACKED_CHAIN_MAX + 2, false, &last);
    CHECK_ERR(open_pack(&p, &pack, &o, &err), ERR_TOO_LARGE);
    buf_release(&last);
    buf_release(&pack);
}

/* The delta comes before its base, and a delta by offset is over a delta by id. */
TEST(archive_object, a_base_may_be_anywhere_in_the_pack)
{
    struct packed_options o = options(false);
    struct buf pack = {0}, delta = {0};
    struct packed *p;
    struct err err = {0};
    unsigned char id[GIT_ID_MAX];

    pack_begin(&pack, 3);
    delta_prepend(&delta, 4, STR("x"));
    size_t begins = pack.len;
    uint64_t at = pack_entry(&pack, 0, PACK_REF_DELTA, buf_str(&delta), 0, false);
    id_of(id, "blob", STR("base"), false);
    memcpy(pack.p + begins + 1, id, 20);
    delta_prepend(&delta, 5, STR("y"));
    pack_entry(&pack, 0, PACK_OFS_DELTA, buf_str(&delta), at, false);
    pack_entry(&pack, 0, PACK_BLOB, STR("base"), 0, false);
    pack_finish(&pack, 0, false);
    CHECK_OK(open_pack(&p, &pack, &o, &err));
    check_object(p, "blob", STR("xbase"), false);
    check_object(p, "blob", STR("yxbase"), false);
    packed_close(p);
    buf_release(&delta);
    buf_release(&pack);
}

TEST(archive_object, a_delta_without_a_base_is_refused)
{
    struct packed_options o = options(false);
    struct buf pack = {0}, delta = {0};
    struct packed *p;
    struct err err = {0};

    pack_begin(&pack, 2);
    delta_prepend(&delta, 4, STR("x"));
    pack_entry(&pack, 0, PACK_REF_DELTA, buf_str(&delta), 0, false);
    pack_entry(&pack, 0, PACK_BLOB, STR("base"), 0, false);
    pack_finish(&pack, 0, false);
    CHECK_ERR(open_pack(&p, &pack, &o, &err), ERR_PARSE);
    CHECK(strstr(err.text, "bases of 1 deltas"));
    buf_reset(&pack);
    pack_begin(&pack, 2); /* a delta whose base has another size */
    uint64_t at = pack_entry(&pack, 0, PACK_BLOB, STR("other base"), 0, false);
    pack_entry(&pack, 0, PACK_OFS_DELTA, buf_str(&delta), at, false);
    pack_finish(&pack, 0, false);
    CHECK_ERR(open_pack(&p, &pack, &o, &err), ERR_PARSE);
    buf_release(&delta);
    buf_release(&pack);
}

TEST(archive_object, copies_of_an_object_are_counted)
{
    struct packed_options o = options(false);
    struct packed_counts counts;
    struct buf pack = {0};
    struct packed *p;
    struct err err = {0};

    pack_begin(&pack, 4);
    for (int i = 0; i < 3; i++)
        pack_entry(&pack, 0, PACK_BLOB, STR("same"), 0, false);
    pack_entry(&pack, 0, PACK_TAG, STR("same"), 0, false);
    pack_finish(&pack, 0, false);
    CHECK_OK(open_pack(&p, &pack, &o, &err));
    packed_count(p, &counts);
    CHECK_INT(counts.doubles, 2);
    check_object(p, "blob", STR("same"), false);
    check_object(p, "tag", STR("same"), false);
    packed_close(p);
    buf_release(&pack);
}

/* Copies the base of a million bytes again and again: 300 bytes of delta make 40 MB. */
TEST(archive_object, deltas_that_make_too_much_are_refused)
{
    struct packed_options o = options(false);
    struct buf pack = {0}, delta = {0}, base = {0};
    struct packed *p;
    struct err err = {0};

    for (int i = 0; i < 1000000 / 8; i++)
        buf_append_be64(&base, (uint64_t)i);
    varint_append(&delta, base.len);
    varint_append(&delta, base.len * 40);
    for (int i = 0; i < 40; i++) {
        buf_append_char(&delta, (char)0xf0);
        buf_append_char(&delta, (char)(base.len & 255));
        buf_append_char(&delta, (char)(base.len >> 8 & 255));
        buf_append_char(&delta, (char)(base.len >> 16));
    }
    pack_begin(&pack, 2);
    uint64_t at = pack_entry(&pack, 0, PACK_BLOB, buf_str(&base), 0, false);
    pack_entry(&pack, 0, PACK_OFS_DELTA, buf_str(&delta), at, false);
    pack_finish(&pack, 0, false);
    CHECK_OK(open_pack(&p, &pack, &o, &err)); /* the object lies in a scratch file */
    packed_close(p);
    o.work_max = 40 * 1000 * 1000;
    CHECK_ERR(open_pack(&p, &pack, &o, &err), ERR_TOO_LARGE);
    o = options(false);
    o.limits.object = 10 * 1000 * 1000;
    CHECK_ERR(open_pack(&p, &pack, &o, &err), ERR_TOO_LARGE);
    _Atomic(bool) cancel = true;
    o = options(false);
    o.cancel = &cancel;
    CHECK_ERR(open_pack(&p, &pack, &o, &err), ERR_CANCELED);
    buf_release(&base);
    buf_release(&delta);
    buf_release(&pack);
}
