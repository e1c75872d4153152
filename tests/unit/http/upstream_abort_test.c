/* Ending what waits for an upstream: in each place where it can wait. */
#include "base/clock.h"
#include "http/upstream.h"
#include "os/file.h"
#include "os/sock.h"
#include "os/thread.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum { FOREVER_MS = MS_PER_HOUR };

static _Atomic(unsigned) arrived; /* requests that the peer has */

/* One caller, and what became of its request. */
struct caller {
    struct upstream *up;
    struct thread thread;
    int code;
};

static void call(void *ctx)
{
    static const struct upstream_request get = {
        .method = {"GET", 3}, .target = {"/x", 2}, .idempotent = true};
    struct caller *c = ctx;
    struct exchange *e = NULL;
    struct buf body = BUF_INIT(0);
    struct err err = {0};

    c->code = upstream_send(&e, c->up, &get, &err);
    if (c->code == 0)
        c->code = reader_read_all(exchange_body(e), &body, &err);
    buf_release(&body);
    exchange_close(e);
}

static void start(struct caller *c, struct upstream *up)
{
    struct err err = {0};

    *c = (struct caller){.up = up};
    CHECK_OK(thread_start(&c->thread, "caller", 0, call, c, &err));
}

static struct upstream *open_to(const char *url)
{
    struct upstream *up;
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    arrived = 0;
    CHECK_OK(upstream_new(&up,
                          &(struct upstream_options){.url = str_z(url),
                                                     .max_connections = 1,
                                                     .connect_timeout_ms = FOREVER_MS,
                                                     .timeout_ms = FOREVER_MS,
                                                     .head_timeout_ms = FOREVER_MS,
                                                     .tls_insecure = true},
                          &err));
    return up;
}

static void until(_Atomic(unsigned) *counter, unsigned wanted)
{
    while (*counter < wanted)
        sched_yield();
}

/* Says ctx, which is not a whole answer, and nothing more. */
static void stall(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r)) {
        peer_write_z(c, ctx);
        arrived++;
        peer_wait_end(c);
    }
    peer_request_release(&r);
}

TEST(upstream_abort, requests_whose_answer_stalls_are_ended_and_later_ones_refused)
{
    static const char *const answers[] = {"", "HTTP/1.1 200 OK\r\nConte",
                                          "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"};

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct peer *peer = peer_start(stall, answers[i], NULL);
        struct upstream *up = open_to(peer_url(peer));
        struct caller c;
        start(&c, up);
        until(&arrived, 1);
        upstream_abort(up);
        thread_join(&c.thread);
        CHECK_INT(c.code, ERR_CLOSED);
        start(&c, up);
        thread_join(&c.thread);
        CHECK_INT(c.code, ERR_UNAVAILABLE);
        CHECK_INT(peer_accepted(peer), 1);
        upstream_free(up);
        peer_stop(peer);
    }
}

TEST(upstream_abort, who_waits_for_a_connection_is_ended)
{
    struct peer *peer = peer_start(stall, "", NULL);
    struct upstream *up = open_to(peer_url(peer));
    struct caller has, waits;
    struct upstream_stats s;

    start(&has, up);
    until(&arrived, 1);
    start(&waits, up);
    do
        upstream_stats(up, &s);
    while (s.requests < 2);
    upstream_abort(up);
    thread_join(&has.thread);
    thread_join(&waits.thread);
    CHECK_INT(has.code, ERR_CLOSED);
    CHECK_INT(waits.code, ERR_UNAVAILABLE);
    upstream_free(up);
    peer_stop(peer);
}

TEST(upstream_abort, who_connects_is_ended)
{
    struct sock_addr at;
    struct caller c;
    struct err err = {0};
    int listener, clients[8], used = 0, code = 0;
    char url[SOCK_ADDR_TEXT + 8], text[SOCK_ADDR_TEXT];

    /* The kernel completes a few connections by itself; then it stays silent. */
    CHECK_OK(sock_addr_parse(&at, STR("127.0.0.1:0"), &err));
    CHECK_OK(sock_listen(&listener, &at, 0, &err));
    CHECK_OK(sock_local(listener, &at, &err));
    sock_addr_text(&at, text);
    uint16_t port = ntohs(((struct sockaddr_in *)&at.sa)->sin_port);
    while (code == 0 && used < 8) {
        clients[used] = -1;
        code = sock_connect(&clients[used++], "127.0.0.1", port, clock_mono_ns() + 50000000, &err);
    }
    CHECK_INT(code, ERR_TIMEOUT);
    snprintf(url, sizeof(url), "http://%s", text);
    struct upstream *up = open_to(url);
    struct upstream_stats s;
    start(&c, up);
    do
        upstream_stats(up, &s);
    while (s.open == 0);
    upstream_abort(up);
    thread_join(&c.thread);
    CHECK_INT(c.code, ERR_UNAVAILABLE);
    CHECK(upstream_is_up(up)); /* it was not the peer's doing */
    upstream_free(up);
    while (used > 0)
        fd_close(&clients[--used]);
    fd_close(&listener);
}

/* Takes the connection and never answers the handshake. */
static void ignore(struct peer_conn *c, const void *ctx)
{
    (void)ctx;
    arrived++;
    peer_wait_end(c);
}

TEST(upstream_abort, who_shakes_hands_is_ended)
{
    struct peer *peer = peer_start(ignore, NULL, NULL);
    struct buf url = BUF_INIT(0);
    struct caller c;

    buf_appendf(&url, "https%s", peer_url(peer) + strlen("http"));
    struct upstream *up = open_to(url.p);
    start(&c, up);
    until(&arrived, 1);
    upstream_abort(up);
    thread_join(&c.thread);
    CHECK_INT(c.code, ERR_UNAVAILABLE);
    upstream_free(up);
    buf_release(&url);
    peer_stop(peer);
}
