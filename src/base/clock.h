/* Time: clocks for intervals, the wall clock, and dates as protocols write them. Any thread may
 * call these functions. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/str.h"

/* Units of time. Nanoseconds are uint64_t everywhere; the other units are signed. */
#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)
enum {
    US_PER_MS = 1000,
    US_PER_S = 1000 * US_PER_MS,
    MS_PER_S = 1000,
    MS_PER_MINUTE = 60 * MS_PER_S,
    MS_PER_HOUR = 60 * MS_PER_MINUTE,
    MS_PER_DAY = 24 * MS_PER_HOUR,
    S_PER_MINUTE = 60,
    S_PER_HOUR = 60 * S_PER_MINUTE,
    S_PER_DAY = 24 * S_PER_HOUR,
};

uint64_t clock_mono_ns(void); /* never goes back; for intervals and deadlines */
uint64_t clock_mono_ms(void);
uint64_t clock_boot_ns(void); /* like clock_mono_ns(), but also counts while the machine sleeps */
int64_t clock_wall_ms(void);  /* since 1970 UTC; may jump forward or back */

/* These functions write a time in UTC, terminated by a NUL. A time outside the years 1970 to 9999
 * is written as the nearest time inside them. */
enum { CLOCK_ISO_LEN = 24, CLOCK_HTTP_LEN = 29, CLOCK_BASIC_LEN = 16 };
void clock_iso(int64_t wall_ms, char out[CLOCK_ISO_LEN + 1]);   /* 2006-01-02T15:04:05.000Z */
void clock_http(int64_t wall_ms, char out[CLOCK_HTTP_LEN + 1]); /* Mon, 02 Jan 2006 15:04:05 GMT */
void clock_basic(int64_t wall_ms, char out[CLOCK_BASIC_LEN + 1]); /* 20060102T150405Z */

/* These functions read a time, and return ERR_PARSE when it is malformed. clock_parse_iso accepts
 * an optional fraction, then Z or an offset (RFC 3339). clock_parse_http accepts the three forms of
 * RFC 9110 section 5.6.7. */
int clock_parse_iso(struct str s, int64_t *wall_ms) MUST_CHECK;
int clock_parse_http(struct str s, int64_t *wall_ms) MUST_CHECK;
int clock_parse_basic(struct str s, int64_t *wall_ms) MUST_CHECK;

#endif
