/* The numbers of the steps that the store has acknowledged to a data folder (docs/store-redis.md,
 * I3).
 *
 * A step that an answer to a client relies on (an intent, a record) gets the folder's next number
 * in its script. The store keeps the last number. If the store has lost steps (it *went back in
 * time*), its number is lower than one that it had acknowledged, and the script refuses the step.
 * So the first step after the loss finds the loss. Any thread may call these functions. */
#ifndef COORD_SEEN_H
#define COORD_SEEN_H

#include "base/ids.h"
#include "store/store.h"

#include <stdatomic.h>

struct seen {
    char folder[ID_HEX_LEN + 1];
    _Atomic(uint64_t) *floor; /* the highest acknowledged number; borrowed */
    _Atomic(bool) lost;       /* a step was refused, and no word was sent since (coord/lease.h) */
};

/* The KEYS of a script that includes part_seen.lua. */
struct seen_keys {
    struct str keys[2];
    char floor[24];
};
/* Gives the KEYS for a step. Their texts are in `out`. `s` NULL: there are no KEYS. */
struct store_args seen_ask(const struct seen *s, struct seen_keys *out);
/* Records that the store has acknowledged this number, which was a script's answer. `s` NULL: does
 * nothing. */
void seen_took(struct seen *s, uint64_t number);
/* Checks a script's answer. ERR_UNAVAILABLE: the store refused the step, because it went back in
 * time. `s` may be NULL. */
int seen_check(struct seen *s, const struct reply *answer, struct err *err) MUST_CHECK;

#endif
