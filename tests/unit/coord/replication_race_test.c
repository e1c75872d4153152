/* Policies that come and go while changes are recorded and tasks run: nothing is lost, and counters
 * are the tasks. */
#include "os/thread.h"
#include "unit/coord/replication_lab.h"

#include <sched.h>
#include <stdio.h>

enum { OBJECTS = 10, RECORDERS = 2, WORKERS = 2, RECORDS = 150 };

struct race {
    struct four *f;
    _Atomic(bool) flip, work;
    _Atomic(int) left;              /* recorders */
    _Atomic(int64_t) seen[OBJECTS]; /* the highest number that a task of `backup` saw */
    _Atomic(int64_t) ended;         /* tasks of `backup` that ended */
};

static void name_of(char out[16], int i)
{
    snprintf(out, 16, "o%d", i);
}

static void record_all(void *ctx)
{
    struct race *race = ctx;
    struct repl_lab l;

    repl_open(&l, race->f); /* a process of its own, whose view may be old */
    for (int i = 0; i < RECORDS; i++) {
        char name[16];
        name_of(name, i % OBJECTS);
        repl_record(&l, "main", "photos", name);
    }
    repl_close(&l);
    atomic_fetch_sub(&race->left, 1);
}

static void flip(void *ctx)
{
    struct race *race = ctx;
    struct repl_lab l;

    repl_open(&l, race->f);
    while (atomic_load(&race->flip)) {
        repl_add(&l, "u photos main cold");
        repl_add(&l, "u other main backup");
        sched_yield();
        repl_remove(&l, "u photos main cold");
        repl_remove(&l, "u other main backup");
        arena_reset(&l.a);
    }
    repl_add(&l, "u photos main cold");
    repl_close(&l);
}

/* What a task would do: look at the source after it was taken. */
static void look(struct race *race, struct repl_lab *l, const struct task *t)
{
    static const char backup[] = "object:sync|u:photos:main:backup|photos:o";
    struct reply *reply;
    struct err err = {0};
    int64_t number;

    if (!str_starts(t->id, STR(backup)))
        return;
    int object = t->id.p[sizeof(backup) - 1] - '0';
    char key[32];
    snprintf(key, sizeof(key), "photos:o%d", object);
    CHECK_OK(store_call(l->app, &l->a, &reply, &err, STR("HGET"), str_z(key), STR("main")));
    CHECK_OK(str_i64(reply->str, &number));
    int64_t old = atomic_load(&race->seen[object]);
    while (old < number && !atomic_compare_exchange_weak(&race->seen[object], &old, number))
        ;
    atomic_fetch_add(&race->ended, 1);
}

static void work(void *ctx)
{
    struct race *race = ctx;
    struct repl_lab l;
    struct task t;
    struct err err = {0};

    repl_open(&l, race->f);
    for (;;) {
        bool more = atomic_load(&race->work);
        while (repl_take(&l, "events1", &t)) {
            look(race, &l, &t);
            CHECK_OK(queue_done(l.tasks, &t, &err));
            arena_reset(&l.a);
        }
        if (!more)
            break;
        sched_yield();
    }
    repl_close(&l);
}

static void check_nothing_lost(struct race *race, struct repl_lab *l)
{
    for (int i = 0; i < OBJECTS; i++) {
        char command[64], want[32];
        snprintf(command, sizeof(command), "HGET photos:o%d main", i);
        snprintf(want, sizeof(want), "\"%lld\"", (long long)atomic_load(&race->seen[i]));
        check_reply(l->app, command, want);
        CHECK_INT(atomic_load(&race->seen[i]), RECORDS * RECORDERS / OBJECTS);
    }
    struct replication_status s = repl_status(l, "u photos main backup");
    CHECK_INT(s.events, s.events_done);
    CHECK_INT(s.events_done, atomic_load(&race->ended));
    s = repl_status(l, "u photos main cold");
    CHECK_INT(s.events, s.events_done);
    check_reply(l->queue, "LLEN asynq:{events1}:pending", "0");
    check_reply(l->queue, "LLEN asynq:{events1}:active", "0");
}

TEST_FOUR(replication_race, no_event_of_a_policy_that_stays_is_lost)
{
    struct race race = {.f = f, .flip = true, .work = true, .left = RECORDERS};
    struct thread recorders[RECORDERS] = {0}, workers[WORKERS] = {0}, flipper = {0};
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    CHECK_OK(thread_start(&flipper, "flip", 0, flip, &race, &err));
    for (int i = 0; i < RECORDERS; i++)
        CHECK_OK(thread_start(&recorders[i], "record", 0, record_all, &race, &err));
    for (int i = 0; i < WORKERS; i++)
        CHECK_OK(thread_start(&workers[i], "work", 0, work, &race, &err));
    for (int i = 0; i < RECORDERS; i++)
        thread_join(&recorders[i]);
    atomic_store(&race.flip, false);
    thread_join(&flipper);
    atomic_store(&race.work, false);
    for (int i = 0; i < WORKERS; i++)
        thread_join(&workers[i]);
    check_nothing_lost(&race, &l);
    repl_close(&l);
}

/* --- many make the same one --- */

struct makers {
    struct four *f;
    _Atomic(int) made, there;
};

static void make(void *ctx)
{
    struct makers *m = ctx;
    struct repl_lab l;

    repl_open(&l, m->f);
    for (int i = 0; i < 10; i++) {
        struct err err = {0};
        char words[32];
        snprintf(words, sizeof(words), "u b%d main backup", i);
        int code = repl_try_add(&l, words, &err);
        if (code == 0)
            atomic_fetch_add(&m->made, 1);
        else if (code == ERR_EXISTS)
            atomic_fetch_add(&m->there, 1);
        else
            test_fail(__FILE__, __LINE__, "%s: %s", err_name(code), err.text);
    }
    repl_close(&l);
}

TEST_FOUR(replication_race, of_many_that_make_the_same_one_succeeds)
{
    struct makers m = {.f = f};
    struct thread threads[4] = {0};
    struct repl_lab l;
    struct err err = {0};

    for (int i = 0; i < 4; i++)
        CHECK_OK(thread_start(&threads[i], "make", 0, make, &m, &err));
    for (int i = 0; i < 4; i++)
        thread_join(&threads[i]);
    CHECK_INT(atomic_load(&m.made), 10);
    CHECK_INT(atomic_load(&m.there), 30);
    check_reply(f->stores[DB_QUEUE], "LLEN asynq:{events1}:pending", "10");
    repl_open(&l, f);
    CHECK_INT(repl_from(&l, "main", "b9"), 1);
    repl_close(&l);
}

/* --- pages by several workers, whose leases are taken from each other --- */

struct pages {
    struct four *f;
    _Atomic(int) recorded;
};

static void list(void *ctx)
{
    struct pages *p = ctx;
    struct repl_lab l;
    struct task t;

    repl_open(&l, p->f);
    while (atomic_load(&p->recorded) < 20) {
        if (!repl_take(&l, "migrate_bucket_list_obj", &t)) {
            sched_yield();
            continue;
        }
        struct replication_id id = repl_id(&l, "u photos main backup");
        struct err err = {0};
        struct str at;
        int64_t n = 0;
        CHECK_OK(replication_cursor(l.r, &l.a, &id, STR(""), &at, &err));
        if (at.len)
            CHECK_OK(str_i64(at, &n));
        struct listed item = {.task = {.type = STR("migrate:object:copy"),
                                       .id = arena_fmt(&l.a, "mgr:co:%d", (int)n),
                                       .queue = STR("migrate_obj_copy1")},
                              .bytes = 7};
        struct listed_page page = {.id = id,
                                   .task = &t,
                                   .after = at,
                                   .last = n < 19 ? arena_fmt(&l.a, "%d", (int)n + 1) : STR(""),
                                   .items = &item,
                                   .count = 1};
        int code = replication_page(l.r, &page, &err);
        if (code == 0)
            atomic_fetch_add(&p->recorded, 1);
        else if (code != ERR_CONFLICT)
            test_fail(__FILE__, __LINE__, "%s: %s", err_name(code), err.text);
        /* Given back, as by a worker that stops, which then tries the same page once more. */
        int rc = queue_requeue(l.tasks, &t, &err);
        if (rc < 0 && rc != ERR_NOT_FOUND)
            test_fail(__FILE__, __LINE__, "%s: %s", err_name(rc), err.text);
        if (replication_page(l.r, &page, &err) == 0)
            test_fail(__FILE__, __LINE__, "a page was recorded without its lease");
    }
    repl_close(&l);
}

TEST_FOUR(replication_race, every_page_is_counted_once)
{
    struct pages p = {.f = f};
    struct thread threads[3] = {0};
    struct repl_lab l;
    struct task first, root = {.type = STR("migrate:bucket:list_objects"),
                               .id = STR("mgr:lo"),
                               .queue = STR("migrate_bucket_list_obj")};
    struct replication_id id;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    id = repl_id(&l, "u photos main backup");
    CHECK(repl_take(&l, "events1", &first));
    CHECK_OK(replication_list(l.r, &id, &first, &root, &err));
    for (int i = 0; i < 3; i++)
        CHECK_OK(thread_start(&threads[i], "list", 0, list, &p, &err));
    for (int i = 0; i < 3; i++)
        thread_join(&threads[i]);
    struct replication_status s = repl_status(&l, "u photos main backup");
    CHECK_INT(s.listed, 20);
    CHECK_INT(s.bytes_listed, 140);
    CHECK(s.listing_started && s.listings == 0);
    CHECK_INT(repl_drain(&l, "migrate_obj_copy1"), 20);
    s = repl_status(&l, "u photos main backup");
    CHECK(replication_init_done(&s));
    repl_close(&l);
}
