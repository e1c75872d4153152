/* str: numbers, cutting, encodings. */
#include "base/str.h"
#include "unit/test.h"

TEST(str, numbers_are_whole_strings_without_overflow)
{
    uint64_t u;
    int64_t i;

    CHECK_INT(str_u64(STR("18446744073709551615"), &u), 0);
    CHECK(u == UINT64_MAX);
    CHECK_ERR(str_u64(STR("18446744073709551616"), &u), ERR_PARSE);
    CHECK_ERR(str_u64(STR(""), &u), ERR_PARSE);
    CHECK_ERR(str_u64(STR("1 "), &u), ERR_PARSE);
    CHECK_ERR(str_u64(STR("+1"), &u), ERR_PARSE);
    CHECK_INT(str_i64(STR("-9223372036854775808"), &i), 0);
    CHECK(i == INT64_MIN);
    CHECK_ERR(str_i64(STR("9223372036854775808"), &i), ERR_PARSE);
    CHECK_ERR(str_i64(STR("-"), &i), ERR_PARSE);
}

TEST(str, sizes_and_durations_have_units)
{
    uint64_t v;

    CHECK_INT(str_size(STR("64k"), &v), 0);
    CHECK_INT(v, 65536);
    CHECK_INT(str_size(STR("2MiB"), &v), 0);
    CHECK_INT(v, 2 << 20);
    CHECK_ERR(str_size(STR("2x"), &v), ERR_PARSE);
    CHECK_ERR(str_size(STR("99999999999t"), &v), ERR_PARSE);
    CHECK_INT(str_duration_ms(STR("5m"), &v), 0);
    CHECK_INT(v, 300000);
    CHECK_ERR(str_duration_ms(STR("5"), &v), ERR_PARSE);
}

TEST(str, cut_and_token_walk_a_list)
{
    struct str head, rest = STR("a=1;b"), token;

    CHECK(str_cut(rest, ';', &head, &rest));
    CHECK_STR(head, STR("a=1"));
    CHECK(!str_cut(rest, ';', &head, &rest));
    CHECK_STR(head, STR("b"));
    CHECK_STR(rest, STR(""));

    rest = STR(" , x ,,y");
    CHECK(str_token(&rest, ", ", &token));
    CHECK_STR(token, STR("x"));
    CHECK(str_token(&rest, ", ", &token));
    CHECK_STR(token, STR("y"));
    CHECK(!str_token(&rest, ", ", &token));
}

TEST(str, utf8_is_checked_at_every_offset)
{
    char text[40];

    for (size_t len = 0; len <= sizeof(text); len++) {
        memset(text, 'a', sizeof(text));
        CHECK(str_is_utf8(str_n(text, len)));
        for (size_t at = 0; at + 2 <= len; at++) {
            memset(text, 'a', sizeof(text));
            memcpy(text + at, "\xc3\xa4", 2);
            CHECK(str_is_utf8(str_n(text, len)));
            CHECK(!str_is_utf8(str_n(text, at + 1)));
            text[at] = 'a';
            CHECK(!str_is_utf8(str_n(text, len)));
        }
    }
}

TEST(str, utf8_refuses_surrogates_and_overlong_forms)
{
    CHECK(str_is_utf8(STR("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")));
    CHECK(!str_is_utf8(STR("\xc0\xaf")));
    CHECK(!str_is_utf8(STR("\xed\xa0\x80")));
    CHECK(!str_is_utf8(STR("\xf4\x90\x80\x80")));
    CHECK(!str_is_utf8(STR("\xe2\x82")));
}

TEST(str, secrets_compare_by_content)
{
    CHECK(str_eq_secret(STR("abc"), STR("abc")));
    CHECK(!str_eq_secret(STR("abc"), STR("abd")));
    CHECK(!str_eq_secret(STR("abc"), STR("abcabc")));
    CHECK(!str_eq_secret(STR("abc"), STR("")));
    CHECK(str_eq_secret(STR(""), STR("")));
}

TEST(str, secrets_compare_with_the_empty_string_that_has_no_pointer)
{
    CHECK(!str_eq_secret(STR("abc"), STR_EMPTY));
    CHECK(!str_eq_secret(STR_EMPTY, STR("abc")));
    CHECK(str_eq_secret(STR_EMPTY, STR("")));
}

TEST(str, order_is_by_byte_and_shorter_first)
{
    CHECK(str_cmp(STR("a"), STR("b")) < 0);
    CHECK(str_cmp(STR("a"), STR("ab")) < 0);
    CHECK(str_cmp(STR("\x7f"), STR("\x80")) < 0);
    CHECK(str_cmp(STR_EMPTY, STR("")) == 0);
    CHECK(str_ieq(STR("AbC"), STR("aBc")) && !str_ieq(STR("a"), STR("ab")));
    CHECK(!str_ieq(STR("@"), STR("`")) && !str_ieq(STR("\xc4"), STR("\xe4")));
}

TEST(str, case_is_folded_at_every_place_of_every_length)
{
    char left[40], right[40];

    for (size_t len = 1; len <= sizeof(left); len++) {
        for (size_t at = 0; at < len; at++) {
            memset(left, 'q', len);
            memset(right, 'Q', len);
            for (int c = 0; c < 256; c++) {
                bool upper = c >= 'A' && c <= 'Z', letter = upper || (c >= 'a' && c <= 'z');
                left[at] = (char)c;
                right[at] = (char)c;
                CHECK(str_ieq(str_n(left, len), str_n(right, len)));
                right[at] = (char)(c ^ 0x20);
                CHECK(str_ieq(str_n(left, len), str_n(right, len)) == letter);
                right[at] = (char)(c ^ 0x80);
                CHECK(!str_ieq(str_n(left, len), str_n(right, len)));
            }
        }
    }
}

TEST(str, searching_and_cutting_stay_inside)
{
    struct str s = STR("hello");

    CHECK_INT(str_find(s, STR("lo")), 3);
    CHECK_INT(str_find(s, STR("lot")), -1);
    CHECK_INT(str_find(s, STR("")), 0);
    CHECK_INT(str_find(STR_EMPTY, STR("")), 0);
    CHECK_INT(str_find(STR_EMPTY, STR("x")), -1);
    CHECK_INT(str_chr(s, 'l'), 2);
    CHECK_INT(str_chr(STR_EMPTY, 'l'), -1);
    CHECK_STR(str_skip(s, 9), STR(""));
    CHECK_STR(str_head(s, 9), s);
    CHECK(str_starts(s, STR("he")) && str_ends(s, STR("lo")) && !str_ends(s, STR("xhello")));
    CHECK(str_starts(STR_EMPTY, STR_EMPTY));
    CHECK_STR(str_trim(STR(" \t a b\t ")), STR("a b"));
    CHECK_STR(str_trim(STR(" \t")), STR(""));
}

TEST(str, controls_of_unicode_are_known)
{
    CHECK(str_utf8_is_control(STR("\n")) && str_utf8_is_control(STR("\x7f")));
    CHECK(str_utf8_is_control(STR("\xc2\x80")) && str_utf8_is_control(STR("\xc2\x9f")));
    CHECK(str_utf8_is_control(STR("\xe2\x80\xa8")) && str_utf8_is_control(STR("\xe2\x80\xa9")));
    CHECK(!str_utf8_is_control(STR(" ")) && !str_utf8_is_control(STR("\xc2\xa0")));
    CHECK(!str_utf8_is_control(STR("\xe2\x80\xa7")) && !str_utf8_is_control(STR_EMPTY));
    CHECK_INT(str_utf8_len(STR("\xf0\x9f\x98\x80x")), 4);
    CHECK_INT(str_utf8_len(STR("\xf0\x9f\x98")), 0);
    CHECK_INT(str_utf8_len(STR_EMPTY), 0);
}
