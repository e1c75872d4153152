/* Many threads over one upstream whose peer closes when it likes. The checker: an answer belongs to
 * its request, and what may not be sent twice arrives at most once. */
#include "http/upstream.h"
#include "os/thread.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 6, REQUESTS = 150, IDS = THREADS * REQUESTS };

/* How often each request arrived. */
static _Atomic(int) arrived[IDS];

static uint32_t next_random(uint32_t *x)
{
    *x = *x * 1664525 + 1013904223;
    return *x >> 16;
}

/* The answer to request n names it; some are chunked, some close. */
static void answer(struct peer_conn *c, unsigned id, uint32_t dice)
{
    char body[64], text[256];
    int n = snprintf(body, sizeof(body), "answer to %u%.*s", id, (int)(dice % 20),
                     "xxxxxxxxxxxxxxxxxxxx");

    if (dice % 3 == 0)
        snprintf(text, sizeof(text),
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n%.3s\r\n%x\r\n%s\r\n0"
                 "\r\n\r\n",
                 body, n - 3, body + 3);
    else
        snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s",
                 dice % 3 == 1 ? "Connection: close\r\n" : "", n, body);
    peer_write_z(c, text);
}

static void moody(struct peer_conn *c, const void *ctx)
{
    uint32_t x = c->number * 7919 + 1;
    struct peer_request r;

    while (peer_read(c, &r)) {
        uint32_t dice = next_random(&x);
        unsigned id = (unsigned)strtoul(r.head.path.p + 1, NULL, 10);
        CHECK(id < IDS);
        atomic_fetch_add(&arrived[id], 1);
        peer_request_release(&r);
        if (dice % 16 == 0)
            peer_reset(c);
        if (dice % 8 == 0)
            return; /* without a word */
        answer(c, id, dice);
        if (dice % 5 == 0)
            return; /* after it, unannounced */
    }
    peer_request_release(&r);
}

struct worker {
    struct thread thread;
    struct upstream *up;
    unsigned number, answered;
};

/* 1 when answered, 0 when it broke off. */
static unsigned one(struct worker *w, unsigned id)
{
    char target[32], want[32];
    struct str_reader body;
    struct upstream_request r = {.method = STR("PUT"), .idempotent = id % 2};
    struct exchange *e;
    struct err err = {0};
    struct buf got = BUF_INIT(0);

    snprintf(target, sizeof(target), "/%u", id);
    snprintf(want, sizeof(want), "answer to %u", id);
    r.target = str_z(target);
    if (id % 3) {
        str_reader_init(&body, STR("some bytes"));
        r.body = &body.reader;
        r.body_len = id % 3 == 1 ? 10 : UINT64_MAX;
    }
    int rc = upstream_send(&e, w->up, &r, &err);
    if (rc < 0) {
        CHECK_INT(rc, ERR_CLOSED);
        return 0;
    }
    if (id % 7) { /* else close it unread */
        CHECK_OK(reader_read_all(exchange_body(e), &got, &err));
        while (got.len && got.p[got.len - 1] == 'x')
            got.len--;
        CHECK_STR(buf_str(&got), str_z(want));
    }
    exchange_close(e);
    buf_release(&got);
    return 1;
}

static void work(void *ctx)
{
    struct worker *w = ctx;
    for (unsigned i = 0; i < REQUESTS; i++)
        w->answered += one(w, w->number * REQUESTS + i);
}

TEST(upstream, answers_belong_to_their_requests_under_load_and_loss)
{
    struct worker workers[THREADS] = {0};
    struct peer *peer = peer_start(moody, NULL, NULL);
    struct upstream_options o = {
        .url = str_z(peer_url(peer)), .max_connections = 4, .connect_timeout_ms = 30000};
    struct upstream_stats stats;
    struct err err = {0};
    unsigned answered = 0;

    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(upstream_new(&workers[0].up, &o, &err));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].up = workers[0].up;
        workers[i].number = i;
        CHECK_OK(thread_start(&workers[i].thread, "worker", 0, work, &workers[i], &err));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        thread_join(&workers[i].thread);
        answered += workers[i].answered;
    }
    for (unsigned id = 0; id < IDS; id++)
        CHECK(arrived[id] <= (id % 2 ? 2 : 1));
    upstream_stats(workers[0].up, &stats);
    CHECK_INT(stats.requests, IDS);
    CHECK_INT(stats.failures, IDS - answered);
    CHECK_INT(stats.open, stats.idle);
    CHECK(stats.open <= 4 && stats.reused > 0 && stats.retries > 0);
    CHECK(answered > IDS / 2);
    upstream_free(workers[0].up);
    peer_stop(peer);
}
