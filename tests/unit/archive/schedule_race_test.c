/* Claims under fire: threads of several processes claim accounts while processes are killed and
 * stopped, somebody uses redis-cli, and the store is emptied. A checker reads the history of all
 * claims afterwards.
 *
 * Every claim is noted in memory that the processes share: its account, its fence, when it was
 * granted, and the last moment at which its holder still believed to have the lock. The moment of
 * the grant is read after the claim has returned, and the moment of belief before lock_held() is
 * asked, so a pause of a process never makes two claims overlap that did not. The rules:
 *   1. All fences differ.
 *   2. No holder believes to have the lock after a claim of the account with a greater fence was
 *      granted, unless the store was emptied in between. */
#include "base/clock.h"
#include "base/ids.h"
#include "unit/archive/schedule_lab.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USERS = 40, NOTES_MAX = 400000, FLUSHES_MAX = 64, LOCK_MS = 600, THREADS = 8 };

struct claim_note {
    int user;
    uint64_t fence, granted_ns, believed_ns;
};

struct world {
    _Atomic(size_t) notes;
    _Atomic(bool) stop;
    struct claim_note note[NOTES_MAX];
    uint64_t flushed_ns[FLUSHES_MAX][2]; /* the moments before and after the store was emptied */
    size_t flushes;
};

static struct world *world_new(void)
{
    struct world *w =
        mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(w != MAP_FAILED);
    return w;
}

static struct slots world_table(void)
{
    const struct str names[] = {STR("asia-east-1"), STR("europe-west-1"), STR("us-central-1")};
    struct slots t;
    struct err err = {0};

    CHECK_OK(slots_first(&t, names, ARRAY_SIZE(names), &err));
    return t;
}

/* --- a process that works --- */

struct hand {
    struct world *w;
    struct schedule *s;
    struct thread thread;
};

/* Works on the account for a while, and believes in its lock. Some work takes longer than a lock
 * lives. */
static void hand_work(struct hand *h, struct claim_note *note, struct schedule_claim *c)
{
    for (uint64_t i = random_below(random_below(30) ? 6 : 600); i > 0; i--) {
        uint64_t now = clock_mono_ns();
        if (!lock_held(c->lock))
            return;
        note->believed_ns = now;
        usleep((useconds_t)random_below(4000));
    }
}

static void hand_end(struct schedule_claim *c)
{
    struct err err = {0};

    switch (random_below(5)) {
    case 0:
        schedule_leave(c); /* it died */
        return;
    case 1:
        (void)!schedule_end_failed(c, 1, &err);
        return;
    case 2:
        (void)!schedule_end_back(c, &err);
        return;
    default:
        (void)!schedule_end_full(c, &err);
    }
}

static void hand_run(void *ctx)
{
    struct hand *h = ctx;
    struct arena a = {0};
    struct slots t = world_table();
    const struct schedule_set sets[] = {{STR("github.com"), str_z(t.names[0])},
                                        {STR("github.com"), str_z(t.names[1])},
                                        {STR("github.com"), str_z(t.names[2])}};
    const struct schedule_ask ask = {sets, ARRAY_SIZE(sets), 0, 1};

    while (!atomic_load(&h->w->stop)) {
        struct schedule_claim c;
        struct err err = {0};
        uint64_t wait, user;
        size_t count;
        arena_reset(&a);
        if (schedule_claim(h->s, &a, &ask, &c, &count, &wait, &err) < 0 || count == 0) {
            usleep(2000);
            continue;
        }
        size_t at = atomic_fetch_add(&h->w->notes, 1);
        if (at >= NOTES_MAX || str_u64(str_skip(c.account.login, 1), &user) < 0)
            user = USERS; /* one that somebody added by hand */
        if (at < NOTES_MAX) {
            struct claim_note *note = &h->w->note[at];
            *note = (struct claim_note){(int)user, c.fence, clock_mono_ns(), 0};
            hand_work(h, note, &c);
        }
        hand_end(&c);
    }
    arena_release(&a);
}

/* Runs `threads` threads that claim, until the world stops. */
static void hands_run(struct world *w, struct store *app, size_t threads)
{
    struct hand hands[2 * THREADS] = {0};
    struct schedule *s;
    struct slots t = world_table();
    struct err err = {0};

    CHECK_OK(schedule_open(&s, &(struct schedule_options){.app = app, .lock_ms = LOCK_MS}, &err));
    while (schedule_map(s, &t, &err) < 0)
        usleep(10000);
    for (size_t i = 0; i < threads; i++) {
        hands[i].w = w;
        hands[i].s = s;
        CHECK_OK(thread_start(&hands[i].thread, "hand", 0, hand_run, &hands[i], &err));
    }
    for (size_t i = 0; i < threads; i++)
        thread_join(&hands[i].thread);
    schedule_close(s);
}

static pid_t process_start(struct world *w, const char *url)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct store *app = store_at(url);
    hands_run(w, app, THREADS);
    store_close(app);
    _exit(0);
}

/* --- what happens to them --- */

static void add_users(struct schedule_lab *l)
{
    struct schedule_loaded batch[USERS];
    char member[32];
    struct err err = {0};

    for (int i = 0; i < USERS; i++) {
        snprintf(member, sizeof(member), "github.com/u%d", i);
        batch[i] = (struct schedule_loaded){schedule_lab_account(l, member), SCHEDULE_NEVER};
    }
    CHECK_OK(schedule_load(l->s, batch, USERS, &err));
}

/* The seed's commands, as somebody would type them. */
static void use_redis_cli(struct schedule_lab *l)
{
    char member[40], key[40];
    int user = (int)random_below(USERS);

    snprintf(member, sizeof(member), "github.com/u%d", user);
    snprintf(key, sizeof(key), "lock:u%d", user);
    switch (random_below(6)) {
    case 0:
        schedule_lab_ask(l, "ZADD", "tracked", "0", member, NULL);
        break;
    case 1:
        schedule_lab_ask(l, "ZRANGEBYSCORE", "tracked", "-inf", "+inf", "LIMIT", "0", "1", NULL);
        break;
    case 2:
        schedule_lab_ask(l, "SET", key, "1", "EX", "1", "NX", NULL);
        break;
    case 3:
        schedule_lab_ask(l, "EXPIRE", key, "1", NULL);
        break;
    case 4:
        schedule_lab_ask(l, "ZADD", "tracked", "0", "github.com/by-hand", NULL);
        break;
    default:
        schedule_lab_ask(l, "ZREM", "tracked", "github.com/by-hand", NULL);
    }
}

static void empty_store(struct schedule_lab *l, struct world *w)
{
    CHECK(w->flushes < FLUSHES_MAX);
    w->flushed_ns[w->flushes][0] = clock_mono_ns();
    schedule_lab_ask(l, "FLUSHDB", NULL);
    w->flushed_ns[w->flushes++][1] = clock_mono_ns();
    add_users(l);
}

/* One pass of what the keepers do. */
static void mend(struct schedule_lab *l)
{
    struct schedule_mend m = {.whole = true};
    struct err err = {0};

    CHECK_OK(schedule_mend(l->s, &m, &err));
}

/* --- the checker --- */

static int note_order(const void *a, const void *b)
{
    const struct claim_note *x = a, *y = b;

    if (x->user != y->user)
        return x->user < y->user ? -1 : 1;
    return x->fence < y->fence ? -1 : x->fence > y->fence;
}

static int fence_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static bool world_flushed_between(const struct world *w, uint64_t from_ns, uint64_t to_ns)
{
    for (size_t i = 0; i < w->flushes; i++)
        if (w->flushed_ns[i][1] >= from_ns && w->flushed_ns[i][0] <= to_ns)
            return true;
    return false;
}

static void check_fences_differ(const struct claim_note *notes, size_t count)
{
    uint64_t *fences = xcalloc(count, sizeof(*fences));

    for (size_t i = 0; i < count; i++)
        fences[i] = notes[i].fence;
    qsort(fences, count, sizeof(*fences), fence_order);
    for (size_t i = 1; i < count; i++)
        CHECK(fences[i] != fences[i - 1] || fences[i] == 0); /* 0: killed while it wrote its note */
    free(fences);
}

/* Returns how many claims there were. `least` of them must be of each account. */
static size_t check_history(struct world *w, size_t least)
{
    size_t count = size_min(atomic_load(&w->notes), NOTES_MAX), per_user[USERS + 1] = {0};

    check_fences_differ(w->note, count);
    qsort(w->note, count, sizeof(w->note[0]), note_order);
    for (size_t i = 0; i < count; i++) {
        const struct claim_note *a = &w->note[i], *b = a + 1;
        per_user[a->user]++;
        if (i + 1 == count || b->user != a->user || a->user == USERS || !a->fence)
            continue;
        if (world_flushed_between(w, a->granted_ns, size_max(b->granted_ns, a->believed_ns)))
            continue;
        if (a->believed_ns > b->granted_ns)
            test_fail(__FILE__, __LINE__, "u%d: fence %llu was believed %llu us after %llu",
                      a->user, (unsigned long long)a->fence,
                      (unsigned long long)((a->believed_ns - b->granted_ns) / 1000),
                      (unsigned long long)b->fence);
    }
    for (int i = 0; i < USERS; i++)
        CHECK(per_user[i] >= least);
    return count;
}

/* --- the tests --- */

/* Two processes with eight threads each. Every 100 ms something happens to one of them. */
static void race_processes(struct four *f, bool flushes, uint64_t seconds)
{
    struct schedule_lab l;
    struct world *w = world_new();
    pid_t pids[2];
    uint64_t until = clock_mono_ns() + seconds * NS_PER_S;
    int status;

    for (int i = 0; i < 2; i++)
        pids[i] = process_start(w, f->server.unix_url);
    schedule_lab_open(&l, f, LOCK_MS);
    add_users(&l);
    for (unsigned round = 0; clock_mono_ns() < until; round++) {
        pid_t *pid = &pids[random_below(2)];
        use_redis_cli(&l);
        usleep(20000);
        if (round % 25 == 10) { /* killed, and another comes */
            CHECK(kill(*pid, SIGKILL) == 0 && waitpid(*pid, &status, 0) == *pid);
            *pid = process_start(w, f->server.unix_url);
        } else if (round % 25 == 20) { /* asleep past its locks */
            CHECK(kill(*pid, SIGSTOP) == 0);
            usleep(LOCK_MS * 1500);
            CHECK(kill(*pid, SIGCONT) == 0);
        } else if (flushes && round % 25 == 5) {
            empty_store(&l, w);
        } else if (round % 10 == 7) {
            mend(&l);
        }
        arena_reset(&l.a);
    }
    atomic_store(&w->stop, true);
    for (int i = 0; i < 2; i++)
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) &&
              WEXITSTATUS(status) == 0);
    check_history(w, 3);
    mend(&l);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
    munmap(w, sizeof(*w));
}

TEST(archive_race, redis_processes_that_are_killed_and_stopped_never_share_an_account)
{
    struct four f = {0};

    four_open_redis(&f);
    race_processes(&f, false, 8);
    four_close(&f);
}

/* FLUSHALL at any moment: fences still grow, and the claims around it are told apart by them. */
TEST(archive_race, redis_processes_over_a_store_that_is_emptied)
{
    struct four f = {0};

    four_open_redis(&f);
    race_processes(&f, true, 8);
    four_close(&f);
}

struct crowd {
    struct world *w;
    struct store *app;
};

static void crowd_run(void *ctx)
{
    struct crowd *c = ctx;

    hands_run(c->w, c->app, 2 * THREADS);
}

/* Sixteen threads of one process, over each engine. */
TEST_FOUR(archive_race, threads_never_share_an_account)
{
    struct schedule_lab l;
    struct world *w = world_new();
    struct crowd crowd = {w, f->stores[DB_APP]};
    struct thread thread = {0};
    uint64_t until = clock_mono_ns() + 4 * NS_PER_S;
    struct err err = {0};

    schedule_lab_open(&l, f, LOCK_MS);
    add_users(&l);
    CHECK_OK(thread_start(&thread, "crowd", 0, crowd_run, &crowd, &err));
    for (unsigned round = 0; clock_mono_ns() < until; round++) {
        use_redis_cli(&l);
        if (round % 10 == 7)
            mend(&l);
        if (round % 40 == 30)
            empty_store(&l, w);
        arena_reset(&l.a);
        usleep(20000);
    }
    atomic_store(&w->stop, true);
    thread_join(&thread);
    check_history(w, 2);
    mend(&l);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
    munmap(w, sizeof(*w));
}
