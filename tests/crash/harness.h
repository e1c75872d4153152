/* Around a test that kills a process in the middle of durable writes and looks at what is left.
 *
 * One run: a child opens what the runs before left in a folder and writes, and tells on a pipe what
 * it did. At a random moment it is killed with SIGKILL. Every second run then takes the power away
 * as well (what the test does with files that were not synced). Another child opens the folder
 * again and checks it: children, as RocksDB's threads do not survive a fork, so the parent never
 * has any. That a write which was not synced would show is proved first, with writers that lie.
 *
 * A program is: <name> [--runs N] [--seed S]. The last line is "N passed, N failed": one for each
 * run, one for that proof. */
#ifndef TESTS_CRASH_HARNESS_H
#define TESTS_CRASH_HARNESS_H

#include "base/err.h"

/* First member of a test's own state, in shared_memory(): the children move it on. */
struct crash {
    char folder[64];
    uint64_t random;
    bool lie;         /* of this round the syncs are not what they say */
    uint64_t changes; /* made so far; hear() counts */
};

struct crash_test {
    const char *name;                      /* the program's */
    struct crash *state;                   /* in shared memory */
    unsigned kill_from_ms, kill_within_ms; /* after the start; both 0: 30 and 280 */
    /* For a new folder. */
    void (*reset)(struct crash *c);
    /* In the parent, before a child is started. May be NULL. */
    void (*before)(struct crash *c);
    /* Writes until it is killed; `pipe` is to tell on. */
    void (*work)(const struct crash *c, int pipe);
    /* Reads one thing that the child told; false when there is no more. */
    bool (*hear)(struct crash *c, int pipe);
    /* The child is dead; `power`: what it did not sync is lost. May be NULL. */
    void (*after)(struct crash *c, bool power);
    /* In a process of its own; prints what is wrong unless c->lie. */
    bool (*check)(struct crash *c);
};

/* Of a program whose functions have these names; what it has besides, as in the struct. */
#define CRASH_TEST(program, shared, ...)                                                           \
    {                                                                                              \
        .name = (program), .state = &(shared)->crash, .reset = reset, .work = work, .hear = hear,  \
        .check = check, __VA_ARGS__                                                                \
    }

int crash_main(int argc, char **argv, const struct crash_test *t);

void *shared_memory(size_t bytes);          /* zeroed */
void must(int code, const struct err *err); /* ends the process when it failed */
uint64_t next_random(struct crash *c);      /* 31 bits */

#endif
