/* Hexadecimal digits. */
#include "base/arena.h"
#include "base/hex.h"
#include "unit/test.h"

TEST(hex, what_was_written_is_read_back)
{
    static const unsigned char bytes[] = {0x00, 0x1f, 0xa0, 0xff};
    struct arena a = ARENA_INIT(0);
    unsigned char back[sizeof(bytes)];
    char text[2 * sizeof(bytes)];

    hex_write(text, bytes, sizeof(bytes));
    CHECK_STR(str_n(text, sizeof(text)), STR("001fa0ff"));
    CHECK_STR(arena_hex(&a, bytes, sizeof(bytes)), STR("001fa0ff"));
    CHECK(hex_parse(str_n(text, sizeof(text)), back, sizeof(back)));
    CHECK(memcmp(back, bytes, sizeof(bytes)) == 0);
    arena_release(&a);
}

TEST(hex, upper_case_is_taken_only_where_asked_for)
{
    unsigned char out[2];

    CHECK(!hex_parse(STR("00AF"), out, sizeof(out)));
    CHECK(!hex_parse(STR("00aF"), out, sizeof(out)));
    CHECK(hex_parse_any_case(STR("0baF"), out, sizeof(out)));
    CHECK(out[0] == 0x0b && out[1] == 0xaf);
}

TEST(hex, a_text_of_another_length_or_with_other_characters_is_refused)
{
    static const struct str bad[] = {STR(""),          STR("0"),    STR("00"),   STR("000"),
                                     STR("00000"),     STR("00g0"), STR("00 0"), STR("0x00"),
                                     STR("00@0"),      STR("00`0"), STR("00/0"), STR("00:0"),
                                     STR("00\xc1\x30")};
    unsigned char out[2];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(!hex_parse(bad[i], out, sizeof(out)) &&
              !hex_parse_any_case(bad[i], out, sizeof(out)));
}
