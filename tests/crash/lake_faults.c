/* Faults for weir_faulty at named steps: kills and holds it at the steps of src/lake/step.h and
 * src/shard/step.h.
 *
 * FAULT_KILL=before:lake.publish:2 sends SIGKILL before the second publish, "after" behind it.
 * FAULT_PAUSE=before:lake.publish:2=FILE holds the thread there until FILE exists; while it waits,
 * FILE.waits exists. FAULT_STEPS=FILE appends a line "before <step>" or "after <step>" for each
 * step, so a test can tell which steps an operation has. */
#include "base/base.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void __wrap_lake_step_begin(const char *step);
void __wrap_lake_step_end(const char *step);
void __wrap_shard_step_begin(const char *step);
void __wrap_shard_step_end(const char *step);

/* One place: before or behind the n-th time of a step. */
struct place {
    char when[8]; /* "before" or "after" */
    char step[64];
    unsigned number; /* 0: there is no such place */
    _Atomic(unsigned) count;
};

static struct place kill_at, pause_at;
static char pause_file[512];
static int steps_log = -1;

__attribute__((constructor)) static void lake_faults_read(void)
{
    const char *dies = getenv("FAULT_KILL"), *waits = getenv("FAULT_PAUSE");
    const char *log = getenv("FAULT_STEPS");

    if (dies &&
        sscanf(dies, "%7[a-z]:%63[^:]:%u", kill_at.when, kill_at.step, &kill_at.number) != 3)
        abort();
    if (waits && sscanf(waits, "%7[a-z]:%63[^:]:%u=%511s", pause_at.when, pause_at.step,
                        &pause_at.number, pause_file) != 4)
        abort();
    if (log)
        steps_log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* Whether the thread has come to the place. */
static bool place_is_here(struct place *p, const char *when, const char *step)
{
    return p->number > 0 && strcmp(p->when, when) == 0 && strcmp(p->step, step) == 0 &&
           atomic_fetch_add(&p->count, 1) + 1 == p->number;
}

static void wait_for_file(void)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    char waits[sizeof(pause_file) + 8];

    snprintf(waits, sizeof(waits), "%s.waits", pause_file);
    int fd = open(waits, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        abort();
    close(fd);
    while (access(pause_file, F_OK) != 0)
        nanosleep(&moment, NULL);
}

static void step_come(const char *when, const char *step)
{
    char line[128];

    if (steps_log >= 0) {
        int len = snprintf(line, sizeof(line), "%s %s\n", when, step);
        if (write(steps_log, line, (size_t)len) != len)
            abort();
    }
    if (place_is_here(&kill_at, when, step))
        kill(getpid(), SIGKILL);
    if (place_is_here(&pause_at, when, step))
        wait_for_file();
}

void __wrap_lake_step_begin(const char *step)
{
    step_come("before", step);
}

void __wrap_lake_step_end(const char *step)
{
    step_come("after", step);
}

void __wrap_shard_step_begin(const char *step)
{
    step_come("before", step);
}

void __wrap_shard_step_end(const char *step)
{
    step_come("after", step);
}
