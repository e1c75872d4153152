/* BucketLoggingStatus: the document that says to which bucket the requests of a bucket are logged
 * (docs/bucket-logging.md). Reads and writes the document and the compact form that is stored. The
 * functions keep no state and may be called from any thread. */
#ifndef S3_LOG_LOGGING_H
#define S3_LOG_LOGGING_H

#include "meta/acl.h"

/* The longest prefix, in bytes. A key has up to 1024 bytes, so there is room for owner, region,
 * bucket and time behind the prefix. */
enum { LOGGING_PREFIX_MAX = 512 };

enum logging_format { LOGGING_SIMPLE, LOGGING_BY_EVENT, LOGGING_BY_DELIVERY };

struct logging {
    struct str bucket, prefix; /* where log objects are written */
    enum logging_format format;
    struct acl grants;   /* TargetGrants; grants.owner is empty */
    int64_t modified_ms; /* when the configuration was set; not in the document */
};

/* Reads <BucketLoggingStatus>. *on is false for an empty document, which turns logging off.
 * MalformedXML: its form is wrong. TargetGrants can also give InvalidArgument and
 * UnresolvableGrantByEmailAddress. */
int logging_read(struct logging *out, bool *on, struct arena *a, struct str xml,
                 const struct acl_users *users, struct err *err) MUST_CHECK;
/* Writes the document; an empty document when `config` is NULL. */
void logging_write(struct buf *out, const struct logging *config, const struct acl_users *users);

/* Write and read the stored form of a configuration. ERR_CORRUPT: `kept` does not have that
 * form. */
void logging_encode(struct buf *out, const struct logging *config);
int logging_decode(struct logging *out, struct arena *a, struct str kept,
                   struct err *err) MUST_CHECK;

/* The bucket whose requests are logged. */
struct logging_source {
    struct str owner, bucket; /* owner and name of the logged bucket */
    struct str region;
};

/* Appends the key of a log object that is made at `now_ms`. `unique` makes the key differ from
 * other keys of the same second. `day` is the day of the records, in days since 1970; only
 * LOGGING_BY_EVENT uses it. */
void logging_key(struct buf *out, const struct logging *config, const struct logging_source *s,
                 int64_t now_ms, int64_t day, uint64_t unique);

#endif
