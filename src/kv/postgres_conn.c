/* Connections to PostgreSQL whose calls wait within a limit. */
#include "kv/postgres_conn.h"
#include "kv/postgres_start.h"

#include <poll.h>

int pg_url_check(const char *url, const char *what, struct err *err)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &message);
    bool good = options != NULL;

    PQconninfoFree(options);
    PQfreemem(message); /* the message may quote the url, which has the password */
    return good ? 0
                : err_set(err, ERR_INVALID,
                          "%s is not a url that PostgreSQL reads; write "
                          "postgres://user:password@host/database",
                          what);
}

/* --- connecting --- */

static void conn_ignore_notice(void *ctx, const PGresult *r)
{
    (void)ctx, (void)r;
}

/* Sets the error of a connection that failed, with the first line of libpq's text. That line names
 * the problem; the lines after it are advice, or about further hosts. The text names host and user,
 * never the password. */
static int conn_refused(PGconn *conn, struct err *err)
{
    struct str text = str_z(PQerrorMessage(conn)), first, advice;
    bool denied = PQconnectionNeedsPassword(conn) || PQconnectionUsedPassword(conn);
    struct buf name = {0};
    int code = ERR_UNAVAILABLE;

    str_cut(text, '\n', &first, &advice);
    pg_conn_name(&name, conn);
    /* libpq gives no SQLSTATE for a connection that was refused. */
    if (str_find(text, STR("authentication failed")) >= 0 ||
        str_find(text, STR("no password supplied")) >= 0 ||
        (denied && str_find(text, STR("no pg_hba.conf entry")) >= 0))
        code = ERR_DENIED;
    else if (str_find(first, STR("database \"")) >= 0 && str_ends(first, STR("does not exist")))
        code = ERR_INVALID;
    err_set(err, code, "postgres: " STR_FMT STR_FMT, STR_ARG(buf_str(&name)), STR_ARG(first));
    buf_release(&name);
    return code;
}

static int conn_establish(PGconn *conn, const struct sock_limit *limit, struct err *err)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    while (state != PGRES_POLLING_OK) {
        short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (state == PGRES_POLLING_FAILED || PQstatus(conn) == CONNECTION_BAD)
            return conn_refused(conn, err);
        int code = sock_wait_within(PQsocket(conn), events, limit, err);
        if (code < 0)
            return err_wrap(err, code == ERR_CANCELED ? code : ERR_UNAVAILABLE,
                            "postgres: connecting");
        state = PQconnectPoll(conn);
    }
    return PQsetnonblocking(conn, 1) == 0 ? 0 : conn_refused(conn, err);
}

int pg_conn_open(PGconn **out, const char *const *keys, const char *const *values,
                 const struct sock_limit *limit, struct err *err)
{
    PGconn *conn = NULL;
    int code = pg_conn_start(&conn, keys, values, limit, err);

    if (code < 0)
        return code;
    PQsetNoticeReceiver(conn, conn_ignore_notice, NULL);
    code = conn_establish(conn, limit, err);
    if (code == 0)
        *out = conn;
    else
        PQfinish(conn);
    return code;
}

/* --- sending and receiving --- */

int pg_conn_lost(PGconn *conn, struct err *err)
{
    struct str text = str_z(PQerrorMessage(conn));

    while (text.len > 0 && text.p[text.len - 1] == '\n')
        text.len--;
    return err_set(err, ERR_CLOSED, "postgres: " STR_FMT, STR_ARG(text));
}

/* Answers are read while statements are sent, because a server stops reading statements when its
 * answers are not received. */
int pg_conn_flush(PGconn *conn, const struct sock_limit *limit, struct err *err)
{
    int left;

    while ((left = PQflush(conn)) > 0) {
        int code = sock_wait_within(PQsocket(conn), POLLIN | POLLOUT, limit, err);
        if (code < 0)
            return code;
        if (!PQconsumeInput(conn))
            return pg_conn_lost(conn, err);
    }
    return left < 0 ? pg_conn_lost(conn, err) : 0;
}

int pg_conn_result(PGconn *conn, PGresult **out, const struct sock_limit *limit, struct err *err)
{
    while (PQisBusy(conn)) {
        int code = sock_wait_within(PQsocket(conn), POLLIN, limit, err);
        if (code < 0)
            return code;
        if (!PQconsumeInput(conn))
            return pg_conn_lost(conn, err);
    }
    *out = PQgetResult(conn);
    return PQstatus(conn) == CONNECTION_OK ? 0 : pg_conn_lost(conn, err);
}
