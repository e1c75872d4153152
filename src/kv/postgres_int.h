/* Functions that the files of the postgres driver share: connections, their pool, and the
 * statements. docs/kv.md, "postgres", has the story. */
#ifndef KV_POSTGRES_INT_H
#define KV_POSTGRES_INT_H

#include "base/list.h"
#include "kv/kv_int.h"
#include "kv/postgres_conn.h"
#include "os/thread.h"

/* --- statements (postgres_sql.c) --- */

enum sql_name {
    SQL_SESSION, /* the settings of a new connection */
    SQL_TABLES,  /* makes the tables unless they exist */
    SQL_LAYOUT,  /* whether the server splits the table kv into kv_0 to kv_99 as sql_table_of() does
                  */
    SQL_FUNCTION_TEXT, /* the body of the stored function */
    SQL_FUNCTION,      /* makes the function */
    SQL_PROBE,
    SQL_GET,
    SQL_PUT,
    SQL_PUT_ABSENT,
    SQL_PUT_EXISTS,
    SQL_PUT_SAME,
    SQL_REMOVE,
    SQL_REMOVE_SAME,
    SQL_CHECK_EXISTS,
    SQL_CHECK_SAME,
    SQL_PUT_ROWS, /* puts of one partition */
    SQL_PUT_MANY, /* puts of several partitions */
    SQL_GLANCE,
    /* as SQL_PUT_ROWS, but puts nothing if a glance (KV_GLANCE) earlier in the transaction found
     * another value */
    SQL_PUT_SEEN,
    SQL_WRITE,
    SQL_PAGE,
    SQL_PAGE_TO,
    SQL_DROP_BOUND,
    SQL_DROP_TO,
    SQL_DROP_REST,
    SQL_COUNT
};
enum { SQL_PARAMS_MAX = 6 };

struct sql {
    const char *name;
    const char *text; /* each @ is replaced by the table's name */
    Oid types[SQL_PARAMS_MAX];
    int params;
    bool once;   /* the statement is not prepared, because it runs once */
    bool routed; /* all its rows are in one partition, which is parameter 0, and so in one table */
};
extern const struct sql sql_table[SQL_COUNT];

/* The body of the function weir_kv_write, as the server shows it (pg_proc.prosrc). */
extern const char sql_function_body[];

/* Returns the number, 0 to 99, of the table that has the rows of a partition, by the same hash as
 * the server's. If a statement names this table, the server plans it for one table; if a statement
 * names the parent table "kv", the server plans it for a hundred tables. */
enum { SQL_TABLE_COUNT = 100, SQL_PARENT = SQL_TABLE_COUNT };
unsigned sql_table_of(struct str partition);

/* Translates an error of the server to a code of kv.h. ERR_AGAIN: the server undid the transaction
 * because of another one, and the caller may run it again. */
int sql_state_code(const char *state);

/* --- calls (postgres_call.c) --- */

/* One statement of a round trip. Parameters and results are binary. */
struct pg_call {
    enum sql_name sql;
    struct str params[SQL_PARAMS_MAX];
    /* the transaction ends after this statement, as it always does after the last one */
    bool ends;
    PGresult *result; /* owned; set if pg_run() returns 0, or if `made` is set */
    /* Set by pg_run(), also when it fails: the server has said that it committed the transaction
     * that ends after this statement. */
    bool made;
};
void pg_calls_clear(struct pg_call *calls, size_t count); /* frees the results */

struct pg_link;
struct pg_pool;

/* Runs the statements in one round trip. Each transaction is made as a whole. When it returns 0,
 * all results are there.
 *
 * If the connection is lost on the way, or the time is up, a write (`writes`) returns ERR_TIMEOUT:
 * the statements may have run. Reads are sent once more, and then return ERR_UNAVAILABLE.
 * ERR_AGAIN, only with `writes`: the server undid the transaction because of another one
 * (sql_state_code()), and the caller may run the statements again. */
int pg_run(struct pg_pool *pool, struct pg_call *calls, size_t count, bool writes,
           struct err *err) MUST_CHECK;
/* Like pg_run(), but on one connection. *lost: the connection can no longer be used. ERR_CLOSED:
 * the connection was lost on the way. ERR_TIMEOUT: no answer came in time. */
int pg_link_run(struct pg_link *link, struct pg_call *calls, size_t count, uint64_t deadline_ns,
                bool *lost, struct err *err) MUST_CHECK;

/* Returns the bytes of a column. The pointer is never NULL, and is borrowed from the result. */
struct str pg_bytes(const PGresult *r, int row, int column);
/* Returns the number of rows that an INSERT, UPDATE or DELETE has changed. */
uint64_t pg_changed(const PGresult *r);

/* --- writes (postgres_write.c) --- */

/* The changes of a kv_write(), in the form of a statement's parameters. */
struct pg_write {
    const struct kv_change *changes; /* borrowed */
    size_t count;
    /* How many changes at the front are glances (KV_GLANCE). Each of them is sent as a statement of
     * its own; all other changes are one statement. */
    size_t glances;
    struct buf arrays[SQL_PARAMS_MAX];
};
void pg_write_init(struct pg_write *w, const struct kv_change *changes, size_t count);
/* How many statements the write has. */
static inline size_t pg_write_calls(const struct pg_write *w)
{
    return w->glances + 1;
}
/* Makes the statements of the write, which borrow from `w` and the changes. */
void pg_write_fill(struct pg_write *w, struct pg_call *calls);
void pg_write_release(struct pg_write *w);
/* Runs `calls`, which begin with the statements of the write. If the server undoes the write
 * because of other transactions, runs them again. ERR_PRECONDITION: *failed is the index of the
 * change whose condition did not hold. */
int pg_write_run(struct pg_write *w, struct pg_pool *pool, struct pg_call *calls, size_t count,
                 size_t *failed, struct err *err) MUST_CHECK;

/* --- the pool (postgres_pool.c) --- */

struct pg_link {
    struct list node;
    PGconn *conn;
    bool routes;                     /* statements may name the tables kv_0 to kv_99 */
    uint64_t prepared[SQL_COUNT][2]; /* bit t: the statement is prepared for table t */
};

struct pg_pool {
    char *url;
    uint64_t timeout_ns; /* time limit of a round trip, and of connecting */
    const struct log *log;
    _Atomic(bool) routes; /* the server splits the table as sql_table_of() does */
    struct mutex lock;    /* class "kv.postgres"; guards the members below */
    struct cond freed;    /* a connection was given back or closed */
    struct list idle;     /* the most recently used is first */
    size_t open, max;     /* numbers of connections; `open` includes those in use or being made */
    bool is_down;         /* the last attempt to connect has failed */
    bool is_trying;       /* a caller tries to connect while the server is down */
    unsigned failures;    /* number of failures in a row */
    uint64_t retry_ns;    /* when the next attempt may be made, by clock_mono_ns() */
    struct err why;       /* the error of the last failure */
};

/* Prepares the pool. ERR_INVALID: libpq cannot read the url. The error's text never contains the
 * url, because it has the password. */
int pg_pool_init(struct pg_pool *pool, const struct kv_postgres_options *o,
                 struct err *err) MUST_CHECK;
void pg_pool_release(struct pg_pool *pool);
/* Takes an idle connection from the pool, makes a new one, or waits for one. While the server is
 * down, most calls fail at once; from time to time one call may try to connect. */
int pg_pool_take(struct pg_pool *pool, struct pg_link **out, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
void pg_pool_give(struct pg_pool *pool, struct pg_link *link);
void pg_pool_drop(struct pg_pool *pool, struct pg_link *link); /* closes a broken connection */

#endif
