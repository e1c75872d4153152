/* BucketLoggingStatus: where a bucket's requests are logged to (docs/bucket-logging.md). Converts
 * the document that clients send and the compact form that is stored. Any thread, no state. */
#ifndef S3_LOG_LOGGING_H
#define S3_LOG_LOGGING_H

#include "meta/acl.h"

/* Bytes. A key has up to 1024, so the prefix leaves room for owner, region, bucket and time. */
enum { LOGGING_PREFIX_MAX = 512 };

enum logging_format { LOGGING_SIMPLE, LOGGING_BY_EVENT, LOGGING_BY_DELIVERY };

struct logging {
    struct str bucket, prefix; /* where log objects are written */
    enum logging_format format;
    struct acl grants;   /* TargetGrants; its owner is empty */
    int64_t modified_ms; /* when the configuration was set; not in the document */
};

/* Reads <BucketLoggingStatus>. *on is false for an empty document, which turns logging off.
 * MalformedXML: its form is wrong. TargetGrants can also give InvalidArgument and
 * UnresolvableGrantByEmailAddress. */
int logging_read(struct logging *out, bool *on, struct arena *a, struct str xml,
                 const struct acl_users *users, struct err *err) MUST_CHECK;
/* Writes the document; an empty one when `config` is NULL. */
void logging_write(struct buf *out, const struct logging *config, const struct acl_users *users);

/* Write and read the stored form. ERR_CORRUPT: `kept` does not have that form. */
void logging_encode(struct buf *out, const struct logging *config);
int logging_decode(struct logging *out, struct arena *a, struct str kept,
                   struct err *err) MUST_CHECK;

/* The source of a log. */
struct logging_source {
    struct str owner, bucket; /* of the logged bucket */
    struct str region;
};

/* Appends the name of a log object that is made now. `unique` makes it differ from other names of
 * the same second. `day` is the records' day, counted from 1970; used only for LOGGING_BY_EVENT. */
void logging_key(struct buf *out, const struct logging *config, const struct logging_source *s,
                 int64_t now_ms, int64_t day, uint64_t unique);

#endif
