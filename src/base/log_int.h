/* The rate limit of log lines, for log.c and its tests: who may write, and what is owed. Not
 * locked; the sink's lock is held around it. */
#ifndef BASE_LOG_INT_H
#define BASE_LOG_INT_H

#include "base/log.h"

enum { LOG_WINDOW_MS = 10000, LOG_RATE_SLOTS = 128 };

struct log_rate_slot {
    const char *event;  /* borrowed: event names are literals; NULL when free */
    uint64_t opened_ms; /* when the window began */
    uint64_t lines;     /* let through in this window */
    uint64_t left_out;
    enum log_level level; /* of the worst line left out */
};

/* One slot per event, by hash; events past the last slot are not limited (weir has fewer). */
struct log_rate {
    struct log_rate_slot slots[LOG_RATE_SLOTS];
    size_t owing; /* slots with left_out > 0 */
};

/* May this line be written? If not it is counted. */
bool log_rate_admit(struct log_rate *r, const char *event, enum log_level level, uint64_t now_ms);

/* The next event whose window is over and that left lines out; its count is then settled. False
 * when there is none. UINT64_MAX for `now_ms` settles all. */
bool log_rate_settle(struct log_rate *r, uint64_t now_ms, struct log_rate_slot *out);

#endif
