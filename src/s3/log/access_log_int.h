/* Types and functions that the files of the access log share. A *source* is a bucket whose requests
 * are logged. */
#ifndef S3_LOG_ACCESS_LOG_INT_H
#define S3_LOG_ACCESS_LOG_INT_H

#include "base/clock.h"
#include "base/vec.h"
#include "db/db.h"
#include "os/loop.h"
#include "s3/log/access_log.h"

#include <stdatomic.h>

enum {
    /* The limit on the lines in memory, in bytes (docs/bucket-logging.md, A1). */
    LOG_MEMORY_MAX = 8 * 1024 * 1024,
    /* Lines are written as rows after LOG_DRAIN_MS, or at once when they have this many bytes. */
    LOG_DRAIN_BYTES = 1024 * 1024,
    LOG_DRAIN_MS = 1000,
    /* The usual size of a log object, in bytes. Rows of this size are delivered at once. */
    LOG_OBJECT_BYTES = 4 * 1024 * 1024,
    LOG_LOOK_MS = MS_PER_MINUTE, /* the longest wait, because the wall clock may jump meanwhile */
    LOG_SEQUENCE_LEN = 8,        /* bytes of the sequence number at the end of a row's key */
};
#define LOG_GIVE_UP_MS ((int64_t)MS_PER_DAY)

/* Lines in memory, all of the same source, configuration and day. */
struct log_lines {
    uint64_t hash;
    char *storage, *bucket, *owner, *config;
    int64_t day; /* days since 1970; 0 unless LOGGING_BY_EVENT */
    int64_t first_ms;
    uint64_t records;
    struct buf text;
};

/* A source whose rows wait for their delivery. */
struct log_pending {
    struct buf name;   /* the part of the rows' keys before the sequence number */
    int64_t oldest_ms; /* time of the source's oldest waiting record */
    uint64_t bytes;
    int64_t not_before_ms; /* time of the next try after a delivery failed; 0: none failed */
    /* Records were dropped because too many waited (docs/bucket-logging.md, A6), and that was
     * logged. */
    bool full;
};

/* A call of access_log_flush() that waits for its delivery. */
struct log_flush {
    struct str name;
    bool done;
    int code;
    struct err err;
    struct buf key;
};

struct access_log {
    struct access_log_options o;
    struct db_cf *rows;
    struct loop loop;
    /* Only the access log's thread uses the next two members (docs/bucket-logging.md, A2). */
    uint64_t sequence;
    VEC(struct log_pending) pending;

    _Atomic(uint64_t) records, delivered, objects, failed, dropped;

    struct mutex lock; /* lock class "access_log"; guards the members below */
    struct cond flushed;
    VEC(struct log_lines *) lines;
    size_t bytes;        /* bytes of memory that the lines take */
    uint64_t lost;       /* records dropped since the last drain, because memory was full */
    int64_t drain_at_ms; /* when the lines are written as rows; valid while there are lines */
    VEC(struct log_flush *) flushes;
};

/* --- access_log_rows.c --- */

/* Writes the name of a source, with which the keys of its rows begin: storage, 0x00, bucket,
 * 0x00. */
void log_rows_name(struct buf *out, struct str storage, struct str bucket);

/* The parts of a row's value, borrowed from it. */
struct log_row {
    int64_t first_ms;
    uint64_t records;
    struct str same; /* owner, day and configuration; rows with equal text may share an object */
    struct str text;
};
int log_row_parse(struct str value, struct log_row *out) MUST_CHECK;
/* Parses log_row.same into its parts; strings live in the arena. */
int log_row_source(struct arena *a, struct str same, struct str *owner, int64_t *day,
                   struct str *config) MUST_CHECK;

/* Writes the lines as rows in one commit, and adds them to the pending sources. */
int log_rows_write(struct access_log *l, struct log_lines **lines, size_t count,
                   struct err *err) MUST_CHECK;
/* Finds the sources that have waiting rows. Called when the access log starts. */
int log_rows_load(struct access_log *l, struct err *err) MUST_CHECK;
/* Finds a source by its name; NULL: the source has no waiting rows. */
struct log_pending *log_pending_find(struct access_log *l, struct str name);
/* The rows that become one log object. log_rows_read() fills the struct from the first row whose
 * sequence is at least `from`. `sequences` is empty when no row waits. */
struct log_batch {
    struct buf text, same;
    int64_t oldest_ms;
    uint64_t records;
    VEC(uint64_t) sequences;
};
int log_rows_read(struct access_log *l, struct str name, uint64_t from, struct log_batch *out,
                  struct err *err) MUST_CHECK;
int log_rows_delete(struct access_log *l, struct str name, const struct log_batch *batch,
                    struct err *err) MUST_CHECK;
void log_batch_release(struct log_batch *b);

/* --- access_log_deliver.c --- */

/* Delivers all rows of the source as objects; `key` gets the key of the last object. Rows that
 * cannot be delivered do not hold up the rows behind them, which may go to another bucket. Returns
 * the first error; ERR_SHUTDOWN: weir is stopping, and the rest was not delivered. */
int log_deliver(struct access_log *l, struct log_pending *p, struct buf *key,
                struct err *err) MUST_CHECK;

#endif
