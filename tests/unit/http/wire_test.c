/* Heads: what is accepted, what is refused, and that the way bytes arrive makes no difference. */
#include "http/wire.h"
#include "http/wire_int.h"
#include "unit/test.h"

#include <stdlib.h>

static int parse_request(struct http_head *h, struct str in, struct err *err)
{
    size_t seen = 0;
    return http_parse_request(h, in, &seen, err);
}

static int parse_response(struct http_head *h, struct str in, struct err *err)
{
    size_t seen = 0;
    return http_parse_response(h, in, &seen, err);
}

#define REQUEST(lines) STR("GET / HTTP/1.1\r\nHost: a\r\n" lines "\r\n")

TEST(wire, request_is_taken_apart)
{
    struct http_head h;
    struct err err = {0};
    struct str in = STR("PUT /b/k%20x?uploads&a=b HTTP/1.1\r\nHost: s3.local:9000\r\n"
                        "Content-Length:  12 \t\r\nx-Amz-Meta-A:\r\nX-Tab: a\tb\r\n"
                        "Expect: 100-Continue\r\n\r\nbody");

    CHECK_OK(parse_request(&h, in, &err));
    CHECK_INT(h.method, HTTP_PUT);
    CHECK_STR(h.target, STR("/b/k%20x?uploads&a=b"));
    CHECK_STR(h.path, STR("/b/k%20x"));
    CHECK_STR(h.query, STR("uploads&a=b"));
    CHECK_INT(h.minor, 1);
    CHECK_INT(h.header_count, 5);
    CHECK(h.keep_alive && h.has_length && !h.chunked && h.expect_continue);
    CHECK_INT(h.content_length, 12);
    CHECK_STR(http_header(&h, "X-TAB"), STR("a\tb"));
    CHECK(http_header(&h, "x-amz-meta-a").p != NULL);
    CHECK(http_header(&h, "x-amz-meta-b").p == NULL);
    CHECK_INT(h.size, in.len - 4);
}

TEST(wire, any_split_of_a_head_gives_the_same_result)
{
    struct http_head h;
    struct err err = {0};
    struct str in = STR("\r\nGET /x HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n");
    size_t seen = 0;

    for (size_t n = 0; n < in.len; n++) {
        char *copy = malloc(n ? n : 1); /* exact, so that a read past the end is seen */
        memcpy(copy, in.p, n);
        CHECK_ERR(http_parse_request(&h, str_n(copy, n), &seen, &err), ERR_AGAIN);
        free(copy);
    }
    CHECK_OK(http_parse_request(&h, in, &seen, &err));
    CHECK_INT(h.size, in.len);
    CHECK_INT(h.header_count, 2);
}

TEST(wire, malformed_requests_are_refused)
{
    static const struct str bad[] = {
        STR("GET / HTTP/1.1\nHost: a\n\n"),
        STR("GET / HTTP/1.1\r\nHost: a\n\r\n"),
        STR("GET / HTTP/1.1\r\nHost: a\r\n\n"),
        REQUEST("A: b\r\n c\r\n"),
        REQUEST("\tA: b\r\n"),
        REQUEST("A: b\0c\r\n"),
        REQUEST("A: b\x01"
                "c\r\n"),
        REQUEST("A: b\x7f\r\n"),
        REQUEST("A: b\rc\r\n"),
        REQUEST("A : b\r\n"),
        REQUEST(": b\r\n"),
        REQUEST("A\r\n"),
        REQUEST("A(: b\r\n"),
        REQUEST("\xc3\xa4: b\r\n"),
        REQUEST("Host: a\r\n"),
        REQUEST("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
        REQUEST("Content-Length: 1\r\nContent-Length: 2\r\n"),
        REQUEST("Content-Length: 1\r\nContent-Length: 1\r\n"),
        REQUEST("Content-Length: 1, 1\r\n"),
        REQUEST("Content-Length: +1\r\n"),
        REQUEST("Content-Length: -1\r\n"),
        REQUEST("Content-Length: 0x1\r\n"),
        REQUEST("Content-Length:\r\n"),
        REQUEST("Content-Length: 18446744073709551616\r\n"),
        REQUEST("Transfer-Encoding: gzip, chunked\r\n"),
        REQUEST("Transfer-Encoding: chunked, chunked\r\n"),
        REQUEST("Transfer-Encoding: identity\r\n"),
        REQUEST("Transfer-Encoding: \x0b"
                "chunked\r\n"),
        REQUEST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        STR("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
        STR("GET / HTTP/1.1\r\n\r\n"),
        STR("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
        STR("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
        STR("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
        STR("GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
        STR("GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        STR("GET / http/1.1\r\nHost: a\r\n\r\n"),
        STR("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
        STR("GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
        STR("GET /\r\nHost: a\r\n\r\n"),
        STR("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET /a\x7f HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("\x16\x03\x01"),
        STR("\nGET"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct http_head h;
        struct err err = {0};
        size_t seen = 0;
        int at_once = parse_request(&h, bad[i], &err), dripped = ERR_AGAIN;

        if (at_once != ERR_PARSE && at_once != ERR_UNSUPPORTED && at_once != ERR_VERSION)
            test_fail(__FILE__, __LINE__, "accepted (%d): " STR_FMT, at_once, STR_ARG(bad[i]));
        CHECK(err.text[0]);
        for (size_t n = 1; n <= bad[i].len && dripped == ERR_AGAIN; n++)
            dripped = http_parse_request(&h, str_head(bad[i], n), &seen, &err);
        CHECK_INT(dripped, at_once);
    }
}

TEST(wire, targets_in_absolute_and_asterisk_form)
{
    struct http_head h;
    struct err err = {0};

    CHECK_OK(parse_request(&h, STR("GET HTTP://a:80/x?y HTTP/1.1\r\nHost: A:80\r\n\r\n"), &err));
    CHECK_STR(h.path, STR("/x"));
    CHECK_STR(h.query, STR("y"));
    CHECK_STR(h.target, STR("HTTP://a:80/x?y"));
    CHECK_OK(parse_request(&h, STR("GET http://a?y HTTP/1.1\r\nHost: a\r\n\r\n"), &err));
    CHECK_STR(h.path, STR("/"));
    CHECK_STR(h.query, STR("y"));
    CHECK_OK(parse_request(&h, STR("GET http://a HTTP/1.0\r\n\r\n"), &err));
    CHECK_STR(h.path, STR("/"));
    CHECK_OK(parse_request(&h, STR("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), &err));
    CHECK_STR(h.path, STR("*"));
    CHECK_OK(parse_request(&h, STR("PROPFIND /x HTTP/1.1\r\nHost: a\r\n\r\n"), &err));
    CHECK_INT(h.method, HTTP_METHOD_OTHER);
    CHECK_STR(h.method_text, STR("PROPFIND"));
}

TEST(wire, keep_alive_follows_version_and_connection)
{
    static const struct {
        struct str in;
        bool keep;
    } rows[] = {
        {STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), true},
        {STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n"), false},
        {STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, close\r\n\r\n"), false},
        {STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n"), false},
        {STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n"), true},
        {STR("GET / HTTP/1.0\r\n\r\n"), false},
        {STR("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), true},
        {STR("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"), false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct http_head h;
        struct err err = {0};
        CHECK_OK(parse_request(&h, rows[i].in, &err));
        CHECK_INT(h.keep_alive, rows[i].keep);
    }
}

TEST(wire, limits_on_head_line_and_header_count)
{
    struct http_head h;
    struct err err = {0};
    struct buf b = BUF_INIT(0);
    size_t seen = 0;

    buf_append_z(&b, "GET /");
    while (b.len < HTTP_MAX_LINE)
        buf_append_char(&b, 'a');
    buf_append_z(&b, " HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK_ERR(parse_request(&h, buf_str(&b), &err), ERR_TOO_LARGE);

    buf_reset(&b);
    buf_append_z(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 1; i < HTTP_MAX_HEADERS; i++)
        buf_append_z(&b, "A: b\r\n");
    buf_append_z(&b, "\r\n");
    CHECK_OK(parse_request(&h, buf_str(&b), &err));
    CHECK_INT(h.header_count, HTTP_MAX_HEADERS);
    b.len -= 2;
    buf_append_z(&b, "A: b\r\n\r\n");
    CHECK_ERR(parse_request(&h, buf_str(&b), &err), ERR_TOO_LARGE);

    buf_reset(&b);
    buf_append_z(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
    while (b.len <= HTTP_MAX_HEAD)
        buf_append_z(
            &b, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: "
                "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
                "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n");
    CHECK_ERR(http_parse_request(&h, str_n(b.p, HTTP_MAX_HEAD - 1), &seen, &err), ERR_AGAIN);
    CHECK_ERR(http_parse_request(&h, str_n(b.p, HTTP_MAX_HEAD), &seen, &err), ERR_TOO_LARGE);
    buf_append_z(&b, "\r\n");
    CHECK_ERR(parse_request(&h, buf_str(&b), &err), ERR_TOO_LARGE);
    buf_release(&b);
}

TEST(wire, every_byte_is_judged_the_same_at_every_offset)
{
    for (size_t offset = 0; offset < 20; offset++) {
        for (int c = 0; c < 256; c++) {
            struct http_head h;
            struct err err = {0};
            struct buf b = BUF_INIT(0);
            bool fine = (c >= 0x20 && c != 0x7f) || c == '\t';

            buf_append_z(&b, "GET / HTTP/1.1\r\nHost: a\r\nA: x");
            for (size_t i = 0; i < offset; i++)
                buf_append_char(&b, 'y');
            buf_append_char(&b, (char)c);
            buf_append_z(&b, "zzzzzzzzz\r\n\r\n");
            CHECK_INT(parse_request(&h, buf_str(&b), &err), fine ? 0 : ERR_PARSE);
            buf_release(&b);
        }
    }
}

TEST(wire, response_is_taken_apart)
{
    struct http_head h;
    struct err err = {0};

    CHECK_OK(parse_response(&h, STR("HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n\r\nabc"),
                            &err));
    CHECK_INT(h.status, 206);
    CHECK_STR(h.reason, STR("Partial Content"));
    CHECK(h.has_length && h.keep_alive);
    CHECK(http_response_has_body(&h, false) && !http_response_has_body(&h, true));
    CHECK_OK(parse_response(&h, STR("HTTP/1.0 200\r\n\r\n"), &err));
    CHECK(!h.keep_alive && !h.has_length && !h.chunked);
    CHECK_OK(parse_response(&h, STR("HTTP/1.1 304 \r\nContent-Length: 3\r\n\r\n"), &err));
    CHECK(!http_response_has_body(&h, false));
    CHECK_OK(parse_response(&h, STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), &err));
    CHECK_INT(h.status, 100);
    CHECK_INT(h.size, 25);
    CHECK(!http_response_has_body(&h, false));
}

TEST(wire, malformed_responses_are_refused)
{
    static const struct str bad[] = {
        STR("HTTP/1.1 200 OK\nA: b\n\n"),
        STR("HTTP/1.1 20 OK\r\n\r\n"),
        STR("HTTP/1.1 2000 OK\r\n\r\n"),
        STR("HTTP/1.1 099 OK\r\n\r\n"),
        STR("HTTP/1.1 600 OK\r\n\r\n"),
        STR("HTTP/1.1  200 OK\r\n\r\n"),
        STR("HTTP/1.1 200 O\x01K\r\n\r\n"),
        STR("HTTP/2 200 OK\r\n\r\n"),
        STR("ICY 200 OK\r\n\r\n"),
        STR("\r\nHTTP/1.1 200 OK\r\n\r\n"),
        STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
        STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
        STR("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        STR("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"),
        STR("HTTP/1.1 200 OK\r\nA : b\r\n\r\n"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct http_head h;
        struct err err = {0};
        int rc = parse_response(&h, bad[i], &err);
        if (rc != ERR_PARSE)
            test_fail(__FILE__, __LINE__, "accepted (%d): " STR_FMT, rc, STR_ARG(bad[i]));
    }
}

TEST(wire, repeated_headers_are_walked_and_lists_are_searched)
{
    struct http_head h;
    struct err err = {0};

    CHECK_OK(parse_request(&h, REQUEST("Via: a\r\nx: y\r\nvia: b\r\n"), &err));
    const struct http_header *v = http_header_next(&h, "VIA", NULL);
    CHECK_STR(v->value, STR("a"));
    v = http_header_next(&h, "VIA", v);
    CHECK_STR(v->value, STR("b"));
    CHECK(http_header_next(&h, "VIA", v) == NULL);
    CHECK(http_list_has(STR("a , Gzip,\tb"), STR("gzip")));
    CHECK(!http_list_has(STR("gzip;q=0"), STR("gzip")));
    CHECK(!http_list_has(STR(""), STR("gzip")));
}

TEST(wire, names_of_methods_and_statuses)
{
    for (int m = HTTP_GET; m < HTTP_METHOD_OTHER; m++)
        CHECK_INT(http_method(str_z(http_method_name((enum http_method)m))), m);
    CHECK_INT(http_method(STR("get")), HTTP_METHOD_OTHER);
    CHECK_STR(str_z(http_reason(416)), STR("Range Not Satisfiable"));
    CHECK_STR(str_z(http_reason(299)), STR("Unknown"));
}

TEST(wire, a_field_to_send_holds_no_control_at_any_place)
{
    char value[40];

    for (size_t len = 1; len <= sizeof(value); len++) {
        memset(value, 'v', len);
        for (size_t at = 0; at < len; at++) {
            for (int c = 0; c < 256; c++) {
                value[at] = (char)c;
                CHECK(http_field_is_valid(STR("name"), str_n(value, len)) ==
                      http_value_char((unsigned char)c));
            }
            value[at] = at % 3 ? 'v' : '\t';
        }
    }
    CHECK(http_field_is_valid(STR("x-y"), STR_EMPTY));
    CHECK(!http_field_is_valid(STR(""), STR("v")));
    CHECK(!http_field_is_valid(STR("x y"), STR("v")));
    CHECK(!http_field_is_valid(STR("x:"), STR("v")));
}
