/* The frame of a test that kills a process in the middle of durable writes and checks what is left.
 *
 * In one run, a child opens the folder that the earlier runs have left, writes to it, and reports
 * each change on a pipe. At a random moment it is killed with SIGKILL. Every second run then plays
 * a loss of power, too: the test damages files that were not synced. A second child opens the
 * folder and checks it. Only children open it, because RocksDB's threads do not survive a fork.
 *
 * Before the runs, the program proves that the check would find a lost write. For that proof the
 * writers lie: they report changes as durable that they have not synced. Such writers are called
 * liars below.
 *
 * A program is: <name> [--runs N] [--seed S]. Its last line is "N passed, N failed", with one count
 * for each run and one for the proof. */
#ifndef TESTS_CRASH_HARNESS_H
#define TESTS_CRASH_HARNESS_H

#include "base/err.h"

/* The first member of a test's state. The state lies in shared_memory(), and children change it. */
struct crash {
    char folder[64];
    uint64_t random;
    bool lie;         /* the writers of this run are liars */
    uint64_t changes; /* how many hear() has read so far */
};

struct crash_test {
    const char *name;                      /* of the program */
    struct crash *state;                   /* in shared memory */
    unsigned kill_from_ms, kill_within_ms; /* after the start; both 0: 30 and 280 */
    /* Called when a new folder begins. */
    void (*reset)(struct crash *c);
    /* Called in the parent before a child is started. May be NULL. */
    void (*before)(struct crash *c);
    /* Runs in a child: writes, and reports on `pipe`, until it is killed. */
    void (*work)(const struct crash *c, int pipe);
    /* Reads one report of the child; false when there are no more. */
    bool (*hear)(struct crash *c, int pipe);
    /* Called after the kill. With `power`, bytes that were not synced are to be lost. May be NULL.
     */
    void (*after)(struct crash *c, bool power);
    /* Runs in a second child; prints what is wrong, unless c->lie. True: all is well. */
    bool (*check)(struct crash *c);
    /* Prints what the runs have done, behind the last of them. May be NULL. */
    void (*tell)(const struct crash *c);
};

/* The test of a program whose functions are called reset, work, hear and check. Further members
 * follow as initializers. */
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
