/* Streaming calls against scripted peers: what is held in memory, limited, followed and reused. */
#include "base/clock.h"
#include "http/client.h"
#include "http/client_int.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

struct lab {
    struct peer *peer;
    struct client *client;
    struct arena arena;
    struct client_response head;
    struct client_stream *stream;
    struct err err;
};

static struct lab lab_begin(peer_fn *fn, const void *ctx)
{
    struct lab lab = {0};

    setenv("no_proxy", "*", 1);
    lab.peer = peer_start(fn, ctx, NULL);
    lab.client = client_new(&(struct client_options){.max_attempts = 2});
    return lab;
}

static int lab_open(struct lab *lab, struct client_request r, struct client_limits l)
{
    char url[256];

    snprintf(url, sizeof(url), "%s%s", peer_url(lab->peer), r.url ? r.url : "/");
    r.url = url;
    if (!r.method)
        r.method = "GET";
    return client_open(&lab->stream, lab->client, &lab->arena, &lab->head, &r, &l, &lab->err);
}

static void lab_open_ok(struct lab *lab, struct client_request r, struct client_limits l)
{
    int rc = lab_open(lab, r, l);
    if (rc < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", err_name(rc), lab->err.text);
}

/* Reads everything; returns the code of the read that failed, or 0. */
static int lab_read(struct lab *lab, size_t step, struct buf *out)
{
    char piece[64 * 1024];
    size_t got = 1;
    int rc = 0;

    while (rc == 0 && got) {
        rc = reader_read(client_stream_reader(lab->stream), piece, step, &got, &lab->err);
        if (rc == 0)
            buf_append(out, piece, got);
    }
    return rc;
}

static void lab_hang_up(struct lab *lab)
{
    client_stream_close(lab->stream);
    lab->stream = NULL;
}

static void lab_end(struct lab *lab)
{
    client_stream_close(lab->stream);
    client_free(lab->client);
    arena_release(&lab->arena);
    peer_stop(lab->peer);
}

static const struct client_request get;
static const struct client_limits no_limits;

/* The peer sends ctx's bytes for each request. */
static void say(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r)) {
        peer_write_z(c, ctx);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

TEST(client_stream, body_comes_by_pieces_of_any_size)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 "3\r\nabc\r\n1\r\nd\r\n2\r\nef\r\n0\r\n\r\n";
    static const size_t steps[] = {1, 2, 5, 4096};

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        struct lab lab = lab_begin(say, answer);
        struct buf body = {0};
        lab_open_ok(&lab, get, no_limits);
        CHECK_INT(lab.head.status, 200);
        CHECK_STR(client_header(&lab.head, "x-a"), STR("b"));
        CHECK(str_starts(lab.head.url, str_z(peer_url(lab.peer))));
        CHECK_INT(lab_read(&lab, steps[i], &body), 0);
        CHECK_STR(buf_str(&body), STR("abcdef"));
        buf_release(&body);
        lab_end(&lab);
    }
}

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

TEST(client_stream, connections_are_used_again_after_whole_answers)
{
    struct lab lab = lab_begin(say, HELLO);
    struct client_request post = {.method = "POST", .body = STR("ask"), .repeatable = true};
    struct buf body = {0};

    for (int i = 0; i < 3; i++) {
        lab_open_ok(&lab, i == 1 ? post : get, no_limits);
        CHECK_INT(lab_read(&lab, 4096, &body), 0);
        lab_hang_up(&lab);
    }
    CHECK_STR(buf_str(&body), STR("hellohellohello"));
    CHECK_INT(peer_accepted(lab.peer), 1);
    post.repeatable = false; /* may arrive once only: a connection of its own */
    lab_open_ok(&lab, post, no_limits);
    lab_hang_up(&lab);
    CHECK_INT(peer_accepted(lab.peer), 2);
    buf_release(&body);
    lab_end(&lab);
}

static _Atomic(uint64_t) flood_sent;

/* Sends 64 MiB as fast as the other side takes them. */
static void flood(struct peer_conn *c, const void *ctx)
{
    struct buf piece = BUF_INIT(0);
    struct peer_request r;

    if (peer_read(c, &r)) {
        peer_write_z(c, "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n");
        while (piece.len < 64 * KIB)
            buf_append_z(&piece, "0123456789abcdef");
        for (int i = 0; i < 1024; i++) {
            peer_write(c, buf_str(&piece));
            flood_sent += piece.len;
        }
    }
    buf_release(&piece);
    peer_request_release(&r);
}

TEST(client_stream, slow_consumer_slows_the_peer_down)
{
    struct lab lab = lab_begin(flood, NULL);
    struct buf body = {0};
    char byte;
    size_t got;

    lab_open_ok(&lab, get, (struct client_limits){.idle_ms = 5000});
    CHECK_INT(reader_read(client_stream_reader(lab.stream), &byte, 1, &got, &lab.err), 0);
    /* The peer gets rid of what the kernel holds, and of little more. */
    uint64_t before = 0, quiet_since = clock_mono_ms();
    while (clock_mono_ms() - quiet_since < 300) {
        if (flood_sent != before)
            quiet_since = clock_mono_ms();
        before = flood_sent;
    }
    CHECK(flood_sent < 32 * MIB);
    CHECK_INT(lab_read(&lab, 64 * KIB, &body), 0);
    CHECK_INT(body.len, 64 * MIB - 1);
    buf_release(&body);
    lab_end(&lab);
}

/* Sends a head, then a byte every 20 ms. */
static void drip(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r)) {
        peer_write_z(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        for (int i = 0; i < 1000; i++) {
            peer_write_z(c, "x");
            poll(NULL, 0, 20);
        }
    }
    peer_request_release(&r);
}

static void mute(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r) && ctx)
        peer_write_z(c, ctx);
    peer_request_release(&r);
    peer_wait_end(c);
}

TEST(client_stream, peers_that_are_silent_or_slow_or_late_time_out)
{
    struct buf body = {0};
    struct client_request once = {.no_retry = true};

    struct lab lab = lab_begin(mute, NULL); /* no head */
    CHECK_ERR(lab_open(&lab, once, (struct client_limits){.idle_ms = 150}), ERR_TIMEOUT);
    lab_end(&lab);
    lab = lab_begin(mute, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"); /* no end */
    lab_open_ok(&lab, once, (struct client_limits){.idle_ms = 150});
    CHECK_ERR(lab_read(&lab, 100, &body), ERR_TIMEOUT);
    CHECK_STR(buf_str(&body), STR("hello"));
    CHECK_ERR(lab_read(&lab, 100, &body), ERR_TIMEOUT); /* it stays so */
    lab_end(&lab);
    lab = lab_begin(drip, NULL);
    lab_open_ok(&lab, once, (struct client_limits){.slow_bytes_per_s = 1000, .slow_ms = 300});
    CHECK_ERR(lab_read(&lab, 100, &body), ERR_TIMEOUT);
    CHECK(strstr(lab.err.text, "1000 bytes/s"));
    lab_hang_up(&lab);
    lab_open_ok(&lab, once,
                (struct client_limits){.slow_bytes_per_s = 5, .slow_ms = 200, .total_ms = 600});
    CHECK_ERR(lab_read(&lab, 100, &body), ERR_TIMEOUT);
    CHECK(strstr(lab.err.text, "took longer"));
    buf_release(&body);
    lab_end(&lab);
}

TEST(client_stream, limit_of_speed_can_begin_later)
{
    struct lab lab = lab_begin(drip, NULL);
    char bytes[16];

    lab_open_ok(&lab, get, no_limits);
    CHECK_INT(reader_read_full(client_stream_reader(lab.stream), bytes, 16, &lab.err), 0);
    client_stream_expect(lab.stream, 1000, 200);
    struct buf body = {0};
    CHECK_ERR(lab_read(&lab, 100, &body), ERR_TIMEOUT);
    buf_release(&body);
    lab_end(&lab);
}

TEST(client_stream, large_answers_are_cut_off)
{
    struct lab lab = lab_begin(flood, NULL);
    struct buf body = {0};

    lab_open_ok(&lab, get, (struct client_limits){.body_max = MIB});
    CHECK_ERR(lab_read(&lab, 64 * KIB, &body), ERR_TOO_LARGE);
    CHECK(strstr(lab.err.text, "1048576"));
    CHECK(body.len <= MIB);
    buf_release(&body);
    lab_end(&lab);
}

static _Atomic(bool) cancel;

static void cancel_then_wait(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r)) {
        peer_write_z(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        cancel = true;
    }
    peer_request_release(&r);
    peer_wait_end(c);
}

TEST(client_stream, call_can_be_canceled_while_it_waits)
{
    struct lab lab = lab_begin(cancel_then_wait, NULL);
    struct client_request r = {.cancel = &cancel};
    struct buf body = {0};
    int rc = lab_open(&lab, r, no_limits);

    if (rc == 0)
        rc = lab_read(&lab, 100, &body);
    CHECK_ERR(rc, ERR_CANCELED);
    lab_end(&lab);
}

static void cut(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r))
        peer_write_z(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
    peer_request_release(&r);
    if (ctx)
        peer_reset(c);
}

TEST(client_stream, answer_that_is_cut_off_is_no_answer)
{
    for (int i = 0; i < 2; i++) {
        struct lab lab = lab_begin(cut, i ? "reset" : NULL);
        struct buf body = {0};
        lab_open_ok(&lab, get, no_limits);
        CHECK_ERR(lab_read(&lab, 3, &body), ERR_CLOSED);
        buf_release(&body);
        lab_end(&lab);
    }
}

static _Atomic(unsigned) refusals;

/* Refuses the first call with a body, then says hello. */
static void refuse_once(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r)) {
        peer_write_z(c, refusals++ ? HELLO
                                   : "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\n"
                                     "Content-Length: 4\r\n\r\nbusy");
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

TEST(client_stream, refused_call_is_made_again_unless_told_otherwise)
{
    struct client_request once = {.no_retry = true};
    struct lab lab = lab_begin(refuse_once, NULL);
    struct buf body = {0};

    lab_open_ok(&lab, get, no_limits);
    CHECK_INT(lab.head.attempts, 2);
    CHECK_INT(lab_read(&lab, 100, &body), 0);
    CHECK_STR(buf_str(&body), STR("hello"));
    lab_hang_up(&lab);
    refusals = 0;
    buf_reset(&body);
    lab_open_ok(&lab, once, no_limits);
    CHECK_INT(lab.head.status, 503);
    CHECK_INT(client_retry_after_s(&lab.head, 60), 0);
    CHECK_INT(lab_read(&lab, 100, &body), 0);
    CHECK_STR(buf_str(&body), STR("busy"));
    buf_release(&body);
    lab_end(&lab);
}

/* "/away" goes to ctx, "/near" to "/end", "/bulky" there with an endless body. */
static void lead(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r)) {
        struct buf out = BUF_INIT(0);
        const char *to = str_eq(r.head.path, STR("/away"))  ? ctx
                         : str_eq(r.head.path, STR("/end")) ? NULL
                                                            : "/end";
        bool is_bulky = str_eq(r.head.path, STR("/bulky"));
        if (to)
            buf_appendf(&out, "HTTP/1.1 302 Go\r\nLocation: %s\r\nContent-Length: %d\r\n\r\nnope",
                        to, is_bulky ? 100 * 1000 : 4);
        else
            buf_appendf(&out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", r.text.len,
                        r.text.p);
        while (is_bulky && out.len < 100 * 1000)
            buf_append_z(&out, "nope");
        peer_write(c, buf_str(&out));
        buf_release(&out);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

static bool refuse_redirect(void *ctx, const char *from, const char *to)
{
    snprintf(ctx, 256, "%s", to);
    return false;
}

TEST(client_stream, redirects_are_followed_by_the_callers_rule_and_without_secrets)
{
    struct peer *other = peer_start(peer_echo, NULL, NULL);
    struct http_header auth = {STR("Authorization"), STR("Basic s3cret")};
    struct client_request r = {.url = "/near", .headers = &auth, .header_count = 1};
    char away[128], seen[256] = "";
    struct buf body = {0};

    snprintf(away, sizeof(away), "%s/there", peer_url(other));
    struct lab lab = lab_begin(lead, away);
    lab_open_ok(&lab, r, no_limits);
    CHECK(str_ends(lab.head.url, STR("/end")));
    CHECK_INT(lab_read(&lab, 100, &body), 0);
    CHECK(str_find(buf_str(&body), STR("s3cret")) >= 0);
    lab_hang_up(&lab);
    CHECK_INT(peer_accepted(lab.peer), 1); /* the redirect's connection was used again */
    buf_reset(&body);
    r.url = "/away";
    lab_open_ok(&lab, r, no_limits);
    CHECK_STR(lab.head.url, str_z(away));
    CHECK_INT(lab_read(&lab, 100, &body), 0);
    CHECK(str_starts(buf_str(&body), STR("GET /there")));
    CHECK(str_find(buf_str(&body), STR("s3cret")) < 0);
    lab_hang_up(&lab);
    r.may_redirect = refuse_redirect;
    r.ctx = seen;
    CHECK_ERR(lab_open(&lab, r, no_limits), ERR_DENIED);
    CHECK_STR(str_z(seen), str_z(away));
    CHECK_INT(peer_accepted(other), 1);
    r.may_redirect = NULL;
    r.url = "/bulky";
    CHECK_ERR(lab_open(&lab, r, no_limits), ERR_PEER);
    r.url = "/near";
    r.no_redirect = true;
    lab_open_ok(&lab, r, no_limits);
    CHECK_INT(lab.head.status, 302);
    buf_release(&body);
    lab_end(&lab);
    peer_stop(other);
}

static bool only_public(void *ctx, const struct sock_addr *addr)
{
    char text[SOCK_ADDR_TEXT];

    sock_addr_host(addr, text);
    return strcmp(text, "127.0.0.1") != 0;
}

TEST(client_stream, forbidden_address_is_not_reached_by_old_connections_either)
{
    struct lab lab = lab_begin(say, HELLO);
    struct client_request r = {.may_connect = only_public, .no_retry = true};
    struct buf body = {0};

    CHECK_ERR(lab_open(&lab, r, no_limits), ERR_DENIED);
    CHECK_INT(peer_accepted(lab.peer), 0);
    lab_open_ok(&lab, get, no_limits);
    CHECK_INT(lab_read(&lab, 100, &body), 0);
    lab_hang_up(&lab);
    CHECK_ERR(lab_open(&lab, r, no_limits), ERR_DENIED); /* though a connection is there */
    CHECK_INT(peer_accepted(lab.peer), 1);
    buf_release(&body);
    lab_end(&lab);
}

/* Interim responses, or trailers, without end. */
static void chatter(struct peer_conn *c, const void *ctx)
{
    const char *const *parts = ctx;
    struct peer_request r;

    if (peer_read(c, &r)) {
        peer_write_z(c, parts[0]);
        for (int i = 0; i < 20000; i++)
            peer_write_z(c, parts[1]);
    }
    peer_request_release(&r);
}

TEST(client_stream, heads_and_trailers_without_end_are_the_peers_fault)
{
    static const char *const interim[] = {"", "HTTP/1.1 100 Continue\r\nA: b\r\n\r\n"};
    static const char *const trailers[] = {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
        "A: bcdefghijklm\r\n"};
    struct client_request once = {.no_retry = true};
    struct buf body = {0};

    struct lab lab = lab_begin(chatter, interim);
    CHECK_ERR(lab_open(&lab, once, no_limits), ERR_PEER);
    lab_end(&lab);
    lab = lab_begin(chatter, trailers);
    lab_open_ok(&lab, once, no_limits);
    CHECK_ERR(lab_read(&lab, 100, &body), ERR_PEER);
    buf_release(&body);
    lab_end(&lab);
}
