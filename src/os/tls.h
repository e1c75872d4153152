/* TLS by OpenSSL, over non-blocking sockets, for both sides.
 *
 * A context holds certificate and settings and is shared by many connections; replacing the
 * server's certificate makes a new context and swaps it (connections keep theirs). TLS 1.2 and up.
 * A connection belongs to one thread at a time.
 *
 * Errors of a connection: ERR_TIMEOUT at the deadline, ERR_CLOSED when the peer is gone without
 * saying so (what was received may be cut short; a proper end is *got = 0), ERR_PEER when it broke
 * the protocol or its certificate is not accepted (the text says why). After one of the last two
 * only tls_close() is left. */
#ifndef OS_TLS_H
#define OS_TLS_H

#include "base/err.h"
#include "base/str.h"

struct tls_context;
struct tls;

/* ERR_INVALID says which file is wrong and why (unreadable, not PEM, key does not match). The key
 * must not be encrypted. */
int tls_server_context(struct tls_context **out, const char *cert_file, const char *key_file,
                       struct err *err) MUST_CHECK;
/* A context for connecting. Peers are verified against the system's roots or those in `ca_file`,
 * and not at all when `insecure`. */
struct tls_client_options {
    const char *ca_file;
    bool insecure;
};
int tls_client_context(struct tls_context **out, const struct tls_client_options *o,
                       struct err *err) MUST_CHECK;
struct tls_context *tls_context_ref(struct tls_context *c);
void tls_context_unref(struct tls_context *c);

/* `fd` is non-blocking and borrowed until tls_close(). `host`, a name or an address, is checked
 * against the certificate; a name is sent as SNI. */
int tls_accept(struct tls **out, struct tls_context *c, int fd, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;
int tls_connect(struct tls **out, struct tls_context *c, int fd, const char *host,
                uint64_t deadline_ns, struct err *err) MUST_CHECK;
/* One step of the handshake that never waits. *t is NULL at the first step. ERR_AGAIN: call it
 * again when the socket is readable, or, if *to_write, when it is writable. After another error *t
 * is NULL again. */
int tls_accept_now(struct tls **t, struct tls_context *c, int fd, bool *to_write,
                   struct err *err) MUST_CHECK;

/* As sock_recv / sock_send_all. tls_recv_now never waits: ERR_AGAIN. After ERR_TIMEOUT, receiving
 * may go on; sending may only go on with the same bytes, so close instead. */
int tls_recv(struct tls *t, void *p, size_t len, size_t *got, uint64_t deadline_ns,
             struct err *err) MUST_CHECK;
int tls_recv_now(struct tls *t, void *p, size_t len, size_t *got, struct err *err) MUST_CHECK;
int tls_send_all(struct tls *t, const void *p, size_t len, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
/* Sends as many bytes as it can without waiting, at least one. ERR_AGAIN: none; then the next send
 * must begin with the same bytes. */
int tls_send_now(struct tls *t, const void *p, size_t len, size_t *sent,
                 struct err *err) MUST_CHECK;
/* After the handshake: OpenSSL's name of the cipher, "TLSv1.3". Static. */
const char *tls_cipher(struct tls *t);
const char *tls_version(struct tls *t);
bool tls_pending(struct tls *t); /* decrypted bytes wait inside */
/* Sends close_notify if it can without waiting, and frees the connection. NULL is fine. The
 * descriptor stays open. */
void tls_close(struct tls *t);

#endif
