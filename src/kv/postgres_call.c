/* Round trips to PostgreSQL: sends several statements together, and receives their results. */
#include "base/clock.h"
#include "kv/postgres_int.h"

#include <stdio.h>
#include <stdlib.h>

enum { BINARY = 1 };

void pg_calls_clear(struct pg_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PQclear(calls[i].result);
        calls[i].result = NULL;
    }
}

struct str pg_bytes(const PGresult *r, int row, int column)
{
    return str_n(PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column));
}

uint64_t pg_changed(const PGresult *r)
{
    uint64_t rows = 0;

    /* PQcmdTuples() wants a pointer to a mutable result, but does not change the result. */
    return str_u64(str_z(PQcmdTuples((PGresult *)r)), &rows) == 0 ? rows : 0;
}

/* --- sending --- */

/* A statement, and the number of the table that it names. */
struct statement {
    const struct sql *sql;
    unsigned table;
    char name[32];
};

static void statement_of(struct statement *out, const struct pg_link *link,
                         const struct pg_call *call)
{
    const struct sql *sql = &sql_table[call->sql];
    bool routed = sql->routed && link->routes;

    *out = (struct statement){sql, routed ? sql_table_of(call->params[0]) : SQL_PARENT};
    snprintf(out->name, sizeof(out->name), "%s.%u", sql->name, out->table);
}

/* Writes the statement with its table's name in the place of @. */
static void statement_text(struct buf *out, const struct statement *s)
{
    for (const char *c = s->sql->text; *c; c++)
        if (*c != '@')
            buf_append_char(out, *c);
        else if (s->table == SQL_PARENT)
            buf_append_z(out, "kv");
        else
            buf_appendf(out, "kv_%u", s->table);
}

/* Sends the request to prepare the statement, unless this connection has prepared it already.
 * *news: the request was sent. */
static bool statement_prepare(struct pg_link *link, const struct statement *s, bool *news)
{
    uint64_t *word = &link->prepared[s->sql - sql_table][s->table / 64];
    uint64_t bit = UINT64_C(1) << s->table % 64;
    struct buf text = BUF_INIT(0);

    *news = !s->sql->once && !(*word & bit);
    if (!*news)
        return true;
    /* Set before the answer comes. If preparing fails, pg_link_run() reports the connection as
     * lost, so it is closed. */
    *word |= bit;
    statement_text(&text, s);
    int sent = PQsendPrepare(link->conn, s->name, text.p, s->sql->params, s->sql->types);
    buf_release(&text);
    return sent == 1;
}

static bool call_send(struct pg_link *link, const struct pg_call *call, const struct statement *s)
{
    const struct sql *sql = s->sql;
    const char *values[SQL_PARAMS_MAX];
    int lengths[SQL_PARAMS_MAX], formats[SQL_PARAMS_MAX];

    for (int i = 0; i < sql->params; i++) {
        values[i] = call->params[i].p ? call->params[i].p : "";
        lengths[i] = (int)call->params[i].len;
        formats[i] = BINARY;
    }
    int sent = sql->once ? PQsendQueryParams(link->conn, sql->text, sql->params, sql->types, values,
                                             lengths, formats, BINARY)
                         : PQsendQueryPrepared(link->conn, s->name, sql->params, values, lengths,
                                               formats, BINARY);
    return sent == 1;
}

static bool call_ends(const struct pg_call *calls, size_t count, size_t i)
{
    return calls[i].ends || i == count - 1;
}

/* Puts all statements into libpq's buffers. `news` gets for each call whether its statement is also
 * prepared. */
static bool calls_send(struct pg_link *link, const struct pg_call *calls, size_t count, bool *news)
{
    bool good = true;

    for (size_t i = 0; i < count && good; i++) {
        struct statement s;
        statement_of(&s, link, &calls[i]);
        good = statement_prepare(link, &s, &news[i]) && call_send(link, &calls[i], &s);
        if (good && call_ends(calls, count, i))
            good = PQpipelineSync(link->conn) == 1;
    }
    return good;
}

/* --- receiving --- */

static int result_judge(const PGresult *r, struct err *err)
{
    ExecStatusType status = PQresultStatus(r);
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return 0;
    if (status == PGRES_PIPELINE_ABORTED)
        return err_set(err, ERR_PEER, "postgres: an earlier statement failed");
    return err_set(err, sql_state_code(state), "postgres: %s (%s)", text ? text : "an error",
                   state ? state : "no code");
}

/* Receives the results of one statement. *failed gets the first error of the server; the return
 * value is for errors of the connection. */
static int statement_receive(struct pg_link *link, PGresult **out, const struct sock_limit *limit,
                             int *failed, struct err *err)
{
    PGresult *r = NULL, *end = NULL;
    int code = pg_conn_result(link->conn, &r, limit, err);

    if (code == 0 && *failed == 0 && r)
        *failed = result_judge(r, err);
    if (code == 0 && r) {
        /* pg_conn_result() gets an err of its own here, so that it does not overwrite the server's
         * first error in `err`. */
        struct err later = {0};
        code = pg_conn_result(link->conn, &end, limit, &later);
        PQclear(end);
        if (code < 0)
            err_set(err, code, "%s", later.text);
    }
    if (code == 0 && out)
        *out = r;
    else
        PQclear(r);
    return code;
}

/* Receives the end of a transaction. If an error comes instead, it is unknown whether the
 * transaction is committed. Then the connection is closed, as if it had been lost. */
static int end_receive(struct pg_link *link, const struct sock_limit *limit, struct err *err)
{
    PGresult *r = NULL;
    struct err why = {0};
    int code = pg_conn_result(link->conn, &r, limit, &why);

    if (code == 0 && PQresultStatus(r) != PGRES_PIPELINE_SYNC) {
        const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
        code = err_set(&why, ERR_CLOSED, "postgres: committing: %s", text ? text : "an error");
    }
    PQclear(r);
    return code < 0 ? err_set(err, code, "%s", why.text) : 0;
}

static int calls_receive(struct pg_link *link, struct pg_call *calls, size_t count,
                         const bool *news, const struct sock_limit *limit, int *failed,
                         struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        if (news[i])
            code = statement_receive(link, NULL, limit, failed, err);
        if (code == 0)
            code = statement_receive(link, &calls[i].result, limit, failed, err);
        if (code == 0 && call_ends(calls, count, i)) {
            code = end_receive(link, limit, err);
            calls[i].made = code == 0 && *failed == 0;
        }
    }
    return code;
}

/* --- running --- */

/* Whether the round trip prepared a statement. After an error it is then unknown whether the
 * statement is prepared, so the caller closes the connection. */
static bool any_is_new(const bool *news, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (news[i])
            return true;
    return false;
}

int pg_link_run(struct pg_link *link, struct pg_call *calls, size_t count, uint64_t deadline_ns,
                bool *lost, struct err *err)
{
    struct sock_limit limit = {deadline_ns};
    bool *news = xcalloc(count, sizeof(*news));
    int failed = 0, code = 0;

    if (!calls_send(link, calls, count, news))
        code = pg_conn_lost(link->conn, err);
    if (code == 0)
        code = pg_conn_flush(link->conn, &limit, err);
    if (code == 0)
        code = calls_receive(link, calls, count, news, &limit, &failed, err);
    if (code < 0 && code != ERR_TIMEOUT)
        code = ERR_CLOSED;
    /* ERR_UNAVAILABLE: the server refuses writes, because it has become a standby. A new connection
     * may lead to another server. */
    *lost = code < 0 || failed == ERR_UNAVAILABLE || (failed < 0 && any_is_new(news, count));
    free(news);
    return code < 0 ? code : failed;
}

/* Returns the number of calls in the first transaction if the server has committed it, otherwise
 * 0. */
static size_t calls_made(const struct pg_call *calls, size_t count)
{
    size_t i = 0;

    while (!call_ends(calls, count, i))
        i++;
    return calls[i].made ? i + 1 : 0;
}

static int pg_try(struct pg_pool *pool, struct pg_call *calls, size_t count, struct err *err)
{
    uint64_t deadline_ns = clock_mono_ns() + pool->timeout_ns;
    struct pg_link *link = NULL;
    bool lost;
    int code = pg_pool_take(pool, &link, deadline_ns, err);

    if (code < 0)
        return code;
    link->routes = atomic_load_explicit(&pool->routes, memory_order_relaxed);
    code = pg_link_run(link, calls, count, deadline_ns, &lost, err);
    (lost ? pg_pool_drop : pg_pool_give)(pool, link);
    /* The caller needs the results of a write that was made, even if a later read failed. */
    size_t kept = calls_made(calls, count);
    if (code < 0)
        pg_calls_clear(calls + kept, count - kept);
    return code;
}

int pg_run(struct pg_pool *pool, struct pg_call *calls, size_t count, bool writes, struct err *err)
{
    int code = pg_try(pool, calls, count, err);

    if (writes)
        return code == ERR_CLOSED ? err_wrap(err, ERR_TIMEOUT, "the connection was lost") : code;
    /* The reads are sent once more if the connection was lost since it was last used, or if the
     * server undid them. */
    if (code == ERR_CLOSED || code == ERR_AGAIN)
        code = pg_try(pool, calls, count, err);
    if (code == ERR_CLOSED || code == ERR_TIMEOUT)
        return err_wrap(err, ERR_UNAVAILABLE, "a read of the key-value store");
    return code == ERR_AGAIN ? err_wrap(err, ERR_BUSY, "a read of the key-value store") : code;
}
