/* The numbers of what the store has acknowledged to a data folder (docs/store-redis.md, I3).
 *
 * Each step that a client's answer counts on (an intent, a record) gets the folder's next number in
 * the script itself, and is refused when the store has forgotten a number that it had acknowledged:
 * so a store that went back in time is found out by the first step after it. Any thread. */
#ifndef COORD_SEEN_H
#define COORD_SEEN_H

#include "base/ids.h"
#include "store/store.h"

#include <stdatomic.h>

struct seen {
    char folder[ID_HEX_LEN + 1];
    _Atomic(uint64_t) *floor; /* the highest that was acknowledged; borrowed */
    _Atomic(bool) lost;       /* a step was refused, and no word has been sent since */
};

/* KEYS of a script with part_seen. */
struct seen_keys {
    struct str keys[2];
    char floor[24];
};
/* None when `s` is NULL. */
struct store_args seen_ask(const struct seen *s, struct seen_keys *out);
/* The script's answer was no error: this number is acknowledged. `s` may be NULL. */
void seen_took(struct seen *s, uint64_t number);
/* ERR_UNAVAILABLE when the answer is that of a store that went back; 0: it is another one. */
int seen_check(struct seen *s, const struct reply *answer, struct err *err) MUST_CHECK;

#endif
