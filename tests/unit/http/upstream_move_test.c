/* Moving bytes to a socket: every way gives the same bytes, and both sides' failures are told. */
#include "http/upstream.h"
#include "os/file.h"
#include "os/sock.h"
#include "os/thread.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LARGE = 3 * 1024 * 1024 + 7 };

static char *pattern(void)
{
    char *p = malloc(LARGE);
    uint32_t x = 99;
    for (size_t i = 0; i < LARGE; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (char)(x >> 24);
    }
    return p;
}

/* A connected pair whose far end a thread reads to its end. */
struct sink {
    int near, far;
    struct thread thread;
    struct buf got;
};

static void drink(void *ctx)
{
    struct sink *s = ctx;
    ssize_t n;

    while ((n = read(s->far, buf_reserve(&s->got, 64 * KIB), 64 * KIB)) > 0)
        buf_commit(&s->got, (size_t)n);
}

/* TCP, because that is what is spliced to. */
static void pair(int *near, int *far)
{
    struct sock_addr addr;
    struct err err = {0};
    int listener;

    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(sock_addr_parse(&addr, STR("127.0.0.1:0"), &err));
    CHECK_OK(sock_listen(&listener, &addr, 1, &err));
    CHECK_OK(sock_local(listener, &addr, &err));
    uint16_t port = ntohs(((struct sockaddr_in *)&addr.sa)->sin_port);
    CHECK_OK(sock_connect(near, "127.0.0.1", port, UINT64_MAX / 2, &err));
    *far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(*far >= 0);
    close(listener);
}

static void sink_start(struct sink *s)
{
    struct err err = {0};
    *s = (struct sink){0};
    pair(&s->near, &s->far);
    CHECK_OK(thread_start(&s->thread, "sink", 0, drink, s, &err));
}

static void sink_check(struct sink *s, struct str want)
{
    close(s->near);
    thread_join(&s->thread);
    CHECK(str_eq(buf_str(&s->got), want));
    close(s->far);
    buf_release(&s->got);
}

TEST(move, memory_and_files_arrive_whole)
{
    char *bytes = pattern(), path[300];
    struct str_reader memory;
    struct file_reader file;
    struct sink s;
    struct err err = {0};
    uint64_t sent;

    sink_start(&s);
    str_reader_init(&memory, str_n(bytes, LARGE));
    CHECK_OK(stream_to_socket(&memory.reader, s.near, LARGE, 30000, &sent, &err));
    CHECK_INT(sent, LARGE);
    sink_check(&s, str_n(bytes, LARGE));

    snprintf(path, sizeof(path), "%s/f", test_dir());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_OK(file_write_all(fd, bytes, LARGE, &err));
    sink_start(&s);
    file_reader_init(&file, (struct file_range){fd, 5, LARGE - 5}, true);
    CHECK_OK(stream_to_socket(&file.reader, s.near, 1000000, 30000, &sent, &err));
    CHECK_INT(file.range.len, LARGE - 5 - 1000000);
    CHECK_OK(stream_to_socket(&file.reader, s.near, LARGE - 5 - 1000000, 30000, &sent, &err));
    sink_check(&s, str_n(bytes + 5, LARGE - 5));
    reader_close(&file.reader);
    free(bytes);
}

static void serve_pattern(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;
    char *bytes = pattern(), head[100];

    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE);
    while (peer_read(c, &r)) {
        peer_write_z(c, head);
        peer_write(c, str_n(bytes, ctx ? LARGE / 2 : LARGE));
        peer_request_release(&r);
        if (ctx)
            break;
    }
    peer_request_release(&r);
    free(bytes);
}

static const struct upstream_request get = {.method = {"GET", 3}, .target = {"/x", 2}};

TEST(move, response_body_is_spliced_through)
{
    char *bytes = pattern();
    struct peer *peer = peer_start(serve_pattern, NULL, NULL);
    struct upstream *up;
    struct upstream_stats stats;
    struct err err = {0};

    CHECK_OK(upstream_new(&up, &(struct upstream_options){.url = str_z(peer_url(peer))}, &err));
    for (int i = 0; i < 3; i++) {
        struct exchange *e;
        struct sink s;
        uint64_t sent, len;
        char first[30000];
        int fd;

        sink_start(&s);
        CHECK_OK(upstream_send(&e, up, &get, &err));
        /* What came with the head is read, then the rest is a plain socket. */
        CHECK_OK(reader_read_full(exchange_body(e), first, sizeof(first), &err));
        CHECK(reader_as_socket(exchange_body(e), &fd, &len));
        CHECK_INT(len, LARGE - sizeof(first));
        CHECK_OK(stream_to_socket(exchange_body(e), s.near, len, 30000, &sent, &err));
        CHECK_INT(sent, len);
        exchange_close(e);
        sink_check(&s, str_n(bytes + sizeof(first), LARGE - sizeof(first)));
        CHECK(memcmp(first, bytes, sizeof(first)) == 0);
    }
    upstream_stats(up, &stats);
    CHECK_INT(stats.connects, 1);
    upstream_free(up);
    peer_stop(peer);
    free(bytes);
}

TEST(move, source_that_breaks_off_is_the_readers_error)
{
    struct peer *peer = peer_start(serve_pattern, "half", NULL);
    struct upstream *up;
    struct exchange *e;
    struct sink s;
    struct err err = {0};
    uint64_t sent;

    CHECK_OK(upstream_new(&up, &(struct upstream_options){.url = str_z(peer_url(peer))}, &err));
    sink_start(&s);
    CHECK_OK(upstream_send(&e, up, &get, &err));
    CHECK_ERR(stream_to_socket(exchange_body(e), s.near, LARGE, 30000, &sent, &err), ERR_CLOSED);
    CHECK_STR(str_z(err.text), STR("upstream: closed in the middle of the body"));
    CHECK_INT(sent, LARGE / 2);
    exchange_close(e);
    char *bytes = pattern();
    sink_check(&s, str_n(bytes, LARGE / 2));
    free(bytes);
    upstream_free(up);
    peer_stop(peer);
}

TEST(move, reader_that_ends_early_or_file_that_shrank_is_told)
{
    struct str_reader memory;
    struct file_reader file;
    struct sink s;
    struct err err = {0};
    uint64_t sent;
    char path[300];

    sink_start(&s);
    str_reader_init(&memory, STR("abc"));
    CHECK_ERR(stream_to_socket(&memory.reader, s.near, 5, 30000, &sent, &err), ERR_CLOSED);
    CHECK_INT(sent, 3);
    snprintf(path, sizeof(path), "%s/f", test_dir());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_OK(file_write_all(fd, "def", 3, &err));
    file_reader_init(&file, (struct file_range){fd, 0, 9}, true);
    CHECK_ERR(stream_to_socket(&file.reader, s.near, 9, 30000, &sent, &err), ERR_CORRUPT);
    CHECK_INT(sent, 3);
    reader_close(&file.reader);
    sink_check(&s, STR("abcdef"));
}

TEST(move, receiver_that_stalls_or_goes_away_is_told)
{
    int near, far;
    char *bytes = calloc(1, 64 * MIB);
    struct str_reader memory;
    struct err err = {0};
    uint64_t sent;

    pair(&near, &far);
    str_reader_init(&memory, str_n(bytes, 64 * MIB));
    CHECK_ERR(stream_to_socket(&memory.reader, near, 64 * MIB, 30, &sent, &err), ERR_TIMEOUT);
    CHECK(sent < 64 * MIB);
    close(far);
    str_reader_init(&memory, str_n(bytes, 64 * MIB));
    CHECK_ERR(stream_to_socket(&memory.reader, near, 64 * MIB, 30000, &sent, &err), ERR_CLOSED);
    close(near);
    free(bytes);
}
