/* The database of an old lakeFS. */
#include "lake/migrate_source.h"

#include "base/buf.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOURCE_FETCH = 1000, SOURCE_BINARY = 1 };

struct source {
    PGconn *conn;
    unsigned cursors; /* makes the names of cursors unique */
};

struct source_rows {
    struct source *source;
    char name[32];
    char fetch[64];
    PGresult *page; /* NULL: nothing was fetched yet */
    int next, count;
};

/* --- statements --- */

static int source_fail(struct source *s, const PGresult *r, struct err *err)
{
    const char *text = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    bool lost = PQstatus(s->conn) != CONNECTION_OK;

    return err_set(err, lost ? ERR_UNAVAILABLE : ERR_PEER, "the source: %s",
                   text   ? text
                   : lost ? "the connection to the server is lost"
                          : "the server refuses a statement");
}

/* Runs a statement; the caller clears *out, which is NULL after an error. */
static int source_run(struct source *s, const char *sql, const struct str *params, unsigned count,
                      PGresult **out, struct err *err)
{
    const char *values[SOURCE_PARAMS_MAX] = {0};
    int lengths[SOURCE_PARAMS_MAX] = {0}, formats[SOURCE_PARAMS_MAX] = {0};

    BUG_ON(count > SOURCE_PARAMS_MAX);
    for (unsigned i = 0; i < count; i++) {
        values[i] = params[i].p ? params[i].p : "";
        lengths[i] = (int)params[i].len;
        formats[i] = SOURCE_BINARY;
    }
    PGresult *r =
        PQexecParams(s->conn, sql, (int)count, NULL, values, lengths, formats, SOURCE_BINARY);
    ExecStatusType status = PQresultStatus(r);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        *out = r;
        return 0;
    }
    int code = source_fail(s, r, err);
    PQclear(r);
    *out = NULL;
    return code;
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
    if (rows->next == rows->count) {
        if (rows->page && rows->count < SOURCE_FETCH)
            return ERR_END;
        PQclear(rows->page);
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
    (void)code; /* the end of the transaction closes it in any case */
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

bool source_has_table(struct source *s, const char *name)
{
    struct buf sql = {0};
    struct arena a = {0};
    struct source_row row = {0};
    struct err ignored = {0};

    buf_appendf(&sql, "SELECT to_regclass('%s')::text", name);
    int code = source_ask(s, sql.p, &a, &row, &ignored);
    bool has = code == 0 && row.values[0].p;
    buf_release(&sql);
    arena_release(&a);
    return has;
}

/* --- the connection --- */

static void source_ignore_notice(void *ctx, const PGresult *r)
{
}

/* The message of libpq has several lines, with advice; the first one says what is wrong. */
static int source_connect_error(PGconn *conn, struct err *err)
{
    struct str text = str_z(PQerrorMessage(conn)), first, others;
    bool denied = str_find(text, STR("authentication failed")) >= 0 ||
                  str_find(text, STR("no password supplied")) >= 0 ||
                  str_find(text, STR("no pg_hba.conf entry")) >= 0;

    str_cut(text, '\n', &first, &others);
    return err_set(err, denied ? ERR_DENIED : ERR_UNAVAILABLE, "the source: " STR_FMT,
                   STR_ARG(first));
}

static int source_connect(struct source *s, const char *url, struct err *err)
{
    /* The url comes behind what it may override, and before what it must not. */
    const char *const keys[] = {"fallback_application_name", "connect_timeout", "dbname",
                                "client_encoding", NULL};
    const char *const values[] = {"weir lake migrate", "10", url, "UTF8", NULL};

    s->conn = PQconnectdbParams(keys, values, 1);
    BUG_ON(!s->conn);
    PQsetNoticeReceiver(s->conn, source_ignore_notice, NULL);
    return PQstatus(s->conn) == CONNECTION_OK ? 0 : source_connect_error(s->conn, err);
}

static int source_check_url(const char *url, struct err *err)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &message);
    bool good = options != NULL;

    PQconninfoFree(options);
    PQfreemem(message); /* it may quote the url */
    return good ? 0
                : err_set(err, ERR_INVALID,
                          "the source is not a url that PostgreSQL reads; write "
                          "postgres://user:password@host/database");
}

static int source_begin(struct source *s, struct err *err)
{
    int code = source_do(s, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, 0, err);

    if (code == 0 && !source_has_table(s, "graveler_repositories"))
        code = err_set(err, ERR_INVALID,
                       "the database has no table graveler_repositories; lakeFS from 0.80 on keeps "
                       "its records elsewhere: dump its refs and restore them instead");
    return code;
}

int source_open(struct source **out, const char *url, struct err *err)
{
    struct source *s = xzalloc(sizeof(*s));
    int code = source_check_url(url, err);

    if (code == 0)
        code = source_connect(s, url, err);
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
