/* Steps of the lake, and of moves of shards, in unit tests: a test says what happens when its
 * thread comes to a step, so a race is played in one thread and always in the same order. The
 * linker leads the calls of lake/step.h and shard/step.h here. */
#ifndef TESTS_UNIT_LAKE_STEPS_H
#define TESTS_UNIT_LAKE_STEPS_H

#include "base/base.h"

enum steps_when { STEPS_BEFORE, STEPS_AFTER };

/* Calls the function when this thread comes to the step for the n-th time from now on (1: the next
 * time), once. Steps inside of the function are not counted. One call may be planned at a time. */
void steps_plan(enum steps_when when, const char *step, unsigned n, void (*fn)(void *ctx),
                void *ctx);
/* Whether the planned call was made. Forgets the plan. */
bool steps_happened(void);
/* The number of times that this thread has come to the step since steps_plan(), or since the
 * beginning. */
unsigned steps_count(const char *step);

#endif
