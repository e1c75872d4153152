/* server: the same handlers over TLS, and a new certificate without a restart. */
#include "base/clock.h"
#include "os/file.h"
#include "os/tls.h"
#include "unit/http/server_lab.h"
#include "unit/os/certs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DAY = 86400 };

static const char *path_of(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", test_dir(), name);
    return path;
}

static struct tls_context *context_of(const char *stem)
{
    struct tls_context *c;
    struct err err = {0};
    char pem[64], key[64];

    cert_write(test_dir(), stem, &(struct cert_options){stem, "IP:127.0.0.1", -DAY, DAY});
    snprintf(pem, sizeof(pem), "%s.pem", stem);
    snprintf(key, sizeof(key), "%s.key", stem);
    CHECK_OK(tls_server_context(&c, path_of(pem), path_of(key), &err));
    return c;
}

static uint64_t soon(void)
{
    return clock_mono_ns() + 30000000000;
}

/* A client's end that trusts `stem` alone; NULL when the server shows another certificate. */
static struct tls *connect_to(struct lab *lab, const char *stem, int *fd)
{
    struct tls_context *c;
    struct tls *t = NULL;
    struct err err = {0};
    char pem[64];

    snprintf(pem, sizeof(pem), "%s.pem", stem);
    CHECK_OK(tls_client_context(&c, &(struct tls_client_options){.ca_file = path_of(pem)}, &err));
    *fd = lab_dial(lab);
    fcntl(*fd, F_SETFL, O_NONBLOCK);
    if (tls_connect(&t, c, *fd, "127.0.0.1", soon(), &err) < 0)
        t = NULL;
    tls_context_unref(c);
    return t;
}

/* Asks and reads one response with a length; the body is in out. */
static int ask(struct tls *t, struct str request, struct buf *out)
{
    struct http_head head = {0};
    struct err err = {0};
    size_t seen = 0, got = 1;
    char piece[16384];

    buf_reset(out);
    CHECK_OK(tls_send_all(t, request.p, request.len, soon(), &err));
    while (out->len == 0 || http_parse_response(&head, buf_str(out), &seen, &err) == ERR_AGAIN ||
           out->len < head.size + head.content_length) {
        CHECK_OK(tls_recv(t, piece, sizeof(piece), &got, soon(), &err));
        CHECK(got > 0);
        buf_append(out, piece, got);
    }
    CHECK_INT(out->len, head.size + head.content_length);
    buf_consume(out, head.size);
    return head.status;
}

static void hang_up(struct tls *t, int fd)
{
    tls_close(t);
    close(fd);
}

TEST(server_tls, serves_the_same_over_tls)
{
    struct lab lab = {.file = lab_make_file("f", 3000000)};
    struct tls_context *c = context_of("a");
    struct buf out = BUF_INIT(0), want = BUF_INIT(0), put = BUF_INIT(0);
    struct err err = {0};
    int fd;

    CHECK_OK(file_read(lab.file, &want, &err));
    lab_start(&lab, (struct http_server_options){.tls = c});
    struct tls *t = connect_to(&lab, "a", &fd);
    CHECK(t != NULL);
    CHECK_INT(ask(t, STR("GET /is-tls HTTP/1.1\r\nHost: a\r\n\r\n"), &out), 200);
    CHECK_STR(buf_str(&out), STR("tls"));
    CHECK_INT(ask(t, STR("GET /file HTTP/1.1\r\nHost: a\r\n\r\n"), &out), 200);
    CHECK(str_eq(buf_str(&out), buf_str(&want)));
    CHECK_INT(ask(t, STR("GET /large HTTP/1.1\r\nHost: a\r\n\r\n"), &out), 200);
    CHECK_INT(out.len, 3 * MIB);
    buf_append_z(&put, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    size_t head = put.len;
    for (int i = 0; i < 100000; i++)
        buf_append_char(&put, (char)('a' + i % 26));
    CHECK_INT(ask(t, buf_str(&put), &out), 200);
    CHECK(str_eq(buf_str(&out), str_skip(buf_str(&put), head)));
    hang_up(t, fd);
    tls_context_unref(c);
    buf_release(&out), buf_release(&want), buf_release(&put);
    lab_end(&lab);
}

TEST(server_tls, shows_a_new_certificate_to_new_connections_only)
{
    struct lab lab = {0};
    struct tls_context *a = context_of("a"), *b = context_of("b");
    struct buf out = BUF_INIT(0);
    int old_fd, new_fd, wrong_fd;

    lab_start(&lab, (struct http_server_options){.tls = a});
    struct tls *old = connect_to(&lab, "a", &old_fd);
    CHECK(old != NULL);
    http_server_tls(lab.server, b);
    struct tls *new = connect_to(&lab, "b", &new_fd);
    CHECK(new != NULL);
    CHECK(connect_to(&lab, "a", &wrong_fd) == NULL);
    CHECK_INT(ask(old, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), &out), 200);
    CHECK_INT(ask(new, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), &out), 200);
    hang_up(old, old_fd);
    hang_up(new, new_fd);
    close(wrong_fd);
    tls_context_unref(a);
    tls_context_unref(b);
    buf_release(&out);
    lab_end(&lab);
}

TEST(server_tls, unfinished_handshakes_hold_no_thread_and_end)
{
    struct lab lab = {0};
    struct tls_context *c = context_of("a");
    struct answer a = {0};
    struct buf out = BUF_INIT(0);
    int fds[30], fd;

    lab_start(&lab, (struct http_server_options){.tls = c, .head_timeout_ms = 4000});
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = lab_dial(&lab);
        lab_say(fds[i], STR("\x16\x03\x01")); /* the beginning of a hello */
    }
    struct tls *t = connect_to(&lab, "a", &fd); /* though the pool has 8 threads */
    CHECK(t != NULL);
    CHECK_INT(ask(t, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), &out), 200);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        CHECK(lab_is_closed(fds[i], &a));
        close(fds[i]);
    }
    hang_up(t, fd);
    tls_context_unref(c);
    buf_release(&out);
    lab_end(&lab);
}

TEST(server_tls, refuses_what_is_not_tls)
{
    struct lab lab = {0};
    struct tls_context *c = context_of("a");
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.tls = c});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (!lab_is_closed(fd, &a)) /* an alert may come first */
        ;
    close(fd);
    tls_context_unref(c);
    lab_end(&lab);
}
