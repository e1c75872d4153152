/* Between the files of the access log. */
#ifndef S3_LOG_ACCESS_LOG_INT_H
#define S3_LOG_ACCESS_LOG_INT_H

#include "base/clock.h"
#include "base/vec.h"
#include "db/db.h"
#include "os/loop.h"
#include "s3/log/access_log.h"

#include <stdatomic.h>

enum {
    LOG_MEMORY_MAX = 8 * 1024 * 1024, /* lines in memory (A1) */
    LOG_DRAIN_BYTES = 1024 * 1024,    /* so many are written before their second is over */
    LOG_DRAIN_MS = 1000,
    LOG_OBJECT_BYTES = 4 * 1024 * 1024, /* a bucket with so many is due; about an object's size */
    LOG_LOOK_MS = MS_PER_MINUTE,        /* the wall clock may jump: look at it that often */
    LOG_SEQUENCE_LEN = 8,               /* at the end of a row's key */
};
#define LOG_GIVE_UP_MS ((int64_t)MS_PER_DAY)

/* Lines of one source, configuration and day, in memory. */
struct log_lines {
    uint64_t hash;
    char *storage, *bucket, *owner, *config;
    int64_t day; /* since 1970; 0 unless LOGGING_BY_EVENT */
    int64_t first_ms;
    uint64_t records;
    struct buf text;
};

/* A source whose rows wait. */
struct log_pending {
    struct buf name;   /* of its rows' keys, before the sequence */
    int64_t oldest_ms; /* of its records */
    uint64_t bytes;
    int64_t not_before_ms; /* after a delivery that failed; 0: none did */
    bool full;             /* records were dropped, and that was logged (A6) */
};

/* A request that waits for its delivery. */
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
    /* The thread's own (A2): */
    uint64_t sequence;
    VEC(struct log_pending) pending;

    _Atomic(uint64_t) records, delivered, objects, failed, dropped;

    struct mutex lock; /* class "access_log"; guards what follows */
    struct cond flushed;
    VEC(struct log_lines *) lines;
    size_t bytes;        /* in all of them, with what keeps them */
    uint64_t lost;       /* records that found it full, since the last drain */
    int64_t drain_at_ms; /* while there are lines */
    VEC(struct log_flush *) flushes;
};

/* --- access_log_rows.c --- */

/* storage, 0x00, bucket, 0x00 */
void log_rows_name(struct buf *out, struct str storage, struct str bucket);

/* A row's value taken apart; borrowed. */
struct log_row {
    int64_t first_ms;
    uint64_t records;
    struct str same; /* equal in rows that may share an object: owner, day, configuration */
    struct str text;
};
int log_row_parse(struct str value, struct log_row *out) MUST_CHECK;
/* What `same` says; strings in the arena. */
int log_row_source(struct arena *a, struct str same, struct str *owner, int64_t *day,
                   struct str *config) MUST_CHECK;

/* Writes the lines as rows, one commit, and tells what waits of it. */
int log_rows_write(struct access_log *l, struct log_lines **lines, size_t count,
                   struct err *err) MUST_CHECK;
/* Finds what waits, at the start. */
int log_rows_load(struct access_log *l, struct err *err) MUST_CHECK;
struct log_pending *log_pending_find(struct access_log *l, struct str name); /* NULL: none */
/* Rows of one object, from the first that waits with at least the sequence `from`: the text is
 * appended. No sequences: none waits. */
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

/* All rows of the source, object after object; `key` gets the last one's name. What cannot be
 * delivered does not keep what is behind it, which may go elsewhere; the first error is returned. A
 * stop ends it behind an object: ERR_SHUTDOWN. */
int log_deliver(struct access_log *l, struct log_pending *p, struct buf *key,
                struct err *err) MUST_CHECK;

#endif
