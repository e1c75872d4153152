/* bytes: byte order, odd sizes, and the edges of varints. */
#include "base/bytes.h"
#include "unit/test.h"

TEST(bytes, fixed_integers_lie_in_the_order_of_their_name)
{
    char at[16] = {0};

    CHECK(be16_write(at + 1, 0x0102) == at + 3);
    CHECK(be32_write(at + 3, 0x03040506) == at + 7);
    CHECK(be64_write(at + 7, 0x0708090a0b0c0d0e) == at + 15);
    CHECK_STR(str_n(at, 16), STR("\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c\x0d\x0e\0"));
    CHECK_INT(be16_read(at + 1), 0x0102);
    CHECK_INT(be32_read(at + 3), 0x03040506);
    CHECK(be64_read(at + 7) == 0x0708090a0b0c0d0e);
    CHECK_INT(le16_read(at + 1), 0x0201);
    CHECK_INT(le32_read(at + 3), 0x06050403);
    CHECK(le64_read(at + 7) == 0x0e0d0c0b0a090807);
    CHECK(le64_write(le32_write(le16_write(at, 0x0100), 0x05040302), 0x0d0c0b0a09080706) ==
          at + 14);
    CHECK_STR(str_n(at, 14), STR("\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c\x0d"));
}

TEST(bytes, big_endian_integers_have_any_size_up_to_eight_bytes)
{
    for (size_t len = 0; len <= 8; len++) {
        char at[9] = "xxxxxxxxx";
        uint64_t v = len == 0 ? 0 : 0xf1f2f3f4f5f6f7f8 >> (64 - 8 * len);
        CHECK(be_write(at, v, len) == at + len);
        CHECK(be_read(at, len) == v);
        CHECK_INT(at[len], 'x');
    }
}

TEST(bytes, varints_come_back_and_leave_what_follows)
{
    static const uint64_t rows[] = {0, 1, 127, 128, 300, 1 << 21, (uint64_t)1 << 63, UINT64_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf b = {0};
        uint64_t v = 7;
        varint_append(&b, rows[i]);
        buf_append_char(&b, '!');
        struct str in = buf_str(&b);
        CHECK(varint_take(&in, &v));
        CHECK(v == rows[i]);
        CHECK_STR(in, STR("!"));
        buf_release(&b);
    }
}

TEST(bytes, varints_that_are_cut_or_too_large_are_refused)
{
    const struct str rows[] = {
        STR(""),
        STR("\x80"),
        STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
        STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\0"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct str in = rows[i];
        uint64_t v = 7;
        CHECK(!varint_take(&in, &v));
        CHECK_INT(v, 7);
        CHECK_INT(in.len, rows[i].len);
    }
}
