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
