/* Connections to PostgreSQL whose calls wait within a limit (os/sock.h), for the postgres driver
 * and for readers of other databases. libpq's own waiting calls are not used, because they have no
 * deadline or cannot be canceled. A connection belongs to one thread. No error text contains a url,
 * because the url has the password. */
#ifndef KV_POSTGRES_CONN_H
#define KV_POSTGRES_CONN_H

#include "os/sock.h"

#include <libpq-fe.h>

/* ERR_INVALID: libpq cannot read the url. `what` is the name of the url in the error's text. */
int pg_url_check(const char *url, const char *what, struct err *err) MUST_CHECK;

/* Looks up the hosts and connects. Keys and values are those of PQconnectdbParams(), which also
 * reads a url that is the value of "dbname". The connection does not block. The caller ends it with
 * PQfinish(). Errors: ERR_DENIED, ERR_INVALID (no such database), ERR_UNAVAILABLE (the server
 * refuses, or the deadline has passed), ERR_CANCELED. */
int pg_conn_open(PGconn **out, const char *const *keys, const char *const *values,
                 const struct sock_limit *limit, struct err *err) MUST_CHECK;

/* The calls below return ERR_CLOSED (the connection was lost), ERR_TIMEOUT and ERR_CANCELED. The
 * connection cannot be used after any of these errors. */

/* Sends the bytes that libpq has buffered, and reads the answers that arrive in the meantime. */
int pg_conn_flush(PGconn *conn, const struct sock_limit *limit, struct err *err) MUST_CHECK;
/* Receives the next result, which the caller clears. NULL: the statement has no more results. */
int pg_conn_result(PGconn *conn, PGresult **out, const struct sock_limit *limit,
                   struct err *err) MUST_CHECK;
/* Sets ERR_CLOSED, with the text of libpq, and returns it. */
int pg_conn_lost(PGconn *conn, struct err *err);

#endif
