/* Chunked bodies: decoding under any split, trailers, limits, refusals. */
#include "http/wire.h"
#include "unit/test.h"

/* Decodes `in`, handing over at most `step` bytes at a time. */
static int decode(struct str in, size_t step, struct buf *body, struct buf *trailers, size_t *used)
{
    struct http_chunked c = {0};
    struct err err = {0};

    *used = 0;
    while (!c.done) {
        struct str piece;
        size_t n;
        if (*used == in.len)
            return ERR_AGAIN;
        int rc =
            http_chunked_next(&c, str_head(str_skip(in, *used), step), &piece, &n, trailers, &err);
        if (rc < 0)
            return rc;
        CHECK(n > 0);
        buf_append_str(body, piece);
        *used += n;
    }
    return 0;
}

TEST(chunked, any_split_gives_the_same_body_and_trailers)
{
    struct str in = STR("5\r\nhello\r\n00A;name=\"v\" ;x\r\n, world!!!\r\n0\r\n"
                        "X-Sum:  abc \t\r\nx-empty:\r\n\r\nGET /");
    for (size_t step = 1; step <= in.len; step++) {
        struct buf body = BUF_INIT(0), trailers = BUF_INIT(0);
        size_t used;
        CHECK_INT(decode(in, step, &body, &trailers, &used), 0);
        CHECK_STR(buf_str(&body), STR("hello, world!!!"));
        CHECK_STR(buf_str(&trailers), STR("X-Sum: abc\r\nx-empty:\r\n"));
        CHECK_INT(used, in.len - 5);
        buf_release(&body);
        buf_release(&trailers);
    }
}

TEST(chunked, malformed_framing_is_refused)
{
    static const struct str bad[] = {
        STR("\r\n"),
        STR("g\r\n"),
        STR("5\nhello\r\n0\r\n\r\n"),
        STR("5\r\nhello\n0\r\n\r\n"),
        STR("5\r\nhello!\r\n"),
        STR("5\r\rhello"),
        STR("5 \r\nhello\r\n"),
        STR(" 5\r\nhello\r\n"),
        STR("0x5\r\nhello\r\n"),
        STR("+5\r\nhello\r\n"),
        STR("-5\r\nhello\r\n"),
        STR(";x\r\n"),
        STR("5;a\x01\r\nhello\r\n"),
        STR("5;a\nhello\r\n"),
        STR("10000000000000000\r\n"),
        STR("fffffffffffffffff\r\n"),
        STR("0\r\n\n"),
        STR("0\r\nA: b\n\r\n"),
        STR("0\r\nA : b\r\n\r\n"),
        STR("0\r\n A: b\r\n\r\n"),
        STR("0\r\n: b\r\n\r\n"),
        STR("0\r\nA: b\r\n c\r\n\r\n"),
        STR("0\r\nA: b\0\r\n\r\n"),
        STR("0\r\nA\r\n\r\n"),
        STR("0\r\n\rx"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        for (size_t step = 1; step <= bad[i].len; step++) {
            struct buf body = BUF_INIT(0);
            size_t used;
            int rc = decode(bad[i], step, &body, NULL, &used);
            if (rc != ERR_PARSE)
                test_fail(__FILE__, __LINE__, "accepted (%d): " STR_FMT, rc, STR_ARG(bad[i]));
            buf_release(&body);
        }
    }
}

TEST(chunked, largest_size_is_taken_without_overflow)
{
    struct http_chunked c = {0};
    struct err err = {0};
    struct str body;
    size_t used;

    CHECK_OK(http_chunked_next(&c, STR("00000ffffffffffffffff\r\nx"), &body, &used, NULL, &err));
    CHECK_STR(body, STR("x"));
    CHECK(http_chunked_run(&c) == UINT64_MAX - 1);
}

TEST(chunked, run_is_known_inside_a_chunk_only)
{
    struct http_chunked c = {0};
    struct err err = {0};
    struct str body;
    size_t used;

    CHECK_OK(http_chunked_next(&c, STR("5"), &body, &used, NULL, &err));
    CHECK_INT(http_chunked_run(&c), 0);
    CHECK_OK(http_chunked_next(&c, STR("\r\nab"), &body, &used, NULL, &err));
    CHECK_INT(http_chunked_run(&c), 3);
    CHECK_OK(http_chunked_next(&c, STR("cde"), &body, &used, NULL, &err));
    CHECK_INT(http_chunked_run(&c), 0);
}

TEST(chunked, size_lines_and_trailers_have_limits)
{
    struct buf in = BUF_INIT(0), body = BUF_INIT(0), trailers = BUF_INIT(0);
    size_t used;

    buf_append_z(&in, "5;");
    for (int i = 0; i < 300; i++)
        buf_append_char(&in, 'x');
    CHECK_ERR(decode(buf_str(&in), 7, &body, NULL, &used), ERR_TOO_LARGE);

    buf_reset(&in);
    buf_append_z(&in, "0\r\n");
    while (in.len < 2 * HTTP_MAX_HEAD)
        buf_append_z(&in, "A: bcdefghijklmnopq\r\n");
    buf_append_z(&in, "A: bcdefghijklmnopq\r\n\r\n");
    CHECK_ERR(decode(buf_str(&in), 1000, &body, &trailers, &used), ERR_TOO_LARGE);
    buf_release(&trailers);

    trailers.max = 8;
    CHECK_ERR(decode(STR("0\r\nA: bcdefgh\r\n\r\n"), 3, &body, &trailers, &used), ERR_TOO_LARGE);
    buf_release(&in);
    buf_release(&body);
    buf_release(&trailers);
}
