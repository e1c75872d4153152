/* Tasks of the queue, each added, taken and done.
 *
 *     bench_queue URL MODE SECONDS THREADS
 *
 * MODE worker: coord/worker with a handler that does nothing, and tasks added one at a time by as
 * many threads as it has. MODE scripts: the same scripts of the same tasks by themselves, in
 * pipelines of 32, as fast as this Redis runs them. Prints ops (tasks), errors, seconds, cpu (of
 * this process). */
#include "base/clock.h"
#include "coord/queue_int.h"
#include "replica/tasks/tasks.h"
#include "coord/worker.h"
#include "os/thread.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PIPELINE = 32, AHEAD_MAX = 2000, THREADS_MAX = 64, ARGS_MAX = 16 };

struct bench {
    struct store *store;
    struct queue *queue;
    uint64_t until_ns;
    _Atomic(uint64_t) added, done;
};

struct adder {
    struct thread thread;
    struct bench *bench;
};

static void must(int code, const struct err *err)
{
    if (code < 0) {
        fprintf(stderr, "%s\n", err->text);
        exit(2);
    }
}

static struct task task_of(struct arena *a, uint64_t n)
{
    return (struct task){
        .type = STR("object:sync"),
        .id = arena_fmt(a, "object:sync|root:box:main:backup|box:%08llu", (unsigned long long)n),
        .queue = STR("events1"),
        .payload = STR("{\"FromStorage\":\"main\",\"ToStorage\":\"backup\",\"ToBucket\":null,"
                       "\"User\":\"root\",\"Object\":{\"Bucket\":\"box\",\"Name\":\"00000000\","
                       "\"Version\":\"\"}}")};
}

/* --- by the worker --- */

static int nothing(struct task_run *run, struct err *err)
{
    struct bench *b = run->ctx;

    (void)err;
    atomic_fetch_add(&b->done, 1);
    return 0;
}

/* So many ahead that the worker never waits for them. */
static void add_main(void *ctx)
{
    struct bench *b = ((struct adder *)ctx)->bench;
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    while (clock_mono_ns() < b->until_ns) {
        if (atomic_load(&b->added) > atomic_load(&b->done) + AHEAD_MAX) {
            sched_yield();
            continue;
        }
        struct task t = task_of(&a, atomic_fetch_add(&b->added, 1));
        must(queue_add(b->queue, &t, 0, &err), &err);
        arena_reset(&a);
    }
    arena_release(&a);
}

static uint64_t run_worker(struct bench *b, size_t threads)
{
    struct task_handler handler = {"object:sync", nothing, b};
    struct worker_options o = {.queue = b->queue,
                               .queues = tasks_queues,
                               .queue_count = TASKS_QUEUES,
                               .handlers = &handler,
                               .handler_count = 1,
                               .threads = threads};
    struct adder adders[THREADS_MAX];
    struct worker *w = NULL;
    struct err err = {0};

    must(worker_start(&w, &o, &err), &err);
    for (size_t i = 0; i < threads; i++) {
        adders[i].bench = b;
        must(thread_start(&adders[i].thread, "add", 0, add_main, &adders[i], &err), &err);
    }
    for (size_t i = 0; i < threads; i++)
        thread_join(&adders[i].thread);
    uint64_t done = atomic_load(&b->done);
    worker_stop(w);
    return done;
}

/* --- by the scripts alone --- */

struct batch {
    struct arena *a;
    struct str args[PIPELINE][ARGS_MAX];
    struct store_args commands[PIPELINE];
};

static struct str *begin_script(struct batch *b, size_t i, enum coord_script which)
{
    b->args[i][0] = STR("EVALSHA");
    b->args[i][1] = str_z(coord_script(which)->sha1);
    b->args[i][2] = STR("0");
    return &b->args[i][3];
}

static void send_batch(struct bench *bench, struct batch *b, size_t args)
{
    struct reply *reply;
    struct err err = {0};

    for (size_t i = 0; i < PIPELINE; i++)
        b->commands[i] = (struct store_args){b->args[i], 3 + args};
    must(store_pipeline(bench->store, b->a, &reply, b->commands, PIPELINE, &err), &err);
    for (size_t i = 0; i < PIPELINE; i++) {
        if (reply->items[i].type == REPLY_ERROR) {
            fprintf(stderr, STR_FMT "\n", STR_ARG(reply->items[i].str));
            exit(2);
        }
    }
}

static void run_batch(struct bench *bench, struct batch *b, uint64_t first)
{
    struct str day = queue_day(b->a), ids[PIPELINE];
    struct err err = {0};

    for (size_t i = 0; i < PIPELINE; i++) {
        struct task t = task_of(b->a, first + i);
        struct str *args = begin_script(b, i, SCRIPT_queue_add);
        must(queue_task_args(b->a, &t, 0, args, &err), &err);
        args[3] = STR("0");
        args[4] = STR("");
        args[5] = STR("0");
        ids[i] = t.id;
    }
    send_batch(bench, b, 6);
    for (size_t i = 0; i < PIPELINE; i++) {
        struct str *args = begin_script(b, i, SCRIPT_queue_take);
        args[0] = STR("30");
        args[1] = STR("token");
        args[2] = STR("events1");
    }
    send_batch(bench, b, 3);
    for (size_t i = 0; i < PIPELINE; i++) {
        const struct str end[] = {STR("events1"),   ids[i], STR("done"),    STR(""),     STR("0"),
                                  STR("processed"), day,    STR("7776000"), STR("token")};
        memcpy(begin_script(b, i, SCRIPT_queue_end), end, sizeof(end));
    }
    send_batch(bench, b, 9);
}

/* One connection keeps a Redis busy: it runs one script at a time. */
static uint64_t run_scripts(struct bench *bench)
{
    struct arena a = ARENA_INIT(0);
    struct batch *b = xcalloc(1, sizeof(*b));
    struct task first = task_of(&a, UINT32_MAX), taken;
    struct str queue = STR("events1");
    struct err err = {0};
    uint64_t count = 0;

    must(queue_add(bench->queue, &first, 0, &err), &err); /* loads the scripts */
    must(queue_take(bench->queue, &a, &queue, 1, &taken, &err), &err);
    must(queue_done(bench->queue, &taken, &err), &err);
    b->a = &a;
    for (; clock_mono_ns() < bench->until_ns; count += PIPELINE) {
        run_batch(bench, b, count);
        arena_reset(&a);
    }
    arena_release(&a);
    free(b);
    return count;
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct arena a = ARENA_INIT(0);
    struct reply *reply;
    struct err err = {0};

    if (argc != 5)
        return 2;
    size_t threads = strtoul(argv[4], NULL, 10);
    if (threads == 0 || threads > THREADS_MAX)
        return 2;
    struct store_redis_options o = {.url = str_z(argv[1]), .number = 1};
    must(store_open_redis(&b.store, &o, &err), &err);
    must(store_call(b.store, &a, &reply, &err, STR("FLUSHDB")), &err);
    b.queue = queue_new(b.store);
    double cpu = cpu_seconds();
    uint64_t began = clock_mono_ns();
    b.until_ns = began + (uint64_t)(strtod(argv[3], NULL) * 1e9);
    uint64_t count = strcmp(argv[2], "worker") == 0 ? run_worker(&b, threads) : run_scripts(&b);
    printf("ops %llu\nerrors 0\nseconds %.6f\ncpu %.3f\n", (unsigned long long)count,
           (double)(clock_mono_ns() - began) / 1e9, cpu_seconds() - cpu);
    queue_free(b.queue);
    store_close(b.store);
    arena_release(&a);
    return 0;
}
