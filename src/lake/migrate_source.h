/* Reads the database of an old lakeFS, which kept its records in tables of PostgreSQL. It is read
 * in one read-only transaction: all reads see one moment, and the source cannot be changed (D6).
 * Only the files migrate*.c use this header. A source belongs to one thread. */
#ifndef LAKE_MIGRATE_SOURCE_H
#define LAKE_MIGRATE_SOURCE_H

#include "base/arena.h"
#include "base/err.h"

#include <stdatomic.h>

enum { SOURCE_PARAMS_MAX = 2, SOURCE_COLUMNS_MAX = 10 };

struct source;

struct source_options {
    const char *url;
    uint64_t timeout_ms; /* longest time of a statement; 0: 10 minutes */
    /* set to true by another thread: calls soon return ERR_CANCELED; may be NULL */
    const _Atomic(bool) *canceled;
};
/* Connects within 10 s, and begins the transaction. ERR_INVALID: libpq cannot read the url, or the
 * database has no tables of lakeFS. ERR_DENIED: the server refuses the user. No error text contains
 * the url, because the url has the password.
 *
 * This call and the calls below return ERR_UNAVAILABLE if the server cannot be reached or does not
 * answer in time, and ERR_CANCELED if the caller has canceled. After these errors every other call
 * fails at once. */
int source_open(struct source **out, const struct source_options *o, struct err *err) MUST_CHECK;
void source_close(struct source *s); /* NULL is fine */
int source_has_table(struct source *s, const char *name, bool *out, struct err *err) MUST_CHECK;

/* A row: the bytes of each column, valid until the next row is read. value.p is NULL for SQL's
 * NULL. */
struct source_row {
    struct str values[SOURCE_COLUMNS_MAX];
};
int64_t source_integer(const struct source_row *row, unsigned column); /* 0 for NULL */

/* Opens a cursor on a SELECT whose columns are all text or bytea. `params` are the values of $1 and
 * $2, sent as text; the statement may cast them to bytea. */
struct source_rows;
int source_rows_open(struct source_rows **out, struct source *s, const char *select,
                     const struct str *params, unsigned count, struct err *err) MUST_CHECK;
/* Gives the next row. ERR_END: there are no more rows. */
int source_rows_next(struct source_rows *rows, struct source_row *out, struct err *err) MUST_CHECK;
void source_rows_close(struct source_rows *rows); /* NULL is fine */

/* Reads the only row of a SELECT without parameters. */
int source_ask(struct source *s, const char *select, struct arena *a, struct source_row *out,
               struct err *err) MUST_CHECK;

#endif
