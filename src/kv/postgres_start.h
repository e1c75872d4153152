/* Begins connections to PostgreSQL, and looks up the names of the hosts within a limit. libpq looks
 * them up by getaddrinfo(), which has no deadline and cannot be canceled. So libpq gets the
 * addresses beside the names ("hostaddr" beside "host"). It then looks up nothing, and still checks
 * certificates and finds passwords by the names. */
#ifndef KV_POSTGRES_START_H
#define KV_POSTGRES_START_H

#include "os/sock.h"

#include <libpq-fe.h>

/* As PQconnectStartParams() with expand_dbname: the connection may have failed already
 * (CONNECTION_BAD). A name that cannot be looked up is left out, as long as another host is left.
 * Errors: ERR_UNAVAILABLE (no host is left, or the deadline has passed), ERR_CANCELED. */
int pg_conn_start(PGconn **out, const char *const *keys, const char *const *values,
                  const struct sock_limit *limit, struct err *err) MUST_CHECK;
/* Appends the name of the host that libpq has tried first, and ": ", if that host was looked up.
 * libpq's texts have the addresses of such hosts, and not their names. */
void pg_conn_name(struct buf *out, PGconn *conn);

#endif
