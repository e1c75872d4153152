/* A log of rows, through which a change leaves a message for a later reader without a sync of its
 * own. A row is written as part of a change, read in order by one thread, and then deleted.
 *
 * - A row exists exactly when its change is committed.
 * - A row has a *place*: bytes that its writer chooses. They encode one number or several, which
 *   grow from change to change of a storage. A reader remembers, for each storage, the last place
 *   that it has handled, and continues after it. So it misses no row, and never has to skip deleted
 *   rows.
 * - Rows are deleted without a sync, so after a crash of the machine some may be there again. A
 *   reader must be able to handle a row twice.
 *
 * A log consists of the rows of one family whose keys begin with a prefix; the place is the rest of
 * the key. The tap of the local storage (object/local) and the notifications (s3/notify) use such
 * logs. Any thread may call these functions. */
#ifndef DB_ROW_LOG_H
#define DB_ROW_LOG_H

#include "base/arena.h"
#include "db/db.h"

struct row_log {
    struct db *db;
    struct db_cf *cf;
    struct str prefix; /* not empty; borrowed */
};

struct logged_row {
    struct str place, value; /* in the arena */
};

/* Writes a row, as part of the change `tx`. */
void row_log_put(const struct row_log *l, struct db_tx *tx, struct str place, struct str value);

/* The rows that row_log_read() reads: at most `limit` rows, from the place `from` (empty: the
 * first) up to but not including the place `to` (empty: the end). The array `rows` must have room
 * for `limit` rows. */
struct row_log_span {
    struct str from, to;
    size_t limit;
};
int row_log_read(const struct row_log *l, struct arena *a, const struct row_log_span *span,
                 struct logged_row *rows, size_t *count, struct err *err) MUST_CHECK;
int row_log_count(const struct row_log *l, uint64_t *out, struct err *err) MUST_CHECK;

/* Deletes the rows in these places, without a sync. */
int row_log_drop(const struct row_log *l, const struct str *places, size_t count,
                 struct err *err) MUST_CHECK;
/* Deletes all rows in places before `to`, or all rows when `to` is empty, by one durable write
 * however many rows there are. */
int row_log_drop_before(const struct row_log *l, struct str to, struct err *err) MUST_CHECK;

/* Returns when every change that was passed to db_apply() before the call is committed or has
 * failed. */
int row_log_settle(const struct row_log *l, struct err *err) MUST_CHECK;

#endif
