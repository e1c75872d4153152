/* Recurring times, written as for cron(8): minute, hour, day of the month, month, day of the week,
 * all UTC. A field is `*`, a number, a range `a-b`, either with a step `/n`, or a list of these
 * with commas; 0 and 7 are Sunday. When both kinds of days are restricted, it is enough that a day
 * matches one of them. The functions do no I/O and may be called by any thread. */
#ifndef REPLICA_CRON_H
#define REPLICA_CRON_H

#include "base/err.h"
#include "base/str.h"

struct cron {
    /* Each member has a bit for each number that matches. */
    uint64_t minutes;
    uint32_t hours, days, months, weekdays;
    bool either_day; /* days of the month and of the week are both restricted */
};

/* Parses a line. ERR_INVALID: the line is wrong, and the error says why. */
int cron_parse(struct cron *out, struct str line, struct err *err) MUST_CHECK;
/* Sets *out to the first matching minute after `after_ms`, in ms since 1970. ERR_NOT_FOUND: no
 * minute matches within nine years, as for 30 February. */
int cron_next(const struct cron *c, int64_t after_ms, int64_t *out) MUST_CHECK;

#endif
