/* Virtual time, and threads that take turns: a test program runs weir's own code, with its locks,
 * threads and time-outs, in one real thread and without waiting.
 *
 * A *task* is such a thread: it has a stack of its own and runs until it waits for a lock, a
 * condition or a time. Then the clock jumps to the moment at which the next task goes on. Which
 * task is next, and every random number, follows from a seed, so a run can be repeated.
 *
 * Tasks belong to a *machine*. A machine that is dead never runs again. One that is stopped goes on
 * later, exactly where it was, as after SIGSTOP. *Events* belong to no machine: a request that is
 * on its way lands also when its sender has died.
 *
 * The linker replaces (--wrap) the functions of os/thread.h, and clock_gettime(), nanosleep() and
 * getrandom() of the C library; see meson.build. Outside of sim_run() they are the real ones. */
#ifndef TESTS_CRASH_SIM_H
#define TESTS_CRASH_SIM_H

#include "base/clock.h"

typedef void sim_fn(void *ctx);

struct sim_machine {
    bool dead;
    uint64_t stopped_until_ns; /* by sim_now() */
};

/* Runs `first` as a task of no machine, and all tasks that follow from it, until the time `end_ns`
 * or until no task waits for a time. Time begins at an hour. Tasks that are left end without going
 * on: what they had on the heap is not freed. */
void sim_run(uint64_t seed, uint64_t end_ns, sim_fn *first, void *ctx);

uint64_t sim_now(void); /* ns; clock_mono_ns() and clock_boot_ns() give the same */
uint64_t sim_random(uint64_t below);
bool sim_chance(unsigned percent);
/* The machine of the calling task; NULL: none. */
struct sim_machine *sim_machine(void);
/* A task of the machine. NULL: of none. */
void sim_start(struct sim_machine *m, sim_fn *fn, void *ctx);
/* Calls fn() at that time, outside of all tasks: it must not wait. */
void sim_at(uint64_t when_ns, sim_fn *fn, void *ctx);
void sim_sleep(uint64_t ns);
/* Puts the calling task to sleep until sim_wake(key), or the time; returns false after the time. */
bool sim_wait(const void *key, uint64_t until_ns);
void sim_wake(const void *key);

#endif
