/* Switches while others do the same, and while changes are recorded: nothing is lost. */
#include "os/thread.h"
#include "unit/coord/switch_lab.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

/* --- two at once --- */

enum { STARTERS = 4, ROUNDS = 10 };

struct starters {
    struct four *f;
    _Atomic(int) begun, planned;
};

static void start_one(void *ctx)
{
    struct starters *s = ctx;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, s->f);
    int code = switch_try_plan(&l, SWITCH_LIVE, &err);
    CHECK(code == 0 || code == ERR_CONFLICT);
    atomic_fetch_add(&s->planned, code == 0);
    code = switch_try_begin(&l, &err);
    CHECK(code == 0 || code == ERR_CONFLICT || code == ERR_NOT_FOUND);
    atomic_fetch_add(&s->begun, code == 0);
    repl_close(&l);
}

TEST_FOUR(switch_race, of_many_that_start_one_begins)
{
    struct starters s = {.f = f};
    struct thread threads[STARTERS];
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    for (int i = 0; i < STARTERS; i++)
        CHECK_OK(thread_start(&threads[i], "starter", 0, start_one, &s, &err));
    for (int i = 0; i < STARTERS; i++)
        thread_join(&threads[i]);
    CHECK_INT(atomic_load(&s.begun), 1);
    CHECK(atomic_load(&s.planned) >= 1);
    check_switch(&l, "in_progress");
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"backup:main\"]");
    repl_close(&l);
}

struct ending {
    struct four *f;
    struct bucket_switch s;
    int code;
};

static void end_one(void *ctx)
{
    struct ending *e = ctx;
    struct repl_lab l;
    struct err err = {0};
    struct task clean = {.type = STR("clean"), .id = STR("clean:photos"), .queue = STR("api")};

    repl_open(&l, e->f);
    e->code = switch_done(l.r, &e->s, &clean, &err);
    repl_close(&l);
}

/* Whichever comes first, the route and the members go together. */
TEST_FOUR(switch_race, given_up_while_it_gets_done_it_is_either)
{
    struct err err = {0};

    for (int i = 0; i < ROUNDS; i++) {
        struct ending e = {.f = f};
        struct thread thread;
        struct repl_lab l;
        switch_open(&l, f);
        switch_planned(&l, SWITCH_LIVE);
        CHECK_OK(switch_try_begin(&l, &err));
        e.s = switch_now(&l);
        CHECK_OK(thread_start(&thread, "ending", 0, end_one, &e, &err));
        CHECK_OK(switch_try_abort(&l, &err));
        thread_join(&thread);
        CHECK_OK(e.code); /* of one that was given up it is the end of going back */
        struct reply *reply;
        CHECK_OK(store_call(l.config, &l.a, &reply, &err, STR("GET"), STR("p:route:u:photos")));
        bool back = str_eq(reply->str, STR("main"));
        check_switch(&l, "");
        check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", back ? "[\"main:backup\"]" : "[]");
        for (int db = 0; db < STORE_DATABASES; db++)
            check_reply(f->stores[db], "FLUSHDB", "OK");
        repl_close(&l);
    }
}

/* --- changes during a switch that is given up, against a model --- */

enum { OBJECTS = 8, RECORDERS = 2, WORKERS = 2, RECORDS = 200, SIDES = 2 };

static const char *const sides[SIDES] = {"main", "backup"};

struct race {
    struct four *f;
    /* Held for reading from the look at the route until the change is recorded: who has held it for
     * writing knows that every gateway has the route of before (docs/replication.md, "Epochs"). */
    pthread_rwlock_t under_way;
    _Atomic(bool) record, work; /* go on */
    _Atomic(int) recorded[SIDES];
    _Atomic(int64_t) seen[SIDES][OBJECTS]; /* the highest number there that a task has looked at */
};

static void record_one(struct race *race, struct repl_lab *l, int i)
{
    struct reply *reply;
    struct err err = {0};
    char name[16];

    snprintf(name, sizeof(name), "o%d", i % OBJECTS);
    pthread_rwlock_rdlock(&race->under_way);
    CHECK_OK(store_call(l->config, &l->a, &reply, &err, STR("GET"), STR("p:route:u:photos")));
    int side = reply->type == REPLY_BULK && str_eq(reply->str, STR("backup"));
    repl_record(l, sides[side], "photos", name);
    pthread_rwlock_unlock(&race->under_way);
    atomic_fetch_add(&race->recorded[side], 1);
    sched_yield();
}

static void record_all(void *ctx)
{
    struct race *race = ctx;
    struct repl_lab l;

    repl_open(&l, race->f); /* a process of its own, whose view may be old */
    for (int i = 0; i < RECORDS || atomic_load(&race->record); i++) {
        record_one(race, &l, i);
        arena_reset(&l.a);
    }
    repl_close(&l);
}

/* What a task would do: look at the source after it was taken. */
static void look(struct race *race, struct repl_lab *l, const struct task *t)
{
    char prefix[64], key[32];
    struct reply *reply;
    struct err err = {0};
    int64_t number;

    for (int side = 0; side < SIDES; side++) {
        snprintf(prefix, sizeof(prefix), "object:sync|u:photos:%s:%s|photos:o", sides[side],
                 sides[!side]);
        if (!str_starts(t->id, str_z(prefix)))
            continue;
        int object = t->id.p[strlen(prefix)] - '0';
        snprintf(key, sizeof(key), "photos:o%d", object);
        CHECK_OK(
            store_call(l->app, &l->a, &reply, &err, STR("HGET"), str_z(key), str_z(sides[side])));
        CHECK_OK(str_i64(reply->str, &number));
        int64_t old = atomic_load(&race->seen[side][object]);
        while (old < number &&
               !atomic_compare_exchange_weak(&race->seen[side][object], &old, number))
            ;
    }
}

static void work(void *ctx)
{
    struct race *race = ctx;
    struct repl_lab l;
    struct err err = {0};
    struct task t;

    repl_open(&l, race->f);
    for (bool more = true; more;) {
        more = atomic_load(&race->work);
        while (repl_take(&l, "events1", &t)) {
            look(race, &l, &t);
            CHECK_OK(queue_done(l.tasks, &t, &err));
            arena_reset(&l.a);
            more = true;
        }
        sched_yield();
    }
    repl_close(&l);
}

static void wait_for(struct race *race, int side, int count)
{
    while (atomic_load(&race->recorded[side]) < count)
        sched_yield();
}

static void end_switch(struct race *race, struct repl_lab *l)
{
    struct err err = {0};
    int code;

    pthread_rwlock_wrlock(&race->under_way);
    pthread_rwlock_unlock(&race->under_way);
    do
        code = switch_try_done(l, &err);
    while (code == ERR_AGAIN);
    CHECK_OK(code);
}

static void check_seen(struct race *race, struct repl_lab *l)
{
    struct err err = {0};

    for (int object = 0; object < OBJECTS; object++) {
        struct thing thing = {.kind = THING_OBJECT, .bucket = STR("photos")};
        struct vector v = {0};
        thing.object = arena_fmt(&l->a, "o%d", object);
        CHECK_OK(version_read(l->app, &l->a, &thing, &v, &err));
        for (int side = 0; side < SIDES; side++)
            CHECK_INT(atomic_load(&race->seen[side][object]),
                      vector_at(&v, &(struct place){.storage = str_z(sides[side])}));
    }
}

TEST_FOUR(switch_race, every_change_of_either_side_has_a_task_that_saw_it)
{
    struct race race = {.f = f, .record = true, .work = true};
    struct thread recorders[RECORDERS], workers[WORKERS];
    struct repl_lab l;
    struct err err = {0};
    pthread_rwlockattr_t kind; /* recorders that take turns would let nobody write */

    pthread_rwlockattr_init(&kind);
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&race.under_way, &kind);
    pthread_rwlockattr_destroy(&kind);
    switch_open(&l, f);
    for (int i = 0; i < RECORDERS; i++)
        CHECK_OK(thread_start(&recorders[i], "recorder", 0, record_all, &race, &err));
    for (int i = 0; i < WORKERS; i++)
        CHECK_OK(thread_start(&workers[i], "worker", 0, work, &race, &err));
    wait_for(&race, 0, 50);
    switch_planned(&l, SWITCH_LIVE);
    wait_for(&race, 0, 80);
    CHECK_OK(switch_try_begin(&l, &err));
    wait_for(&race, 1, 80);
    CHECK_OK(switch_try_abort(&l, &err));
    end_switch(&race, &l);
    atomic_store(&race.record, false);
    for (int i = 0; i < RECORDERS; i++)
        thread_join(&recorders[i]);
    atomic_store(&race.work, false);
    for (int i = 0; i < WORKERS; i++)
        thread_join(&workers[i]);
    check_seen(&race, &l);
    struct replication_status s = repl_status(&l, "u photos main backup");
    CHECK_INT(s.events, s.events_done);
    check_switch(&l, "");
    pthread_rwlock_destroy(&race.under_way);
    repl_close(&l);
}
