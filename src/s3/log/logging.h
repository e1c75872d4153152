/* BucketLoggingStatus: where a bucket's requests are logged to (docs/bucket-logging.md). The
 * document as clients send it, and the compact form that is kept. Any thread, no state. */
#ifndef S3_LOG_LOGGING_H
#define S3_LOG_LOGGING_H

#include "meta/acl.h"

/* A key has up to 1024 bytes; the prefix leaves room for owner, region, bucket and time. */
enum { LOGGING_PREFIX_MAX = 512 };

enum logging_format { LOGGING_SIMPLE, LOGGING_BY_EVENT, LOGGING_BY_DELIVERY };

struct logging {
    struct str bucket, prefix; /* of the target */
    enum logging_format format;
    struct acl grants;   /* TargetGrants; its owner is empty */
    int64_t modified_ms; /* when it was set; not in the document */
};

/* <BucketLoggingStatus>; *on false: an empty one, which turns logging off. MalformedXML; of
 * TargetGrants also InvalidArgument and UnresolvableGrantByEmailAddress. */
int logging_read(struct logging *out, bool *on, struct arena *a, struct str xml,
                 const struct acl_users *users, struct err *err) MUST_CHECK;
/* NULL: off. */
void logging_write(struct buf *out, const struct logging *config, const struct acl_users *users);

/* The kept form. ERR_CORRUPT when it is not one. */
void logging_encode(struct buf *out, const struct logging *config);
int logging_decode(struct logging *out, struct arena *a, struct str kept,
                   struct err *err) MUST_CHECK;

/* The source of a log. */
struct logging_source {
    struct str owner, bucket; /* of the logged bucket */
    struct str region;
};

/* Appends the name of a log object that is made now; `unique` makes it differ from others of the
 * same second. `day`: days from 1970 to the records; only for LOGGING_BY_EVENT. */
void logging_key(struct buf *out, const struct logging *config, const struct logging_source *s,
                 int64_t now_ms, int64_t day, uint64_t unique);

#endif
