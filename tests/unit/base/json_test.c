/* json: limits, refusals, and that what is written reads back. */
#include "base/ids.h"
#include "base/json.h"
#include "unit/test.h"

#include <float.h>
#include <math.h>

static int read_code(struct str text)
{
    struct err err = {0};
    json_t *value = NULL;
    int code = json_read(&value, text, &err);

    CHECK((code == 0) == (value != NULL));
    CHECK((code < 0) == (err.text[0] != '\0'));
    json_decref(value);
    return code;
}

TEST(json, members_are_read_with_a_fallback)
{
    struct err err = {0};
    json_t *v = NULL;

    CHECK_OK(json_read(&v, STR("{\"s\":\"a\\u0000b\",\"i\":-5,\"t\":true,\"n\":null}"), &err));
    CHECK_STR(json_get_str(v, "s", STR("x")), STR("a\0b"));
    CHECK_STR(json_get_str(v, "i", STR("x")), STR("x"));
    CHECK_STR(json_get_str(v, "none", STR("x")), STR("x"));
    CHECK_INT(json_get_i64(v, "i", 0), -5);
    CHECK_INT(json_get_i64(v, "s", 9), 9);
    CHECK(json_get_bool(v, "t", false));
    CHECK(json_get_bool(v, "n", true));
    CHECK_STR(json_get_str(NULL, "s", STR("x")), STR("x"));
    json_decref(v);
}

TEST(json, duplicate_keys_and_bad_syntax_are_refused_with_a_place)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "{\"a\":1,\"a\":2}",
        "[1,]",
        "nul",
        "01",
        "1 2",
        "\"\xff\"",
        "\"\\ud800\"",
        "\"a\nb\"",
        "{\"a\" 1}",
        "[1}",
        "]",
        "1e999",
        "99999999999999999999",
        "{\"\\u0000\":1}",
    };
    struct err err = {0};
    json_t *v = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(read_code(str_z(bad[i])), ERR_PARSE);
    CHECK_ERR(read_code(STR_EMPTY), ERR_PARSE);
    CHECK_ERR(json_read(&v, STR("{\n \"a\": x}"), &err), ERR_PARSE);
    CHECK(strstr(err.text, "line 2"));
}

TEST(json, the_message_for_a_malformed_text_has_nothing_of_it_but_a_name_that_comes_twice)
{
    static const char *const bad[] = {
        "{\"key\" \"hidden\"}",
        "{\"key\": hidden}",
        "{\"key\":\"hidden",
        "\"hidden\" near 'x'",
        "{\"key\":\"hidden\" \"hidden\"}",
    };
    struct err err = {0};
    json_t *v = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK_ERR(json_read(&v, str_z(bad[i]), &err), ERR_PARSE);
        CHECK(strstr(err.text, "line 1"));
        CHECK(!strstr(err.text, "hidden"));
    }
    CHECK_ERR(json_read(&v, STR("{\"a\":\"hidden\",\"a\":\"hidden\"}"), &err), ERR_PARSE);
    CHECK(strstr(err.text, "duplicate object key near '\"a\"'"));
}

static int read_nested(size_t depth, const char *open, const char *close)
{
    struct buf b = {0};
    int code;

    for (size_t i = 0; i < depth; i++)
        buf_append_z(&b, open);
    buf_append_char(&b, '1');
    for (size_t i = 0; i < depth; i++)
        buf_append_z(&b, close);
    code = read_code(buf_str(&b));
    buf_release(&b);
    return code;
}

TEST(json, depth_and_size_are_limited_before_anything_recurses)
{
    struct buf b = BUF_INIT(JSON_MAX_BYTES + 1);

    CHECK_INT(read_nested(JSON_MAX_DEPTH, "[", "]"), 0);
    CHECK_ERR(read_nested(JSON_MAX_DEPTH + 1, "[", "]"), ERR_TOO_LARGE);
    CHECK_INT(read_nested(JSON_MAX_DEPTH, "{\"[[\\\"[\":", "}"), 0);
    CHECK_ERR(read_nested(JSON_MAX_DEPTH + 1, "{\"a\":", "}"), ERR_TOO_LARGE);
    CHECK_ERR(read_nested(1000000, "[", ""), ERR_TOO_LARGE);
    memset(buf_reserve(&b, JSON_MAX_BYTES + 1), ' ', JSON_MAX_BYTES + 1);
    buf_commit(&b, JSON_MAX_BYTES + 1);
    b.p[0] = '1';
    CHECK_ERR(read_code(buf_str(&b)), ERR_TOO_LARGE);
    b.len--;
    CHECK_INT(read_code(buf_str(&b)), 0);
    buf_release(&b);
}

TEST(json, the_writer_places_commas)
{
    struct buf b = {0};
    struct json_out w;

    json_out_init(&w, &b);
    json_out_open(&w, '{');
    json_out_member_str(&w, "a", STR("x"));
    json_out_member_u64(&w, "b", UINT64_MAX);
    json_out_key(&w, "c");
    json_out_open(&w, '[');
    json_out_open(&w, '[');
    json_out_close(&w, ']');
    json_out_i64(&w, -1);
    json_out_null(&w);
    json_out_bool(&w, true);
    json_out_close(&w, ']');
    json_out_member_i64(&w, "d", INT64_MIN);
    json_out_member_bool(&w, "e", false);
    json_out_key_str(&w, STR("f"));
    json_out_open(&w, '{');
    json_out_close(&w, '}');
    json_out_close(&w, '}');
    CHECK_STR(buf_str(&b), STR("{\"a\":\"x\",\"b\":18446744073709551615,\"c\":[[],-1,null,true],"
                               "\"d\":-9223372036854775808,\"e\":false,\"f\":{}}"));
    buf_release(&b);
}

/* `s` written as a string and read back. */
static void check_round_trip(struct str s, struct str want)
{
    struct buf b = {0};
    struct json_out w;
    struct err err = {0};
    json_t *v = NULL;

    json_out_init(&w, &b);
    json_out_str(&w, s);
    CHECK_OK(json_read(&v, buf_str(&b), &err));
    CHECK_STR(str_n(json_string_value(v), json_string_length(v)), want);
    json_decref(v);
    buf_release(&b);
}

TEST(json, every_character_reads_back_equal)
{
    for (unsigned c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 61) {
        char text[4];
        size_t n = 0;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        if (c < 0x80)
            text[n++] = (char)c;
        else if (c < 0x800)
            text[n++] = (char)(0xc0 | c >> 6);
        else if (c < 0x10000)
            text[n++] = (char)(0xe0 | c >> 12);
        else
            text[n++] = (char)(0xf0 | c >> 18);
        if (c >= 0x10000)
            text[n++] = (char)(0x80 | (c >> 12 & 63));
        if (c >= 0x800)
            text[n++] = (char)(0x80 | (c >> 6 & 63));
        if (c >= 0x80)
            text[n++] = (char)(0x80 | (c & 63));
        check_round_trip(str_n(text, n), str_n(text, n));
    }
}

TEST(json, bytes_that_are_not_utf8_become_the_replacement_character)
{
    check_round_trip(STR("a\xff"), STR("a\xef\xbf\xbd"));
    check_round_trip(STR("\xe2\x82"), STR("\xef\xbf\xbd\xef\xbf\xbd"));
    check_round_trip(STR("\xc3(\xc3\xa4"), STR("\xef\xbf\xbd(\xc3\xa4"));
}

static void check_real(double v, const char *want)
{
    struct buf b = {0};
    struct json_out w;
    struct err err = {0};
    json_t *back = NULL;

    json_out_init(&w, &b);
    json_out_f64(&w, v);
    if (want)
        CHECK_STR(buf_str(&b), str_z(want));
    CHECK_OK(json_read(&back, buf_str(&b), &err));
    if (isfinite(v))
        CHECK(json_is_real(back) && json_real_value(back) == v);
    json_decref(back);
    buf_release(&b);
}

TEST(json, reals_read_back_equal_in_their_shortest_form)
{
    check_real(0.1, "0.1");
    check_real(3, "3.0");
    check_real(-0.5, "-0.5");
    check_real(1e300, NULL);
    check_real(DBL_MAX, NULL);
    check_real(DBL_MIN, NULL);
    check_real(1.0 / 3, NULL);
    check_real(HUGE_VAL, "null");
    check_real(NAN, "null");
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = random_u64();
        double v;
        memcpy(&v, &bits, sizeof(v));
        if (isnormal(v))
            check_real(v, NULL);
    }
}
