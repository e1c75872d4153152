/* The rate limit of log lines, for log.c and its tests. It decides which lines may be written, and
 * counts the lines that were left out and not reported yet. It has no lock: callers hold the sink's
 * lock. */
#ifndef BASE_LOG_INT_H
#define BASE_LOG_INT_H

#include "base/log.h"

enum { LOG_WINDOW_MS = 10000, LOG_RATE_SLOTS = 128 };

struct log_rate_slot {
    const char *event;    /* borrowed: event names are literals; NULL: the slot is free */
    uint64_t opened_ms;   /* when the window began */
    uint64_t lines;       /* lines written in this window */
    uint64_t left_out;    /* lines not written and not reported yet */
    enum log_level level; /* the worst level among the lines left out */
};

/* The state of the rate limit. Each event has a slot, which is found by hash. Events for which no
 * slot is left are not limited, but weir has fewer events than slots. */
struct log_rate {
    struct log_rate_slot slots[LOG_RATE_SLOTS];
    size_t owing; /* slots with left_out > 0 */
};

/* Whether this line may be written. A line that may not be written is counted as left out. */
bool log_rate_admit(struct log_rate *r, const char *event, enum log_level level, uint64_t now_ms);

/* Finds the next event that has unreported lines and whose window has ended. Copies its slot to
 * `out`, and sets the slot's count of unreported lines to 0. Returns false when there is no such
 * event. With UINT64_MAX for `now_ms` every window has ended. */
bool log_rate_settle(struct log_rate *r, uint64_t now_ms, struct log_rate_slot *out);

#endif
