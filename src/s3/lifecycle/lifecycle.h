/* Lifecycle configurations: reads and writes the document, and finds which action its rules ask for
 * on an object, and when. These functions change no object; lifecycle_sweep.h performs the actions.
 *
 * The caller gives the length of a "day", so that tests need not wait for a real day. With real
 * days (MS_PER_DAY) every time is rounded up to the next midnight UTC, as S3 does; shorter days are
 * not rounded. Strings live in the arena; a read configuration does not change and may be used by
 * any thread. */
#ifndef S3_LIFECYCLE_LIFECYCLE_H
#define S3_LIFECYCLE_LIFECYCLE_H

#include "base/clock.h"
#include "meta/tagging.h"

enum { LIFECYCLE_MAX_RULES = 1000, LIFECYCLE_ID_MAX = 255, LIFECYCLE_NEWER_MAX = 100 };

/* Which objects a rule applies to. A size limit that was not given is -1. */
struct lifecycle_filter {
    bool old_form; /* the rule has <Prefix> itself, without <Filter> */
    bool is_and;   /* lifecycle_write() uses <And>: the document had it, or there are several
                      predicates */
    bool has_prefix;
    struct str prefix;
    struct tag_set tags;
    int64_t size_greater, size_less; /* bytes */
};

struct lifecycle_transition {
    /* Either days or date_ms is given, and the other is -1. For noncurrent versions only days is
     * given. */
    int64_t days, date_ms;
    int64_t newer; /* for noncurrent versions: this many of the newest stay as they are */
    struct str storage_class;
};

struct lifecycle_rule {
    struct str id;
    bool enabled;
    struct lifecycle_filter filter;
    int64_t expire_days, expire_date_ms;
    /* Whether ExpiredObjectDeleteMarker is given, and its value. */
    bool has_expire_marker, expire_marker;
    int64_t noncurrent_days, noncurrent_newer;
    int64_t abort_days;
    struct lifecycle_transition *transitions, *noncurrent_transitions;
    size_t transition_count, noncurrent_transition_count;
};

struct lifecycle {
    struct lifecycle_rule *rules;
    size_t count;
};

/* Reads the document. MalformedXML, InvalidArgument or InvalidRequest: S3 would refuse it. A rule
 * without an id gets a random one, so the text of lifecycle_write() is stored, not the client's
 * document. */
int lifecycle_read(struct lifecycle *out, struct arena *a, struct str xml,
                   struct err *err) MUST_CHECK;
void lifecycle_write(struct buf *out, const struct lifecycle *config);

/* The facts about a version that rules look at. */
struct lifecycle_facts {
    struct str key;
    uint64_t size;
    const struct tag_set *tags; /* NULL: the version has no tags */
    int64_t modified_ms;
    bool is_latest, is_marker;
    bool is_alone; /* the key has no other version */
    /* For a noncurrent version: the time at which the next newer version was made. */
    int64_t noncurrent_since_ms;
    /* For a noncurrent version: how many noncurrent versions of the key are newer. */
    uint64_t newer_noncurrent;
    struct str storage_class; /* empty: STANDARD */
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

/* Returns the earliest removal that enabled rules ask for, whether it is due or still to come. If
 * no removal is due yet but transitions to another class are, returns the transition that came due
 * last. */
struct lifecycle_due lifecycle_due(const struct lifecycle *config,
                                   const struct lifecycle_facts *facts, int64_t now_ms,
                                   int64_t day_ms);

/* Finds out when an upload that began at `started_ms` must be aborted. Returns false when no rule
 * asks for that. */
bool lifecycle_abort(const struct lifecycle *config, struct str key, int64_t started_ms,
                     int64_t day_ms, struct lifecycle_due *out);

/* Writes the value of x-amz-expiration for a LIFECYCLE_EXPIRE: expiry-date="...", rule-id="..." */
void lifecycle_expiration_header(struct buf *out, const struct lifecycle_due *due);

#endif
