/* The database of an old lakeFS, which kept its records in PostgreSQL's tables: read in one
 * transaction that cannot write, so that all reads see one moment and the source stays as it is
 * (D6). For the files migrate*.c alone. A source belongs to one thread. */
#ifndef LAKE_MIGRATE_SOURCE_H
#define LAKE_MIGRATE_SOURCE_H

#include "base/arena.h"
#include "base/err.h"

enum { SOURCE_PARAMS_MAX = 2, SOURCE_COLUMNS_MAX = 10 };

struct source;

/* Connects and begins the transaction. ERR_INVALID: libpq cannot read the url, or the database has
 * no tables of lakeFS. ERR_DENIED, ERR_UNAVAILABLE: the server refuses, or does not answer. No text
 * ever has the url, which has the password. */
int source_open(struct source **out, const char *url, struct err *err) MUST_CHECK;
void source_close(struct source *s); /* NULL is fine */
bool source_has_table(struct source *s, const char *name);

/* A row: the bytes of each column, borrowed until the next row. value.p is NULL for SQL's NULL. */
struct source_row {
    struct str values[SOURCE_COLUMNS_MAX];
};
int64_t source_integer(const struct source_row *row, unsigned column); /* 0 for NULL */

/* Opens a cursor on a SELECT whose columns are all text or bytea. `params` replace $1 and $2, which
 * are text, or bytea where the statement says so. */
struct source_rows;
int source_rows_open(struct source_rows **out, struct source *s, const char *select,
                     const struct str *params, unsigned count, struct err *err) MUST_CHECK;
/* ERR_END: there are no more rows. */
int source_rows_next(struct source_rows *rows, struct source_row *out, struct err *err) MUST_CHECK;
void source_rows_close(struct source_rows *rows); /* NULL is fine */

/* Reads the one row of a SELECT without parameters. */
int source_ask(struct source *s, const char *select, struct arena *a, struct source_row *out,
               struct err *err) MUST_CHECK;

#endif
