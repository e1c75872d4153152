/* TLS by OpenSSL over non-blocking sockets, which the caller owns. */
#include "os/tls.h"
#include "os/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct tls_context {
    SSL_CTX *ctx;
    _Atomic(int) refs;
    bool verify; /* in a client's context: whether the peer's certificate is checked */
};

struct tls {
    SSL *ssl;
    struct tls_context *context; /* shared; the connection has one reference */
    int fd;                      /* borrowed */
    int errnum;                  /* errno of the last system call that failed */
    bool ended;                  /* the peer has closed the socket */
    bool broken;                 /* after an error, only freeing the connection is allowed */
};

/* Writes the text of the oldest entry in OpenSSL's error queue and empties the queue. The oldest
 * entry is the cause; the later entries were added by functions further up in the call chain. */
static void queue_text(char *out, size_t size)
{
    const char *data = "";
    char system[128];
    int flags = 0;
    unsigned long code = ERR_get_error_all(NULL, NULL, NULL, &data, &flags);
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    bool more = flags & ERR_TXT_STRING && *data;

    if (code && ERR_SYSTEM_ERROR(code))
        snprintf(out, size, "%s", strerror_r(ERR_GET_REASON(code), system, sizeof(system)));
    else
        snprintf(out, size, "%s%s%s", reason ? reason : "unknown TLS error", more ? ": " : "",
                 more ? data : "");
    ERR_clear_error();
}

/* Sets the error and returns `code`. The text is the formatted words, then OpenSSL's text. */
static int tls_fail(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int tls_fail(struct err *err, int code, const char *fmt, ...)
{
    char words[256], reason[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    queue_text(reason, sizeof(reason));
    return err_set(err, code, "%s: %s", words, reason);
}

/* Refuses encrypted keys: without this, OpenSSL would ask for the password at the terminal. */
static int no_password(char *to, int size, int writing, void *ctx)
{
    (void)to, (void)size, (void)writing, (void)ctx;
    return -1;
}

static struct tls_context *context_new(const SSL_METHOD *method)
{
    struct tls_context *c = xzalloc(sizeof(*c));

    c->ctx = SSL_CTX_new(method);
    BUG_ON(!c->ctx);
    atomic_init(&c->refs, 1);
    SSL_CTX_set_min_proto_version(c->ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(c->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    /* The first mode frees the buffers of an idle connection. The other two let OpenSSL accept a
     * part of a send, and let the caller repeat a send from another address. */
    SSL_CTX_set_mode(c->ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* No session cache: clients resume sessions with tickets, which they store themselves, so weir
     * has no table of sessions that peers could fill. */
    SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(c->ctx, no_password);
    return c;
}

struct tls_context *tls_context_ref(struct tls_context *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void tls_context_unref(struct tls_context *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(c->ctx);
    free(c);
}

int tls_server_context(struct tls_context **out, const char *cert_file, const char *key_file,
                       struct err *err)
{
    struct tls_context *c = context_new(TLS_server_method());
    int code = 0;

    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(c->ctx, cert_file) != 1)
        code = tls_fail(err, ERR_INVALID, "the certificate in %s", cert_file);
    else if (SSL_CTX_use_PrivateKey_file(c->ctx, key_file, SSL_FILETYPE_PEM) != 1)
        code = tls_fail(err, ERR_INVALID, "the private key in %s", key_file);
    else if (SSL_CTX_check_private_key(c->ctx) != 1)
        code = tls_fail(err, ERR_INVALID, "the key in %s is not that of the certificate in %s",
                        key_file, cert_file);
    if (code < 0)
        tls_context_unref(c);
    else
        *out = c;
    return code;
}

int tls_client_context(struct tls_context **out, const struct tls_client_options *o,
                       struct err *err)
{
    struct tls_context *c = context_new(TLS_client_method());
    int code = 0;

    ERR_clear_error();
    c->verify = !o->insecure;
    SSL_CTX_set_verify(c->ctx, c->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (c->verify && o->ca_file && SSL_CTX_load_verify_file(c->ctx, o->ca_file) != 1)
        code = tls_fail(err, ERR_INVALID, "the certificates in %s", o->ca_file);
    else if (c->verify && !o->ca_file && SSL_CTX_set_default_verify_paths(c->ctx) != 1)
        code = tls_fail(err, ERR_INVALID, "the system's certificates");
    if (code < 0)
        tls_context_unref(c);
    else
        *out = c;
    return code;
}

/* bio_read() and the next function are weir's own BIO, through which OpenSSL reads and writes the
 * socket. OpenSSL's socket BIO writes without MSG_NOSIGNAL, so a connection that the peer has
 * closed would end the process with SIGPIPE. weir's BIO also keeps errno, for a precise error. */
static int bio_read(BIO *bio, char *to, int len)
{
    struct tls *t = BIO_get_data(bio);
    ssize_t n = recv(t->fd, to, (size_t)len, 0);

    BIO_clear_retry_flags(bio);
    t->ended = n == 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    else if (n < 0)
        t->errnum = errno;
    return (int)n;
}

static int bio_write(BIO *bio, const char *from, int len)
{
    struct tls *t = BIO_get_data(bio);
    ssize_t n = send(t->fd, from, (size_t)len, MSG_NOSIGNAL);

    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    else if (n < 0)
        t->errnum = errno;
    return (int)n;
}

static long bio_control(BIO *bio, int command, long number, void *p)
{
    struct tls *t = BIO_get_data(bio);
    (void)number, (void)p;
    return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && t->ended);
}

static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
    bio_method = BIO_meth_new(BIO_TYPE_SOCKET, "weir socket");
    BUG_ON(!bio_method);
    BIO_meth_set_read(bio_method, bio_read);
    BIO_meth_set_write(bio_method, bio_write);
    BIO_meth_set_ctrl(bio_method, bio_control);
}

static struct tls *tls_new(struct tls_context *c, int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct tls *t = xzalloc(sizeof(*t));
    BIO *bio;

    pthread_once(&once, make_bio_method);
    t->ssl = SSL_new(c->ctx);
    bio = BIO_new(bio_method);
    BUG_ON(!t->ssl || !bio);
    t->context = tls_context_ref(c);
    t->fd = fd;
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    return t;
}

static void tls_free(struct tls *t)
{
    SSL_free(t->ssl);
    tls_context_unref(t->context);
    free(t);
    ERR_clear_error();
}

/* Says what an OpenSSL call that returned `result` needs: POLLIN or POLLOUT, the event to wait for
 * before the call is repeated, or a negative error code. `doing` is for the text of the error. */
static int tls_wants(struct tls *t, int result, const char *doing, struct err *err)
{
    int reason = SSL_get_error(t->ssl, result);
    long verified = SSL_get_verify_result(t->ssl);

    if (reason == SSL_ERROR_WANT_READ)
        return POLLIN;
    if (reason == SSL_ERROR_WANT_WRITE)
        return POLLOUT;
    t->broken = true;
    if (t->errnum)
        return err_errno(err, t->errnum, "TLS: %s", doing);
    if (t->ended)
        return err_set(err, ERR_CLOSED, "TLS: %s: the peer closed the connection", doing);
    if (t->context->verify && !SSL_is_init_finished(t->ssl) && verified != X509_V_OK) {
        ERR_clear_error();
        return err_set(err, ERR_PEER, "TLS: the peer's certificate is not accepted: %s",
                       X509_verify_cert_error_string(verified));
    }
    return tls_fail(err, ERR_PEER, "TLS: %s", doing);
}

/* Waits for the event `wanted`, which is the result of tls_wants(). If `wanted` is a negative error
 * code, returns that code. 0: the caller may repeat its call. */
static int tls_wait_for(struct tls *t, int wanted, uint64_t deadline_ns, struct err *err)
{
    return wanted <= 0 ? wanted : sock_wait(t->fd, (short)wanted, deadline_ns, err);
}

static int handshake(struct tls *t, uint64_t deadline_ns, struct err *err)
{
    for (;;) {
        int result, code;

        ERR_clear_error();
        result = SSL_do_handshake(t->ssl);
        if (result == 1)
            return 0;
        code = tls_wait_for(t, tls_wants(t, result, "handshake", err), deadline_ns, err);
        if (code < 0)
            return code;
    }
}

int tls_accept(struct tls **out, struct tls_context *c, int fd, uint64_t deadline_ns,
               struct err *err)
{
    struct tls *t = tls_new(c, fd);
    int code;

    SSL_set_accept_state(t->ssl);
    code = handshake(t, deadline_ns, err);
    if (code < 0)
        tls_free(t);
    else
        *out = t;
    return code;
}

int tls_accept_now(struct tls **t, struct tls_context *c, int fd, bool *to_write, struct err *err)
{
    int result, code;

    if (!*t) {
        *t = tls_new(c, fd);
        SSL_set_accept_state((*t)->ssl);
    }
    ERR_clear_error();
    result = SSL_do_handshake((*t)->ssl);
    if (result == 1)
        return 0;
    code = tls_wants(*t, result, "handshake", err);
    *to_write = code == POLLOUT;
    if (code >= 0)
        return err_code(err, ERR_AGAIN);
    tls_free(*t);
    *t = NULL;
    return code;
}

/* Sets the name or address that the peer's certificate must have. A name is also sent to the peer
 * as SNI, which cannot be an address (RFC 6066 section 3). */
static int expect_host(struct tls *t, const char *host, struct err *err)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);
    unsigned char ip[sizeof(struct in6_addr)];
    bool literal = inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1;

    if (literal && X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return 0;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (!literal && *host && SSL_set_tlsext_host_name(t->ssl, host) == 1 &&
        X509_VERIFY_PARAM_set1_host(param, host, 0) == 1)
        return 0;
    ERR_clear_error();
    return err_set(err, ERR_INVALID, "TLS: '%s' is not the name of a host", host);
}

int tls_connect(struct tls **out, struct tls_context *c, int fd, const char *host,
                uint64_t deadline_ns, struct err *err)
{
    struct tls *t = tls_new(c, fd);
    int code = expect_host(t, host, err);

    SSL_set_connect_state(t->ssl);
    if (code == 0)
        code = handshake(t, deadline_ns, err);
    if (code < 0)
        tls_free(t);
    else
        *out = t;
    return code;
}

/* Reads once. Returns 0 and sets *got, or POLLIN or POLLOUT when the caller has to wait for that
 * event, or a negative error code. */
static int read_once(struct tls *t, void *p, size_t len, size_t *got, struct err *err)
{
    int result;

    *got = 0;
    if (t->broken)
        return err_code(err, ERR_CLOSED);
    ERR_clear_error();
    result = SSL_read_ex(t->ssl, p, len, got);
    if (result == 1 || SSL_get_error(t->ssl, result) == SSL_ERROR_ZERO_RETURN)
        return 0;
    return tls_wants(t, result, "receiving", err);
}

int tls_recv(struct tls *t, void *p, size_t len, size_t *got, uint64_t deadline_ns, struct err *err)
{
    int code;

    while ((code = read_once(t, p, len, got, err)) > 0) {
        code = tls_wait_for(t, code, deadline_ns, err);
        if (code < 0)
            break;
    }
    return code;
}

int tls_recv_now(struct tls *t, void *p, size_t len, size_t *got, struct err *err)
{
    int code = read_once(t, p, len, got, err);
    return code > 0 ? err_code(err, ERR_AGAIN) : code;
}

int tls_send_all(struct tls *t, const void *p, size_t len, uint64_t deadline_ns, struct err *err)
{
    const char *from = p;

    while (len) {
        size_t sent = 0;
        int result, code;

        if (t->broken)
            return err_code(err, ERR_CLOSED);
        ERR_clear_error();
        result = SSL_write_ex(t->ssl, from, len, &sent);
        from += sent;
        len -= sent;
        if (result == 1)
            continue;
        code = tls_wait_for(t, tls_wants(t, result, "sending", err), deadline_ns, err);
        if (code < 0)
            return code;
    }
    return 0;
}

int tls_send_now(struct tls *t, const void *p, size_t len, size_t *sent, struct err *err)
{
    int result, code;

    *sent = 0;
    if (t->broken)
        return err_code(err, ERR_CLOSED);
    ERR_clear_error();
    result = SSL_write_ex(t->ssl, p, len, sent);
    if (result == 1)
        return 0;
    code = tls_wants(t, result, "sending", err);
    return code > 0 ? err_code(err, ERR_AGAIN) : code;
}

const char *tls_cipher(struct tls *t)
{
    return SSL_get_cipher_name(t->ssl);
}

const char *tls_version(struct tls *t)
{
    return SSL_get_version(t->ssl);
}

bool tls_pending(struct tls *t)
{
    return SSL_pending(t->ssl) > 0;
}

void tls_close(struct tls *t)
{
    if (!t)
        return;
    if (!t->broken)
        SSL_shutdown(t->ssl);
    tls_free(t);
}
