/* The check of a pack that flows by: good packs in pieces of every size, and each way of being bad.
 */
#include "unit/archive/packs.h"
#include "unit/test.h"

#include <stdlib.h>

static const struct pack_options walk = {.walk = true,
                                         .limits = {1u << 30, 1u << 28, 1u << 30, 200}};
static const struct pack_options hash = {.limits = {1u << 30, 1u << 28, 1u << 30, 200}};

TEST(archive_pack, a_good_pack_passes_in_pieces_of_every_size)
{
    static const size_t steps[] = {1, 2, 3, 5, 7, 8, 9, 13, 20, 21, 64, 1000, 1 << 20};

    for (int sha256 = 0; sha256 < 2; sha256++)
        for (unsigned seed = 1; seed <= 3; seed++) {
            struct pack_options o = walk;
            struct buf pack = {0};
            o.is_sha256 = sha256;
            pack_make(&pack, 60, sha256, seed);
            for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                struct pack_result r;
                struct err err = {0};
                CHECK_OK(pack_check_all(buf_str(&pack), steps[i], &o, &r, &err));
                CHECK_INT(r.objects, 60);
                CHECK_INT(r.bytes, pack.len);
                CHECK_INT(r.trailer_len, sha256 ? 32 : 20);
                uint64_t entries = 0;
                for (int t = 0; t < PACK_TYPES; t++)
                    entries += r.by_type[t];
                CHECK_INT(entries, 60);
                o.walk = false;
                CHECK_OK(pack_check_all(buf_str(&pack), steps[i], &o, &r, &err));
                CHECK_INT(r.bytes, pack.len);
                o.walk = true;
            }
            buf_release(&pack);
        }
}

TEST(archive_pack, an_empty_pack_and_an_empty_object_pass)
{
    struct buf pack = {0};
    struct pack_result r;
    struct err err = {0};

    pack_begin(&pack, 0);
    pack_finish(&pack, 0, false);
    CHECK_INT(pack.len, 32);
    CHECK_OK(pack_check_all(buf_str(&pack), 1, &walk, &r, &err));
    CHECK_OK(pack_check_all(buf_str(&pack), 100, &hash, &r, &err));
    buf_reset(&pack);
    pack_begin(&pack, 1);
    pack_entry(&pack, 0, PACK_BLOB, STR(""), 0, false);
    pack_finish(&pack, 0, false);
    CHECK_OK(pack_check_all(buf_str(&pack), 1, &walk, &r, &err));
    CHECK_INT(r.by_type[PACK_BLOB], 1);
    buf_release(&pack);
}

/* A large object flows through the small buffer of the inflater. */
TEST(archive_pack, a_large_object_is_counted)
{
    struct buf pack = {0}, data = {0};
    struct pack_result r;
    struct err err = {0};

    for (int i = 0; i < 300000 / 8; i++)
        buf_append_be64(&data, (uint64_t)i * i);
    pack_begin(&pack, 2);
    pack_entry(&pack, 0, PACK_BLOB, buf_str(&data), 0, false);
    pack_entry(&pack, 0, PACK_BLOB, STR("small"), 0, false);
    pack_finish(&pack, 0, false);
    CHECK_OK(pack_check_all(buf_str(&pack), 65515, &walk, &r, &err));
    CHECK_INT(r.inflated, data.len + 5);
    CHECK_OK(pack_check_all(buf_str(&pack), 1, &walk, &r, &err));
    buf_release(&pack);
    buf_release(&data);
}

/* Every byte is covered by the trailer, and most are noticed before it. */
TEST(archive_pack, a_flipped_bit_anywhere_is_noticed)
{
    struct buf pack = {0};
    struct pack_result r;
    struct err err = {0};

    pack_make(&pack, 4, false, 7);
    for (size_t i = 0; i < pack.len; i++)
        for (int bit = 0; bit < 8; bit += 5) {
            pack.p[i] ^= (char)(1 << bit);
            CHECK(pack_check_all(buf_str(&pack), 64, &walk, &r, &err) < 0);
            CHECK(pack_check_all(buf_str(&pack), 64, &hash, &r, &err) < 0);
            pack.p[i] ^= (char)(1 << bit);
        }
    CHECK_OK(pack_check_all(buf_str(&pack), 64, &walk, &r, &err));
    buf_release(&pack);
}

TEST(archive_pack, a_pack_that_is_cut_or_followed_by_bytes_is_refused)
{
    struct buf pack = {0};
    struct pack_result r;
    struct err err = {0};

    pack_make(&pack, 5, false, 3);
    for (size_t len = 0; len < pack.len; len++) {
        CHECK_ERR(pack_check_all(str_head(buf_str(&pack), len), 50, &walk, &r, &err), ERR_PARSE);
        CHECK(pack_check_all(str_head(buf_str(&pack), len), 50, &hash, &r, &err) < 0);
    }
    buf_append_char(&pack, 'x');
    CHECK_ERR(pack_check_all(buf_str(&pack), 50, &walk, &r, &err), ERR_PARSE);
    CHECK_ERR(pack_check_all(buf_str(&pack), 50, &hash, &r, &err), ERR_PARSE);
    buf_release(&pack);
}

/* Checks that a pack whose trailer is right is refused by the walk. */
static void check_refused(struct buf *pack, int code, const char *words)
{
    struct pack_result r;
    struct err err = {0};

    pack_finish(pack, 0, false);
    for (size_t step = 1; step < 2000; step = step * 3 + 1) {
        CHECK_ERR(pack_check_all(buf_str(pack), step, &walk, &r, &err), code);
        CHECK(strstr(err.text, words));
    }
    buf_reset(pack);
}

TEST(archive_pack, lies_under_a_right_trailer_are_noticed)
{
    struct buf pack = {0};

    pack_begin(&pack, 2); /* fewer entries than counted */
    pack_entry(&pack, 0, PACK_BLOB, STR("a"), 0, false);
    pack_finish(&pack, 0, false);
    struct pack_result r;
    struct err err = {0};
    CHECK(pack_check_all(buf_str(&pack), 10, &walk, &r, &err) < 0);
    buf_reset(&pack);

    pack_begin(&pack, 1); /* more entries than counted */
    pack_entry(&pack, 0, PACK_BLOB, STR("a"), 0, false);
    pack_entry(&pack, 0, PACK_BLOB, STR("b"), 0, false);
    check_refused(&pack, ERR_PARSE, "bytes follow its trailer");

    pack_begin(&pack, 1); /* a type that does not exist */
    pack_entry(&pack, 0, 5, STR("a"), 0, false);
    check_refused(&pack, ERR_PARSE, "unknown type");

    pack_begin(&pack, 1); /* a declared size that is too small, then too large */
    pack_entry(&pack, 0, PACK_BLOB, STR("abc"), 0, false);
    pack.p[12] = (char)(PACK_BLOB << 4 | 2);
    check_refused(&pack, ERR_PARSE, "more data");
    pack_begin(&pack, 1);
    pack_entry(&pack, 0, PACK_BLOB, STR("abc"), 0, false);
    pack.p[12] = (char)(PACK_BLOB << 4 | 4);
    check_refused(&pack, ERR_PARSE, "less data");

    pack_begin(&pack, 2); /* a base inside another entry */
    uint64_t at = pack_entry(&pack, 0, PACK_BLOB, STR("abc"), 0, false);
    pack_entry(&pack, 0, PACK_OFS_DELTA, STR("d"), at + 1, false);
    check_refused(&pack, ERR_PARSE, "base of a delta");

    pack_begin(&pack, 1); /* a base that is the entry itself */
    pack_entry(&pack, 0, PACK_OFS_DELTA, STR("d"), 12, false);
    check_refused(&pack, ERR_PARSE, "base of a delta");

    pack_begin(&pack, 1); /* a size without an end */
    buf_append(&pack, "\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
    check_refused(&pack, ERR_PARSE, "too many bytes");

    pack_begin(&pack, 1); /* data that are not deflated */
    buf_append(&pack, "\x31zz\xff\xff\xff\xff", 7);
    check_refused(&pack, ERR_PARSE, "cannot be inflated");

    buf_append(&pack, "PACK\0\0\0\3\0\0\0\0", 12);
    check_refused(&pack, ERR_PARSE, "version 2");
    buf_release(&pack);
}

TEST(archive_pack, limits_end_a_pack)
{
    struct buf pack = {0}, zeros = {0};
    struct pack_result r;
    struct err err = {0};
    struct pack_options o = walk;

    memset(buf_reserve(&zeros, 2000000), 0, 2000000);
    buf_commit(&zeros, 2000000);
    pack_begin(&pack, 1);
    pack_entry(&pack, 0, PACK_BLOB, buf_str(&zeros), 0, false);
    pack_finish(&pack, 0, false);
    CHECK_OK(pack_check_all(buf_str(&pack), 100, &o, &r, &err));
    o.limits.inflated = 100000; /* a bomb: 2 MB of few bytes */
    o.limits.inflated_times = 50;
    CHECK_ERR(pack_check_all(buf_str(&pack), 100, &o, &r, &err), ERR_TOO_LARGE);
    o = walk;
    o.limits.object = 1999999;
    CHECK_ERR(pack_check_all(buf_str(&pack), 100, &o, &r, &err), ERR_TOO_LARGE);
    o = walk;
    o.limits.pack = pack.len - 1;
    CHECK_ERR(pack_check_all(buf_str(&pack), 100, &o, &r, &err), ERR_TOO_LARGE);
    o.limits.pack = pack.len;
    CHECK_OK(pack_check_all(buf_str(&pack), 100, &o, &r, &err));
    buf_release(&pack);
    buf_release(&zeros);
}
