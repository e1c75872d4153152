/* Runs of kill and check. */
#include "crash/harness.h"
#include "base/clock.h"
#include "os/file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LIE_RUNS = 200, /* on a busy machine few of them get to write anything */
    KILL_FROM_MS = 30,
    KILL_WITHIN_MS = 280,
};

void *shared_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BUG_ON(p == MAP_FAILED);
    return p;
}

void must(int code, const struct err *err)
{
    if (code == 0)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, err_name(code), err->text);
    _exit(3);
}

uint64_t next_random(struct crash *c)
{
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return c->random >> 33;
}

/* Listens, kills, listens to what was on its way. False when the child ended by itself. */
static bool drive(const struct crash_test *t, pid_t pid, int pipe)
{
    unsigned from = t->kill_within_ms ? t->kill_from_ms : KILL_FROM_MS,
             within = t->kill_within_ms ? t->kill_within_ms : KILL_WITHIN_MS;
    uint64_t deadline = clock_mono_ms() + from + next_random(t->state) % (within - from), now;
    struct pollfd p = {.fd = pipe, .events = POLLIN};
    int status;

    while ((now = clock_mono_ms()) < deadline)
        if (poll(&p, 1, (int)(deadline - now)) > 0 && !t->hear(t->state, pipe))
            break;
    kill(pid, SIGKILL);
    bool waited = waitpid(pid, &status, 0) == pid;
    while (t->hear(t->state, pipe))
        ;
    return waited && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool check(const struct crash_test *t)
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exit(t->check(t->state) ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool run(const struct crash_test *t, bool power)
{
    int fds[2];
    bool good;

    if (t->before)
        t->before(t->state);
    if (pipe(fds) != 0)
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        t->work(t->state, fds[1]);
        _exit(3);
    }
    close(fds[1]);
    good = pid > 0 && drive(t, pid, fds[0]);
    close(fds[0]);
    if (!good)
        printf("the child ended by itself\n");
    if (t->after)
        t->after(t->state, power);
    return check(t) && good;
}

static void begin(const struct crash_test *t, uint64_t seed, bool lie)
{
    struct crash *c = t->state;
    struct err err = {0};

    *c = (struct crash){.random = seed, .lie = lie};
    snprintf(c->folder, sizeof(c->folder), "/tmp/%s.XXXXXX", t->name);
    if (!mkdtemp(c->folder))
        must(err_set(&err, ERR_IO, "cannot make a folder in /tmp"), &err);
    t->reset(c);
}

static void end(const struct crash_test *t)
{
    struct err err = {0};
    must(dir_remove_tree(t->state->folder, &err), &err);
}

/* Writers that lie must be caught, or the losses of power here prove nothing. */
static bool lies_are_found(const struct crash_test *t, uint64_t seed)
{
    bool found = false;

    begin(t, seed, true);
    for (int i = 0; i < LIE_RUNS && !found; i++)
        found = !run(t, true);
    end(t);
    return found;
}

static uint64_t argument(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0 && str_u64(str_z(argv[i + 1]), &otherwise) != 0)
            exit(2);
    return otherwise;
}

int crash_main(int argc, char **argv, const struct crash_test *t)
{
    uint64_t runs = argument(argc, argv, "--runs", 200), passed = 0, failed = 0;
    uint64_t seed = argument(argc, argv, "--seed", (uint64_t)clock_wall_ms());

    if (lies_are_found(t, seed))
        passed++;
    else
        failed += printf("no loss was found with writers that do not sync\n") > 0;
    begin(t, seed, false);
    for (uint64_t i = 0; i < runs; i++) {
        if (run(t, i % 2 == 1)) {
            passed++;
            continue;
        }
        failed++;
        printf("run %llu failed; again: %s --runs %llu --seed %llu (folder kept: %s)\n",
               (unsigned long long)i, t->name, (unsigned long long)runs, (unsigned long long)seed,
               t->state->folder);
        break;
    }
    printf("seed %llu, %llu changes\n", (unsigned long long)seed,
           (unsigned long long)t->state->changes);
    if (t->tell)
        t->tell(t->state);
    if (failed == 0)
        end(t);
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed > 0;
}
