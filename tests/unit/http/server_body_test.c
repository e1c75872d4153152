/* server: request bodies, counted and chunked, wanted and unwanted. */
#include "unit/http/server_lab.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(server_body, is_the_same_whole_or_in_pieces)
{
    static const char *const paths[] = {"/echo", "/echo-reader"};
    static const size_t sizes[] = {0, 1, 4096, 20000, 40000, 1000000};
    struct lab lab = {0};
    struct answer a = {0};
    char *bytes = malloc(1000000);

    for (size_t i = 0; i < 1000000; i++)
        bytes[i] = (char)(i * 7 >> 2);
    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    for (size_t p = 0; p < ARRAY_SIZE(paths); p++)
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
            lab_sayf(fd, "PUT %s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", paths[p],
                     sizes[i]);
            lab_say(fd, str_n(bytes, sizes[i] / 2));
            lab_say(fd, str_n(bytes + sizes[i] / 2, sizes[i] - sizes[i] / 2));
            lab_read(fd, &a, false);
            CHECK_INT(a.status, 200);
            CHECK(str_eq(buf_str(&a.body), str_n(bytes, sizes[i])));
        }
    free(bytes);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_body, chunked_comes_with_trailers_byte_by_byte_too)
{
    static const struct str bytes = STR("PUT /trailers HTTP/1.1\r\nHost: a\r\n"
                                        "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                                        "5;ext=1\r\nhello\r\n3\r\nxyz\r\n0\r\nX-Sum:  77 \r\n\r\n");
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, bytes, 200);
    CHECK_STR(buf_str(&a.body), STR("X-Sum: 77\r\n"));
    for (size_t i = 0; i < bytes.len; i++)
        lab_say(fd, str_n(bytes.p + i, 1));
    lab_read(fd, &a, false);
    CHECK_STR(buf_str(&a.body), STR("X-Sum: 77\r\n"));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_body, chunked_echo_keeps_the_connection_and_what_is_behind_it)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("PUT /echo-reader HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n"
                    "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz"
                    "GET /target?last HTTP/1.1\r\nHost: a\r\n\r\n"));
    lab_read(fd, &a, false);
    CHECK_STR(buf_str(&a.body), STR("abcdef"));
    CHECK(a.head.chunked);
    lab_read(fd, &a, false);
    CHECK_STR(buf_str(&a.body), STR("xyz"));
    lab_read(fd, &a, false);
    CHECK_STR(buf_str(&a.body), STR("/target?last"));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_body, gets_100_continue_when_the_handler_reads)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(
        fd, &a,
        STR("PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"),
        100);
    lab_ask(fd, &a, STR("body"), 200);
    CHECK_STR(buf_str(&a.body), STR("body"));
    CHECK(a.head.keep_alive);
    /* The peer did not wait: no 100 is needed and none is sent. */
    lab_ask(fd, &a,
            STR("PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
                "body"),
            200);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_body, of_no_bytes_gets_100_continue_before_its_answer)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(
        fd, &a,
        STR("PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n"),
        100);
    lab_ask(fd, &a, STR_EMPTY, 200);
    CHECK(a.head.keep_alive && a.body.len == 0);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_body, gets_no_100_continue_when_the_handler_refuses)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(
        fd, &a,
        STR("PUT /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"),
        403);
    CHECK(!a.head.keep_alive);
    CHECK(lab_is_closed(fd, &a));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_body, that_nobody_read_is_skipped_when_small)
{
    struct lab lab = {0};
    struct answer a = {0};
    char bytes[50000] = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, STR("PUT /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n"), 200);
    CHECK(a.head.keep_alive);
    lab_say(fd, str_n(bytes, 20000));
    lab_say(fd, str_n(bytes, 30000));
    lab_ask(fd, &a, STR("GET /target?behind HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    CHECK_STR(buf_str(&a.body), STR("/target?behind"));
    lab_ask(fd, &a,
            STR("PUT /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                "1\r\na\r\n0\r\n\r\n"),
            200);
    CHECK(a.head.keep_alive); /* all of it was here */
    lab_ask(fd, &a, STR("PUT /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n"), 200);
    CHECK(!a.head.keep_alive);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_body, cut_off_by_the_peer_is_no_answer)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"));
    shutdown(fd, SHUT_WR);
    CHECK(lab_is_closed(fd, &a));
    LAB_UNTIL(lab_stats(&lab).connections == 0);
    CHECK_INT(lab_stats(&lab).status[2], 0);
    close(fd);
    lab_end(&lab);
}

TEST(server_body, of_a_half_closed_peer_is_answered)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"));
    shutdown(fd, SHUT_WR);
    lab_read(fd, &a, false);
    CHECK_STR(buf_str(&a.body), STR("3"));
    CHECK(lab_is_closed(fd, &a));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}
