/* Reads the database of an old lakeFS. */
#include "lake/migrate_source.h"

#include "base/buf.h"
#include "base/clock.h"
#include "kv/postgres_conn.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SOURCE_FETCH = 1000,
    SOURCE_BINARY = 1,
    SOURCE_CONNECT_MS = 10 * 1000,
    SOURCE_STATEMENT_MS = 10 * 60 * 1000
};

struct source {
    PGconn *conn;
    uint64_t timeout_ms; /* longest time of a statement */
    const _Atomic(bool) *canceled;
    unsigned cursors; /* makes the names of cursors unique */
    bool is_lost;     /* the connection cannot be used any more */
};

struct source_rows {
    struct source *source;
    char name[32];
    char fetch[64];
    PGresult *page; /* NULL: nothing was fetched yet */
    int next, count;
};

/* --- statements --- */

/* Marks the connection as lost after an error of the connection, a time-out or a cancelation (D13).
 * No statement is sent on it any more. Returns the error for the caller. */
static int source_lose(struct source *s, int code, struct err *err)
{
    s->is_lost = true;
    if (code == ERR_CANCELED)
        return code;
    if (code == ERR_TIMEOUT)
        return err_set(err, ERR_UNAVAILABLE, "the source has not answered a statement for %ju s",
                       (uintmax_t)(s->timeout_ms / MS_PER_S));
    return err_wrap(err, ERR_UNAVAILABLE, "the source");
}

/* Receives the only result of a statement. */
static int source_receive(struct source *s, PGresult **out, const struct sock_limit *limit,
                          struct err *err)
{
    PGresult *r = NULL, *end = NULL;
    int code = pg_conn_result(s->conn, &r, limit, err);

    if (code == 0)
        code = pg_conn_result(s->conn, &end, limit, err);
    PQclear(end);
    if (code == 0)
        *out = r;
    else
        PQclear(r);
    return code;
}

static int source_send(struct source *s, const char *sql, const struct str *params, unsigned count,
                       PGresult **out, struct err *err)
{
    const char *values[SOURCE_PARAMS_MAX] = {0};
    int lengths[SOURCE_PARAMS_MAX] = {0}, formats[SOURCE_PARAMS_MAX] = {0};
    struct sock_limit limit = {clock_mono_ns() + s->timeout_ms * NS_PER_MS, s->canceled};
    int code = sock_limit_check(&limit);

    BUG_ON(count > SOURCE_PARAMS_MAX);
    if (code < 0)
        return err_code(err, code);
    for (unsigned i = 0; i < count; i++) {
        values[i] = params[i].p ? params[i].p : "";
        lengths[i] = (int)params[i].len;
        formats[i] = SOURCE_BINARY;
    }
    if (!PQsendQueryParams(s->conn, sql, (int)count, NULL, values, lengths, formats, SOURCE_BINARY))
        return pg_conn_lost(s->conn, err);
    code = pg_conn_flush(s->conn, &limit, err);
    return code < 0 ? code : source_receive(s, out, &limit, err);
}

/* Runs a statement. The caller clears *out, which is NULL after an error. */
static int source_run(struct source *s, const char *sql, const struct str *params, unsigned count,
                      PGresult **out, struct err *err)
{
    *out = NULL;
    if (s->is_lost)
        return err_set(err, ERR_UNAVAILABLE, "the connection to the source is lost");
    int code = source_send(s, sql, params, count, out, err);
    if (code < 0)
        return source_lose(s, code, err);
    ExecStatusType status = PQresultStatus(*out);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return 0;
    const char *text = PQresultErrorField(*out, PG_DIAG_MESSAGE_PRIMARY);
    err_set(err, ERR_PEER, "the source: %s", text ? text : "the server refuses a statement");
    PQclear(*out);
    *out = NULL;
    return ERR_PEER;
}

static int source_do(struct source *s, const char *sql, const struct str *params, unsigned count,
                     struct err *err)
{
    PGresult *r = NULL;
    int code = source_run(s, sql, params, count, &r, err);

    PQclear(r);
    return code;
}

/* --- rows --- */

static void source_read_row(const PGresult *r, int at, struct source_row *out)
{
    int columns = PQnfields(r);

    BUG_ON(columns > SOURCE_COLUMNS_MAX);
    *out = (struct source_row){0};
    for (int i = 0; i < columns; i++)
        if (!PQgetisnull(r, at, i))
            out->values[i] = str_n(PQgetvalue(r, at, i), (size_t)PQgetlength(r, at, i));
}

int64_t source_integer(const struct source_row *row, unsigned column)
{
    int64_t value = 0;

    return row->values[column].p && str_i64(row->values[column], &value) == 0 ? value : 0;
}

int source_rows_open(struct source_rows **out, struct source *s, const char *select,
                     const struct str *params, unsigned count, struct err *err)
{
    struct source_rows *rows = xzalloc(sizeof(*rows));
    struct buf sql = {0};

    rows->source = s;
    snprintf(rows->name, sizeof(rows->name), "weir_%u", s->cursors++);
    snprintf(rows->fetch, sizeof(rows->fetch), "FETCH %d FROM %s", SOURCE_FETCH, rows->name);
    buf_appendf(&sql, "DECLARE %s NO SCROLL CURSOR FOR %s", rows->name, select);
    int code = source_do(s, sql.p, params, count, err);
    buf_release(&sql);
    if (code == 0)
        *out = rows;
    else
        free(rows);
    return code;
}

int source_rows_next(struct source_rows *rows, struct source_row *out, struct err *err)
{
    const _Atomic(bool) *canceled = rows->source->canceled;

    if (canceled && *canceled)
        return err_code(err, ERR_CANCELED);
    if (rows->next == rows->count) {
        if (rows->page && rows->count < SOURCE_FETCH)
            return ERR_END;
        PQclear(rows->page);
        rows->page = NULL;
        int code = source_run(rows->source, rows->fetch, NULL, 0, &rows->page, err);
        rows->next = 0;
        rows->count = code == 0 ? PQntuples(rows->page) : 0;
        if (code < 0)
            return code;
        if (rows->count == 0)
            return ERR_END;
    }
    source_read_row(rows->page, rows->next++, out);
    return 0;
}

void source_rows_close(struct source_rows *rows)
{
    char sql[64];
    struct err ignored = {0};

    if (!rows)
        return;
    snprintf(sql, sizeof(sql), "CLOSE %s", rows->name);
    int code = source_do(rows->source, sql, NULL, 0, &ignored);
    (void)code; /* the end of the transaction closes the cursor in any case */
    PQclear(rows->page);
    free(rows);
}

int source_ask(struct source *s, const char *select, struct arena *a, struct source_row *out,
               struct err *err)
{
    PGresult *r = NULL;
    int code = source_run(s, select, NULL, 0, &r, err);

    if (code == 0 && PQntuples(r) != 1)
        code = err_set(err, ERR_PEER, "the source does not answer with one row");
    if (code == 0) {
        source_read_row(r, 0, out);
        for (unsigned i = 0; i < SOURCE_COLUMNS_MAX; i++)
            if (out->values[i].p)
                out->values[i] = arena_str(a, out->values[i]);
    }
    PQclear(r);
    return code;
}

int source_has_table(struct source *s, const char *name, bool *out, struct err *err)
{
    struct buf sql = {0};
    struct arena a = {0};
    struct source_row row = {0};

    buf_appendf(&sql, "SELECT to_regclass('%s')::text", name);
    int code = source_ask(s, sql.p, &a, &row, err);
    *out = code == 0 && row.values[0].p;
    buf_release(&sql);
    arena_release(&a);
    return code;
}

/* --- the connection --- */

static int source_connect(struct source *s, const char *url, struct err *err)
{
    /* Later keys override earlier ones. So the url ("dbname") may override the keys before it, but
     * not client_encoding. If the host is gone, the connection notices it within a minute, even
     * during a statement that takes long. */
    const char *const keys[] = {
        "fallback_application_name", "keepalives_idle", "keepalives_interval", "keepalives_count",
        "tcp_user_timeout",          "dbname",          "client_encoding",     NULL};
    const char *const values[] = {"weir lake migrate", "30", "10", "3", "60000", url, "UTF8", NULL};
    struct sock_limit limit = {clock_mono_ns() + SOURCE_CONNECT_MS * NS_PER_MS, s->canceled};
    int code = pg_conn_open(&s->conn, keys, values, &limit, err);

    return code < 0 ? err_wrap(err, code, "the source") : 0;
}

/* Begins the transaction. The time-out is also set on the server, so that the server ends a
 * statement for which weir has stopped waiting. */
static int source_begin(struct source *s, struct err *err)
{
    char limit[64];
    bool has = false;
    int code = source_do(s, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, 0, err);

    snprintf(limit, sizeof(limit), "SET LOCAL statement_timeout = %ju", (uintmax_t)s->timeout_ms);
    if (code == 0)
        code = source_do(s, limit, NULL, 0, err);
    if (code == 0)
        code = source_has_table(s, "graveler_repositories", &has, err);
    if (code == 0 && !has)
        code = err_set(err, ERR_INVALID,
                       "the database has no table graveler_repositories; lakeFS from 0.80 on keeps "
                       "its records elsewhere: dump its refs and restore them instead");
    return code;
}

int source_open(struct source **out, const struct source_options *o, struct err *err)
{
    struct source *s = xzalloc(sizeof(*s));
    int code = pg_url_check(o->url, "the source", err);

    s->timeout_ms = o->timeout_ms ? o->timeout_ms : SOURCE_STATEMENT_MS;
    s->canceled = o->canceled;
    if (code == 0)
        code = source_connect(s, o->url, err);
    if (code == 0)
        code = source_begin(s, err);
    if (code == 0)
        *out = s;
    else
        source_close(s);
    return code;
}

void source_close(struct source *s)
{
    if (!s)
        return;
    PQfinish(s->conn); /* ends the transaction */
    free(s);
}
