/* A scripted HTTP peer for tests: a thread that listens on a free port of 127.0.0.1 and runs a
 * function of the test for each connection, in a thread of its own. */
#ifndef TESTS_UNIT_HTTP_PEER_H
#define TESTS_UNIT_HTTP_PEER_H

#include "http/wire.h"
#include "os/tls.h"

struct peer;

struct peer_conn {
    struct peer *peer;
    int fd;
    struct tls *tls;
    unsigned number; /* of the connection, from 0 */
    struct buf in;   /* received, not yet taken */
};

/* The connection is closed when it returns. */
typedef void peer_fn(struct peer_conn *c, const void *ctx);

struct peer *peer_start(peer_fn *fn, const void *ctx,
                        struct tls_context *tls); /* tls: borrowed or NULL */
void peer_stop(struct peer *p);                   /* ends what runs; frees */
const char *peer_url(struct peer *p);
unsigned peer_accepted(struct peer *p);
unsigned peer_ended(struct peer *p); /* connections that it has closed */

struct peer_request {
    struct buf text; /* the head, as it came */
    struct buf body; /* decoded */
    struct http_head head;
};

/* The next request; false when the connection ended. */
bool peer_read_head(struct peer_conn *c, struct peer_request *r);
bool peer_read_body(struct peer_conn *c, struct peer_request *r);
bool peer_read(struct peer_conn *c, struct peer_request *r); /* both */
void peer_request_release(struct peer_request *r);

void peer_write(struct peer_conn *c, struct str bytes);
void peer_write_z(struct peer_conn *c, const char *text);
/* Waits until the other side has closed or the peer is stopped; drops what comes. */
void peer_wait_end(struct peer_conn *c);
/* For peer_start: answers with what was received, the head's text, then the body. */
peer_fn peer_echo;
/* Closing will reset the connection. */
void peer_reset(struct peer_conn *c);

/* A self-signed certificate for `name` (DNS, or an address), as files in the test's folder. */
void peer_certificate(const char *name, char cert[256], char key[256]);

#endif
