/* Answers that come while a body is still being sent, plain and over TLS. */
#include "http/upstream.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { UPLOAD = 64 * 1024 * 1024 };

struct fixture {
    struct tls_context *server; /* NULL: plain */
    struct peer *peer;
    struct upstream *up;
    char *bytes; /* UPLOAD of them: more than all buffers between us and the peer hold */
};

static _Atomic(unsigned) heads;
static _Atomic(bool) over;

/* Answers an upload after its head with ctx, if that is not empty, reads no more of it, and stays
 * open: it is not closing that stops us. */
static void answer_early(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    bool read = peer_read_head(c, &r);
    heads++; /* before the answer: the test looks at it then */
    if (read)
        peer_write_z(c, ctx);
    while (!over)
        sched_yield();
    peer_request_release(&r);
}

/* As above, but closes at once, with bytes unread: the connection is reset. */
static void answer_and_close(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    bool read = peer_read_head(c, &r);
    heads++; /* before the answer: the test looks at it then */
    if (read)
        peer_write_z(c, ctx);
    peer_request_release(&r);
}

/* 100 and 102 nobody waits for, then the body, then the answer. */
static void interrupt(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read_head(c, &r)) {
        peer_write_z(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n");
        if (peer_read_body(c, &r) && r.body.len == UPLOAD)
            peer_write_z(c, ctx);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

static struct fixture begin(peer_fn *fn, const char *answer, bool tls, uint64_t timeout_ms)
{
    struct fixture f = {.bytes = calloc(1, UPLOAD)};
    struct upstream_options o = {.timeout_ms = timeout_ms};
    char cert[256], key[256];
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    if (tls) {
        peer_certificate("127.0.0.1", cert, key);
        CHECK_OK(tls_server_context(&f.server, cert, key, &err));
        o.ca_file = cert;
    }
    f.peer = peer_start(fn, answer, f.server);
    o.url = str_z(peer_url(f.peer));
    CHECK_OK(upstream_new(&f.up, &o, &err));
    over = false;
    heads = 0;
    return f;
}

static void end(struct fixture *f)
{
    over = true;
    upstream_free(f->up);
    peer_stop(f->peer);
    tls_context_unref(f->server);
    free(f->bytes);
}

/* The status, or an error. *rest: how much of the body was not taken. */
static int upload(struct fixture *f, bool chunked, size_t *rest)
{
    struct exchange *e = NULL;
    struct str_reader body;
    struct err err = {0};
    struct upstream_request put = {.method = STR("PUT"),
                                   .target = STR("/x"),
                                   .body = &body.reader,
                                   .body_len = chunked ? UINT64_MAX : UPLOAD};

    str_reader_init(&body, str_n(f->bytes, UPLOAD));
    int rc = upstream_send(&e, f->up, &put, &err);
    if (rc == 0)
        rc = exchange_head(e)->status;
    exchange_close(e);
    *rest = body.rest.len;
    return rc;
}

static struct upstream_stats stats(struct fixture *f)
{
    struct upstream_stats s;
    upstream_stats(f->up, &s);
    return s;
}

#define REFUSAL "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"
#define OK      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

TEST(upstream, early_refusal_stops_an_upload)
{
    for (int tls = 0; tls < 2; tls++) {
        struct fixture f = begin(answer_early, REFUSAL, tls, 0);
        for (int chunked = 0; chunked < 2; chunked++) {
            size_t rest;
            CHECK_INT(upload(&f, chunked, &rest), 413);
            CHECK(rest > 0);
            CHECK_INT(stats(&f).open, 0); /* the peer would take the rest for a request */
        }
        CHECK_INT(heads, 2);
        end(&f);
    }
}

TEST(upstream, last_words_of_a_peer_that_closes_are_heard)
{
    struct fixture f = begin(answer_and_close, REFUSAL, false, 0);
    for (int chunked = 0; chunked < 2; chunked++) {
        size_t rest;
        CHECK_INT(upload(&f, chunked, &rest), 413);
        CHECK(rest > 0);
    }
    end(&f);
}

TEST(upstream, peer_that_reads_no_more_is_a_timeout)
{
    for (int tls = 0; tls < 2; tls++) {
        struct fixture f = begin(answer_early, "", tls, 50);
        size_t rest;
        CHECK_INT(upload(&f, false, &rest), ERR_TIMEOUT);
        CHECK(rest > 0);
        end(&f);
    }
}

TEST(upstream, interim_answers_do_not_stop_an_upload)
{
    for (int tls = 0; tls < 2; tls++) {
        struct fixture f = begin(interrupt, OK, tls, 0);
        for (int chunked = 0; chunked < 2; chunked++) {
            size_t rest;
            CHECK_INT(upload(&f, chunked, &rest), 200);
            CHECK_INT(rest, 0);
        }
        CHECK_INT(stats(&f).connects, 1);
        end(&f);
    }
}
