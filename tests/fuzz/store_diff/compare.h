/* Plays the same steps into two stores and compares every reply, and the whole state. */
#ifndef TESTS_FUZZ_STORE_DIFF_COMPARE_H
#define TESTS_FUZZ_STORE_DIFF_COMPARE_H

#include "unit/store/play.h"

struct pair {
    struct store *ours;   /* under test */
    struct store *theirs; /* redis: the truth */
};

struct difference {
    size_t at; /* index of the step; the count of steps when the state differs */
    struct buf ours, theirs;
};

/* Empties both, plays all steps. True when every reply and the state at the end are the same.
 * Commands go to Redis in pipelines, a random choice of ours is checked and repeated there. */
bool compare_play(const struct pair *p, const struct play_step *steps, size_t count,
                  struct difference *d);

/* Appends lines "> GET k" that read every key of `s`. */
void compare_write_reads(struct store *s, struct buf *out);

void difference_release(struct difference *d);

#endif
