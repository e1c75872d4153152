/* TLS 1.2 and later by OpenSSL, over non-blocking sockets, for servers and clients. A connection
 * belongs to one thread at a time. A context has the certificate and the settings, and is shared by
 * many connections. To replace a server's certificate, make a new context for new connections; open
 * connections keep the old one.
 *
 * Calls on a connection return these errors; after ERR_CLOSED and ERR_PEER only tls_close() may be
 * called:
 *   ERR_TIMEOUT  the deadline has passed;
 *   ERR_CLOSED   the peer closed the socket without ending TLS, so the data may be cut short;
 *   ERR_PEER     the peer broke the protocol, or its certificate is not accepted.
 * The text of the error says why. When the peer has ended TLS properly, receiving sets *got to 0.
 */
#ifndef OS_TLS_H
#define OS_TLS_H

#include "base/err.h"
#include "base/str.h"

struct tls_context;
struct tls;

/* Makes a context for a server. The text of ERR_INVALID says which file is wrong and why
 * (unreadable, not PEM, key does not match). The key must not be encrypted. */
int tls_server_context(struct tls_context **out, const char *cert_file, const char *key_file,
                       struct err *err) MUST_CHECK;
/* The settings of a client's context. The peer's certificate is checked against the certificate
 * authorities of the system, or against those in `ca_file` when that is not NULL. With `insecure`
 * the certificate is not checked at all. */
struct tls_client_options {
    const char *ca_file;
    bool insecure;
};
int tls_client_context(struct tls_context **out, const struct tls_client_options *o,
                       struct err *err) MUST_CHECK;
struct tls_context *tls_context_ref(struct tls_context *c);
void tls_context_unref(struct tls_context *c);

/* These functions make the handshake of a server and of a client. `fd` is non-blocking and borrowed
 * until tls_close(). In tls_connect() the peer's certificate must be for `host`, a name or an
 * address; a name is also sent to the peer as SNI. */
int tls_accept(struct tls **out, struct tls_context *c, int fd, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;
int tls_connect(struct tls **out, struct tls_context *c, int fd, const char *host,
                uint64_t deadline_ns, struct err *err) MUST_CHECK;
/* Makes one step of a server's handshake, without waiting. *t is NULL at the first step. ERR_AGAIN:
 * call the function again when the socket is readable, or, if *to_write, when the socket is
 * writable. After another error *t is NULL again. */
int tls_accept_now(struct tls **t, struct tls_context *c, int fd, bool *to_write,
                   struct err *err) MUST_CHECK;

/* These functions work like sock_recv() and sock_send_all(). tls_recv_now() never waits and returns
 * ERR_AGAIN instead. After ERR_TIMEOUT the caller may receive again, but must not send again:
 * OpenSSL would need exactly the bytes that it has not sent yet. */
int tls_recv(struct tls *t, void *p, size_t len, size_t *got, uint64_t deadline_ns,
             struct err *err) MUST_CHECK;
int tls_recv_now(struct tls *t, void *p, size_t len, size_t *got, struct err *err) MUST_CHECK;
int tls_send_all(struct tls *t, const void *p, size_t len, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
/* Sends as many bytes as it can without waiting, at least one. ERR_AGAIN: no byte could be sent,
 * and the next send must begin with the same bytes. */
int tls_send_now(struct tls *t, const void *p, size_t len, size_t *sent,
                 struct err *err) MUST_CHECK;
/* These functions return, after the handshake, OpenSSL's name of the cipher and the TLS version,
 * such as "TLSv1.3". The strings are static. */
const char *tls_cipher(struct tls *t);
const char *tls_version(struct tls *t);
bool tls_pending(struct tls *t); /* whether decrypted bytes are waiting to be received */
/* Sends close_notify if that needs no waiting, and frees the connection. The descriptor stays open.
 * `t` may be NULL. */
void tls_close(struct tls *t);

#endif
