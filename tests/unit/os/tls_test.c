/* tls: both sides of a socket pair, one in a thread. */
#include "os/tls.h"
#include "base/clock.h"
#include "os/file.h"
#include "os/thread.h"
#include "unit/os/certs.h"
#include "unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DAY = 86400 };

/* The accepting side: runs `serve` after the handshake, keeps how the handshake ended. */
struct server {
    struct tls_context *context;
    struct thread thread;
    int fd;
    int code;
    void (*serve)(struct tls *t);
};

static uint64_t soon(void)
{
    return clock_mono_ns() + 30 * NS_PER_S;
}

static char *path_of(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", test_dir(), name);
    return path;
}

static void server_main(void *ctx)
{
    struct server *s = ctx;
    struct tls *t = NULL;
    struct err err = {0};

    s->code = tls_accept(&t, s->context, s->fd, soon(), &err);
    if (s->code == 0 && s->serve)
        s->serve(t);
    tls_close(t);
    fd_close(&s->fd);
}

static void pair(int fds[2])
{
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

/* Starts a server with the certificate `stem`; returns the client's end of the socket. */
static int server_start(struct server *s, const char *stem, void (*serve)(struct tls *t))
{
    struct err err = {0};
    char pem[64], key[64];
    int fds[2];

    snprintf(pem, sizeof(pem), "%s.pem", stem);
    snprintf(key, sizeof(key), "%s.key", stem);
    *s = (struct server){.serve = serve};
    CHECK_OK(tls_server_context(&s->context, path_of(pem), path_of(key), &err));
    pair(fds);
    s->fd = fds[0];
    CHECK_OK(thread_start(&s->thread, "tls-server", 0, server_main, s, &err));
    return fds[1];
}

static void server_end(struct server *s)
{
    thread_join(&s->thread);
    tls_context_unref(s->context);
}

static void good_cert(const char *stem)
{
    cert_write(
        test_dir(), stem,
        &(struct cert_options){"good", "DNS:localhost,DNS:*.example.com,IP:127.0.0.1", -DAY, DAY});
}

static struct tls_context *client_trusting(const char *file)
{
    struct tls_context *c = NULL;
    struct err err = {0};
    CHECK_OK(tls_client_context(&c, &(struct tls_client_options){.ca_file = file}, &err));
    return c;
}

/* What connecting as `host` to a server with certificate `stem` gives, trusting `trusted`. */
static int connect_code(const char *stem, const char *trusted, const char *host, struct err *err)
{
    struct server server;
    int fd = server_start(&server, stem, NULL), code;
    struct tls_context *c = client_trusting(path_of(trusted));
    struct tls *t = NULL;

    code = tls_connect(&t, c, fd, host, soon(), err);
    tls_close(t);
    fd_close(&fd);
    tls_context_unref(c);
    server_end(&server);
    return code;
}

static void serve_echo(struct tls *t)
{
    struct err err = {0};
    char piece[5000];
    size_t got;

    for (;;) {
        CHECK_OK(tls_recv(t, piece, sizeof(piece), &got, soon(), &err));
        if (got == 0)
            return;
        CHECK_OK(tls_send_all(t, piece, got, soon(), &err));
    }
}

TEST(tls, bytes_come_back_as_they_were_sent)
{
    enum { TOTAL = 200000 };
    static unsigned char sent[TOTAL], back[TOTAL];
    struct err err = {0};
    struct server server;
    struct tls *t = NULL;
    size_t got;
    int fd;

    good_cert("a");
    fd = server_start(&server, "a", serve_echo);
    struct tls_context *c = client_trusting(path_of("a.pem"));
    CHECK_OK(tls_connect(&t, c, fd, "localhost", soon(), &err));
    for (size_t i = 0; i < TOTAL; i++)
        sent[i] = (unsigned char)(i * 31 + i / 251);
    for (size_t at = 0; at < TOTAL; at += 20000) {
        CHECK_OK(tls_send_all(t, sent + at, 20000, soon(), &err));
        for (size_t n = 0; n < 20000; n += got) {
            CHECK_OK(tls_recv(t, back + at + n, 20000 - n, &got, soon(), &err));
            CHECK(got > 0);
        }
    }
    CHECK(memcmp(sent, back, TOTAL) == 0);
    tls_close(t);
    fd_close(&fd);
    tls_context_unref(c);
    server_end(&server);
    CHECK_INT(server.code, 0);
}

TEST(tls, the_host_is_checked_by_name_wildcard_and_address)
{
    struct err err = {0};

    good_cert("a");
    CHECK_OK(connect_code("a", "a.pem", "localhost", &err));
    CHECK_OK(connect_code("a", "a.pem", "one.example.com", &err));
    CHECK_OK(connect_code("a", "a.pem", "127.0.0.1", &err));
    CHECK_ERR(connect_code("a", "a.pem", "elsewhere", &err), ERR_PEER);
    CHECK(strstr(err.text, "mismatch"));
    CHECK_ERR(connect_code("a", "a.pem", "two.one.example.com", &err), ERR_PEER);
    CHECK_ERR(connect_code("a", "a.pem", "127.0.0.2", &err), ERR_PEER);
    CHECK_ERR(connect_code("a", "a.pem", "::1", &err), ERR_PEER);
    CHECK_ERR(connect_code("a", "a.pem", "", &err), ERR_INVALID);
}

TEST(tls, a_certificate_out_of_its_time_is_refused)
{
    struct err err = {0};

    cert_write(test_dir(), "old", &(struct cert_options){"old", "DNS:localhost", -2 * DAY, -DAY});
    CHECK_ERR(connect_code("old", "old.pem", "localhost", &err), ERR_PEER);
    CHECK(strstr(err.text, "expired"));
    cert_write(test_dir(), "early", &(struct cert_options){"early", "DNS:localhost", DAY, 2 * DAY});
    CHECK_ERR(connect_code("early", "early.pem", "localhost", &err), ERR_PEER);
    CHECK(strstr(err.text, "not yet valid"));
}

TEST(tls, a_certificate_of_somebody_else_is_refused_unless_insecure)
{
    struct err err = {0};
    struct server server;
    struct tls_context *c = NULL;
    struct tls *t = NULL;
    int fd;

    good_cert("a");
    cert_write(test_dir(), "b", &(struct cert_options){"other", "DNS:localhost", -DAY, DAY});
    CHECK_ERR(connect_code("a", "b.pem", "localhost", &err), ERR_PEER);
    CHECK(strstr(err.text, "certificate"));

    fd = server_start(&server, "a", serve_echo);
    CHECK_OK(tls_client_context(&c, &(struct tls_client_options){.insecure = true}, &err));
    CHECK_OK(tls_connect(&t, c, fd, "elsewhere", soon(), &err));
    tls_close(t);
    fd_close(&fd);
    tls_context_unref(c);
    server_end(&server);
}

TEST(tls, wrong_files_are_named_with_the_reason)
{
    struct err err = {0};
    struct tls_context *c = NULL;

    good_cert("a");
    good_cert("b");
    CHECK_ERR(tls_server_context(&c, path_of("none.pem"), path_of("a.key"), &err), ERR_INVALID);
    CHECK(strstr(err.text, "none.pem") && strstr(err.text, "No such file"));
    CHECK_ERR(tls_server_context(&c, path_of("a.key"), path_of("a.key"), &err), ERR_INVALID);
    CHECK(strstr(err.text, "certificate in") && strstr(err.text, "a.key"));
    CHECK_ERR(tls_server_context(&c, path_of("a.pem"), path_of("a.pem"), &err), ERR_INVALID);
    CHECK(strstr(err.text, "private key in"));
    CHECK_ERR(tls_server_context(&c, path_of("a.pem"), path_of("b.key"), &err), ERR_INVALID);
    CHECK(strstr(err.text, "b.key") && strstr(err.text, "mismatch"));
    CHECK_ERR(tls_client_context(&c, &(struct tls_client_options){.ca_file = path_of("no")}, &err),
              ERR_INVALID);
    CHECK(c == NULL);
}

static void serve_cut_off(struct tls *t)
{
    struct err err = {0};
    char c;
    size_t got;
    CHECK_OK(tls_recv(t, &c, 1, &got, soon(), &err));
    CHECK_ERR(tls_recv(t, &c, 1, &got, soon(), &err), ERR_CLOSED);
    CHECK_ERR(tls_send_all(t, "x", 1, soon(), &err), ERR_CLOSED);
}

TEST(tls, a_peer_that_vanishes_is_told_from_one_that_closes)
{
    struct err err = {0};
    struct server server;
    struct tls *t = NULL;
    int fd;

    good_cert("a");
    fd = server_start(&server, "a", serve_cut_off);
    struct tls_context *c = client_trusting(path_of("a.pem"));
    CHECK_OK(tls_connect(&t, c, fd, "localhost", soon(), &err));
    CHECK_OK(tls_send_all(t, "x", 1, soon(), &err));
    shutdown(fd, SHUT_RDWR); /* without close_notify */
    server_end(&server);
    /* Sending to nobody is an error, not SIGPIPE. */
    char block[70000] = {0};
    CHECK(tls_send_all(t, block, sizeof(block), soon(), &err) < 0);
    tls_close(t);
    fd_close(&fd);
    tls_context_unref(c);
}

TEST(tls, a_peer_that_is_silent_or_talks_something_else_fails_the_handshake)
{
    struct err err = {0};
    struct tls_context *c = NULL;
    struct tls *t = NULL;
    int fds[2];

    good_cert("a");
    CHECK_OK(tls_server_context(&c, path_of("a.pem"), path_of("a.key"), &err));
    pair(fds);
    CHECK_ERR(tls_accept(&t, c, fds[0], clock_mono_ns() + NS_PER_MS, &err), ERR_TIMEOUT);
    CHECK_INT(write(fds[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
    CHECK_ERR(tls_accept(&t, c, fds[0], soon(), &err), ERR_PEER);
    CHECK(strstr(err.text, "http request"));
    fd_close(&fds[0]);
    fd_close(&fds[1]);
    pair(fds);
    fd_close(&fds[1]);
    CHECK_ERR(tls_accept(&t, c, fds[0], soon(), &err), ERR_CLOSED);
    fd_close(&fds[0]);
    CHECK(t == NULL);
    tls_context_unref(c);
}

TEST(tls, receiving_now_never_waits)
{
    struct err err = {0};
    struct server server;
    struct tls *t = NULL;
    char back[8];
    size_t got = 0;
    int fd, code;

    good_cert("a");
    fd = server_start(&server, "a", serve_echo);
    struct tls_context *c = client_trusting(path_of("a.pem"));
    CHECK_OK(tls_connect(&t, c, fd, "localhost", soon(), &err));
    CHECK_ERR(tls_recv_now(t, back, sizeof(back), &got, &err), ERR_AGAIN);
    CHECK_OK(tls_send_all(t, "abcdef", 6, soon(), &err));
    while ((code = tls_recv_now(t, back, 2, &got, &err)) == ERR_AGAIN)
        ;
    CHECK_INT(code, 0);
    CHECK_STR(str_n(back, got), STR("ab"));
    CHECK(tls_pending(t));
    CHECK_OK(tls_recv(t, back, sizeof(back), &got, soon(), &err));
    CHECK_STR(str_n(back, got), STR("cdef"));
    CHECK(!tls_pending(t));
    CHECK_ERR(tls_recv(t, back, 1, &got, clock_mono_ns() + NS_PER_MS, &err), ERR_TIMEOUT);
    tls_close(t);
    fd_close(&fd);
    tls_context_unref(c);
    server_end(&server);
}

TEST(tls, a_connection_keeps_its_context_when_the_certificate_is_replaced)
{
    struct err err = {0};
    struct server server;
    struct tls *t = NULL;
    char c;
    size_t got;
    int fd;

    good_cert("a");
    fd = server_start(&server, "a", serve_echo);
    struct tls_context *client = client_trusting(path_of("a.pem"));
    CHECK_OK(tls_connect(&t, client, fd, "localhost", soon(), &err));
    CHECK_OK(tls_send_all(t, "1", 1, soon(), &err));
    CHECK_OK(tls_recv(t, &c, 1, &got, soon(), &err));
    good_cert("a"); /* a new key under the same name */
    tls_context_unref(server.context);
    CHECK_OK(tls_server_context(&server.context, path_of("a.pem"), path_of("a.key"), &err));
    CHECK_OK(tls_send_all(t, "2", 1, soon(), &err));
    CHECK_OK(tls_recv(t, &c, 1, &got, soon(), &err));
    CHECK_INT(c, '2');
    tls_close(t);
    fd_close(&fd);
    server_end(&server);
    tls_context_unref(client);
    CHECK_OK(connect_code("a", "a.pem", "localhost", &err));
}

static void serve_reading(struct tls *t)
{
    struct err err = {0};
    char piece[5000];
    size_t got;

    /* The end may come without a word: its buffer was full. */
    while (tls_recv(t, piece, sizeof(piece), &got, soon(), &err) == 0 && got)
        for (size_t i = 0; i < got; i++)
            CHECK_INT(piece[i], 'g');
}

TEST(tls, sending_now_takes_what_fits_and_then_says_so)
{
    static char block[16 * 1024];
    struct err err = {0};
    struct server server;
    struct tls *t = NULL;
    size_t sent, total = 0;
    int fd, code;

    good_cert("a");
    fd = server_start(&server, "a", serve_reading);
    struct tls_context *c = client_trusting(path_of("a.pem"));
    memset(block, 'g', sizeof(block));
    CHECK_OK(tls_connect(&t, c, fd, "localhost", soon(), &err));
    while ((code = tls_send_now(t, block, sizeof(block), &sent, &err)) == 0 && total < 64 * MIB) {
        CHECK(sent > 0 && sent <= sizeof(block));
        total += sent;
    }
    CHECK(code == ERR_AGAIN || total >= 64 * MIB);
    CHECK_OK(tls_send_all(t, block, sizeof(block), soon(), &err));
    tls_close(t);
    shutdown(fd, SHUT_WR);
    server_end(&server);
    fd_close(&fd);
    tls_context_unref(c);
}
