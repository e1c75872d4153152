/* The scripted peer. */
#include "unit/http/peer.h"
#include "base/clock.h"
#include "base/vec.h"
#include "os/file.h"
#include "os/sock.h"
#include "os/thread.h"
#include "unit/test.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { WAIT_SECONDS = 30 };

struct session {
    struct thread thread;
    struct peer_conn conn;
    bool over; /* its descriptor is closed */
};

struct peer {
    int fd;
    char url[64];
    peer_fn *fn;
    const void *ctx;
    struct tls_context *tls;
    struct thread acceptor;
    struct mutex lock;
    bool stopping;
    VEC(struct session *) sessions;
};

static uint64_t deadline(void)
{
    return clock_mono_ns() + WAIT_SECONDS * NS_PER_S;
}

static void serve(void *ctx)
{
    struct session *s = ctx;
    struct peer *p = s->conn.peer;

    if (!p->tls || tls_accept(&s->conn.tls, p->tls, s->conn.fd, deadline(), NULL) == 0)
        p->fn(&s->conn, p->ctx);
    tls_close(s->conn.tls);
    buf_release(&s->conn.in);
    mutex_lock(&p->lock);
    fd_close(&s->conn.fd);
    s->over = true;
    mutex_unlock(&p->lock);
}

static void accept_all(void *ctx)
{
    struct peer *p = ctx;
    struct err err = {0};

    for (;;) {
        if (sock_wait(p->fd, POLLIN, deadline() * 2, NULL) < 0)
            continue;
        int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        mutex_lock(&p->lock);
        bool stop = p->stopping;
        if (fd >= 0 && !stop) {
            struct session *s = xcalloc(1, sizeof(*s));
            s->conn = (struct peer_conn){.peer = p, .fd = fd, .number = (unsigned)p->sessions.len};
            sock_nodelay(fd);
            vec_push(&p->sessions, s);
            CHECK_OK(thread_start(&s->thread, "peer-session", 0, serve, s, &err));
            fd = -1;
        }
        mutex_unlock(&p->lock);
        fd_close(&fd);
        if (stop)
            return;
    }
}

struct peer *peer_start(peer_fn *fn, const void *ctx, struct tls_context *tls)
{
    struct peer *p = xcalloc(1, sizeof(*p));
    struct sock_addr addr;
    char text[SOCK_ADDR_TEXT];
    struct err err = {0};

    p->fn = fn;
    p->ctx = ctx;
    p->tls = tls;
    mutex_init(&p->lock, "test.peer");
    CHECK_OK(sock_addr_parse(&addr, STR("127.0.0.1:0"), &err));
    CHECK_OK(sock_listen(&p->fd, &addr, 64, &err));
    CHECK_OK(sock_local(p->fd, &addr, &err));
    sock_addr_text(&addr, text);
    snprintf(p->url, sizeof(p->url), "http%s://%.50s", tls ? "s" : "", text);
    CHECK_OK(thread_start(&p->acceptor, "peer", 0, accept_all, p, &err));
    return p;
}

void peer_stop(struct peer *p)
{
    struct sock_addr addr;
    struct err err = {0};
    int wake = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    mutex_lock(&p->lock);
    p->stopping = true;
    vec_each (&p->sessions, struct session **, s)
        if (!(*s)->over)
            shutdown((*s)->conn.fd, SHUT_RDWR);
    mutex_unlock(&p->lock);
    CHECK_OK(sock_local(p->fd, &addr, &err));
    CHECK(connect(wake, (struct sockaddr *)&addr.sa, addr.len) == 0);
    thread_join(&p->acceptor);
    vec_each (&p->sessions, struct session **, s) {
        thread_join(&(*s)->thread);
        free(*s);
    }
    vec_release(&p->sessions);
    fd_close(&wake);
    fd_close(&p->fd);
    mutex_release(&p->lock);
    free(p);
}

const char *peer_url(struct peer *p)
{
    return p->url;
}

unsigned peer_accepted(struct peer *p)
{
    mutex_lock(&p->lock);
    unsigned n = (unsigned)p->sessions.len;
    mutex_unlock(&p->lock);
    return n;
}

unsigned peer_ended(struct peer *p)
{
    unsigned n = 0;

    mutex_lock(&p->lock);
    vec_each (&p->sessions, struct session **, s)
        n += (*s)->over;
    mutex_unlock(&p->lock);
    return n;
}

static bool receive(struct peer_conn *c)
{
    size_t got = 0;
    char *to = buf_reserve(&c->in, 64 * KIB);
    int rc = c->tls ? tls_recv(c->tls, to, 64 * KIB, &got, deadline(), NULL)
                    : sock_recv(c->fd, to, 64 * KIB, &got, deadline(), NULL);
    if (rc < 0 || got == 0)
        return false;
    buf_commit(&c->in, got);
    return true;
}

bool peer_read_head(struct peer_conn *c, struct peer_request *r)
{
    struct err err = {0};
    size_t seen = 0;
    int rc;

    *r = (struct peer_request){0};
    while ((rc = http_parse_request(&r->head, buf_str(&c->in), &seen, &err)) == ERR_AGAIN)
        if (!receive(c))
            return false;
    CHECK_OK(rc);
    buf_append(&r->text, c->in.p, r->head.size);
    seen = 0;
    CHECK_OK(http_parse_request(&r->head, buf_str(&r->text), &seen, &err));
    buf_consume(&c->in, r->head.size);
    return true;
}

static bool read_chunked(struct peer_conn *c, struct peer_request *r)
{
    struct http_chunked chunked = {0};
    struct err err = {0};

    while (!chunked.done) {
        struct str piece;
        size_t used;
        if (c->in.len == 0 && !receive(c))
            return false;
        CHECK_OK(http_chunked_next(&chunked, buf_str(&c->in), &piece, &used, NULL, &err));
        buf_append_str(&r->body, piece);
        buf_consume(&c->in, used);
    }
    return true;
}

bool peer_read_body(struct peer_conn *c, struct peer_request *r)
{
    if (r->head.chunked)
        return read_chunked(c, r);
    while (r->body.len < r->head.content_length) {
        if (c->in.len == 0 && !receive(c))
            return false;
        size_t n = size_min(c->in.len, r->head.content_length - r->body.len);
        buf_append(&r->body, c->in.p, n);
        buf_consume(&c->in, n);
    }
    return true;
}

bool peer_read(struct peer_conn *c, struct peer_request *r)
{
    return peer_read_head(c, r) && peer_read_body(c, r);
}

void peer_request_release(struct peer_request *r)
{
    buf_release(&r->text);
    buf_release(&r->body);
}

void peer_write(struct peer_conn *c, struct str bytes)
{
    int rc = c->tls ? tls_send_all(c->tls, bytes.p, bytes.len, deadline(), NULL)
                    : sock_send_all(c->fd, bytes.p, bytes.len, deadline(), NULL);
    (void)rc; /* the other side may be gone: it is what some tests are about */
}

void peer_write_z(struct peer_conn *c, const char *text)
{
    peer_write(c, str_z(text));
}

void peer_wait_end(struct peer_conn *c)
{
    while (receive(c))
        buf_reset(&c->in);
}

void peer_reset(struct peer_conn *c)
{
    struct linger linger = {.l_onoff = 1};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void peer_echo(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    (void)ctx;
    while (peer_read(c, &r)) {
        struct buf out = BUF_INIT(0);
        buf_appendf(&out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                    r.text.len + r.body.len);
        buf_append_str(&out, buf_str(&r.text));
        buf_append_str(&out, buf_str(&r.body));
        peer_write(c, buf_str(&out));
        buf_release(&out);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

static void add_name(X509 *x, const char *name)
{
    char value[128];
    bool address = name[0] >= '0' && name[0] <= '9';

    snprintf(value, sizeof(value), "%s:%s", address ? "IP" : "DNS", name);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, value);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

void peer_certificate(const char *name, char cert[256], char key[256])
{
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    FILE *f;

    snprintf(cert, 256, "%s/%s.crt", test_dir(), name);
    snprintf(key, 256, "%s/%s.key", test_dir(), name);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, pkey);
    add_name(x, name);
    CHECK(X509_sign(x, pkey, EVP_sha256()) > 0);
    CHECK((f = fopen(cert, "w")) && PEM_write_X509(f, x) == 1 && fclose(f) == 0);
    CHECK((f = fopen(key, "w")) && PEM_write_PrivateKey(f, pkey, NULL, NULL, 0, NULL, NULL) == 1 &&
          fclose(f) == 0);
    X509_free(x);
    EVP_PKEY_free(pkey);
}
