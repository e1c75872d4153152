/* weir with faults of a bad day built in, which tests ask for by the environment; everything else
 * is src/main.c. The linker leads the calls that are named in meson.build through here, so the real
 * program has none of it.
 *
 * FAULT_KILL=before:NAME:N or after:NAME:N: SIGKILL at the N-th call of the store by that name,
 * among those that a switch makes (its plan, its task up to the word that it is done, its abort)
 * and those that end a replication with its bucket (P7) and look for the bucket afterwards. A
 * call's name is its script's or its command's; `*` is any. "after": the store has done it, and
 * nobody was told. FAULT_LOG=FILE: a line "<number> <name>" for each of these calls, before it is
 * made. FAULT_CLOCK=SECONDS: the wall clock is off by so much. FAULT_DISK: disk_faults.c.
 * FAULT_PAUSE, FAULT_STEPS, and FAULT_KILL at a step of the lake or of a move: lake_faults.c. */
#include "coord/switch.h"
#include "replica/switch/switch.h"
#include "replica/tap/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The linker's names: __wrap_x is called for x, and __real_x is it. */
#define WRAPPED(result, name, ...)                                                                 \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

static struct {
    bool after;
    char name[64]; /* empty: no kill */
    unsigned number;
    int log; /* -1: none */
    long clock_s;
} fault = {.log = -1};
static _Atomic(unsigned) calls, named;

/* Whose calls count: of a thread that is at work for a switch, or at the end of a replication. */
static _Thread_local enum { OTHERS, AT_WORK, LAST_WORD } thread_is;

__attribute__((constructor)) static void read_environment(void)
{
    const char *kill_at = getenv("FAULT_KILL"), *log = getenv("FAULT_LOG");
    const char *clock = getenv("FAULT_CLOCK");
    char when[8];

    if (kill_at && sscanf(kill_at, "%7[a-z]:%63[^:]:%u", when, fault.name, &fault.number) != 3)
        abort();
    fault.after = kill_at && when[0] == 'a';
    if (log)
        fault.log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (clock)
        fault.clock_s = strtol(clock, NULL, 10);
}

/* --- kills --- */

/* Whether the call is the one. */
static bool count_call(const char *name)
{
    char line[128];

    if (thread_is == OTHERS)
        return false;
    int len = snprintf(line, sizeof(line), "%u %s\n", atomic_fetch_add(&calls, 1) + 1, name);
    if (fault.log >= 0 && write(fault.log, line, (size_t)len) != len)
        abort();
    return (str_eq(str_z(fault.name), STR("*")) || str_eq(str_z(fault.name), str_z(name))) &&
           atomic_fetch_add(&named, 1) + 1 == fault.number;
}

static void die_if(bool now)
{
    if (now)
        kill(getpid(), SIGKILL);
    if (thread_is == LAST_WORD)
        thread_is = OTHERS;
}

WRAPPED(int, store_eval, struct store *s, struct arena *arena, struct reply **out,
        const struct script_run *run, struct err *err)
{
    bool dies = count_call(run->script->name);

    die_if(dies && !fault.after);
    int code = __real_store_eval(s, arena, out, run, err);
    die_if(dies && fault.after);
    return code;
}

WRAPPED(int, script_eval, struct store *s, struct arena *arena, struct reply **out,
        const struct script_run *run, struct err *err)
{
    bool dies = count_call(run->script->name);

    die_if(dies && !fault.after);
    int code = __real_script_eval(s, arena, out, run, err);
    die_if(dies && fault.after);
    return code;
}

WRAPPED(int, store_command, struct store *s, struct arena *arena, struct reply **out,
        const struct str *argv, size_t argc, struct err *err)
{
    char name[32];
    snprintf(name, sizeof(name), STR_FMT, STR_ARG(argv[0]));
    bool dies = count_call(name);

    die_if(dies && !fault.after);
    int code = __real_store_command(s, arena, out, argv, argc, err);
    die_if(dies && fault.after);
    return code;
}

WRAPPED(int, switch_plan, struct replications *r, const struct replication_id *id,
        const struct switch_options *o, const struct task *t, struct str route, struct err *err)
{
    thread_is = AT_WORK;
    int code = __real_switch_plan(r, id, o, t, route, err);
    thread_is = OTHERS;
    return code;
}

WRAPPED(int, switch_abort, struct replications *r, struct str user, struct str bucket,
        struct err *err)
{
    thread_is = AT_WORK;
    int code = __real_switch_abort(r, user, bucket, err);
    thread_is = OTHERS;
    return code;
}

/* The thread's next call tells the queue how it ended. */
WRAPPED(int, switch_live_handle, struct task_run *run, struct err *err)
{
    thread_is = AT_WORK;
    int code = __real_switch_live_handle(run, err);
    thread_is = LAST_WORD;
    return code;
}

WRAPPED(int, switch_down_handle, struct task_run *run, struct err *err)
{
    thread_is = AT_WORK;
    int code = __real_switch_down_handle(run, err);
    thread_is = LAST_WORD;
    return code;
}

/* --- the end of a replication, with its bucket --- */

WRAPPED(int, replication_end, struct replications *r, const struct replication_end *e,
        struct err *err)
{
    thread_is = AT_WORK;
    int code = __real_replication_end(r, e, err);
    thread_is = OTHERS;
    return code;
}

WRAPPED(int, taps_user_run, struct task_run *run, struct err *err)
{
    thread_is = AT_WORK;
    int code = __real_taps_user_run(run, err);
    thread_is = LAST_WORD;
    return code;
}

/* --- the clock --- */

WRAPPED(int, clock_gettime, clockid_t id, struct timespec *out)
{
    int code = __real_clock_gettime(id, out);

    if (code == 0 && id == CLOCK_REALTIME)
        out->tv_sec += fault.clock_s;
    return code;
}
