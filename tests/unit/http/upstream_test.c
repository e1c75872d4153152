/* Upstream against scripted peers: framing, reuse, retry, early answers, limits, health, TLS. */
#include "http/upstream.h"
#include "os/file.h"
#include "os/sock.h"
#include "os/thread.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One peer, one upstream to it, and what the peer's function is told. */
struct fixture {
    struct peer *peer;
    struct upstream *up;
    struct err err;
};

static struct fixture begin(peer_fn *fn, const void *ctx, struct upstream_options o)
{
    struct fixture f = {0};
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    f.peer = peer_start(fn, ctx, NULL);
    o.url = str_z(peer_url(f.peer));
    CHECK_OK(upstream_new(&f.up, &o, &err));
    return f;
}

static void end(struct fixture *f)
{
    upstream_free(f->up);
    peer_stop(f->peer);
}

static const struct upstream_options defaults;
static const struct upstream_request get = {
    .method = {"GET", 3}, .target = {"/x", 2}, .idempotent = true};
static const struct upstream_request post = {.method = {"POST", 4}, .target = {"/x", 2}};

static struct upstream_stats stats(struct fixture *f)
{
    struct upstream_stats s;
    upstream_stats(f->up, &s);
    return s;
}

/* Sends, checks status and body, closes. */
static void expect(struct fixture *f, const struct upstream_request *r, int status,
                   const char *body)
{
    struct exchange *e = NULL;
    struct err err = {0};
    struct buf got = BUF_INIT(0);

    CHECK_OK(upstream_send(&e, f->up, r, &err));
    CHECK_INT(exchange_head(e)->status, status);
    CHECK_OK(reader_read_all(exchange_body(e), &got, &err));
    CHECK_STR(buf_str(&got), str_z(body));
    exchange_close(e);
    buf_release(&got);
}

static int send_only(struct fixture *f, const struct upstream_request *r)
{
    struct exchange *e = NULL;
    int rc = upstream_send(&e, f->up, r, &f->err);
    if (rc == 0)
        exchange_close(e);
    return rc;
}

/* Sends and reads the body to its failure. */
static int body_error(struct fixture *f)
{
    struct exchange *e = NULL;
    struct buf got = BUF_INIT(0);
    struct err err = {0};

    CHECK_OK(upstream_send(&e, f->up, &get, &err));
    int rc = reader_read_all(exchange_body(e), &got, &f->err), again;
    size_t n;
    char byte;
    again = reader_read(exchange_body(e), &byte, 1, &n, &f->err);
    CHECK_INT(again, rc);
    exchange_close(e);
    buf_release(&got);
    CHECK_INT(stats(f).idle, 0);
    return rc;
}

/* Answers each request with ctx, a text. */
static void answer_all(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r)) {
        peer_write_z(c, ctx);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

/* Answers one request with ctx and closes. */
static void answer_once(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r))
        peer_write_z(c, ctx);
    peer_request_release(&r);
}

#define OK_HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

TEST(upstream, connection_is_used_again)
{
    struct fixture f = begin(answer_all, OK_HELLO, defaults);

    for (int i = 0; i < 3; i++)
        expect(&f, &get, 200, "hello");
    struct upstream_stats s = stats(&f);
    CHECK_INT(s.connects, 1);
    CHECK_INT(s.reused, 2);
    CHECK_INT(s.requests, 3);
    CHECK_INT(s.open, 1);
    CHECK_INT(s.idle, 1);
    end(&f);
}

TEST(upstream, request_is_written_with_host_and_framing)
{
    struct fixture f = begin(peer_echo, NULL, defaults);
    char want[256];
    struct http_header headers[] = {{STR("X-A"), STR("b c")}};
    struct str_reader body;
    struct upstream_request put = {.method = STR("PUT"),
                                   .target = STR("/k?v"),
                                   .headers = headers,
                                   .header_count = 1,
                                   .body = &body.reader,
                                   .body_len = 3};

    str_reader_init(&body, STR("abc"));
    snprintf(want, sizeof(want),
             "PUT /k?v HTTP/1.1\r\nX-A: b c\r\nHost: %s\r\nContent-Length: 3\r\n\r\nabc",
             peer_url(f.peer) + 7);
    expect(&f, &put, 200, want);
    headers[0] = (struct http_header){STR("host"), STR("other")};
    put.body_len = UINT64_MAX;
    str_reader_init(&body, STR("abc"));
    expect(&f, &put, 200,
           "PUT /k?v HTTP/1.1\r\nhost: other\r\nTransfer-Encoding: chunked\r\n\r\nabc");
    put.body = NULL;
    expect(&f, &put, 200, "PUT /k?v HTTP/1.1\r\nhost: other\r\nContent-Length: 0\r\n\r\n");
    CHECK_INT(stats(&f).connects, 1);
    end(&f);
}

TEST(upstream, what_would_split_a_request_is_refused)
{
    struct fixture f = begin(answer_all, OK_HELLO, defaults);
    static const struct http_header bad[] = {
        {STR("A"), STR("b\r\nC: d")},
        {STR("A: b\r\nC"), STR("d")},
        {STR(""), STR("d")},
        {STR("A"), STR("b\0c")},
        {STR("content-length"), STR("5")},
        {STR("Transfer-Encoding"), STR("chunked")},
        {STR("Connection"), STR("close")},
    };
    struct upstream_request r = get;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        r.headers = &bad[i];
        r.header_count = 1;
        CHECK_ERR(send_only(&f, &r), ERR_INVALID);
    }
    r = get;
    r.target = STR("/a b");
    CHECK_ERR(send_only(&f, &r), ERR_INVALID);
    r.target = STR("/a\r\nX: y");
    CHECK_ERR(send_only(&f, &r), ERR_INVALID);
    r = get;
    r.method = STR("GET /");
    CHECK_ERR(send_only(&f, &r), ERR_INVALID);
    CHECK_INT(peer_accepted(f.peer), 0);
    end(&f);
}

TEST(upstream, responses_of_every_framing_are_read)
{
    static const struct {
        const char *text;
        int status;
        const char *body;
        bool reusable;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x\r\nlo\r\n0\r\nA: "
         "b\r\n\r\n",
         200, "hello", true},
        {"HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello", false},
        {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", false},
        {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", 200,
         "hello", true},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", 200, "hello",
         false},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 204, "", true},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "", true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", true},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK_HELLO, 200,
         "hello", true},
        {"HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nbad", 500, "bad", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool until_close = strstr(rows[i].text, "OK\r\n\r\n") == rows[i].text + 13;
        struct fixture f = begin(until_close ? answer_once : answer_all, rows[i].text, defaults);
        expect(&f, &get, rows[i].status, rows[i].body);
        CHECK_INT(stats(&f).idle, rows[i].reusable);
        end(&f);
    }
}

TEST(upstream, response_to_head_has_no_body)
{
    struct fixture f = begin(answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", defaults);
    struct upstream_request head = get;

    head.method = STR("HEAD");
    expect(&f, &head, 200, "");
    expect(&f, &head, 200, "");
    CHECK_INT(stats(&f).connects, 1);
    end(&f);
}

TEST(upstream, nonsense_heads_are_the_peers_fault)
{
    struct buf large = BUF_INIT(0), many = BUF_INIT(0);

    buf_append_z(&large, "HTTP/1.1 200 OK\r\n");
    while (large.len < 2 * HTTP_MAX_HEAD)
        buf_append_z(&large, "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n");
    for (int i = 0; i < 20; i++)
        buf_append_z(&many, "HTTP/1.1 100 Continue\r\n\r\n");
    const char *bad[] = {
        "HTTP/1.1 200 OK\nA: b\n\n",
        "SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        large.p,
        many.p,
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct fixture f = begin(answer_all, bad[i], defaults);
        CHECK_ERR(send_only(&f, &get), ERR_PEER);
        CHECK(str_starts(str_z(f.err.text), STR("upstream")));
        CHECK_INT(stats(&f).open, 0);
        CHECK_INT(stats(&f).failures, 1);
        end(&f);
    }
    buf_release(&large);
    buf_release(&many);
}

TEST(upstream, bodies_that_break_off_are_errors)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", ERR_CLOSED},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello", ERR_CLOSED},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", ERR_CLOSED},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n", ERR_PEER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct fixture f = begin(answer_once, rows[i].text, defaults);
        CHECK_ERR(body_error(&f), rows[i].code);
        end(&f);
    }
}

TEST(upstream, silence_is_a_timeout)
{
    struct fixture f = begin(answer_all, "", (struct upstream_options){.head_timeout_ms = 30});
    CHECK_ERR(send_only(&f, &get), ERR_TIMEOUT);
    end(&f);
    f = begin(answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
              (struct upstream_options){.timeout_ms = 30});
    CHECK_ERR(body_error(&f), ERR_TIMEOUT);
    end(&f);
}

TEST(upstream, connection_that_the_peer_closed_is_not_used_again)
{
    struct fixture f = begin(answer_once, OK_HELLO, defaults);

    for (unsigned i = 1; i <= 3; i++) {
        expect(&f, &post, 200,
               "hello"); /* may not be sent twice, so this rests on the look alone */
        while (peer_ended(f.peer) < i)
            sched_yield();
    }
    CHECK_INT(stats(&f).connects, 3);
    CHECK_INT(stats(&f).retries, 0);
    end(&f);
}

TEST(upstream, surplus_bytes_end_a_connection)
{
    struct fixture f = begin(answer_all, OK_HELLO "surplus", defaults);
    expect(&f, &get, 200, "hello");
    CHECK_INT(stats(&f).idle, 0);
    end(&f);
}

/* The first request is answered, the second makes the peer close without a word (or after one byte
 * when ctx says so); later connections answer. */
static void die_on_second(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;
    const char *last_words = ctx;

    if (peer_read(c, &r))
        peer_write_z(c, OK_HELLO);
    peer_request_release(&r);
    if (c->number > 0)
        answer_all(c, OK_HELLO);
    else if (peer_read_head(c, &r))
        peer_write_z(c, last_words);
    peer_request_release(&r);
}

TEST(upstream, stale_connection_is_retried_once_when_idempotent)
{
    struct fixture f = begin(die_on_second, "", defaults);
    expect(&f, &get, 200, "hello");
    expect(&f, &get, 200, "hello");
    CHECK_INT(stats(&f).retries, 1);
    CHECK_INT(stats(&f).connects, 2);
    CHECK_INT(stats(&f).failures, 0);
    end(&f);
}

TEST(upstream, small_body_is_sent_again_whole)
{
    struct fixture f = begin(die_on_second, "", defaults);
    struct str_reader body;
    struct upstream_request put = {.method = STR("PUT"),
                                   .target = STR("/x"),
                                   .body = &body.reader,
                                   .body_len = 5,
                                   .idempotent = true};
    expect(&f, &get, 200, "hello");
    str_reader_init(&body, STR("abcde"));
    expect(&f, &put, 200, "hello"); /* the peer reads Content-Length bytes before it answers */
    CHECK_INT(stats(&f).retries, 1);
    end(&f);
}

TEST(upstream, what_may_have_been_acted_on_is_not_retried)
{
    struct fixture f = begin(die_on_second, "", defaults);
    expect(&f, &get, 200, "hello");
    CHECK_ERR(send_only(&f, &post), ERR_CLOSED);
    CHECK_INT(stats(&f).retries, 0);
    end(&f);

    f = begin(die_on_second, "H", defaults); /* a byte of the answer was seen */
    expect(&f, &get, 200, "hello");
    CHECK_ERR(send_only(&f, &get), ERR_CLOSED);
    CHECK_INT(stats(&f).retries, 0);
    end(&f);

    f = begin(answer_once, "", defaults); /* not stale: the connection was new */
    CHECK_ERR(send_only(&f, &get), ERR_CLOSED);
    CHECK_INT(stats(&f).retries, 0);
    end(&f);
}

TEST(upstream, consumed_body_is_not_retried)
{
    struct fixture f = begin(die_on_second, "", defaults);
    struct str_reader body;
    struct upstream_request put = {.method = STR("PUT"),
                                   .target = STR("/x"),
                                   .body = &body.reader,
                                   .body_len = UINT64_MAX,
                                   .idempotent = true};
    expect(&f, &get, 200, "hello");
    str_reader_init(&body, STR("abcde"));
    CHECK_ERR(send_only(&f, &put), ERR_CLOSED);
    CHECK_INT(stats(&f).retries, 0);
    end(&f);
}

static void fill(char *p, size_t len)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (char)(x >> 24);
    }
}

enum { LARGE = 5 * 1024 * 1024 + 13 };

/* Checks that the body is the pattern. */
static void check_large(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;
    char *want = malloc(LARGE);

    fill(want, LARGE);
    while (peer_read(c, &r)) {
        bool same = str_eq(buf_str(&r.body), str_n(want, LARGE));
        peer_write_z(c, same ? OK_HELLO : "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n");
        peer_request_release(&r);
    }
    peer_request_release(&r);
    free(want);
}

TEST(upstream, large_bodies_go_out_from_memory_file_and_in_chunks)
{
    struct fixture f = begin(check_large, NULL, defaults);
    char *bytes = malloc(LARGE), path[300];
    struct str_reader memory;
    struct file_reader file;
    struct upstream_request put = {
        .method = STR("PUT"), .target = STR("/x"), .body = &memory.reader, .body_len = LARGE};
    struct err err = {0};

    fill(bytes, LARGE);
    str_reader_init(&memory, str_n(bytes, LARGE));
    expect(&f, &put, 200, "hello");

    str_reader_init(&memory, str_n(bytes, LARGE));
    put.body_len = UINT64_MAX;
    expect(&f, &put, 200, "hello");

    snprintf(path, sizeof(path), "%s/body", test_dir());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_OK(file_write_all(fd, bytes, LARGE, &err));
    file_reader_init(&file, (struct file_range){fd, 0, LARGE}, true);
    put.body = &file.reader;
    put.body_len = LARGE;
    expect(&f, &put, 200, "hello");
    reader_close(&file.reader);
    CHECK_INT(stats(&f).connects, 1);
    end(&f);
    free(bytes);
}

struct failing_reader {
    struct reader reader;
    size_t left;
};

static int failing_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct failing_reader *f = container_of(r, struct failing_reader, reader);
    *got = size_min(len, f->left);
    memset(to, 'x', *got);
    f->left -= *got;
    return *got ? 0 : err_set(err, ERR_CORRUPT, "the disk is made of cheese");
}

TEST(upstream, error_of_the_bodys_reader_comes_back_as_it_is)
{
    static const struct reader_ops ops = {.read = failing_read};
    static const uint64_t lengths[] = {10, 1000000, UINT64_MAX};
    struct fixture f = begin(answer_all, OK_HELLO, defaults);

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        struct failing_reader body = {{&ops}, 7};
        struct upstream_request put = {.method = STR("PUT"),
                                       .target = STR("/x"),
                                       .body = &body.reader,
                                       .body_len = lengths[i]};
        CHECK_ERR(send_only(&f, &put), ERR_CORRUPT);
        CHECK_STR(str_z(f.err.text), STR("the disk is made of cheese"));
        CHECK_INT(stats(&f).open, 0);
    }
    end(&f);
}

/* 100 when asked for; the body is read only by "/yes". */
static void continue_or_refuse(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read_head(c, &r)) {
        if (!r.head.expect_continue || !str_eq(r.head.path, STR("/yes"))) {
            peer_write_z(c, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
        } else {
            peer_write_z(c, "HTTP/1.1 100 Continue\r\n\r\n");
            if (peer_read_body(c, &r) && str_eq(buf_str(&r.body), STR("abc")))
                peer_write_z(c, OK_HELLO);
        }
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

TEST(upstream, body_waits_for_continue)
{
    struct fixture f = begin(continue_or_refuse, NULL, defaults);
    struct str_reader body;
    struct upstream_request put = {.method = STR("PUT"),
                                   .target = STR("/yes"),
                                   .body = &body.reader,
                                   .body_len = 3,
                                   .expect_continue = true};

    str_reader_init(&body, STR("abc"));
    expect(&f, &put, 200, "hello");
    CHECK_INT(stats(&f).idle, 1);
    put.target = STR("/no");
    str_reader_init(&body, STR("abc"));
    expect(&f, &put, 403, "");
    CHECK_INT(body.rest.len, 3);
    CHECK_INT(stats(&f).idle, 0);
    end(&f);
}

TEST(upstream, body_is_sent_when_continue_does_not_come)
{
    struct fixture f = begin(answer_all, OK_HELLO, defaults);
    struct str_reader body;
    struct upstream_request put = {.method = STR("PUT"),
                                   .target = STR("/x"),
                                   .body = &body.reader,
                                   .body_len = 3,
                                   .expect_continue = true};

    str_reader_init(&body, STR("abc"));
    expect(&f, &put, 200, "hello");
    CHECK_INT(body.rest.len, 0);
    end(&f);
}

TEST(upstream, short_rest_is_dropped_and_a_long_one_ends_the_connection)
{
    struct buf text = BUF_INIT(0);
    buf_append_z(&text, "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n");
    for (int i = 0; i < 50000; i++)
        buf_append_char(&text, 'x');
    struct fixture f = begin(answer_all, text.p, defaults);
    CHECK_INT(send_only(&f, &get), 0);
    CHECK_INT(stats(&f).idle, 1);
    end(&f);

    f = begin(answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\nx", defaults);
    CHECK_INT(send_only(&f, &get), 0);
    CHECK_INT(stats(&f).idle, 0);
    end(&f);
    buf_release(&text);
}

TEST(upstream, cap_makes_callers_wait_then_busy)
{
    struct fixture f =
        begin(answer_all, OK_HELLO,
              (struct upstream_options){.max_connections = 1, .connect_timeout_ms = 500});
    struct exchange *e;
    struct err err = {0};

    CHECK_OK(upstream_send(&e, f.up, &get, &err));
    CHECK_ERR(send_only(&f, &get), ERR_BUSY);
    exchange_close(e);
    CHECK_INT(send_only(&f, &get), 0);
    CHECK_INT(stats(&f).connects, 1);
    end(&f);
}

struct waiter {
    struct fixture *f;
    int rc;
};

static void wait_for_room(void *ctx)
{
    struct waiter *w = ctx;
    struct exchange *e = NULL;
    struct err err = {0};

    w->rc = upstream_send(&e, w->f->up, &get, &err);
    exchange_close(e);
}

TEST(upstream, caller_that_waits_gets_the_connection_that_comes_back)
{
    struct fixture f =
        begin(answer_all, OK_HELLO,
              (struct upstream_options){.max_connections = 1, .connect_timeout_ms = 30000});
    struct waiter w = {.f = &f, .rc = 1};
    struct thread t = {0};
    struct exchange *e;
    struct err err = {0};

    CHECK_OK(upstream_send(&e, f.up, &get, &err));
    CHECK_OK(thread_start(&t, "waiter", 0, wait_for_room, &w, &err));
    while (stats(&f).requests < 2)
        sched_yield();
    exchange_close(e);
    thread_join(&t);
    CHECK_INT(w.rc, 0);
    CHECK_INT(stats(&f).connects, 1);
    end(&f);
}

TEST(upstream, idle_connections_age)
{
    struct fixture f = begin(answer_all, OK_HELLO, (struct upstream_options){.idle_timeout_ms = 1});
    expect(&f, &get, 200, "hello");
    while (stats(&f).idle)
        upstream_sweep(f.up);
    CHECK_INT(stats(&f).open, 0);
    end(&f);
}

TEST(upstream, peer_that_cannot_be_reached_is_down_until_a_probe_succeeds)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct fixture f = {0};
    struct err err = {0};
    char url[64];

    CHECK(bind(s, (struct sockaddr *)&addr, len) == 0);
    CHECK(getsockname(s, (struct sockaddr *)&addr, &len) == 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(addr.sin_port));
    struct upstream_options o = {.url = str_z(url), .head_timeout_ms = 1};
    CHECK_OK(upstream_new(&f.up, &o, &err));
    for (int i = 0; i < 3; i++) { /* bound but not listening: refused */
        CHECK(upstream_is_up(f.up));
        CHECK_ERR(send_only(&f, &get), ERR_UNAVAILABLE);
        CHECK(strstr(f.err.text, "refused"));
    }
    CHECK(!upstream_is_up(f.up));
    CHECK_ERR(send_only(&f, &get), ERR_UNAVAILABLE);
    CHECK(strstr(f.err.text, "is down"));

    CHECK(listen(s, 5) == 0); /* nobody answers, but to be connected is to be up */
    while (send_only(&f, &get) == ERR_UNAVAILABLE)
        sched_yield();
    CHECK(upstream_is_up(f.up));
    CHECK_INT(stats(&f).connects, 1);
    upstream_free(f.up);
    close(s);
}

static void tls_fixture(struct fixture *f, peer_fn *fn, struct upstream_options o,
                        struct tls_context **server)
{
    char cert[256], key[256];
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    peer_certificate("127.0.0.1", cert, key);
    CHECK_OK(tls_server_context(server, cert, key, &err));
    f->peer = peer_start(fn, OK_HELLO, *server);
    o.url = str_z(peer_url(f->peer));
    if (!o.ca_file && !o.tls_insecure)
        o.ca_file = cert;
    CHECK_OK(upstream_new(&f->up, &o, &err));
}

TEST(upstream, tls_connections_are_verified_and_used_again)
{
    struct fixture f = {0};
    struct tls_context *server;
    struct str_reader body;
    char *bytes = malloc(LARGE);
    struct upstream_request put = {
        .method = STR("PUT"), .target = STR("/x"), .body = &body.reader, .body_len = LARGE};

    fill(bytes, LARGE);
    tls_fixture(&f, check_large, defaults, &server);
    str_reader_init(&body, str_n(bytes, LARGE));
    expect(&f, &put, 200, "hello");
    str_reader_init(&body, str_n(bytes, LARGE));
    put.body_len = UINT64_MAX;
    expect(&f, &put, 200, "hello");
    CHECK_INT(stats(&f).connects, 1);
    CHECK_INT(stats(&f).reused, 1);
    end(&f);
    tls_context_unref(server);
    free(bytes);
}

TEST(upstream, tls_stale_connection_is_noticed_or_retried)
{
    struct fixture f = {0};
    struct tls_context *server;

    tls_fixture(&f, answer_once, defaults, &server);
    for (int i = 0; i < 4; i++)
        expect(&f, &get, 200, "hello");
    CHECK_INT(stats(&f).connects, 4);
    end(&f);
    tls_context_unref(server);
}

TEST(upstream, certificate_of_somebody_else_is_refused)
{
    struct fixture f = {0};
    struct tls_context *server;
    char cert[256], key[256];

    peer_certificate("example.com", cert, key);
    tls_fixture(&f, answer_all, (struct upstream_options){.ca_file = cert}, &server);
    CHECK_ERR(send_only(&f, &get), ERR_UNAVAILABLE);
    CHECK(strstr(f.err.text, "certificate"));
    end(&f);
    tls_context_unref(server);
    tls_fixture(&f, answer_all, (struct upstream_options){.tls_insecure = true}, &server);
    expect(&f, &get, 200, "hello");
    end(&f);
    tls_context_unref(server);
}

TEST(upstream, urls_that_are_no_endpoint_are_refused)
{
    static const struct str bad[] = {STR(""), STR("ftp://x"), STR("http://"), STR("http://x:0"),
                                     STR("127.0.0.1:80")};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct upstream *u;
        CHECK_ERR(upstream_new(&u, &(struct upstream_options){.url = bad[i]}, &err), ERR_INVALID);
    }
}
