/* server: requests in order, bodies both ways, HEAD, versions, files. */
#include "unit/http/server_lab.h"
#include "os/file.h"

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
