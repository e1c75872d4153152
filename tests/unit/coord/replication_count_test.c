/* Counters against tasks, over both engines: what another tool deletes is noticed, and nothing else
 * is (docs/replication.md, P8). */
#include "os/thread.h"
#include "base/clock.h"
#include "unit/coord/replication_lab.h"

#include <stdio.h>

static const char R[] = "u photos main backup";
static const char LIST[] = "migrate_bucket_list_obj", COPY[] = "migrate_obj_copy1";

struct heard {
    int gaps;
    struct replication_gap last;
};

static void told(void *ctx, const struct replication_gap *gap)
{
    struct heard *h = ctx;

    h->gaps++;
    h->last = *gap;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static struct task begin_task(struct arena *a, const struct replication_id *id)
{
    return (struct task){.type = STR("replication:resync"),
                         .id = arena_fmt(a, "resync:" STR_FMT, STR_ARG(id->bucket)),
                         .queue = str_z(LIST)};
}

/* `idle_ms` below 0: whoever it was heard of. */
static struct heard recount(struct repl_lab *l, int64_t idle_ms, size_t looked)
{
    struct heard h = {0};
    const struct replication_recount o = {
        .idle_ms = idle_ms, .first = begin_task, .told = told, .ended = never, .ctx = &h};
    struct err err = {0};
    size_t count = 0;

    CHECK_OK(replication_recount(l->r, &o, &count, &err));
    CHECK_INT(count, looked);
    return h;
}

static struct listed listed(struct repl_lab *l, const char *kind, const char *queue,
                            const char *name)
{
    return (struct listed){.task = {.type = str_z(kind),
                                    .id = arena_fmt(&l->a, "%s:%s", kind, name),
                                    .queue = str_z(queue)},
                           .listing = strcmp(kind, "list") == 0,
                           .prefix = strcmp(kind, "list") == 0 ? str_z(name) : STR_EMPTY,
                           .bytes = 10,
                           .objects = strcmp(name, "many") == 0 ? 7 : 0};
}

/* One of each: a listing; copies that wait, failed for good, are of seven objects; changes that
 * wait and that failed for good. */
static void fill(struct repl_lab *l)
{
    struct replication_id id = repl_id(l, R);
    struct listed first = listed(l, "list", LIST, ""),
                  items[4] = {listed(l, "copy", COPY, "failed"), listed(l, "copy", COPY, "one"),
                              listed(l, "copy", COPY, "many"), listed(l, "list", LIST, "sub/")};
    struct task t, root;
    struct err err = {0};

    repl_add(l, R);
    CHECK(repl_take(l, "events1", &t));
    CHECK_OK(replication_list(l->r, &id, &t, &first.task, &err));
    CHECK(repl_take(l, LIST, &root));
    struct listed_page p = {.id = id, .task = &root, .items = items, .count = 4};
    CHECK_OK(replication_page(l->r, &p, &err));
    CHECK(repl_take(l, COPY, &t));
    CHECK_OK(queue_archive(l->tasks, &t, STR("why"), &err));
    repl_record(l, "main", "photos", "bad");
    CHECK(repl_take(l, "events1", &t));
    CHECK_OK(queue_archive(l->tasks, &t, STR("why"), &err));
    repl_record(l, "main", "photos", "later");
    CHECK(repl_take(l, "events1", &t));
    CHECK_OK(queue_retry(l->tasks, &t, 3600, true, STR("why"), &err));
    repl_record(l, "main", "photos", "k");
}

/* As Asynq's inspector does: the hash and where it stands, no more. */
static void asynq_delete(struct repl_lab *l, const char *queue, const char *id, const char *state)
{
    char line[512];
    const char *got;

    if (strcmp(state, "pending") == 0)
        snprintf(line, sizeof(line), "LREM asynq:{%s}:pending 0 %s", queue, id);
    else
        snprintf(line, sizeof(line), "ZREM asynq:{%s}:%s %s", queue, state, id);
    check_reply(l->queue, line, "1");
    snprintf(line, sizeof(line), "DEL asynq:{%s}:t:%s", queue, id);
    CHECK_INT(ask(l->queue, line, &got), 0);
    CHECK_STR(str_z(got), STR("1"));
}

TEST_FOUR(replication_count, counters_that_are_the_tasks_are_left_alone)
{
    struct repl_lab l;

    repl_open(&l, f);
    fill(&l);
    repl_add(&l, "u quiet main backup");
    repl_drain(&l, "events2");
    CHECK_INT(recount(&l, -10000, 2).gaps, 0);
    CHECK_INT(recount(&l, MS_PER_MINUTE, 0).gaps, 0); /* they were heard of a moment ago */
    check_reply(l.config,
                "HMGET p:repl_st:u:photos:main:backup obj_listed obj_failed listings events",
                "[\"9\", \"1\", \"1\", \"3\"]");
    repl_close(&l);
}

/* queue, id, state; what is missing: copies, listings, changes. */
static const struct deleted {
    const char *queue, *id, *state;
    int copies, listings, events;
} deleted[] = {
    {"migrate_obj_copy1", "copy:one", "pending", 1, 0, 0},
    {"migrate_obj_copy1", "copy:many", "pending", 7, 0, 0},
    {"migrate_bucket_list_obj", "list:sub/", "pending", 0, 1, 0},
    {"events1", "object:sync|u:photos:main:backup|photos:k", "pending", 0, 0, 1},
    {"events1", "object:sync|u:photos:main:backup|photos:later", "retry", 0, 0, 1},
    {"events1", "object:sync|u:photos:main:backup|photos:bad", "archived", 0, 0, 1},
};

static void check_deleted(struct four *f, const struct deleted *d)
{
    struct repl_lab l;
    struct heard h;

    repl_open(&l, f);
    fill(&l);
    asynq_delete(&l, d->queue, d->id, d->state);
    h = recount(&l, -10000, 1);
    CHECK_INT(h.gaps, 1);
    CHECK_INT(h.last.outcome, 0);
    CHECK_INT(h.last.copies, d->copies);
    CHECK_INT(h.last.listings, d->listings);
    CHECK_INT(h.last.events, d->events);
    check_reply(l.config,
                "HMGET p:repl_st:u:photos:main:backup obj_listed listings events listing_started",
                "[\"0\", \"1\", \"0\", \"0\"]");
    check_reply(l.queue, "HGET asynq:{migrate_bucket_list_obj}:t:resync:photos state",
                "\"pending\"");
    CHECK_INT(recount(&l, -10000, 1).gaps, 0); /* once */
    repl_remove(&l, R);
    repl_close(&l);
}

TEST_FOUR(replication_count, a_task_that_another_tool_deleted_begins_the_copy_anew_once)
{
    const char *got;

    for (size_t i = 0; i < ARRAY_SIZE(deleted); i++) {
        check_deleted(f, &deleted[i]);
        for (int db = 0; db < 4; db++)
            CHECK_INT(ask(f->stores[db], "FLUSHDB", &got), 0);
    }
}

TEST_FOUR(replication_count, a_copy_that_another_tool_gave_up_or_ran_again_is_noticed)
{
    struct repl_lab l;
    struct heard h;
    const char *got;

    repl_open(&l, f);
    fill(&l);
    /* asynq task run: it counts as failed and runs */
    check_reply(l.queue, "ZREM asynq:{migrate_obj_copy1}:archived copy:failed", "1");
    check_reply(l.queue, "HSET asynq:{migrate_obj_copy1}:t:copy:failed state pending", "0");
    CHECK_INT(ask(l.queue, "LPUSH asynq:{migrate_obj_copy1}:pending copy:failed", &got), 0);
    h = recount(&l, -10000, 1);
    CHECK_INT(h.gaps, 1);
    CHECK_INT(h.last.copies, -1);
    CHECK_INT(h.last.outcome, 0);
    CHECK_INT(repl_status(&l, R).failed, 0);
    CHECK_INT(repl_status(&l, R).listed, 9);
    CHECK_INT(recount(&l, -10000, 1).gaps, 0);
    /* asynq task archive: it was given up, and counts for nothing */
    check_reply(l.queue, "LREM asynq:{migrate_obj_copy1}:pending 0 copy:one", "1");
    check_reply(l.queue, "HSET asynq:{migrate_obj_copy1}:t:copy:one state archived", "0");
    check_reply(l.queue, "ZADD asynq:{migrate_obj_copy1}:archived 1 copy:one", "1");
    h = recount(&l, -10000, 1);
    CHECK_INT(h.last.copies, 1);
    CHECK_INT(h.last.outcome, 0);
    CHECK_INT(repl_status(&l, R).listed, 0);
    repl_close(&l);
}

TEST_FOUR(replication_count, one_that_cannot_be_begun_anew_is_told_of_and_left)
{
    struct replication_id id;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    fill(&l);
    id = repl_id(&l, R);
    asynq_delete(&l, "events1", "object:sync|u:photos:main:backup|photos:k", "pending");
    check_reply(l.config, "HSET p:switch:u:photos lastStatus in_progress", "1");
    CHECK_INT(recount(&l, -10000, 1).last.outcome, ERR_CONFLICT);
    check_reply(l.config, "DEL p:switch:u:photos", "1");
    CHECK_OK(replication_archive(l.r, &id, &err));
    CHECK_INT(recount(&l, -10000, 1).last.outcome, ERR_CONFLICT);
    CHECK_INT(repl_status(&l, R).events, 3);
    repl_close(&l);
}

/* --- while others work --- */

enum { RECORDS = 300 };

struct busy {
    struct four *f;
    _Atomic(bool) recorded, done;
};

static void record_many(void *ctx)
{
    struct busy *b = ctx;
    struct repl_lab l;
    char name[16];

    repl_open(&l, b->f);
    for (int i = 0; i < RECORDS; i++) {
        snprintf(name, sizeof(name), "o%d", i % 20);
        repl_record(&l, "main", "photos", name);
    }
    repl_close(&l);
    atomic_store(&b->recorded, true);
}

/* Every third fails, and waits to be tried again at once: tasks go through all states. */
static void work_off(void *ctx)
{
    struct busy *b = ctx;
    struct repl_lab l;
    struct task t;
    struct err err = {0};
    struct str name = STR("events1");
    size_t moved, n = 0;

    repl_open(&l, b->f);
    struct store_args names = {&name, 1};
    while (!atomic_load(&b->recorded) ||
           repl_status(&l, R).events > repl_status(&l, R).events_done) {
        if (repl_take(&l, "events1", &t))
            CHECK_OK(n++ % 3 ? queue_done(l.tasks, &t, &err)
                             : queue_retry(l.tasks, &t, 0, false, STR("later"), &err));
        CHECK_OK(queue_forward(l.tasks, &names, &moved, &err));
        arena_reset(&l.a);
    }
    repl_close(&l);
    atomic_store(&b->done, true);
}

TEST_FOUR(replication_count, tasks_that_move_meanwhile_are_not_missed)
{
    struct busy b = {.f = f};
    struct thread recorder, worker;
    struct repl_lab l;
    struct err err = {0};
    struct heard h = {0};
    const struct replication_recount o = {
        .idle_ms = -10000, .first = begin_task, .told = told, .ended = never, .ctx = &h};
    size_t looked;

    repl_open(&l, f);
    repl_add(&l, R);
    repl_drain(&l, "events1");
    CHECK_OK(thread_start(&recorder, "record", 0, record_many, &b, &err));
    CHECK_OK(thread_start(&worker, "work", 0, work_off, &b, &err));
    while (!atomic_load(&b.done)) {
        CHECK_OK(replication_recount(l.r, &o, &looked, &err));
        CHECK(h.gaps == 0 || h.last.outcome == ERR_NOT_FOUND); /* it has moved: no word of it */
    }
    thread_join(&recorder);
    thread_join(&worker);
    check_reply(l.config, "HEXISTS p:repl_st:u:photos:main:backup resynced_at", "0");
    repl_close(&l);
}
