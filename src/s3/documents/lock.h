/* Object lock: reads and writes the bucket's default retention, and an object's retention and legal
 * hold, as documents and as headers. The storage decides whether a locked version may be changed or
 * removed. */
#ifndef S3_DOCUMENTS_LOCK_H
#define S3_DOCUMENTS_LOCK_H

#include "base/arena.h"
#include "base/buf.h"
#include "http/wire.h"
#include "meta/error.h"

enum { LOCK_MAX_DAYS = 36500, LOCK_MAX_YEARS = 100 };

/* <ObjectLockConfiguration>. At most one of days and years is set; if neither is, there is no
 * default retention. */
struct lock_config {
    bool compliance; /* true: the mode is COMPLIANCE; false: GOVERNANCE */
    uint32_t days, years;
};

/* The retention of an object. struct object_meta has the same values. */
struct lock_retention {
    bool compliance;
    int64_t until_ms; /* ms since 1970; 0: no retention */
};

/* Reads the document. MalformedXML: its form is wrong. InvalidRetentionPeriod: the number of days
 * or years is not allowed. */
int lock_config_read(struct lock_config *out, struct arena *a, struct str xml,
                     struct err *err) MUST_CHECK;
void lock_config_write(struct buf *out, const struct lock_config *config);

/* Returns the default retention of an object put at `now_ms`; until_ms is 0 when there is no
 * default. A year has 365 days. */
struct lock_retention lock_default(const struct lock_config *config, int64_t now_ms);

/* Reads <Retention>; an empty element removes the retention. MalformedXML: its form is wrong.
 * InvalidArgument: the date is not in the future. */
int lock_retention_read(struct lock_retention *out, struct arena *a, struct str xml, int64_t now_ms,
                        struct err *err) MUST_CHECK;
void lock_retention_write(struct buf *out, const struct lock_retention *retention);

/* Reads <LegalHold>; *out is true for ON. */
int lock_hold_read(bool *out, struct arena *a, struct str xml, struct err *err) MUST_CHECK;
void lock_hold_write(struct buf *out, bool on);

/* The headers x-amz-object-lock-mode, -retain-until-date and -legal-hold of a PUT. */
struct lock_headers {
    bool has_retention, has_hold;
    struct lock_retention retention;
    bool hold;
};

/* Reads the headers. InvalidArgument: mode without date or date without mode, unknown words, or a
 * date that is not in the future. */
int lock_headers_read(struct lock_headers *out, const struct http_head *head, int64_t now_ms,
                      struct err *err) MUST_CHECK;

/* Returns "GOVERNANCE" or "COMPLIANCE", for headers of a response. */
const char *lock_mode_name(bool compliance);

#endif
