/* The rate limit of log lines, for log.c and its tests: which lines may be written, and how many
 * were left out and are still to be reported. It has no lock: callers hold the sink's lock. */
#ifndef BASE_LOG_INT_H
#define BASE_LOG_INT_H

#include "base/log.h"

enum { LOG_WINDOW_MS = 10000, LOG_RATE_SLOTS = 128 };

struct log_rate_slot {
    const char *event;    /* borrowed: event names are literals; NULL when free */
    uint64_t opened_ms;   /* when the window began */
    uint64_t lines;       /* written in this window */
    uint64_t left_out;    /* not written, and not reported yet */
    enum log_level level; /* of the worst line left out */
};

/* One slot per event, by hash; events past the last slot are not limited (weir has fewer). */
struct log_rate {
    struct log_rate_slot slots[LOG_RATE_SLOTS];
    size_t owing; /* slots with left_out > 0 */
};

/* Whether this line may be written. A line that may not is counted as left out. */
bool log_rate_admit(struct log_rate *r, const char *event, enum log_level level, uint64_t now_ms);

/* Gives the next event whose window is over and that left lines out, and sets its count back. False
 * when there is none. With UINT64_MAX for `now_ms` every window is over. */
bool log_rate_settle(struct log_rate *r, uint64_t now_ms, struct log_rate_slot *out);

#endif
