/* Removed and resynced replications leave nothing behind (P5), over both engines of the store. */
#include "replica/clean.h"
#include "replica/first.h"
#include "replica/tasks/tasks.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdio.h>

static const struct replication_id photos = {
    {"u", 1}, {"photos", 6}, {"a", 1}, {"b", 1}, {NULL, 0}};

struct lab {
    struct queue *queue;
    struct replications *replications;
    struct cleaner cleaner;
    struct worker *worker;
    _Atomic(size_t) created; /* bucket:create tasks that ran */
};

static int count_create(struct task_run *run, struct err *err)
{
    struct lab *l = run->ctx;

    atomic_fetch_add(&l->created, 1);
    return 0;
}

static void lab_open(struct lab *l, struct four *f)
{
    struct replications_options o = {
        .app = f->stores[DB_APP], .queue = f->stores[DB_QUEUE], .config = f->stores[DB_CONFIG]};
    struct err err = {0};

    *l = (struct lab){.queue = queue_new(f->stores[DB_QUEUE])};
    CHECK_OK(replications_open(&l->replications, &o, &err));
    l->cleaner = (struct cleaner){l->replications, f->stores[DB_APP], l->queue};
}

static void lab_work(struct lab *l)
{
    const struct task_handler handlers[] = {
        {"replication:clean", clean_handle, &l->cleaner},
        {"replication:resync", resync_handle, &l->cleaner},
        {"bucket:create", count_create, l},
    };
    struct worker_options o = {.queue = l->queue,
                               .queues = tasks_queues,
                               .queue_count = TASKS_QUEUES,
                               .handlers = handlers,
                               .handler_count = ARRAY_SIZE(handlers),
                               .threads = 2,
                               .grace_ms = 1};
    struct err err = {0};

    CHECK_OK(worker_start(&l->worker, &o, &err));
}

static void lab_close(struct lab *l)
{
    worker_stop(l->worker);
    replications_close(l->replications);
    queue_free(l->queue);
}

static void add(struct lab *l, const struct replication_id *id)
{
    struct replication_new n = {.id = *id};
    struct err err = {0};

    CHECK_OK(replication_add(l->replications, &n, id->from, &err));
}

/* Makes a task of the replication that failed for good. */
static void fail_one(struct lab *l, const char *id, const char *to)
{
    const struct str name = STR("events1");
    struct arena a = {0};
    struct task t;
    struct err err = {0};
    char payload[256];

    snprintf(payload, sizeof(payload),
             "{\"Object\":{\"Bucket\":\"photos\",\"Name\":\"k\"},\"FromStorage\":\"a\","
             "\"ToStorage\":\"%s\",\"ToBucket\":null,\"User\":\"u\"}",
             to);
    struct task failed = {
        .type = STR("object:sync"), .payload = str_z(payload), .id = str_z(id), .queue = name};
    CHECK_OK(queue_add(l->queue, &failed, 0, &err));
    CHECK_OK(queue_take(l->queue, &a, &name, 1, &t, &err));
    CHECK_OK(queue_archive(l->queue, &t, STR("why"), &err));
    arena_release(&a);
}

static void clean(struct lab *l)
{
    struct arena a = {0};
    struct err err = {0};
    struct task t = first_task_clean(&a, &photos);

    CHECK_OK(queue_add(l->queue, &t, 0, &err));
    arena_release(&a);
}

/* Waits until the command answers this; the test's own time limit bounds it. */
static void await_reply(struct store *s, const char *line, const char *want)
{
    const char *got;

    do {
        CHECK_INT(ask(s, line, &got), 0);
    } while (strcmp(got, want) != 0);
}

TEST_FOUR(clean, a_removed_replication_leaves_neither_vectors_nor_tasks)
{
    struct store *app = f->stores[DB_APP], *queue = f->stores[DB_QUEUE];
    struct lab l;
    struct err err = {0};

    lab_open(&l, f);
    add(&l, &photos);
    check_reply(app, "HSET photos:k a 3 b 3 c 2", "3");
    check_reply(app, "HSET b:photos a 1 b 1", "2");
    check_reply(app, "HSET other:k a 3 b 3", "2");
    fail_one(&l, "ours", "b");
    fail_one(&l, "theirs", "c");
    CHECK_OK(replication_remove(l.replications, &photos, &err));
    clean(&l);
    lab_work(&l);
    await_reply(queue, "EXISTS asynq:{api}:t:clean:u:photos:a:b", "0");
    check_reply(app, "HEXISTS photos:k b", "0");
    check_reply(app, "HGET photos:k c", "\"2\"");
    check_reply(app, "HEXISTS b:photos b", "0");
    check_reply(app, "HGET other:k b", "\"3\"");
    check_reply(queue, "EXISTS asynq:{events1}:t:ours", "0");
    check_reply(queue, "EXISTS asynq:{events1}:t:theirs", "1");
    lab_close(&l);
}

TEST_FOUR(clean, one_that_was_made_anew_keeps_its_tasks)
{
    struct store *app = f->stores[DB_APP], *queue = f->stores[DB_QUEUE];
    struct lab l;

    lab_open(&l, f);
    add(&l, &photos);
    check_reply(app, "HSET photos:k a 3 b 3", "2");
    fail_one(&l, "ours", "b");
    clean(&l);
    lab_work(&l);
    await_reply(queue, "EXISTS asynq:{api}:t:clean:u:photos:a:b", "0");
    check_reply(app, "HEXISTS photos:k b", "0");
    check_reply(queue, "EXISTS asynq:{events1}:t:ours", "1");
    lab_close(&l);
}

TEST_FOUR(clean, a_destination_that_became_a_source_keeps_its_numbers)
{
    static const struct replication_id back = {
        {"u", 1}, {"photos", 6}, {"b", 1}, {"a", 1}, {NULL, 0}};
    struct store *app = f->stores[DB_APP], *queue = f->stores[DB_QUEUE];
    struct lab l;

    lab_open(&l, f);
    add(&l, &back);
    check_reply(app, "HSET photos:k a 3 b 4", "2");
    clean(&l);
    lab_work(&l);
    await_reply(queue, "EXISTS asynq:{api}:t:clean:u:photos:a:b", "0");
    check_reply(app, "HGET photos:k b", "\"4\"");
    lab_close(&l);
}

TEST_FOUR(clean, a_resync_counts_from_nothing_and_begins_with_the_bucket)
{
    struct store *app = f->stores[DB_APP], *config = f->stores[DB_CONFIG];
    struct arena a = {0};
    struct task t = first_task_resync(&a, &photos);
    struct replication_status status;
    struct lab l;
    struct err err = {0};

    lab_open(&l, f);
    add(&l, &photos);
    check_reply(config, "HSET p:repl_st:u:photos:a:b obj_listed 9 obj_done 4 events 7 listings 0",
                "0");
    check_reply(app, "HSET photos:k a 3 b 3", "2");
    CHECK_OK(replication_resync(l.replications, &photos, &t, false, &err));
    CHECK_OK(replication_read(l.replications, &a, &photos, &status, &err));
    CHECK_INT(status.listed + status.done, 0);
    CHECK_INT(status.listings, 1);
    CHECK(!replication_init_done(&status));
    lab_work(&l);
    while (atomic_load(&l.created) == 0)
        ;
    check_reply(app, "HEXISTS photos:k b", "0");
    CHECK_INT(replication_resync(
                  l.replications,
                  &(struct replication_id){STR("u"), STR("none"), STR("a"), STR("b"), STR_EMPTY},
                  &t, false, &err),
              ERR_NOT_FOUND);
    arena_release(&a);
    lab_close(&l);
}
