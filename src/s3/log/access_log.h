/* Server access logs. The line of a request is first kept in memory, then in a row of the database,
 * and is delivered in an object of the target bucket. docs/bucket-logging.md has the promise, its
 * invariants (A1 to A6) and the crash points. The functions may be called from any thread. */
#ifndef S3_LOG_ACCESS_LOG_H
#define S3_LOG_ACCESS_LOG_H

#include "base/log.h"
#include "route/route.h"
#include "s3/log/logging.h"

struct access_log;
struct db;
struct notify;

struct access_log_options {
    struct db *db; /* has the family LOCAL_ACCESS_LOG; all pointers here are borrowed */
    struct routes *routes;
    struct notify *notify; /* announces the log objects that are written; may be NULL */
    struct str region;     /* empty: us-east-1 */
    uint64_t interval_ms;  /* time from a bucket's first record to its delivery; 0: five minutes */
    uint64_t waiting_max; /* limit on the bytes of one logged bucket's records on disk; 0: 64 MiB */
    const struct log *log;
};

/* Starts the access log. Call it before the first request and after the storages are open. */
int access_log_open(struct access_log **out, const struct access_log_options *o,
                    struct err *err) MUST_CHECK;
/* Writes the lines in memory as rows and closes the access log. Rows that wait are delivered after
 * the next start. `l` may be NULL. */
void access_log_close(struct access_log *l);

/* The bucket whose request is logged. */
struct access_log_source {
    const struct bucket *bucket;
    struct str owner;
    struct str config; /* the bucket's logging configuration, as logging_encode() writes it */
};

/* Adds the line of a request that began at `now_ms`; `line` ends with a newline. The call waits
 * neither for the disk nor for the log's thread. The line is dropped when memory is full
 * (docs/bucket-logging.md, A1). */
void access_log_append(struct access_log *l, const struct access_log_source *s, int64_t now_ms,
                       struct str line);

/* Delivers the waiting records of a bucket and returns when that is done. *key, in the arena, is
 * the key of the last object that was made; it is empty when no record waited. When no object could
 * be made, returns the error of access_log_target_open() or of the storage; the records still
 * wait. */
int access_log_flush(struct access_log *l, const struct bucket *b, struct arena *a, struct str *key,
                     struct err *err) MUST_CHECK;

struct access_log_stats {
    uint64_t records;
    uint64_t delivered; /* records written to log objects */
    uint64_t objects;
    uint64_t failed;  /* deliveries that failed and will be tried again */
    uint64_t dropped; /* records that were dropped */
};
void access_log_stats(struct access_log *l, struct access_log_stats *out);

/* --- access_log_target.c: the bucket that a log goes to --- */

struct access_log_target {
    struct bucket *bucket; /* a reference, which the caller must release */
    struct bucket_info info;
    bool lists; /* true: ACLs apply in the target bucket */
};

struct access_log_ask {
    struct routes *routes;
    const struct logging *config;
    struct str owner, bucket, storage; /* owner, name and storage of the logged bucket */
    struct str key;                    /* the key of the log object that will be made */
    bool setting; /* the logging configuration is being set, so its stricter checks apply */
};

/* Opens the target bucket if the log may be delivered there (see the table in
 * docs/bucket-logging.md). Returns NoSuchKey, InvalidArgument, AccessDenied, or an error of the
 * storage. */
int access_log_target_open(struct access_log_target *out, struct arena *a,
                           const struct access_log_ask *ask, struct err *err) MUST_CHECK;

#endif
