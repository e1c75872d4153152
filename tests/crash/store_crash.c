/* kill -9 under load, then look: `store_crash [--runs N] [--seed S] [--dir D]`.
 *
 * A child opens the store and works with several threads: increments whose acknowledgements it
 * counts in shared memory, scripts that move amounts between two hashes, collections that are made
 * and dropped, replaced, renamed and timed out. It is killed at a random moment. A second child
 * opens the same folder and checks: every acknowledged increment is there and none that was not
 * begun, the amounts add up, and when the collector has run every row has its owner (docs/store.md
 * 3 to 6). The folder is kept from run to run. Children, not this process: RocksDB's threads do not
 * survive a fork. */
#include "base/clock.h"
#include "base/ids.h"
#include "os/file.h"
#include "store/embedded_int.h"
#include "unit/store/store_check.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNTERS = 4, MOVERS = 2, CHURNERS = 2, MAX_KILL_MS = 150, MAX_OPEN_KILL_MS = 40 };

/* Shared by the parent and its children. */
struct shared {
    _Atomic(bool) ready;
    _Atomic(int64_t) begun[COUNTERS], acknowledged[COUNTERS];
    _Atomic(int64_t) moves, churns; /* acknowledged; for the curious */
    uint64_t seed;
    char problem[512];
};

struct worker {
    struct thread thread;
    struct shared *shared;
    struct store *store;
    int number;
};

static struct script move_script = {
    .name = "crash/move",
    .source = STR("redis.call('HINCRBY', 'from', ARGV[1], -ARGV[2]) "
                  "redis.call('HINCRBY', 'to', ARGV[1], ARGV[2]) return 1")};

/* ARGV: key, what to do with it at the end. */
static struct script churn_script = {
    .name = "crash/churn",
    .source = STR("local k, what = KEYS[1], ARGV[1] "
                  "for i = 1, 100 do redis.call('SADD', k .. 's', i) "
                  "redis.call('ZADD', k .. 'z', i % 7, i) redis.call('RPUSH', k .. 'l', i) end "
                  "local h = k .. 'h' "
                  "for i = 1, 15 do redis.call('HSET', h, redis.call('HLEN', h), i) end "
                  "if what == '0' then redis.call('DEL', k .. 's', k .. 'z', k .. 'l', h) "
                  "elseif what == '1' then redis.call('RENAME', k .. 's', k .. 't') "
                  "elseif what == '2' then redis.call('PEXPIRE', k .. 'z', 1) "
                  "redis.call('PEXPIRE', h, 1) "
                  "elseif what == '3' then redis.call('SET', k .. 'l', 'string') "
                  "redis.call('DEL', k .. 'l') "
                  "else redis.call('LTRIM', k .. 'l', 3, 5) redis.call('ZREM', k .. 'z', 1) end "
                  "return 1")};

static _Noreturn void give_up(struct shared *sh, const char *what, const struct err *err)
{
    snprintf(sh->problem, sizeof(sh->problem), "%s: %.400s", what, err ? err->text : "");
    _exit(1);
}

static void open_all(struct shared *sh, const char *dir, struct db **db, struct store **store)
{
    struct err err = {0};
    struct db_options o = {.path = dir, .cfs = store_cf_specs(), .cf_count = STORE_DATABASES};

    if (db_open(db, &o, &err) < 0 ||
        store_open_embedded(store, *db, 0, STORE_DURABLE, NULL, &err) < 0)
        give_up(sh, "opening", &err);
}

static struct reply *run(struct shared *sh, struct store *s, struct arena *arena,
                         const struct script *script, struct store_args args)
{
    struct reply *reply;
    struct err err = {0};

    const struct script_run run = {script, {args.argv, 1}, {args.argv + 1, args.argc - 1}};
    if (store_eval(s, arena, &reply, &run, &err) < 0)
        give_up(sh, script->name, &err);
    if (reply->type == REPLY_ERROR)
        give_up(sh, reply->str.p, NULL);
    return reply;
}

static void count(void *ctx)
{
    struct worker *w = ctx;
    struct arena arena = {0};
    char field[16];

    snprintf(field, sizeof(field), "f%d", w->number);
    for (;;) {
        struct reply *reply;
        struct err err = {0};
        atomic_fetch_add(&w->shared->begun[w->number], 1);
        if (store_call(w->store, &arena, &reply, &err, STR("HINCRBY"), STR("counters"),
                       str_z(field), STR("1")) < 0)
            give_up(w->shared, "HINCRBY", &err);
        atomic_fetch_add(&w->shared->acknowledged[w->number], 1);
        arena_reset(&arena);
    }
}

static void move(void *ctx)
{
    struct worker *w = ctx;
    struct arena arena = {0};
    char field[16], amount[16];

    for (;;) {
        snprintf(field, sizeof(field), "f%d", (int)random_below(20));
        snprintf(amount, sizeof(amount), "%d", (int)random_below(100) + 1);
        const struct str args[] = {STR("from"), str_z(field), str_z(amount)};
        run(w->shared, w->store, &arena, &move_script, (struct store_args){args, 3});
        atomic_fetch_add(&w->shared->moves, 1);
        arena_reset(&arena);
    }
}

static void churn(void *ctx)
{
    struct worker *w = ctx;
    struct arena arena = {0};
    char key[32], what[16];

    for (;;) {
        snprintf(key, sizeof(key), "%d:%d", w->number, (int)random_below(3));
        snprintf(what, sizeof(what), "%d", (int)random_below(5));
        const struct str args[] = {str_z(key), str_z(what)};
        run(w->shared, w->store, &arena, &churn_script, (struct store_args){args, 2});
        atomic_fetch_add(&w->shared->churns, 1);
        arena_reset(&arena);
    }
}

static _Noreturn void work(struct shared *sh, const char *dir)
{
    static struct worker workers[COUNTERS + MOVERS + CHURNERS];
    struct db *db;
    struct store *store;
    struct err err = {0};

    open_all(sh, dir, &db, &store);
    for (int i = 0; i < (int)ARRAY_SIZE(workers); i++) {
        thread_fn *fn = i < COUNTERS ? count : i < COUNTERS + MOVERS ? move : churn;
        workers[i] = (struct worker){.shared = sh, .store = store, .number = i};
        if (thread_start(&workers[i].thread, "worker", 0, fn, &workers[i], &err) < 0)
            give_up(sh, "starting a thread", &err);
    }
    atomic_store(&sh->ready, true);
    for (;;)
        pause();
}

static int64_t ask_integer(struct shared *sh, struct store *s, const char *script)
{
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};
    int64_t n;

    if (store_call(s, &arena, &reply, &err, STR("EVAL"), str_z(script), STR("0")) < 0)
        give_up(sh, script, &err);
    if (reply->type != REPLY_INTEGER)
        give_up(sh, script, NULL);
    n = reply->integer;
    arena_release(&arena);
    return n;
}

static void check_counters(struct shared *sh, struct store *s)
{
    char script[128];

    for (int i = 0; i < COUNTERS; i++) {
        int64_t acknowledged = atomic_load(&sh->acknowledged[i]),
                begun = atomic_load(&sh->begun[i]);
        snprintf(script, sizeof(script),
                 "return tonumber(redis.call('HGET', 'counters', 'f%d') or 0)", i);
        int64_t n = ask_integer(sh, s, script);
        if (n < acknowledged || n > begun) {
            snprintf(sh->problem, sizeof(sh->problem),
                     "counter %d is %lld, acknowledged %lld, begun %lld", i, (long long)n,
                     (long long)acknowledged, (long long)begun);
            _exit(1);
        }
        atomic_store(&sh->acknowledged[i], n);
        atomic_store(&sh->begun[i], n);
    }
}

static _Noreturn void verify(struct shared *sh, const char *dir)
{
    struct db *db;
    struct store *store;
    struct store_check check;
    struct err err = {0};

    open_all(sh, dir, &db, &store);
    check_counters(sh, store);
    if (ask_integer(sh, store,
                    "local sum = 0 for _, k in ipairs({'from', 'to'}) do "
                    "for _, v in ipairs(redis.call('HVALS', k)) do sum = sum + v end end "
                    "return sum") != 0)
        give_up(sh, "amounts got lost", NULL);
    embedded_shift_clock(store, MS_PER_HOUR);
    embedded_collect(store);
    store_close(store);
    if (store_check(&check, db, 0, &err) < 0)
        give_up(sh, "reading the rows", &err);
    if (check.problems || check.garbage || check.dead || check.expiry) {
        snprintf(sh->problem, sizeof(sh->problem),
                 "%zu problems (%s), %zu garbage rows, %zu dead rows, %zu expiry rows",
                 check.problems, check.problem, check.garbage, check.dead, check.expiry);
        _exit(1);
    }
    db_close(db);
    _exit(0);
}

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void sleep_us(uint64_t us)
{
    struct timespec t = {(time_t)(us / US_PER_S), (long)(us % US_PER_S) * (long)NS_PER_US};
    nanosleep(&t, NULL);
}

/* True when the child was killed by us and not by a problem of its own. */
static bool kill_at_random(struct shared *sh, pid_t pid, uint64_t *seed)
{
    int status;

    if (next_random(seed) % 8 == 0) {
        sleep_us(next_random(seed) % (MAX_OPEN_KILL_MS * 1000)); /* maybe while it opens */
    } else {
        while (!atomic_load(&sh->ready) && !sh->problem[0])
            sleep_us(200);
        sleep_us(next_random(seed) % (MAX_KILL_MS * 1000));
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool one_run(struct shared *sh, const char *dir, uint64_t *seed)
{
    int status;
    pid_t pid;

    atomic_store(&sh->ready, false);
    sh->problem[0] = '\0';
    pid = fork();
    if (pid == 0)
        work(sh, dir);
    if (!kill_at_random(sh, pid, seed))
        return false;
    pid = fork();
    if (pid == 0)
        verify(sh, dir);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        snprintf(sh->problem, sizeof(sh->problem), "the check died: %s",
                 strsignal(WTERMSIG(status)));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"runs", required_argument, NULL, 'r'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"dir", required_argument, NULL, 'd'},
                                            {0}};
    struct shared *sh =
        mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char made[] = "/tmp/weir-store-crash-XXXXXX", *dir = NULL;
    unsigned long runs = 20, passed = 0, failed = 0;
    uint64_t seed = random_u64(), first_seed;
    int opt;

    while ((opt = getopt_long(argc, argv, "r:s:d:", options, NULL)) != -1) {
        if (opt == 'r')
            runs = strtoul(optarg, NULL, 10);
        else if (opt == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (opt == 'd')
            dir = optarg;
        else
            return 2;
    }
    BUG_ON(sh == MAP_FAILED);
    if (!dir && !(dir = mkdtemp(made)))
        return 2;
    script_init(&move_script);
    script_init(&churn_script);
    first_seed = seed;
    for (unsigned long i = 0; i < runs && failed == 0; i++) {
        bool ok = one_run(sh, dir, &seed);
        passed += ok;
        failed += !ok;
        if (!ok)
            printf("run %lu, seed %llu: %s (folder %s kept)\n", i, (unsigned long long)first_seed,
                   sh->problem, dir);
    }
    if (!failed && dir == made)
        (void)!dir_remove_tree(dir, NULL);
    printf("seed %llu, %lld moves, %lld churns\n", (unsigned long long)first_seed,
           (long long)sh->moves, (long long)sh->churns);
    printf("%lu passed, %lu failed\n", passed, failed);
    return failed != 0 || passed == 0;
}
