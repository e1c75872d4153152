/* The simulation of sharding: weir's own code for maps, the log, requests under way, leases, the
 * agreement of processes and the hand-over (src/shard/, src/coord/), over a storage that delays
 * requests and answers and carries them out late, a store that forgets, and processes that die,
 * stop and are cut off. Time is virtual, and there is one thread. Each run follows from its seed,
 * and its history is checked: each key must have behaved as one register (unit/shard/linear.h).
 *
 *     shard_sim [--runs N] [--seed S] [--rules N] [--without RULE] [--trace 1]
 *
 * The N runs must be right. Then each rule of the protocol is left out in turn (enum sim_rule), and
 * of at most --rules runs one must be wrong, or the simulation would not find a fault there. With
 * --without, only runs without that rule are made. The last line is "N passed, N failed", with one
 * count for each run and each rule. */
#include "crash/shard_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RUN_S = 120,       /* virtual time of a run */
    RUNS_A_CHILD = 50, /* runs leave memory behind, so each child makes only some */
};

struct sim_world world;

static const char *const rules[SIM_RULES] = {
    [RULE_NONE] = "none",
    [RULE_READS_CLOSED] = "reads-closed",
    [RULE_READS_LEASE] = "reads-lease",
    [RULE_ABANDONED] = "abandoned-targets",
    [RULE_CONDITIONAL] = "conditional-entries",
    [RULE_SILENT] = "waiting-for-the-silent",
    [RULE_MEMORY] = "memory-of-the-store",
    [RULE_LEAST] = "least-number",
    [RULE_SECOND_LOOK] = "second-look",
};

/* What some runs have given. */
struct sim_result {
    uint64_t runs, wrong, hard, operations, hand_overs, proved, lists, first_wrong;
};

/* --- one run --- */

static enum linear_verdict run_check(struct buf *why, uint64_t *operations)
{
    struct linear history;

    linear_init(&history);
    for (size_t i = 0; i < world.ops.len; i++)
        if (!world.ops.items[i].dropped)
            linear_add(&history, &world.ops.items[i].op);
    *operations += history.ops.len;
    enum linear_verdict verdict = linear_check(&history, why);
    linear_release(&history);
    return verdict;
}

static void run_one(uint64_t seed, struct sim_result *r, bool tell)
{
    struct buf why = {0};

    world.hand_overs = world.proved = world.lists = 0;
    sim_run(seed, RUN_S * NS_PER_S, world_begin, (void *)(uintptr_t)RUN_S);
    enum linear_verdict verdict = run_check(&why, &r->operations);
    r->runs++;
    r->hard += verdict == LINEAR_TOO_HARD;
    r->hand_overs += world.hand_overs;
    r->proved += world.proved;
    r->lists += world.lists;
    if (verdict == LINEAR_WRONG && r->wrong++ == 0)
        r->first_wrong = seed;
    if (verdict != LINEAR_RIGHT && tell)
        printf("seed %llu: %.*s\n", (unsigned long long)seed, (int)size_min(why.len, 2000), why.p);
    buf_release(&why);
}

/* --- many runs --- */

/* Makes runs in a child. */
static void runs_in_child(uint64_t seed, uint64_t count, struct sim_result *out)
{
    int pipes[2];
    struct sim_result r = {0};

    fflush(stdout);
    BUG_ON(pipe(pipes) != 0);
    pid_t child = fork();
    BUG_ON(child < 0);
    if (child == 0) {
        for (uint64_t i = 0; i < count; i++)
            run_one(seed + i, &r, world.without == RULE_NONE);
        fflush(stdout);
        BUG_ON(write(pipes[1], &r, sizeof(r)) != sizeof(r));
        _exit(0);
    }
    close(pipes[1]);
    if (read(pipes[0], &r, sizeof(r)) != sizeof(r)) { /* the child has ended early */
        printf("the runs from seed %llu on have ended early: 1 failed\n", (unsigned long long)seed);
        exit(1);
    }
    close(pipes[0]);
    waitpid(child, NULL, 0);
    if (out->wrong == 0)
        out->first_wrong = r.first_wrong;
    out->runs += r.runs;
    out->wrong += r.wrong;
    out->hard += r.hard;
    out->operations += r.operations;
    out->hand_overs += r.hand_overs;
    out->proved += r.proved;
    out->lists += r.lists;
}

/* `until_wrong`: ends after the first child with a wrong run. */
static struct sim_result runs_make(uint64_t seed, uint64_t count, bool until_wrong)
{
    struct sim_result r = {0};

    while (r.runs < count && !(until_wrong && r.wrong))
        runs_in_child(seed + r.runs, size_min(RUNS_A_CHILD, count - r.runs), &r);
    return r;
}

static void runs_print(const struct sim_result *r)
{
    printf("%-24s %llu runs, %llu wrong, %llu undecided; %llu operations, %llu hand-overs, %llu "
           "reads proved by the log, %llu listings",
           rules[world.without], (unsigned long long)r->runs, (unsigned long long)r->wrong,
           (unsigned long long)r->hard, (unsigned long long)r->operations,
           (unsigned long long)r->hand_overs, (unsigned long long)r->proved,
           (unsigned long long)r->lists);
    if (r->wrong)
        printf("; the first is of seed %llu", (unsigned long long)r->first_wrong);
    printf("\n");
    fflush(stdout);
}

static enum sim_rule rule_named(const char *name)
{
    for (int i = 0; i < SIM_RULES; i++)
        if (strcmp(rules[i], name) == 0)
            return (enum sim_rule)i;
    fprintf(stderr, "no such rule: %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    uint64_t runs = 300, rule_runs = 1000, seed = 1, passed = 0, failed = 0;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("0 passed, 0 failed, 1 skipped\n"); /* they do not follow the tasks' stacks */
    return 0;
#endif
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t number = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--runs") == 0)
            runs = number;
        else if (strcmp(argv[i], "--rules") == 0)
            rule_runs = number;
        else if (strcmp(argv[i], "--seed") == 0)
            seed = number;
        else if (strcmp(argv[i], "--trace") == 0)
            world.trace = number;
        else if (strcmp(argv[i], "--without") == 0)
            world.without = rule_named(argv[i + 1]);
    }
    if (world.without) {
        struct sim_result one = runs_make(seed, runs, false);
        runs_print(&one);
        return 0;
    }
    struct sim_result r = runs_make(seed, runs, false);
    runs_print(&r);
    passed = r.runs - r.wrong - r.hard;
    failed = r.wrong + r.hard;
    for (int i = RULE_NONE + 1; i < SIM_RULES && rule_runs; i++) {
        world.without = (enum sim_rule)i;
        r = runs_make(seed, rule_runs, true);
        runs_print(&r);
        passed += r.wrong > 0;
        failed += r.wrong == 0;
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed > 0;
}
