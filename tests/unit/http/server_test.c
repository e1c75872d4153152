/* server: requests in order, bodies both ways, HEAD, versions, files. */
#include "unit/http/server_lab.h"
#include "os/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define GET(path) STR("GET " path " HTTP/1.1\r\nHost: a\r\n\r\n")

TEST(server, answers_a_get_and_keeps_the_connection)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.server_header = "test"});
    int fd = lab_dial(&lab);
    for (int i = 0; i < 3; i++) {
        lab_ask(fd, &a, GET("/hello"), 200);
        CHECK_STR(buf_str(&a.body), STR("hello"));
        CHECK_STR(http_header(&a.head, "Content-Type"), STR("text/plain"));
        CHECK_STR(http_header(&a.head, "Server"), STR("test"));
        CHECK_INT(http_header(&a.head, "Date").len, 29);
        CHECK(a.head.keep_alive);
    }
    CHECK_INT(lab_stats(&lab).accepted, 1);
    LAB_UNTIL(lab_stats(&lab).requests == 3);
    CHECK_INT(lab_stats(&lab).status[2], 3);
    answer_release(&a);
    close(fd);
    LAB_UNTIL(lab_stats(&lab).connections == 0);
    lab_end(&lab);
}

TEST(server, answers_a_hundred_pipelined_requests_in_order)
{
    struct lab lab = {0};
    struct answer a = {0};
    struct buf all = BUF_INIT(0);

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    for (int i = 0; i < 100; i++)
        buf_appendf(&all, "GET /target?%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
    lab_say(fd, buf_str(&all));
    for (int i = 0; i < 100; i++) {
        char want[32];
        snprintf(want, sizeof(want), "/target?%d", i);
        lab_read(fd, &a, false);
        CHECK_INT(a.status, 200);
        CHECK_STR(buf_str(&a.body), str_z(want));
    }
    buf_release(&all);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, takes_a_head_byte_by_byte)
{
    struct lab lab = {0};
    struct answer a = {0};
    struct str bytes = GET("/target?slowly");

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    for (size_t i = 0; i < bytes.len; i++)
        lab_say(fd, str_n(bytes.p + i, 1));
    lab_read(fd, &a, false);
    CHECK_STR(buf_str(&a.body), STR("/target?slowly"));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, sends_files_small_and_large_whole)
{
    static const size_t sizes[] = {0, 1, 4096, 32768, 32769, 5000000};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct lab lab = {.file = lab_make_file("f", sizes[i])};
        struct answer a = {0};
        struct buf want = BUF_INIT(0);
        struct err err = {0};

        CHECK_OK(file_read(lab.file, &want, &err));
        lab_start(&lab, (struct http_server_options){0});
        int fd = lab_dial(&lab);
        lab_ask(fd, &a, GET("/file"), 200);
        CHECK_INT(a.body.len, sizes[i]);
        CHECK(str_eq(buf_str(&a.body), buf_str(&want)));
        lab_ask(fd, &a, GET("/file-reader"), 200);
        CHECK(str_eq(buf_str(&a.body), buf_str(&want)));
        answer_release(&a);
        buf_release(&want);
        close(fd);
        lab_end(&lab);
    }
}

TEST(server, sends_the_same_head_and_no_body_to_head)
{
    static const struct str paths[] = {STR("/hello"), STR("/file"), STR("/pieces"), STR("/large")};
    struct lab lab = {.file = lab_make_file("f", 100000)};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        lab_sayf(fd, "GET " STR_FMT " HTTP/1.1\r\nHost: a\r\n\r\n", STR_ARG(paths[i]));
        lab_read(fd, &a, false);
        uint64_t length = a.head.content_length;
        bool chunked = a.head.chunked;
        lab_sayf(fd, "HEAD " STR_FMT " HTTP/1.1\r\nHost: a\r\n\r\n", STR_ARG(paths[i]));
        lab_read(fd, &a, true);
        CHECK_INT(a.status, 200);
        CHECK_INT(a.head.content_length, length);
        CHECK_INT(a.head.chunked, chunked);
    }
    lab_ask(fd, &a, GET("/hello"), 200); /* no body byte was in between */
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, sends_no_body_with_204_and_304)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, GET("/nothing"), 204);
    CHECK(!a.head.has_length && !a.head.chunked);
    lab_ask(fd, &a, GET("/not-modified"), 304);
    CHECK_STR(http_header(&a.head, "ETag"), STR("\"x\""));
    lab_ask(fd, &a, GET("/stream-nothing"), 204);
    CHECK(!a.head.has_length && !a.head.chunked);
    lab_ask(fd, &a, GET("/hello"), 200);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, streams_pieces_as_chunks)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, GET("/pieces"), 200);
    CHECK(a.head.chunked && a.whole);
    CHECK_INT(a.body.len, 4 + 100000 + 6);
    CHECK(str_ends(buf_str(&a.body), STR("x,three")));
    lab_ask(fd, &a, GET("/hello"), 200);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, ends_a_stream_to_http_1_0_with_the_connection)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, STR("GET /pieces HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 200);
    CHECK(!a.head.chunked && !a.head.has_length && !a.head.keep_alive);
    CHECK_INT(a.body.len, 4 + 100000 + 6);
    CHECK(lab_is_closed(fd, &a));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, keeps_a_http_1_0_connection_only_when_asked)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, STR("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 200);
    CHECK_STR(http_header(&a.head, "Connection"), STR("keep-alive"));
    lab_ask(fd, &a, STR("GET /hello HTTP/1.0\r\n\r\n"), 200);
    CHECK_STR(http_header(&a.head, "Connection"), STR("close"));
    CHECK(lab_is_closed(fd, &a));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, closes_when_asked_to)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, STR("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 200);
    CHECK(!a.head.keep_alive);
    CHECK(lab_is_closed(fd, &a));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, sends_memory_that_no_socket_takes_at_once)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, GET("/large"), 200);
    CHECK_INT(a.body.len, 3 * MIB);
    for (size_t i = 0; i < a.body.len; i++)
        CHECK_INT(a.body.p[i], 'a' + i % 23);
    lab_ask(fd, &a, GET("/middle"), 200);
    CHECK_INT(a.body.len, MIB);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, answers_500_when_a_handler_fails_and_logs_it_once)
{
    struct lab lab = {0};
    char path[256];
    struct buf text = BUF_INIT(0);
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/log", test_dir());
    int out = open(path, O_WRONLY | O_CREAT, 0600);
    struct log_sink *sink = log_sink_new(out, LOG_INFO, LOG_TEXT);
    struct log log = {.sink = sink};
    lab_start(&lab, (struct http_server_options){.log = &log});
    CHECK_INT(lab_status_of(&lab, GET("/fail")), 500);
    lab_end(&lab);
    log_sink_free(sink);
    close(out);
    CHECK_OK(file_read(path, &text, &err));
    ptrdiff_t at = str_find(buf_str(&text), STR("http.handler_failed"));
    CHECK(at >= 0);
    CHECK(str_find(buf_str(&text), STR("request=")) >= 0);
    CHECK(str_find(str_skip(buf_str(&text), (size_t)at + 1), STR("http.handler_failed")) < 0);
    buf_release(&text);
}

TEST(server, drops_the_connection_when_a_response_cannot_be_finished)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, GET("/short-reader"), 200);
    CHECK_INT(a.head.content_length, 8);
    CHECK(!a.whole);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, tells_who_the_peer_is)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, GET("/peer"), 200);
    CHECK_STR(buf_str(&a.body), STR("127.0.0.1"));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server, names_the_address_that_is_in_use)
{
    struct lab lab = {0};
    struct http_server_options o = {.handler = lab_handler};
    struct http_server *second;
    struct err err = {0};
    char text[64];

    lab_start(&lab, (struct http_server_options){0});
    snprintf(text, sizeof(text), "127.0.0.1:%u", lab.port);
    CHECK_OK(sock_addr_parse(&o.listen, str_z(text), &err));
    CHECK_ERR(http_server_start(&second, &o, &err), ERR_IN_USE);
    CHECK(strstr(err.text, text) != NULL);
    lab_end(&lab);
}

TEST(server, logs_nothing_when_a_peer_goes_away)
{
    struct lab lab = {0};
    char path[256];
    struct buf text = BUF_INIT(0);
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/log", test_dir());
    int out = open(path, O_WRONLY | O_CREAT, 0600);
    struct log_sink *sink = log_sink_new(out, LOG_INFO, LOG_TEXT);
    struct log log = {.sink = sink};
    lab_start(&lab, (struct http_server_options){.log = &log});
    for (int i = 0; i < 10; i++) {
        int fd = lab_dial(&lab);
        lab_say(fd, i % 2 ? GET("/large")
                          : STR("PUT /count HTTP/1.1\r\nHost: a\r\n"
                                "Content-Length: 10\r\n\r\nabc"));
        LAB_UNTIL(lab_stats(&lab).bytes_in > 0);
        close(fd);
    }
    LAB_UNTIL(lab_stats(&lab).accepted == 10 && lab_stats(&lab).connections == 0);
    lab_end(&lab);
    log_sink_free(sink);
    close(out);
    CHECK_OK(file_read(path, &text, &err));
    CHECK_STR(buf_str(&text), STR(""));
    buf_release(&text);
}
