/* bencode: golden bytes of the writer, the one form that the reader takes, and exact bytes. */
#include "swarm/bencode.h"
#include "unit/test.h"

TEST(bencode, bencode_golden_bytes)
{
    struct buf out = {0};
    struct bencode_out w;

    bencode_out_init(&w, &out);
    bencode_open(&w, 'd');
    bencode_member_int(&w, "complete", 0);
    bencode_member_str(&w, "external ip", STR("\x7f\x00\x00\x01"));
    bencode_member_int(&w, "interval", 1800);
    bencode_member_int(&w, "min interval", -9223372036854775807 - 1);
    bencode_member_str(&w, "peers", STR(""));
    bencode_member_str(&w, "peers6", STR_EMPTY);
    bencode_key(&w, STR("z"));
    bencode_open(&w, 'l');
    bencode_str(&w, STR("a"));
    bencode_int(&w, 9223372036854775807);
    bencode_raw(&w, STR("de"));
    bencode_str_head(&w, 2);
    buf_append(&out, "hi", 2);
    bencode_close(&w);
    bencode_close(&w);
    CHECK_INT(buf_error(&out), 0);
    CHECK_STR(buf_str(&out), STR("d8:completei0e11:external ip4:\x7f\x00\x00\x01"
                                 "8:intervali1800e12:min intervali-9223372036854775808e"
                                 "5:peers0:6:peers60:1:zl1:ai9223372036854775807ede2:hiee"));
    buf_release(&out);
}

TEST(bencode, a_full_buf_is_an_error_and_no_bug)
{
    struct buf out = BUF_INIT(12);
    struct bencode_out w;

    bencode_out_init(&w, &out);
    bencode_open(&w, 'd');
    bencode_member_str(&w, "a", STR("a long string that does not fit"));
    bencode_member_str(&w, "b", STR("b"));
    bencode_member_str(&w, "c", STR("c"));
    bencode_close(&w);
    CHECK_INT(buf_error(&out), ERR_TOO_LARGE);
    buf_release(&out);
}

TEST(bencode, only_the_one_form_of_a_value_reads)
{
    static const struct str bad[] = {
        STR(""),
        STR("e"),
        STR("i"),
        STR("ie"),
        STR("i-e"),
        STR("i-0e"),
        STR("i01e"),
        STR("i-01e"),
        STR("i+1e"),
        STR("i 1e"),
        STR("i1"),
        STR("i1.5e"),
        STR("i9223372036854775808e"),
        STR("i99999999999999999999999e"),
        STR("1"),
        STR("1:"),
        STR("2:a"),
        STR("01:a"),
        STR("00:"),
        STR("-1:a"),
        STR("18446744073709551616:a"),
        STR("18446744073709551615:a"),
        STR("l"),
        STR("li1e"),
        STR("d"),
        STR("d1:a"),
        STR("d1:ae"),
        STR("di1ei1ee"),
        STR("d1:bi1e1:ai1ee"),
        STR("d1:ai1e1:ai1ee"),
        STR("d2:aai1e1:ai1ee"),
        STR("i1ei2e"),
        STR("i1e "),
        STR("x"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err err = {0};
        struct bencode v = {.num = 77};

        CHECK_ERR(bencode_read_all(&v, bad[i], &err), ERR_PARSE);
        CHECK(err.text[0] != '\0');
        CHECK_INT(v.num, 77);
    }
}

TEST(bencode, integers_read_to_their_ends)
{
    struct err err = {0};
    struct bencode v;

    CHECK_OK(bencode_read_all(&v, STR("i-9223372036854775808e"), &err));
    CHECK(v.kind == BENCODE_INT && v.num == INT64_MIN);
    CHECK_OK(bencode_read_all(&v, STR("i9223372036854775807e"), &err));
    CHECK(v.num == INT64_MAX);
    CHECK_OK(bencode_read_all(&v, STR("i0e"), &err));
    CHECK_INT(v.num, 0);
    CHECK_OK(bencode_read_all(&v, STR("i-1e"), &err));
    CHECK_INT(v.num, -1);
}

TEST(bencode, a_member_is_found_with_its_exact_bytes)
{
    struct str text = STR("d8:announce3:url4:infod6:lengthi5e4:name1:xe8:url-listl1:a1:bee");
    struct str inside, key;
    struct err err = {0};
    struct bencode top, info, v;

    CHECK_OK(bencode_read_all(&top, text, &err));
    CHECK_STR(top.bytes, text);
    CHECK_INT(0, bencode_find(&top, &info, STR("info"), BENCODE_DICT));
    CHECK_STR(info.bytes, STR("d6:lengthi5e4:name1:xe"));
    CHECK_INT(0, bencode_find(&info, &v, STR("length"), BENCODE_INT));
    CHECK_INT(v.num, 5);
    CHECK_ERR(bencode_find(&info, &v, STR("length"), BENCODE_STR), ERR_TYPE);
    CHECK_ERR(bencode_find(&info, &v, STR("none"), BENCODE_STR), ERR_NOT_FOUND);
    CHECK_INT(0, bencode_find(&top, &v, STR("url-list"), BENCODE_LIST));
    CHECK_ERR(bencode_find(&v, &info, STR("a"), BENCODE_STR), ERR_TYPE);
    inside = v.inside;
    CHECK(bencode_next(&v, &inside, &key, &info));
    CHECK_STR(info.str, STR("a"));
    CHECK_INT(key.len, 0);
    CHECK(bencode_next(&v, &inside, &key, &info));
    CHECK_STR(info.str, STR("b"));
    CHECK(!bencode_next(&v, &inside, &key, &info));
}

TEST(bencode, a_reader_advances_past_one_value_and_stays_on_a_bad_one)
{
    struct str rest = STR("i1e1:ax");
    struct err err = {0};
    struct bencode v;

    CHECK_OK(bencode_read(&v, &rest, &err));
    CHECK_OK(bencode_read(&v, &rest, &err));
    CHECK_STR(v.str, STR("a"));
    CHECK_ERR(bencode_read(&v, &rest, &err), ERR_PARSE);
    CHECK_STR(rest, STR("x"));
}

static int read_nested(size_t depth)
{
    struct buf text = {0};
    struct err err = {0};
    struct bencode v;

    for (size_t i = 0; i < depth; i++)
        buf_append_char(&text, 'l');
    for (size_t i = 0; i < depth; i++)
        buf_append_char(&text, 'e');
    int code = bencode_read_all(&v, buf_str(&text), &err);

    buf_release(&text);
    return code;
}

TEST(bencode, depth_has_a_limit)
{
    CHECK_INT(read_nested(BENCODE_MAX_DEPTH), 0);
    CHECK_INT(read_nested(BENCODE_MAX_DEPTH + 1), ERR_PARSE);
    CHECK_INT(read_nested(1000 * 1000), ERR_PARSE);
}
