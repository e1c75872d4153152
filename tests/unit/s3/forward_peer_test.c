/* The gateway in front of a storage that behaves oddly: a scripted peer. */
#include "base/clock.h"
#include "os/sock.h"
#include "s3/gateway/forward.h"
#include "sign/sign.h"
#include "unit/s3/forward_lab.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NONE STR_EMPTY

static struct {
    struct mutex lock;
    struct buf head; /* of the last request whose body had come */
    struct buf body;
    unsigned whole;
} seen;
static _Atomic(bool) over;

/* Answers every request with ctx and remembers it. */
static void answer_all(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r)) {
        mutex_lock(&seen.lock);
        buf_reset(&seen.head);
        buf_append_str(&seen.head, buf_str(&r.text));
        buf_reset(&seen.body);
        buf_append_str(&seen.body, buf_str(&r.body));
        seen.whole++;
        mutex_unlock(&seen.lock);
        peer_write_z(c, ctx);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

/* Answers after the head, reads no more and stays open. */
static void answer_early(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read_head(c, &r))
        peer_write_z(c, ctx);
    while (!over)
        sched_yield();
    peer_request_release(&r);
}

/* One answer on each connection, then silence. */
static void answer_then_hang(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r))
        peer_write_z(c, ctx);
    peer_request_release(&r);
    if (peer_read(c, &r)) {
        mutex_lock(&seen.lock);
        seen.whole++;
        mutex_unlock(&seen.lock);
        peer_wait_end(c);
    }
    peer_request_release(&r);
}

/* One answer, then the end. */
static void answer_and_close(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    if (peer_read(c, &r))
        peer_write_z(c, ctx);
    peer_request_release(&r);
}

static void begin(struct pair *p, peer_fn *fn, const char *answer)
{
    mutex_init(&seen.lock, "forward.seen");
    seen.whole = 0;
    over = false;
    pair_start_peer(p, fn, answer);
}

static void end(struct pair *p)
{
    over = true;
    pair_stop(p);
    buf_release(&seen.head);
    buf_release(&seen.body);
    mutex_release(&seen.lock);
}

static unsigned seen_whole(void)
{
    mutex_lock(&seen.lock);
    unsigned n = seen.whole;
    mutex_unlock(&seen.lock);
    return n;
}

static bool was_sent(const char *text)
{
    mutex_lock(&seen.lock);
    bool found = str_find(buf_str(&seen.head), str_z(text)) >= 0;
    mutex_unlock(&seen.lock);
    return found;
}

TEST(forward_peer, an_answer_comes_back_as_it_was_given)
{
    struct pair p;
    const struct http_header *h = NULL;

    begin(
        &p, answer_all,
        "HTTP/1.1 409 Conflict\r\nContent-Length: 12\r\nx-many: 1\r\nX-Many: 2\r\nServer: other\r\n"
        "Connection: x-hop\r\nx-hop: no\r\nETag: W/\"odd\"\r\nx-amz-request-id: THEIRS\r\n"
        "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n<Error>words");
    gate_do(&p.front, "GET /box/key?unheard-of&of=1", 409);
    CHECK_STR(p.front.body, STR("<Error>words"));
    h = http_header_next(&p.front.head, "x-many", NULL);
    CHECK(h && str_eq(h->value, STR("1")));
    h = http_header_next(&p.front.head, "x-many", h);
    CHECK(h && str_eq(h->value, STR("2")));
    CHECK(!gate_header(&p.front, "x-hop").p);
    CHECK_STR(gate_header(&p.front, "etag"), STR("W/\"odd\""));
    CHECK_STR(gate_header(&p.front, "server"), STR("weir"));
    CHECK_STR(gate_header(&p.front, "date"), STR("Thu, 01 Jan 1970 00:00:00 GMT"));
    CHECK_STR(gate_header(&p.front, "x-amz-request-id"), STR("THEIRS"));
    CHECK(gate_header(&p.front, "x-weir-request-id").len);
    CHECK(was_sent("GET /box/key?unheard-of&of=1 HTTP/1.1\r\n"));
    gate_do(&p.front, "POST /box/key?renameObject=x", 409); /* what we refuse ourselves elsewhere */
    gate_do(&p.front, "PATCH /box/key", 409);
    gate_ask(&p.front, NOBODY, "OPTIONS /box/key", "origin: http://x", NONE, 409);
    CHECK(was_sent("OPTIONS /box/key HTTP/1.1\r\n") && !was_sent("Authorization"));
    end(&p);
}

TEST(forward_peer, what_the_service_is_asked_beside_its_buckets_goes_to_the_main_storage)
{
    struct pair p;

    begin(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    gate_do(&p.front, "GET /?usage", 200);
    CHECK_STR(p.front.body, STR("ok"));
    CHECK(was_sent("GET /?usage HTTP/1.1\r\n") && was_sent("Credential=AKIAALICE00000000001/"));
    gate_do(&p.front, "POST /?Action=unheard-of", 200);
    CHECK(was_sent("POST /?Action=unheard-of HTTP/1.1\r\n"));
    gate_ask(&p.front, BOB, "GET /?usage", NULL, NONE, 403); /* has no credentials there */
    GATE_ERROR(&p.front, "AccessDenied");
    unsigned before = seen_whole();
    gate_ask(&p.front, BOB, "GET /?prefix=&max-buckets=", NULL, NONE, 200); /* ListBuckets */
    gate_ask(&p.front, NOBODY, "GET /?usage", NULL, NONE, 403); /* who has no main storage */
    gate_ask(&p.front, NOBODY, "POST /", NULL, NONE, 405);
    CHECK_INT(seen_whole(), before);
    end(&p);
}

TEST(forward_peer, a_name_is_sent_as_it_was_judged_or_not_at_all)
{
    static const char *const refused[] = {"GET /tenant%3Abox/key", "GET /box%2Fkey",
                                          "PUT /box%2Fkey/x", "GET /..%2Fbox/key",
                                          "GET /::box/key"};
    struct pair p;

    begin(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        gate_do(&p.front, refused[i], 400);
        GATE_ERROR(&p.front, "InvalidBucketName");
    }
    gate_ask(&p.front, NOBODY, "GET /box/%2E%2E/other/key", NULL, NONE, 400);
    GATE_ERROR(&p.front, "InvalidURI"); /* no signature would show that it was rewritten */
    CHECK_INT(seen_whole(), 0);
    gate_do(&p.front, "GET /%3Abox?list-type=2", 200); /* Ceph's, of no tenant */
    CHECK(was_sent("GET /box?list-type=2 HTTP/1.1\r\n"));
    gate_do(&p.front, "GET /Old_Box/a%2Fb//%2e%2E/%252F+%2B%20\\", 200);
    CHECK(was_sent("GET /Old_Box/a/b//../%252F%2B%2B%20%5C HTTP/1.1\r\n"));
    gate_ask(&p.front, ALICE, "GET /box/key",
             "x-http-method-override: DELETE\nx-original-url: /other/key\nx-rewrite-url: /other",
             NONE, 200);
    CHECK(!was_sent("DELETE") && !was_sent("other"));
    gate_do(&p.front, "GET /box/key?x-amz-copy-source=/other/key&b=1", 200);
    CHECK(was_sent("GET /box/key?b=1 HTTP/1.1\r\n"));
    end(&p);
}

TEST(forward_peer, the_source_of_a_copy_is_sent_as_it_was_read)
{
    static const struct {
        const char *header, *sent; /* NULL: InvalidBucketName, or InvalidArgument */
    } rows[] = {
        {"box/a%20b+c?versionId=v%2F1", "/box/a%20b%2Bc?versionId=v%2F1"},
        {"%2F:box%2Fkey", "/box/key"},
        {"//box/key", NULL},
        {"/tenant:box/key", NULL},
        {"/tenant%3Abox%2Fkey", NULL},
        {"arn:aws:s3:us-east-1:1:accesspoint/ap/object/key", NULL},
        {"box/key?a=1", "/box/key%3Fa%3D1"},
        {"box/key\nx-amz-copy-source: other/key", NULL},
    };
    struct pair p;
    char text[256];

    begin(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        unsigned before = seen_whole();
        snprintf(text, sizeof(text), "x-amz-copy-source: %s", rows[i].header);
        gate_ask(&p.front, ALICE, "PUT /box/to", text, NONE, rows[i].sent ? 200 : 400);
        CHECK_INT(seen_whole(), before + (rows[i].sent != NULL));
        if (rows[i].sent)
            snprintf(text, sizeof(text), "x-amz-copy-source: %s\r\n", rows[i].sent);
        CHECK(!rows[i].sent || was_sent(text));
    }
    gate_ask(&p.front, ALICE, "PUT /box/to?acl", "x-amz-copy-source: other/key", NONE, 200);
    CHECK(!was_sent("x-amz-copy-source"));
    gate_ask(&p.front, ALICE, "PUT /box/to", "x_amz_copy_source: other/key", NONE, 501);
    gate_ask(&p.front, ALICE, "PUT /box/to", "x-goog-copy-source: other/key", NONE, 501);
    gate_ask(&p.front, ALICE, "PUT /box/to", "x-amz-meta-copy-source: other/key", NONE, 200);
    end(&p);
}

TEST(forward_peer, the_keys_of_a_batch_are_sent_as_they_were_read)
{
    struct str odd =
        STR("<!-- <Key>no</Key> --><Delete><Object><x:Key xmlns:x='urn:x'>a<![CDATA[<b]]>"
            "<!--no--></x:Key><VersionId/></Object><Quiet>TRUE</Quiet></Delete>");
    struct str own = STR("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Delete xmlns=\""
                         "http://s3.amazonaws.com/doc/2006-03-01/\"><Object><Key>a&lt;b</Key>"
                         "</Object><Quiet>true</Quiet></Delete>");
    static const char *const refused[] = {
        "<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
        "<Delete><Object><Key>a</Key><x:Key xmlns:x='urn:x'>b</x:Key></Object></Delete>",
        "<Delete><Object><Key>a<Key>b</Key></Key></Object></Delete>",
        "<Delete><Object><Key>a</Key><Name>b</Name></Object></Delete>",
        "<Delete><Object><Key/></Object></Delete>",
        "<Delete><Object><VersionId>a</VersionId></Object></Delete>",
    };
    char sum[64], line[128];
    struct pair p;

    begin(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        gate_ask(&p.front, ALICE, "POST /box?delete", NULL, str_z(refused[i]), 400);
        GATE_ERROR(&p.front, "MalformedXML");
    }
    CHECK_INT(seen_whole(), 0);
    pair_checksum(sum, DIGEST_CRC32, odd);
    snprintf(line, sizeof(line), "x-amz-checksum-crc32: %s\nx-amz-sdk-checksum-algorithm: CRC32",
             sum);
    gate_ask(&p.front, ALICE, "POST /box?delete", line, odd, 200);
    CHECK_STR(buf_str(&seen.body), own);
    CHECK(!was_sent("x-amz-checksum") && !was_sent("x-amz-sdk-checksum"));
    pair_checksum(sum, DIGEST_MD5, own);
    snprintf(line, sizeof(line), "Content-MD5: %s\r\n", sum);
    CHECK(was_sent(line));
    end(&p);
}

TEST(forward_peer, a_body_without_length_is_sent_on)
{
    struct pair p;

    begin(&p, answer_all,
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    struct answer a = {0};
    lab_say(p.front.fd, STR("GET /box/key HTTP/1.1\r\nHost: x\r\n\r\n"));
    lab_read(p.front.fd, &a, false);
    CHECK_INT(a.status, 200);
    CHECK(a.whole);
    CHECK_STR(buf_str(&a.body), STR("hello"));
    answer_release(&a);
    end(&p);
}

TEST(forward_peer, an_answer_without_a_body_keeps_its_headers)
{
    struct pair p;

    begin(&p, answer_all, "HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n");
    gate_do(&p.front, "DELETE /box/key", 204);
    CHECK_STR(gate_header(&p.front, "x-a"), STR("b"));
    gate_do(&p.front, "DELETE /box/key", 204);
    end(&p);
}

static void presign(struct buf *out, const char *method, const char *path)
{
    struct user_key key = gate_key(ALICE);
    struct sign_credentials by = {key.access, key.secret, STR("us-east-1"), STR("s3"), NULL};
    struct http_header host = {STR("host"), STR("127.0.0.1")};
    struct sign_request r = {.method = str_z(method),
                             .path = str_z(path),
                             .query = STR("versionId=v1"),
                             .headers = &host,
                             .header_count = 1,
                             .payload_hash = STR(SIGN_UNSIGNED)};

    buf_appendf(out, "%s %s?", method, path);
    CHECK_INT(sign_query(out, &r, &by, clock_wall_ms(), 60), 0);
}

TEST(forward_peer, nothing_of_the_client_s_signature_goes_on)
{
    struct pair p;
    struct buf request = BUF_INIT(4096);

    begin(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    presign(&request, "GET", "/box/key");
    gate_ask(&p.front, NOBODY, request.p, "connection: keep-alive, x-mine\nx-mine: 1\nx-yours: 2",
             NONE, 200);
    CHECK(was_sent("GET /box/key?versionId=v1 HTTP/1.1\r\n"));
    CHECK(was_sent("Credential=AKIAALICE00000000001/"));
    CHECK(was_sent("x-yours: 2") && !was_sent("x-mine"));
    CHECK(!was_sent("X-Amz-Signature") && !was_sent("Host: 127.0.0.1\r\n"));
    gate_ask(&p.front, ALICE, "PUT /box/key", "date: Thu, 01 Jan 1970 00:00:00 GMT", STR("abc"),
             200);
    CHECK(!was_sent("1970"));
    CHECK(was_sent("x-amz-content-sha256: "
                   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    CHECK_STR(buf_str(&seen.body), STR("abc"));
    buf_release(&request);
    end(&p);
}

TEST(forward_peer, a_preflight_whose_signature_cannot_be_checked_asks_for_nothing_else)
{
    struct pair p;

    begin(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    gate_ask(&p.front, NOBODY,
             "OPTIONS /box/key?acl&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="
             "AKIAALICE00000000001%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&"
             "X-Amz-SignedHeaders=host%3Bx-amz-acl&X-Amz-Signature=00",
             "origin: http://x\naccess-control-request-method: PUT\nx-other: 1", STR("a body"),
             200);
    CHECK(was_sent("OPTIONS /box/key HTTP/1.1\r\n") && was_sent("origin: http://x\r\n"));
    CHECK(was_sent("Credential=AKIAALICE00000000001/"));
    CHECK(!was_sent("x-other") && !was_sent("acl") && !was_sent("X-Amz-Credential"));
    CHECK_INT(seen.body.len, 0);
    end(&p);
}

TEST(forward_peer, an_answer_that_comes_while_the_body_is_sent_reaches_the_client)
{
    static char body[8 * 1024 * 1024];
    struct pair p;

    begin(&p, answer_early, "HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\nearly!");
    gate_ask(&p.front, NOBODY, "PUT /box/key", NULL, str_n(body, sizeof(body)), 403);
    CHECK_STR(p.front.body, STR("early!"));
    end(&p);
}

TEST(forward_peer, success_before_the_body_was_sent_is_an_internal_error)
{
    static char body[8 * 1024 * 1024];
    struct pair p;

    begin(&p, answer_early, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: \"x\"\r\n\r\n");
    gate_ask(&p.front, NOBODY, "PUT /box/key", NULL, str_n(body, sizeof(body)), 500);
    GATE_ERROR(&p.front, "InternalError");
    end(&p);
}

TEST(forward_peer, an_answer_that_is_cut_cuts_ours)
{
    struct pair p;
    struct answer a = {0};

    begin(&p, answer_and_close, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nonly this");
    lab_say(p.front.fd, STR("GET /box/key HTTP/1.1\r\nHost: x\r\n\r\n"));
    lab_read(p.front.fd, &a, false);
    CHECK_INT(a.status, 200);
    CHECK(!a.whole);
    CHECK(lab_is_closed(p.front.fd, &a));
    answer_release(&a);
    end(&p);
}

TEST(forward_peer, a_small_answer_that_is_cut_is_an_internal_error)
{
    struct pair p;

    begin(&p, answer_and_close, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    gate_do(&p.front, "GET /box/key", 500);
    GATE_ERROR(&p.front, "InternalError");
    end(&p);
}

TEST(forward_peer, a_storage_that_breaks_off_is_an_internal_error)
{
    struct pair p;

    begin(&p, answer_and_close, "");
    gate_do(&p.front, "GET /box/key", 500);
    GATE_ERROR(&p.front, "InternalError");
    end(&p);
}

/* --- answers that are waited for without a thread: over a connection that is kept --- */

/* ctx: pieces of an answer, each sent when the one before it has gone. The last is empty. */
static void answer_in_pieces(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r)) {
        for (const char *const *piece = ctx; **piece; piece++) {
            peer_write_z(c, *piece);
            lab_pause();
        }
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

static void begin_pieces(struct pair *p, const char *const *pieces)
{
    mutex_init(&seen.lock, "forward.seen");
    over = false;
    pair_start_peer(p, answer_in_pieces, pieces);
}

TEST(forward_peer, an_answer_may_come_in_pieces)
{
    static const char *const pieces[] = {
        "HTTP/1.1 2", "00 OK\r\nContent-Length: 10\r\n", "\r\n", "half ", "whole", ""};
    struct pair p;

    begin_pieces(&p, pieces);
    for (int i = 0; i < 20; i++) {
        gate_do(&p.front, "GET /box/key", 200);
        CHECK_STR(p.front.body, STR("half whole"));
    }
    CHECK_INT(peer_accepted(p.peer), 1);
    end(&p);
}

TEST(forward_peer, an_answer_may_have_no_length)
{
    static const char *const pieces[] = {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                         "5\r\nhello\r\n", "0\r\n\r\n", ""};
    struct pair p;
    struct answer a = {0};

    begin_pieces(&p, pieces);
    for (int i = 0; i < 5; i++) {
        lab_ask(p.front.fd, &a, STR("GET /box/key HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
        CHECK(a.whole);
        CHECK_STR(buf_str(&a.body), STR("hello"));
    }
    answer_release(&a);
    end(&p);
}

/* The first connection answers once and ends when it is asked again; the next ones answer. */
static void answer_once(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r) && (c->number > 0 || seen.whole++ == 0)) {
        peer_write_z(c, ctx);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

TEST(forward_peer, a_kept_connection_that_ends_instead_of_answering_is_replaced)
{
    struct pair p;

    begin(&p, answer_once, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (int i = 0; i < 4; i++) {
        gate_do(&p.front, "GET /box/key", 200);
        CHECK_STR(p.front.body, STR("ok"));
    }
    CHECK_INT(peer_accepted(p.peer), 2);
    end(&p);
}

/* Each connection answers once and ends when it is asked again. */
static void answer_first(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;
    bool first = true;

    while (peer_read(c, &r) && first) {
        peer_write_z(c, ctx);
        peer_request_release(&r);
        first = false;
    }
    peer_request_release(&r);
}

TEST(forward_peer, a_removal_is_sent_again_only_when_twice_is_once)
{
    static const struct {
        const char *request, *headers;
        int status;
    } rows[] = {
        {"DELETE /box/key?versionId=v1", NULL, 200},
        {"DELETE /box/key?uploadId=u1", NULL, 200},
        {"DELETE /box/key?tagging", NULL, 200},
        {"DELETE /box?policy", NULL, 200},
        {"DELETE /box?cors", NULL, 200},
        {"DELETE /box?unheard-of", NULL, 500},
        {"DELETE /box", NULL, 500},
        {"DELETE /box/key", NULL, 500},
        {"DELETE /box/key?versionId=v1", "x-amz-if-match-size: 5", 500},
        {"DELETE /box/key?versionId=v1", "if-match: \"x\"", 500},
    };
    struct pair p;

    begin(&p, answer_first, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        gate_do(&p.front, "GET /box/key", 200); /* now one connection is kept, which will end */
        gate_ask(&p.front, ALICE, rows[i].request, rows[i].headers, NONE, rows[i].status);
    }
    end(&p);
}

TEST(forward_peer, nonsense_on_a_kept_connection_is_an_internal_error)
{
    static const char *const pieces[] = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                                         "HTTP/1.1 soon\r\n\r\n", ""};
    struct pair p;

    /* Whatever of it is there when the connection is given back is noticed then, or by the next. */
    begin_pieces(&p, pieces);
    gate_do(&p.front, "GET /box/key", 200);
    for (int i = 0; i < 3; i++) {
        lab_say(p.front.fd, STR("GET /box/key HTTP/1.1\r\nHost: x\r\n\r\n"));
        gate_answer(&p.front);
        CHECK(p.front.head.status == 200 || p.front.head.status == 500);
    }
    end(&p);
}

TEST(forward_peer, a_storage_that_talks_nonsense_is_an_internal_error)
{
    struct pair p;

    begin(&p, answer_and_close, "HTTP/1.1 soon\r\n\r\n");
    gate_do(&p.front, "GET /box/key", 500);
    GATE_ERROR(&p.front, "InternalError");
    CHECK(!gate_has(&p.front, "back")); /* nothing of how we are built */
    end(&p);
}

TEST(forward_peer, a_body_that_its_client_cuts_is_never_whole)
{
    struct pair p;
    struct buf request = BUF_INIT(4096);

    begin(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    buf_append_z(&request, "PUT /box/key HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n");
    lab_say(p.front.fd, buf_str(&request));
    for (int i = 0; i < 19; i++) {
        static char piece[10000];
        lab_say(p.front.fd, str_n(piece, sizeof(piece)));
    }
    close(p.front.fd);
    p.front.fd = lab_dial(&p.front.lab);
    LAB_UNTIL(peer_ended(p.peer) > 0);
    CHECK_INT(seen.whole, 0);
    gate_do(&p.front, "GET /box/key", 200);
    buf_release(&request);
    end(&p);
}

/* A port of 127.0.0.1 that nobody listens on until listen(). */
static int reserve(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void answer_one(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    char piece[4096];

    CHECK(fd >= 0);
    if (recv(fd, piece, sizeof(piece), 0) > 0)
        lab_say(fd, STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nup"));
    close(fd);
}

static void serve_forever(void *ctx)
{
    int listener = *(int *)ctx;

    while (!over)
        answer_one(listener);
}

TEST(forward_peer, a_storage_that_is_down_is_503_at_once_and_comes_back)
{
    struct pair p;
    struct thread server;
    struct err err = {0};
    uint16_t port;
    int fd = reserve(&port);
    char url[64];

    begin(&p, answer_all,
          "HTTP/1.1 200 OK\r\nContent-Length: 68\r\n\r\n"
          "<ListAllMyBucketsResult><Buckets></Buckets></ListAllMyBucketsResult>");
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    pair_add(&p, "down", url);
    CHECK_OK(route_set(p.front.routes, STR("alice-id"), STR("box"), STR("down"), &err));
    for (int i = 0; i < 5; i++) {
        gate_do(&p.front, "GET /box/key", 503);
        GATE_ERROR(&p.front, "ServiceUnavailable");
        CHECK_STR(gate_header(&p.front, "retry-after"), STR("1"));
        gate_do(&p.front, "GET /", 200); /* what the policy says */
        CHECK_STR(gate_header(&p.front, "x-weir-incomplete"), STR("true"));
        CHECK_STR(gate_element(&p.front, "Name"), STR("box"));
    }
    CHECK(listen(fd, 16) == 0);
    CHECK_OK(thread_start(&server, "server", 0, serve_forever, &fd, &err));
    do {
        lab_pause();
        gate_ask(&p.front, ALICE, "GET /box/key", NULL, NONE, 0);
    } while (p.front.head.status == 503);
    CHECK_INT(p.front.head.status, 200);
    CHECK_STR(p.front.body, STR("up"));
    over = true;
    int wake = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(connect(wake, (struct sockaddr *)&at, sizeof(at)) == 0);
    close(wake);
    thread_join(&server);
    end(&p);
    close(fd);
}

TEST(forward_peer, a_stop_does_not_wait_for_a_storage_that_is_silent)
{
    struct pair p;
    struct answer a = {0};

    begin(&p, answer_then_hang, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    gate_do(&p.front, "GET /box/key", 200); /* its connection is kept: the next needs no thread */
    lab_say(p.front.fd, STR("GET /box/key HTTP/1.1\r\nHost: x\r\n\r\n"));
    LAB_UNTIL(seen_whole() == 1);
    CHECK(http_server_stop(p.front.lab.server, clock_mono_ns()));
    CHECK(lab_is_closed(p.front.fd, &a));
    answer_release(&a);
    end(&p);
}

/* --- a pool without a free thread --- */

enum { POOL_JOBS_MAX = 128 };

static _Atomic(bool) pool_free_again;

static void hold_thread(void *ctx)
{
    (void)ctx;
    while (!pool_free_again)
        lab_pause();
}

/* An answer that is too long for the thread that waited for it is a matter for the pool. If the
 * pool is full, weir is too busy; the storage, which has answered, is not at fault. */
TEST(forward_peer, an_answer_that_finds_no_thread_is_not_blamed_on_the_storage)
{
    enum { BODY = 2 * FORWARD_SMALL };
    static char answer[BODY + 128];
    static struct pool_job jobs[POOL_JOBS_MAX];
    struct pair p;
    size_t held = 0;
    int n = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY);

    memset(answer + n, 'x', BODY);
    begin(&p, answer_all, answer);
    gate_do(&p.front, "GET /box/key", 200); /* its connection is kept: the next needs no thread */
    CHECK_INT(seen_whole(), 1);
    pool_free_again = false;
    do {
        CHECK(held < POOL_JOBS_MAX);
        jobs[held].fn = hold_thread;
    } while (pool_submit(p.front.lab.pool, &jobs[held++]) == 0);
    gate_do(&p.front, "GET /box/key", 503);
    GATE_ERROR(&p.front, "SlowDown");
    CHECK_INT(seen_whole(), 2); /* the storage had the request and answered it */
    pool_free_again = true;
    LAB_UNTIL(pool_stats(p.front.lab.pool).busy == 0);
    gate_do(&p.front, "GET /box/key", 200);
    CHECK_INT(p.front.body.len, BODY);
    end(&p);
}
