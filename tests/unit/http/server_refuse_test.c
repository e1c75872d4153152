/* server: what it refuses, with which status, and that nothing gets through behind it. */
#include "unit/http/server_lab.h"

#include <stdlib.h>
#include <unistd.h>

#define REQUEST(fields) STR("POST /echo HTTP/1.1\r\nHost: a\r\n" fields "\r\n")

TEST(server_refuses, each_malformed_head_with_its_status)
{
    static const struct {
        int status;
        struct str bytes;
    } cases[] = {
        {400, STR("GET / HTTP/1.1\nHost: a\n\n")},
        {400, STR("GET / HTTP/1.1\r\n\r\n")},
        {400, STR("GET  / HTTP/1.1\r\nHost: a\r\n\r\n")},
        {400, STR("\x16\x03\x01\x02")},
        {400, REQUEST("A: b\r\n c\r\n")},
        {400, REQUEST("A: b\0c\r\n")},
        {400, REQUEST("A : b\r\n")},
        {400, REQUEST("Host: b\r\n")},
        {400, REQUEST("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n")},
        {400, REQUEST("Content-Length: 1\r\nContent-Length: 2\r\n")},
        {400, REQUEST("Content-Length: 1\r\nContent-Length: 1\r\n")},
        {400, REQUEST("Content-Length: +1\r\n")},
        {400, REQUEST("Content-Length: 18446744073709551616\r\n")},
        {400, REQUEST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")},
        {400, STR("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")},
        {501, REQUEST("Transfer-Encoding: gzip, chunked\r\n")},
        {501, REQUEST("Transfer-Encoding: identity\r\n")},
        {505, STR("GET / HTTP/2.0\r\nHost: a\r\n\r\n")},
        {505, STR("GET / HTTP/1.2\r\nHost: a\r\n\r\n")},
        {400, STR("GET / HTTP/1.x\r\nHost: a\r\n\r\n")},
    };
    struct lab lab = {0};

    lab_start(&lab, (struct http_server_options){0});
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int status = lab_status_of(&lab, cases[i].bytes);
        if (status != cases[i].status)
            test_fail(__FILE__, __LINE__, "%d, not %d: " STR_FMT, status, cases[i].status,
                      STR_ARG(cases[i].bytes));
    }
    CHECK_INT(lab_stats(&lab).bad_requests, ARRAY_SIZE(cases));
    lab_end(&lab);
}

TEST(server_refuses, what_is_too_large)
{
    struct lab lab = {0};
    struct buf b = BUF_INIT(0);

    lab_start(&lab, (struct http_server_options){.max_body = 1000});
    buf_append_z(&b, "GET /");
    for (int i = 0; i < 9000; i++)
        buf_append_char(&b, 'x');
    buf_append_z(&b, " HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK_INT(lab_status_of(&lab, buf_str(&b)), 414);
    buf_reset(&b);
    buf_append_z(&b, "GET / HTTP/1.1\r\nHost: a\r\nA: ");
    for (int i = 0; i < 9000; i++)
        buf_append_char(&b, 'x');
    buf_append_z(&b, "\r\n\r\n");
    CHECK_INT(lab_status_of(&lab, buf_str(&b)), 431);
    buf_reset(&b);
    buf_append_z(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 100; i++)
        buf_append_z(&b, "A: b\r\n");
    buf_append_z(&b, "\r\n");
    CHECK_INT(lab_status_of(&lab, buf_str(&b)), 431);
    buf_reset(&b);
    buf_append_z(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 40; i++) {
        buf_append_z(&b, "A: ");
        for (int k = 0; k < 1000; k++)
            buf_append_char(&b, 'y');
        buf_append_z(&b, "\r\n");
    }
    CHECK_INT(lab_status_of(&lab, buf_str(&b)), 431); /* and never ends */
    CHECK_INT(lab_status_of(&lab, REQUEST("Content-Length: 1001\r\n")), 413);
    buf_reset(&b);
    buf_append_z(&b, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n");
    for (int i = 0; i < 1001; i++)
        buf_append_char(&b, 'z');
    buf_append_z(&b, "\r\n0\r\n\r\n");
    CHECK_INT(lab_status_of(&lab, buf_str(&b)), 413);
    buf_release(&b);
    lab_end(&lab);
}

TEST(server_refuses, a_bad_chunk_and_does_not_read_on)
{
    struct lab lab = {0};

    lab_start(&lab, (struct http_server_options){0});
    CHECK_INT(lab_status_of(&lab, REQUEST("Transfer-Encoding: chunked\r\n"
                                          "\r\nxyz\r\nGET /hello HTTP/1.1\r\nHost: a\r\n")),
              400);
    CHECK_INT(lab_status_of(&lab, REQUEST("Transfer-Encoding: chunked\r\n"
                                          "\r\n3\r\nabcd\r\n0\r\n")),
              400);
    CHECK_INT(lab_stats(&lab).requests, 2);
    lab_end(&lab);
}

/* The second request is inside what the first one's refusal leaves unread: one answer only. */
TEST(server_refuses, a_request_smuggled_behind_a_conflict)
{
    static const struct str cases[] = {
        STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: "
            "chunked\r\n\r\n"
            "0\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nContent-Length: "
            "4\r\n\r\n"
            "0\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n"
            "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"),
    };
    struct lab lab = {0};

    lab_start(&lab, (struct http_server_options){0});
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK(lab_status_of(&lab, cases[i]) >= 400); /* and that the connection then ends */
    CHECK_INT(lab_stats(&lab).requests, ARRAY_SIZE(cases));
    CHECK_INT(lab_stats(&lab).status[2], 0);
    lab_end(&lab);
}

/* The peer has megabytes on their way; a close without reading them would reset the connection
 * before the answer is read. */
TEST(server_refuses, an_upload_early_and_the_peer_gets_the_answer)
{
    struct lab lab = {0};
    size_t len = 8 * MIB;
    char *bytes = calloc(1, len);

    lab_start(&lab, (struct http_server_options){0});
    for (int i = 0; i < 3; i++) {
        struct answer a = {0};
        int fd = lab_dial(&lab);
        lab_sayf(fd, "PUT /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", len);
        lab_say(fd, str_n(bytes, len));
        lab_read(fd, &a, false);
        CHECK_INT(a.status, 403);
        CHECK(!a.head.keep_alive);
        CHECK(lab_is_closed(fd, &a));
        answer_release(&a);
        close(fd);
    }
    free(bytes);
    lab_end(&lab);
}

TEST(server_refuses, and_still_answers_what_was_pipelined_before)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /bad\r\n\r\n"));
    lab_read(fd, &a, false);
    CHECK_INT(a.status, 200);
    lab_read(fd, &a, false);
    CHECK_INT(a.status, 400);
    CHECK(lab_is_closed(fd, &a));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_refuses, a_body_larger_than_its_handler_takes)
{
    struct lab lab = {0};

    lab_start(&lab, (struct http_server_options){0});
    CHECK_INT(lab_status_of(&lab, REQUEST("Content-Length: 5000000\r\n")), 413);
    lab_end(&lab);
}
