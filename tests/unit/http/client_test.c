/* The client against scripted peers: what is sent, tried again, followed, limited. */
#include "http/client.h"
#include "base/clock.h"
#include "http/client_int.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

struct fixture {
    struct peer *peer;
    struct client *client;
    struct arena arena;
    struct client_response response;
    struct err err;
};

static struct fixture begin(peer_fn *fn, const void *ctx, struct client_options o)
{
    struct fixture f = {0};
    setenv("no_proxy", "*", 1);
    f.peer = peer_start(fn, ctx, NULL);
    f.client = client_new(&o);
    return f;
}

static void end(struct fixture *f)
{
    client_free(f->client);
    arena_release(&f->arena);
    peer_stop(f->peer);
}

static int call(struct fixture *f, struct client_request r)
{
    char url[128];
    snprintf(url, sizeof(url), "%s%s", peer_url(f->peer), r.url ? r.url : "/");
    r.url = url;
    if (!r.method)
        r.method = "GET";
    return client_call(f->client, &f->arena, &f->response, &r, &f->err);
}

static void check_call(struct fixture *f, struct client_request r, int status, const char *body)
{
    int rc = call(f, r);
    if (rc < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", err_name(rc), f->err.text);
    CHECK_INT(f->response.status, status);
    CHECK_STR(f->response.body, str_z(body));
}

static const struct client_options defaults;
static const struct client_request get;
static const struct client_request post = {.method = "POST"};

#define OK_HELLO "HTTP/1.1 200 OK\r\nX-A:  b \r\nContent-Length: 5\r\n\r\nhello"
#define BUSY     "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"
#define LATER    "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy"

/* How many requests the peer has had; ctx is the answers in turn, the last one for all others. An
 * empty answer closes the connection. */
static _Atomic(unsigned) requests;

static void play(struct peer_conn *c, const void *ctx)
{
    const char *const *answers = ctx;
    struct peer_request r;
    bool open = true;

    while (open && peer_read(c, &r)) {
        unsigned n = requests++;
        while (n && answers[1]) {
            answers++;
            n--;
        }
        open = answers[0][0];
        peer_write_z(c, answers[0]);
        answers = ctx;
        peer_request_release(&r);
    }
    if (open)
        peer_request_release(&r);
}

#define ANSWERS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(client, handles_and_their_connections_are_used_again)
{
    struct fixture f = begin(play, ANSWERS(OK_HELLO), defaults);

    for (int i = 0; i < 3; i++)
        check_call(&f, get, 200, "hello");
    CHECK_STR(client_header(&f.response, "x-a"), STR("b"));
    CHECK(client_header(&f.response, "x-b").p == NULL);
    CHECK_INT(f.response.header_count, 2);
    CHECK_INT(f.response.attempts, 1);
    CHECK_INT(peer_accepted(f.peer), 1);
    end(&f);
}

TEST(client, request_is_sent_as_it_is_told)
{
    struct fixture f = begin(peer_echo, NULL, defaults);
    struct http_header headers[] = {{STR("X-Empty"), STR("")}, {STR("X-B"), STR("c d")}};
    struct client_request r = {.method = "PATCH",
                               .url = "/p?q=1",
                               .headers = headers,
                               .header_count = 2,
                               .body = STR("{}")};
    char want[256];

    snprintf(want, sizeof(want),
             "PATCH /p?q=1 HTTP/1.1\r\nHost: %s\r\nUser-Agent: weir\r\nAccept: */*\r\n"
             "X-Empty:\r\nX-B: c d\r\nContent-Length: 2\r\n\r\n{}",
             peer_url(f.peer) + 7);
    check_call(&f, r, 200, want);
    end(&f);
}

TEST(client, refused_and_broken_calls_are_tried_again)
{
    struct fixture f = begin(play, ANSWERS(LATER, "", BUSY, OK_HELLO), defaults);
    check_call(&f, get, 200, "hello");
    CHECK_INT(requests, 4); /* libcurl itself sends again what a used connection swallowed */
    CHECK_INT(f.response.attempts, 3);
    end(&f);
}

TEST(client, last_answer_is_returned_whatever_it_is)
{
    struct fixture f = begin(play, ANSWERS(LATER), (struct client_options){.max_attempts = 3});
    check_call(&f, get, 503, "busy");
    CHECK_INT(f.response.attempts, 3);
    struct client_request r = {.no_retry = true};
    check_call(&f, r, 503, "busy");
    CHECK_INT(f.response.attempts, 1);
    CHECK_INT(requests, 4);
    end(&f);
}

TEST(client, post_is_repeated_only_when_the_peer_says_so_or_never_got_it)
{
    struct fixture f = begin(play, ANSWERS(LATER, BUSY, "", OK_HELLO), defaults);

    check_call(&f, post, 503, "busy"); /* LATER is tried again, BUSY is not */
    CHECK_INT(f.response.attempts, 2);
    CHECK_ERR(call(&f, post), ERR_CLOSED);
    CHECK_INT(requests, 3);
    check_call(&f, post, 200, "hello");
    end(&f);
}

TEST(client, peer_that_cannot_be_reached_is_unavailable)
{
    struct fixture f = begin(play, ANSWERS(OK_HELLO), (struct client_options){.max_attempts = 2});
    struct client_request r = {.method = "POST", .url = "http://127.0.0.1:1/"};
    int rc = client_call(f.client, &f.arena, &f.response, &r, &f.err);
    CHECK_INT(rc, ERR_UNAVAILABLE);
    r.url = "nonsense";
    CHECK_ERR(client_call(f.client, &f.arena, &f.response, &r, &f.err), ERR_INVALID);
    r.url = "file:///etc/passwd";
    CHECK_ERR(client_call(f.client, &f.arena, &f.response, &r, &f.err), ERR_INVALID);
    end(&f);
}

TEST(client, retry_after_is_seconds_or_a_date)
{
    int64_t now;

    CHECK_INT(clock_parse_http(STR("Sun, 15 Nov 2026 20:00:00 GMT"), &now), 0);
    CHECK_INT(client_retry_after_ms(STR("7"), now, 300000), 7000);
    CHECK_INT(client_retry_after_ms(STR("0"), now, 300000), 0);
    CHECK_INT(client_retry_after_ms(STR("99999999999999999"), now, 300000), 300000);
    CHECK_INT(client_retry_after_ms(STR("Sun, 15 Nov 2026 20:00:09 GMT"), now, 300000), 9000);
    CHECK_INT(client_retry_after_ms(STR("Sun, 15 Nov 2026 19:00:00 GMT"), now, 300000), 0);
    CHECK_INT(client_retry_after_ms(STR("Sun, 15 Nov 2099 20:00:00 GMT"), now, 300000), 300000);
    CHECK(client_retry_after_ms(STR("soon"), now, 300000) == UINT64_MAX);
    CHECK(client_retry_after_ms(STR(""), now, 300000) == UINT64_MAX);
}

/* "/away" goes to the URL in ctx, "/loop" to itself, "/see" asks for a GET of "/end", "/same" for
 * the same again there; all else is echoed. */
static void redirect(struct peer_conn *c, const void *ctx)
{
    static const struct {
        struct str path;
        int status;
        const char *to;
    } rows[] = {
        {STR("/away"), 302, NULL},
        {STR("/loop"), 301, "/loop"},
        {STR("/see"), 303, "/end"},
        {STR("/same"), 307, "/end"},
        {STR("/file"), 302, "file:///etc/passwd"},
    };
    struct peer_request r;

    while (peer_read(c, &r)) {
        struct buf out = BUF_INIT(0);
        for (size_t i = 0; i < ARRAY_SIZE(rows) && out.len == 0; i++)
            if (str_eq(r.head.path, rows[i].path))
                buf_appendf(&out, "HTTP/1.1 %d Go\r\nLocation: %s\r\nContent-Length: 4\r\n\r\nnope",
                            rows[i].status, rows[i].to ? rows[i].to : (const char *)ctx);
        if (out.len == 0)
            buf_appendf(&out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s%s",
                        r.text.len + r.body.len, r.text.p, r.body.len ? r.body.p : "");
        peer_write(c, buf_str(&out));
        buf_release(&out);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

static bool has(const struct fixture *f, const char *text)
{
    return str_find(f->response.body, str_z(text)) >= 0;
}

TEST(client, redirects_are_followed_without_secrets_to_others)
{
    struct peer *other = peer_start(peer_echo, NULL, NULL);
    char away[128];
    snprintf(away, sizeof(away), "%s/there", peer_url(other));
    struct fixture f = begin(redirect, away, defaults);
    struct http_header headers[] = {{STR("Authorization"), STR("Bearer s3cret")},
                                    {STR("PRIVATE-TOKEN"), STR("s3cret")},
                                    {STR("Cookie"), STR("s3cret")},
                                    {STR("Accept"), STR("text/x")}};
    struct client_request r = {.headers = headers, .header_count = 4};

    r.url = "/away";
    CHECK_INT(call(&f, r), 0);
    CHECK(has(&f, "GET /there") && has(&f, "Accept: text/x") && !has(&f, "s3cret"));
    r.method = "POST";
    r.body = STR("data");
    r.url = "/see";
    CHECK_INT(call(&f, r), 0);
    CHECK(has(&f, "GET /end") && has(&f, "Bearer s3cret") && !has(&f, "data"));
    r.url = "/same";
    CHECK_INT(call(&f, r), 0);
    CHECK(has(&f, "POST /end") && has(&f, "data") && has(&f, "PRIVATE-TOKEN: s3cret"));
    r.url = "/loop";
    CHECK_ERR(call(&f, r), ERR_PEER);
    r.url = "/file";
    CHECK_ERR(call(&f, r), ERR_PEER);
    end(&f);
    peer_stop(other);
}

struct sink {
    struct buf got;
    int answer;
};

static int swallow(void *ctx, struct str piece, struct err *err)
{
    struct sink *s = ctx;
    buf_append_str(&s->got, piece);
    return s->answer ? err_set(err, s->answer, "enough") : 0;
}

TEST(client, pieces_are_handed_over_as_they_come)
{
    struct fixture f = begin(play, ANSWERS(LATER, OK_HELLO), defaults);
    struct sink sink = {0};
    struct client_request r = {.on_body = swallow, .ctx = &sink};

    check_call(&f, r, 200, "");
    CHECK_STR(buf_str(&sink.got), STR("hello")); /* and nothing of the refusal's body */
    sink.answer = ERR_NO_SPACE;
    CHECK_ERR(call(&f, r), ERR_NO_SPACE);
    CHECK_STR(str_z(f.err.text), STR("enough"));
    buf_release(&sink.got);
    end(&f);
}

TEST(client, what_was_handed_over_is_not_asked_for_again)
{
    struct fixture f = begin(play, ANSWERS("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", ""),
                             (struct client_options){.timeout_ms = 1000});
    struct sink sink = {0};
    struct client_request r = {.on_body = swallow, .ctx = &sink};

    CHECK_ERR(call(&f, r), ERR_TIMEOUT);
    CHECK_INT(requests, 1);
    CHECK_STR(buf_str(&sink.got), STR("hello"));
    buf_release(&sink.got);
    end(&f);
}

static void serve_too_much(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;
    struct buf out = BUF_INIT(0);

    if (!peer_read(c, &r))
        goto out;
    if (str_eq(r.head.path, STR("/body"))) {
        peer_write_z(c, "HTTP/1.1 200 OK\r\nContent-Length: 68157440\r\n\r\n");
        while (out.len < MIB)
            buf_append_z(&out, "0123456789abcdef");
        for (int i = 0; i < 65; i++)
            peer_write(c, buf_str(&out));
    } else {
        buf_append_z(&out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
        for (int i = 0; i < 200; i++)
            buf_append_z(&out, "A: b\r\n");
        buf_append_z(&out, "\r\n");
        peer_write(c, buf_str(&out));
    }
out:
    buf_release(&out);
    peer_request_release(&r);
}

TEST(client, nonsense_is_the_peers_fault)
{
    struct fixture f = begin(play, ANSWERS("SSH-2.0-OpenSSH_9.2p1\r\n"), defaults);
    CHECK_ERR(call(&f, get), ERR_PEER);
    CHECK_INT(requests, 1);
    end(&f);
}

TEST(client, bodies_and_heads_have_limits)
{
    struct fixture f = begin(serve_too_much, NULL, defaults);

    CHECK_ERR(call(&f, (struct client_request){.url = "/body"}), ERR_TOO_LARGE);
    CHECK_ERR(call(&f, (struct client_request){.url = "/head"}), ERR_PEER);
    CHECK_INT(peer_accepted(f.peer), 2);
    end(&f);
}

TEST(client, header_that_would_split_a_request_is_refused)
{
    struct fixture f = begin(play, ANSWERS(OK_HELLO), defaults);
    struct http_header bad = {STR("A"), STR("b\r\nC: d")};
    struct client_request r = {.headers = &bad, .header_count = 1};

    CHECK_ERR(call(&f, r), ERR_INVALID);
    CHECK_INT(requests, 0);
    end(&f);
}

static void mute(struct peer_conn *c, const void *ctx)
{
    peer_wait_end(c);
}

TEST(client, silence_is_a_timeout)
{
    struct fixture f = begin(mute, NULL, (struct client_options){.timeout_ms = 100});
    CHECK_ERR(call(&f, (struct client_request){.no_retry = true}), ERR_TIMEOUT);
    end(&f);
}

static _Atomic(bool) cancel;

/* Refuses for five minutes, and has the caller give up. */
static void refuse_and_cancel(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r)) {
        peer_write_z(c, "HTTP/1.1 503 Busy\r\nRetry-After: 300\r\nContent-Length: 0\r\n\r\n");
        cancel = true;
    }
    peer_request_release(&r);
}

TEST(client, call_that_waits_can_be_canceled)
{
    struct fixture f = begin(refuse_and_cancel, NULL, defaults);
    struct client_request r = {.cancel = &cancel};

    CHECK_ERR(call(&f, r), ERR_CANCELED);
    CHECK_ERR(call(&f, r), ERR_CANCELED);
    CHECK_INT(peer_accepted(f.peer), 1);
    end(&f);
}

TEST(client, certificates_are_verified)
{
    char cert[256], key[256], url[128];
    struct tls_context *server;
    struct err err = {0};
    struct arena arena = {0};
    struct client_response response;

    setenv("no_proxy", "*", 1);
    peer_certificate("127.0.0.1", cert, key);
    CHECK_OK(tls_server_context(&server, cert, key, &err));
    struct peer *peer = peer_start(play, ANSWERS(OK_HELLO), server);
    snprintf(url, sizeof(url), "%s/x", peer_url(peer));
    struct client_request r = {.method = "GET", .url = url};
    struct client *trusting = client_new(&(struct client_options){.ca_file = cert});
    struct client *strict = client_new(&defaults);
    CHECK_OK(client_call(trusting, &arena, &response, &r, &err));
    CHECK_STR(response.body, STR("hello"));
    CHECK_ERR(client_call(strict, &arena, &response, &r, &err), ERR_UNAVAILABLE);
    CHECK(strstr(err.text, "certificate"));
    client_free(trusting);
    client_free(strict);
    peer_stop(peer);
    tls_context_unref(server);
    arena_release(&arena);
}

struct caller {
    struct fixture *f;
    struct thread thread;
    unsigned number;
};

static void call_often(void *ctx)
{
    struct caller *c = ctx;
    struct arena arena = {0};

    for (unsigned i = 0; i < 30; i++) {
        char url[128], want[64];
        struct client_response response;
        struct err err = {0};
        snprintf(url, sizeof(url), "%s/%u-%u", peer_url(c->f->peer), c->number, i);
        snprintf(want, sizeof(want), "GET /%u-%u HTTP", c->number, i);
        struct client_request r = {.method = "GET", .url = url};
        CHECK_OK(client_call(c->f->client, &arena, &response, &r, &err));
        CHECK(str_starts(response.body, str_z(want)));
        arena_reset(&arena);
    }
    arena_release(&arena);
}

TEST(client, threads_share_it)
{
    struct fixture f = begin(peer_echo, NULL, defaults);
    struct caller callers[4] = {0};
    struct err err = {0};

    for (unsigned i = 0; i < ARRAY_SIZE(callers); i++) {
        callers[i].f = &f;
        callers[i].number = i;
        CHECK_OK(thread_start(&callers[i].thread, "caller", 0, call_often, &callers[i], &err));
    }
    for (unsigned i = 0; i < ARRAY_SIZE(callers); i++)
        thread_join(&callers[i].thread);
    CHECK(peer_accepted(f.peer) <= ARRAY_SIZE(callers));
    end(&f);
}
