/* URLs: coding, queries, parts. */
#include "http/wire.h"
#include "unit/test.h"

TEST(url, decoding_is_strict_about_escapes)
{
    struct buf b = BUF_INIT(0);

    CHECK_INT(url_decode(&b, STR("a%20b%2Fc+d%c3%A4"), false), 0);
    CHECK_STR(buf_str(&b), STR("a b/c+d\xc3\xa4"));
    buf_reset(&b);
    CHECK_INT(url_decode(&b, STR("+a%2B+"), true), 0);
    CHECK_STR(buf_str(&b), STR(" a+ "));
    buf_reset(&b);
    CHECK_INT(url_decode(&b, STR(""), true), 0);
    CHECK_ERR(url_decode(&b, STR("%"), false), ERR_PARSE);
    CHECK_ERR(url_decode(&b, STR("%2"), false), ERR_PARSE);
    CHECK_ERR(url_decode(&b, STR("%2g"), false), ERR_PARSE);
    CHECK_ERR(url_decode(&b, STR("%+1"), false), ERR_PARSE);
    buf_release(&b);
    b.max = 3;
    CHECK_ERR(url_decode(&b, STR("abcd"), false), ERR_TOO_LARGE);
    buf_release(&b);
}

TEST(url, encoding_and_decoding_are_inverse_for_every_byte)
{
    struct buf all = BUF_INIT(0), encoded = BUF_INIT(0), back = BUF_INIT(0);

    for (int c = 0; c < 256; c++)
        buf_append_char(&all, (char)c);
    url_encode(&encoded, buf_str(&all), false);
    CHECK(str_chr(buf_str(&encoded), '/') < 0 && str_chr(buf_str(&encoded), '+') < 0);
    CHECK_INT(url_decode(&back, buf_str(&encoded), true), 0);
    CHECK_STR(buf_str(&back), buf_str(&all));
    buf_reset(&encoded);
    url_encode(&encoded, STR("a/b ~-_.*"), true);
    CHECK_STR(buf_str(&encoded), STR("a/b%20~-_.%2A"));
    buf_release(&all);
    buf_release(&encoded);
    buf_release(&back);
}

TEST(url, queries_are_walked)
{
    struct str rest = STR("&a=1&&b&c=&=d&e=f=g"), name, value;
    static const struct str want[][2] = {
        {STR("a"), STR("1")}, {STR("b"), STR("")},    {STR("c"), STR("")},
        {STR(""), STR("d")},  {STR("e"), STR("f=g")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        CHECK(url_query_next(&rest, &name, &value));
        CHECK_STR(name, want[i][0]);
        CHECK_STR(value, want[i][1]);
    }
    CHECK(!url_query_next(&rest, &name, &value));
}

TEST(url, parts_are_found)
{
    struct url u;
    struct err err = {0};

    CHECK_OK(url_parse(&u, STR("redis://me:p:w@h.x:6379/2?a=b"), &err));
    CHECK_STR(u.scheme, STR("redis"));
    CHECK_STR(u.user, STR("me"));
    CHECK_STR(u.password, STR("p:w"));
    CHECK_STR(u.host, STR("h.x"));
    CHECK_INT(u.port, 6379);
    CHECK_STR(u.path, STR("/2"));
    CHECK_STR(u.query, STR("a=b"));
    CHECK_OK(url_parse(&u, STR("https://[::1]:9000"), &err));
    CHECK_STR(u.host, STR("::1"));
    CHECK_INT(u.port, 9000);
    CHECK_STR(u.path, STR(""));
    CHECK_OK(url_parse(&u, STR("http://h?x@y:z"), &err));
    CHECK_STR(u.host, STR("h"));
    CHECK_STR(u.query, STR("x@y:z"));
    CHECK_INT(u.port, 0);
    CHECK_OK(url_parse(&u, STR("unix:///run/x.sock"), &err));
    CHECK_STR(u.host, STR(""));
    CHECK_STR(u.path, STR("/run/x.sock"));
}

TEST(url, malformed_urls_are_refused)
{
    static const struct str bad[] = {
        STR(""),
        STR("h"),
        STR("/x"),
        STR("://h"),
        STR("1http://h"),
        STR("ht tp://h"),
        STR("http:/h"),
        STR("http://h:"),
        STR("http://h:0"),
        STR("http://h:65536"),
        STR("http://h:1x"),
        STR("http://:80"),
        STR("http://[::1"),
        STR("http://[::1]x"),
        STR("http://[]"),
        STR("http://[g]"),
        STR("http://h#f"),
        STR("http://h/\xc3\xa4"),
        STR("http://h/\r\n"),
        STR("http://h\0"),
        STR("http://a\\b/"),
        STR("http://::1/"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct url u;
        struct err err = {0};
        int rc = url_parse(&u, bad[i], &err);
        if (rc != ERR_PARSE)
            test_fail(__FILE__, __LINE__, "accepted (%d): " STR_FMT, rc, STR_ARG(bad[i]));
    }
}

TEST(url, origin_is_scheme_host_and_port)
{
    static const char *const same[][2] = {{"http://h/a", "HTTP://H:80/b?c"},
                                          {"https://h:443", "https://h/x"},
                                          {"http://[::1]:8/", "http://[::1]:8/y"}};
    static const char *const other[][2] = {{"http://h/", "https://h/"},
                                           {"http://h/", "http://h:81/"},
                                           {"http://h/", "http://h.x/"},
                                           {"http://h/", "http://h/#"},
                                           {"http://h/", "http://x@g/"}};

    for (size_t i = 0; i < ARRAY_SIZE(same); i++)
        CHECK(url_same_origin(str_z(same[i][0]), str_z(same[i][1])));
    for (size_t i = 0; i < ARRAY_SIZE(other); i++)
        CHECK(!url_same_origin(str_z(other[i][0]), str_z(other[i][1])));
}
