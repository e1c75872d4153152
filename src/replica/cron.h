/* Times that come again and again, as cron(8) writes them: minute, hour, day of the month, month,
 * day of the week, all UTC. A field is `*`, a number, a range `a-b`, either with a step `/n`, or a
 * list of these with commas; 0 and 7 are Sunday. When both days are restricted, either will do.
 * Pure, any thread. */
#ifndef REPLICA_CRON_H
#define REPLICA_CRON_H

#include "base/err.h"
#include "base/str.h"

struct cron {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays; /* bits, by number */
    bool either_day;                        /* both kinds of days are restricted */
};

/* ERR_INVALID: the text says what is wrong. */
int cron_parse(struct cron *out, struct str line, struct err *err) MUST_CHECK;
/* The first such minute behind a time. ERR_NOT_FOUND: none within nine years (30 February). */
int cron_next(const struct cron *c, int64_t after_ms, int64_t *out) MUST_CHECK;

#endif
