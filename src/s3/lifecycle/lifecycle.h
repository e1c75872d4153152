/* Lifecycle configurations: the document, and what its rules say about an object: which action, and
 * when. lifecycle_sweep.h does the actions; nothing is changed here.
 *
 * The caller gives the length of a "day", so that tests need not wait for one. With real days
 * (MS_PER_DAY) every time is rounded up to the next midnight UTC, as S3 does; shorter days are not
 * rounded. Strings live in the arena; a read configuration does not change and may be asked by any
 * thread.
 */
#ifndef S3_LIFECYCLE_LIFECYCLE_H
#define S3_LIFECYCLE_LIFECYCLE_H

#include "base/clock.h"
#include "meta/tagging.h"

enum { LIFECYCLE_MAX_RULES = 1000, LIFECYCLE_ID_MAX = 255, LIFECYCLE_NEWER_MAX = 100 };

/* Numbers that were not given are -1. */
struct lifecycle_filter {
    bool old_form; /* <Prefix> of the rule itself, without <Filter> */
    bool is_and;   /* <And>, or written as if it were */
    bool has_prefix;
    struct str prefix;
    struct tag_set tags;
    int64_t size_greater, size_less; /* bytes */
};

struct lifecycle_transition {
    int64_t days, date_ms; /* one of them; of a noncurrent version days */
    int64_t newer;         /* noncurrent: how many newer noncurrent ones stay */
    struct str storage_class;
};

struct lifecycle_rule {
    struct str id;
    bool enabled;
    struct lifecycle_filter filter;
    int64_t expire_days, expire_date_ms;
    bool has_expire_marker, expire_marker; /* ExpiredObjectDeleteMarker */
    int64_t noncurrent_days, noncurrent_newer;
    int64_t abort_days;
    struct lifecycle_transition *transitions, *noncurrent_transitions;
    size_t transition_count, noncurrent_transition_count;
};

struct lifecycle {
    struct lifecycle_rule *rules;
    size_t count;
};

/* MalformedXML, InvalidArgument and InvalidRequest as in S3. A rule without an id gets a random
 * one; so the form of lifecycle_write() is stored, not the client's document. */
int lifecycle_read(struct lifecycle *out, struct arena *a, struct str xml,
                   struct err *err) MUST_CHECK;
void lifecycle_write(struct buf *out, const struct lifecycle *config);

/* The facts about a version that rules look at. */
struct lifecycle_facts {
    struct str key;
    uint64_t size;
    const struct tag_set *tags; /* NULL: none */
    int64_t modified_ms;
    bool is_latest, is_marker;
    bool is_alone;               /* no other version of the key is there */
    int64_t noncurrent_since_ms; /* not latest: when the next newer version was made */
    uint64_t newer_noncurrent;   /* not latest: how many noncurrent versions are newer */
    struct str storage_class;    /* empty: STANDARD */
};

enum lifecycle_action {
    LIFECYCLE_NONE,
    LIFECYCLE_EXPIRE,        /* delete the current version, as a DELETE without a version does */
    LIFECYCLE_REMOVE_MARKER, /* remove a delete marker that has no versions behind it */
    LIFECYCLE_REMOVE,        /* remove this noncurrent version */
    LIFECYCLE_TRANSITION,    /* change the class to storage_class */
};

struct lifecycle_due {
    enum lifecycle_action action;
    int64_t at_ms;
    const struct lifecycle_rule *rule;
    struct str storage_class;
};

/* The earliest removal that enabled rules ask for, whether it is due or still to come. When no
 * removal is due by now but a transition to another class is, that transition (of several, the one
 * that came due last). */
struct lifecycle_due lifecycle_due(const struct lifecycle *config,
                                   const struct lifecycle_facts *facts, int64_t now_ms,
                                   int64_t day_ms);

/* When an upload that began at `started_ms` is to be aborted; false: no rule asks for it. */
bool lifecycle_abort(const struct lifecycle *config, struct str key, int64_t started_ms,
                     int64_t day_ms, struct lifecycle_due *out);

/* The value of x-amz-expiration for a LIFECYCLE_EXPIRE: expiry-date="...", rule-id="..." */
void lifecycle_expiration_header(struct buf *out, const struct lifecycle_due *due);

#endif
