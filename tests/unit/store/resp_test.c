/* RESP2: replies of every kind, limits, and the writer. */
#include "store/resp.h"
#include "unit/test.h"

/* Reads one reply, `step` bytes at a time, and prints it or its error's name. */
static void check_read_by(struct str in, size_t step, struct str want)
{
    struct arena arena = ARENA_INIT(1 * MIB);
    struct buf got = {0};
    struct resp r;
    struct reply *reply;
    int rc = ERR_AGAIN;

    resp_init(&r);
    resp_begin(&r, &arena);
    while (rc == ERR_AGAIN && in.len) {
        size_t used;
        rc = resp_read(&r, str_head(in, step), &used, &reply, NULL);
        in = str_skip(in, used);
    }
    if (rc == 0)
        reply_print(&got, reply);
    else
        buf_append_z(&got, err_name(rc));
    CHECK_STR(buf_str(&got), want);
    buf_release(&got);
    resp_release(&r);
    arena_release(&arena);
}

static void check_read(struct str in, const char *want)
{
    for (size_t step = 1; step < 8; step++)
        check_read_by(in, step, str_z(want));
    check_read_by(in, in.len, str_z(want));
}

TEST(resp, reads_every_kind_of_reply)
{
    check_read(STR("+OK\r\n"), "OK");
    check_read(STR("+\r\n"), "");
    check_read(STR("-ERR no\r\n"), "(error) ERR no");
    check_read(STR(":-9223372036854775808\r\n"), "-9223372036854775808");
    check_read(STR("$5\r\na\r\nbc\r\n"), "\"a\\x0d\\x0abc\"");
    check_read(STR("$0\r\n\r\n"), "\"\"");
    check_read(STR("$-1\r\n"), "nil");
    check_read(STR("*-1\r\n"), "nil");
    check_read(STR("*0\r\n"), "[]");
    check_read(STR("*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n+x\r\n"), "[1, [\"a\", []], x]");
}

TEST(resp, refuses_what_is_not_the_protocol)
{
    check_read(STR("hello\r\n"), "PARSE");
    check_read(STR("\r\n"), "PARSE");
    check_read(STR("+OK\n"), "PARSE");
    check_read(STR("+O\rK\r\n"), "PARSE");
    check_read(STR(":1a\r\n"), "PARSE");
    check_read(STR(":\r\n"), "PARSE");
    check_read(STR("$-2\r\n"), "PARSE");
    check_read(STR("$1\r\nabc"), "PARSE");
    check_read(STR("*1x\r\n"), "PARSE");
    check_read(STR("%1\r\n+a\r\n+b\r\n"), "PARSE"); /* RESP3, never asked for */
}

TEST(resp, asks_for_more_until_the_reply_is_whole)
{
    check_read(STR("$3\r\nabc\r"), "AGAIN");
    check_read(STR("*2\r\n:1\r\n"), "AGAIN");
    check_read(STR("+OK\r"), "AGAIN");
}

TEST(resp, announced_sizes_meet_the_limits_before_memory_is_taken)
{
    check_read(STR("$536870913\r\n"), "TOO_LARGE");
    check_read(STR("$536870912\r\n"), "NO_MEMORY");
    check_read(STR("$99999999999999999999\r\n"), "PARSE");
    check_read(STR("*1000000000\r\n"), "NO_MEMORY");
    check_read(STR("*9223372036854775807\r\n"), "NO_MEMORY");
}

TEST(resp, depth_ends_at_the_limit)
{
    struct buf in = {0}, want = {0};

    for (int i = 0; i < RESP_MAX_DEPTH; i++)
        buf_append_z(&in, "*1\r\n");
    for (int i = 0; i < RESP_MAX_DEPTH; i++)
        buf_append_char(&want, '[');
    buf_append_char(&want, '7');
    for (int i = 0; i < RESP_MAX_DEPTH; i++)
        buf_append_char(&want, ']');
    size_t deep = in.len;
    buf_append_z(&in, ":7\r\n");
    check_read(buf_str(&in), want.p);
    in.len = deep;
    buf_append_z(&in, "*1\r\n:7\r\n");
    check_read(buf_str(&in), "TOO_LARGE");
    buf_release(&in);
    buf_release(&want);
}

/* A status whose line is `size` bytes long, CRLF included. */
static void check_line_of(size_t size, bool fits)
{
    struct buf in = {0}, want = {0};

    buf_append_char(&in, '+');
    while (in.len < size - 2)
        buf_append_char(&in, 'x');
    buf_append_str(&want, fits ? str_skip(buf_str(&in), 1) : STR("TOO_LARGE"));
    buf_append_z(&in, "\r\n");
    check_read_by(buf_str(&in), 1000, buf_str(&want));
    check_read_by(buf_str(&in), in.len, buf_str(&want));
    buf_release(&in);
    buf_release(&want);
}

TEST(resp, lines_end_at_the_limit)
{
    check_line_of(RESP_MAX_LINE, true);
    check_line_of(RESP_MAX_LINE + 1, false);
}

TEST(resp, a_reply_ends_where_the_next_begins)
{
    struct arena arena = {0};
    struct str in = STR("$1\r\na\r\n:5\r\n");
    struct reply *reply;
    struct err err = {0};
    struct resp r;
    size_t used;

    resp_init(&r);
    resp_begin(&r, &arena);
    CHECK_OK(resp_read(&r, in, &used, &reply, &err));
    CHECK_INT(used, 7);
    CHECK_STR(reply->str, STR("a"));
    resp_begin(&r, &arena);
    CHECK_OK(resp_read(&r, str_skip(in, used), &used, &reply, &err));
    CHECK_INT(reply->integer, 5);
    resp_release(&r);
    arena_release(&arena);
}

TEST(resp, commands_are_written_as_arrays_of_strings)
{
    struct str argv[] = {STR("SET"), STR("k\r\n"), STR("")};
    struct buf out = {0};

    resp_write(&out, argv, ARRAY_SIZE(argv));
    CHECK_STR(buf_str(&out), STR("*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n"));
    check_read(buf_str(&out), "[\"SET\", \"k\\x0d\\x0a\", \"\"]");
    buf_release(&out);
}
