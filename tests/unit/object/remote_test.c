/* A remote storage against scripted peers: what is sent, whose credentials sign, what a peer that
 * fails becomes. */
#include "object/remote/remote.h"
#include "base/log.h"
#include "http/upstream.h"
#include "os/file.h"
#include "os/sock.h"
#include "os/thread.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>

static struct storage *open_storage(const char *url, bool virtual_host)
{
    struct remote_options o = {.name = STR("far"),
                               .url = str_z(url),
                               .region = STR("mars-1"),
                               .virtual_host = virtual_host};
    struct remote_credential c = {STR("alice"), STR("AKALICE"), STR("alices-secret")};
    struct storage *s = NULL;
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(remote_open(&s, &o, &err));
    CHECK_OK(remote_set_credential(s, &c, &err));
    return s;
}

static const struct forward_request get = {
    .user = {"alice", 5}, .method = {"GET", 3}, .path = {"/b/k", 4}, .idempotent = true};

/* What the echoing peer got. */
static struct buf echoed(struct storage *s, const struct forward_request *r)
{
    struct exchange *e = NULL;
    struct buf text = BUF_INIT(0);
    struct err err = {0};

    CHECK_OK(s->ops->forward(s, r, &e, &err));
    CHECK_INT(exchange_head(e)->status, 200);
    CHECK_OK(reader_read_all(exchange_body(e), &text, &err));
    exchange_close(e);
    return text;
}

static void expect_sent(struct storage *s, const struct forward_request *r, const char *wanted)
{
    struct buf text = echoed(s, r);

    if (!strstr(text.p, wanted))
        test_fail(__FILE__, __LINE__, "no '%s' in '%s'", wanted, text.p);
    buf_release(&text);
}

TEST(remote, a_forwarded_request_is_signed_with_the_users_own_credentials)
{
    struct peer *p = peer_start(peer_echo, NULL, NULL);
    struct storage *s = open_storage(peer_url(p), false);
    struct http_header headers[] = {{STR("x-amz-meta-a"), STR("b")},
                                    {STR("range"), STR("bytes=1-")}};
    struct forward_request r = get;

    r.headers = headers;
    r.header_count = 2;
    expect_sent(s, &r, "Credential=AKALICE/");
    expect_sent(s, &r,
                "/mars-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;"
                "x-amz-date;x-amz-meta-a, Signature=");
    expect_sent(s, &r, "\r\nrange: bytes=1-\r\n");
    struct buf text = echoed(s, &r);
    CHECK(!strstr(text.p, "alices-secret"));
    buf_release(&text);
    CHECK_INT(peer_accepted(p), 1); /* one connection for all */
    s->ops->close(s);
    peer_stop(p);
}

TEST(remote, a_query_is_sent_in_the_form_that_is_signed_and_a_path_as_it_is)
{
    struct peer *p = peer_start(peer_echo, NULL, NULL);
    struct storage *s = open_storage(peer_url(p), false);
    struct forward_request r = get;
    struct exchange *e = NULL;
    struct err err = {0};

    r.path = STR("/b%2Fx/a%28b%29%20%E4//%2Fc%252F/../.");
    r.query = STR("acl&prefix=a+b&&x=");
    expect_sent(s, &r,
                "GET /b%2Fx/a%28b%29%20%E4//%2Fc%252F/../.?acl&prefix=a%20b&x= HTTP/1.1\r\n");
    r.path = STR("/b/a(b)"); /* not encoded */
    CHECK_INT(s->ops->forward(s, &r, &e, &err), ERR_INVALID);
    s->ops->close(s);
    peer_stop(p);
}

TEST(remote, a_bucket_may_stand_in_the_host)
{
    struct peer *p = peer_start(peer_echo, NULL, NULL);
    struct storage *s = open_storage(peer_url(p), true);
    struct forward_request r = get;

    expect_sent(s, &r, "GET /k HTTP/1.1\r\n");
    expect_sent(s, &r, "Host: b.127.0.0.1:");
    r.path = STR("/b");
    expect_sent(s, &r, "GET / HTTP/1.1\r\n");
    static const char *const others[] = {"/B_ad/k", "/bad./k", "/.bad/k", "/b..ad/k"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        char line[64];
        r.path = str_z(others[i]);
        snprintf(line, sizeof(line), "GET %s HTTP/1.1\r\n", others[i]);
        expect_sent(s, &r, line);
    }
    r.path = STR("/");
    expect_sent(s, &r, "Host: 127.0.0.1:");
    s->ops->close(s);
    peer_stop(p);
}

TEST(remote, a_body_has_its_hash_or_none)
{
    struct peer *p = peer_start(peer_echo, NULL, NULL);
    struct storage *s = open_storage(peer_url(p), false);
    struct forward_request r = get;
    struct str_reader body;

    r.method = STR("PUT");
    expect_sent(s, &r, "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb924");
    str_reader_init(&body, STR("hello"));
    r.body = &body.reader;
    r.body_len = 5;
    expect_sent(s, &r, "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n");
    str_reader_init(&body, STR("hello"));
    r.sha256 = STR("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    expect_sent(s, &r, "x-amz-content-sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e");
    s->ops->close(s);
    peer_stop(p);
}

TEST(remote, who_has_no_credentials_sends_nothing)
{
    struct peer *p = peer_start(peer_echo, NULL, NULL);
    struct storage *s = open_storage(peer_url(p), false);
    struct forward_request r = get;
    struct exchange *e = NULL;
    struct err err = {0};
    struct remote_credential gone = {.user = STR("alice")};

    r.user = STR("bob");
    CHECK_ERR(s->ops->forward(s, &r, &e, &err), ERR_DENIED);
    CHECK(remote_has_credential(s, STR("alice")) && !remote_has_credential(s, STR("bob")));
    CHECK_OK(remote_set_credential(s, &gone, &err));
    CHECK(!remote_has_credential(s, STR("alice")));
    CHECK_ERR(s->ops->forward(s, &get, &e, &err), ERR_DENIED);
    CHECK_INT(peer_accepted(p), 0);
    r.user = STR_EMPTY; /* nobody: unsigned */
    struct buf text = echoed(s, &r);
    CHECK(!strstr(text.p, "Authorization"));
    buf_release(&text);
    s->ops->close(s);
    peer_stop(p);
}

TEST(remote, credentials_and_addresses_that_cannot_be_are_refused)
{
    struct storage *s = open_storage("http://127.0.0.1:1", false), *other = NULL;
    struct remote_credential bad[] = {{STR(""), STR("A"), STR("s")},
                                      {STR("u"), STR(""), STR("s")},
                                      {STR("u"), STR("A B"), STR("s")},
                                      {STR("u"), STR("A/B"), STR("s")}};
    static const char *const urls[] = {
        "", "ftp://x", "http://", "http://h/path", "http://u:p@h", "http://h?x"};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(remote_set_credential(s, &bad[i], &err), ERR_INVALID);
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        struct remote_options o = {.name = STR("x"), .url = str_z(urls[i])};
        CHECK_ERR(remote_open(&other, &o, &err), ERR_INVALID);
    }
    s->ops->close(s);
}

static void change_credentials(void *ctx)
{
    struct storage *s = ctx;
    struct err err = {0};

    for (int i = 0; i < 300; i++) {
        char access[32], secret[64];
        snprintf(access, sizeof(access), "AK%d", i);
        snprintf(secret, sizeof(secret), "secret-number-%d", i);
        struct remote_credential c = {STR("alice"), str_z(access), str_z(secret)};
        CHECK_OK(remote_set_credential(s, &c, &err));
    }
}

TEST(remote, credentials_may_be_replaced_while_they_sign)
{
    struct peer *p = peer_start(peer_echo, NULL, NULL);
    struct storage *s = open_storage(peer_url(p), false);
    struct thread changer = {0};
    struct err err = {0};

    CHECK_OK(thread_start(&changer, "changer", 0, change_credentials, s, &err));
    for (int i = 0; i < 100; i++)
        expect_sent(s, &get, "Credential=AK");
    thread_join(&changer);
    expect_sent(s, &get, "Credential=AK299/");
    s->ops->close(s);
    peer_stop(p);
}

TEST(remote, a_storage_that_is_down_fails_at_once_and_comes_back_by_itself)
{
    struct sock_addr addr;
    char text[SOCK_ADDR_TEXT], url[SOCK_ADDR_TEXT + 8];
    struct exchange *e = NULL;
    struct err err = {0};
    int taken = -1, fd = -1;

    CHECK_OK(sock_addr_parse(&addr, STR("127.0.0.1:0"), &err));
    CHECK_OK(sock_listen(&taken, &addr, 4, &err));
    CHECK_OK(sock_local(taken, &addr, &err));
    sock_addr_text(&addr, text);
    snprintf(url, sizeof(url), "http://%s", text);
    fd_close(&taken);
    struct storage *s = open_storage(url, false);
    for (int i = 0; i < 3; i++)
        CHECK_ERR(s->ops->forward(s, &get, &e, &err), ERR_UNAVAILABLE);
    CHECK_ERR(s->ops->forward(s, &get, &e, &err), ERR_UNAVAILABLE);
    CHECK(strstr(err.text, "is down"));
    CHECK_ERR(s->ops->check(s, &err), ERR_UNAVAILABLE);
    /* Nobody asks: the connection is the prober's. */
    CHECK_OK(sock_listen(&taken, &addr, 4, &err));
    while ((fd = accept4(taken, NULL, NULL, SOCK_CLOEXEC)) < 0)
        sched_yield();
    s->ops->close(s);
    fd_close(&fd);
    fd_close(&taken);
}
