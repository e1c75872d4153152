/* Threads that take tasks and run them. */
#include "coord/worker_int.h"

#include "base/clock.h"
#include "base/ids.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS = 16,
    GRACE_MS = 5000,
    STACK_BYTES = 512 * 1024,
    PUT_BACK_S = 5,
    STORE_DOWN_MS = 1000, /* before the store is asked again */
    RUN_ARENA_MAX = 64 * 1024 * 1024,
};
#define LEASE_NS ((uint64_t)QUEUE_LEASE_S * 1000000000)

const struct queue_weight queue_weights[] = {
    {"api", 64},
    {"intents", 32},
    {"events6", 28},
    {"events5", 24},
    {"events4", 20},
    {"events3", 16},
    {"events2", 12},
    {"events1", 8},
    {"migrate_obj_copy6", 7},
    {"migrate_obj_copy5", 6},
    {"migrate_obj_copy4", 5},
    {"migrate_obj_copy3", 4},
    {"migrate_obj_copy2", 3},
    {"migrate_obj_copy1", 2},
    {"migrate_bucket_list_obj", 4},
    {"consistency_check", 2},
    {"torrents", 2},
};
const size_t queue_weight_count = ARRAY_SIZE(queue_weights);
_Static_assert(ARRAY_SIZE(queue_weights) <= WORKER_QUEUES_MAX, "worker.names is too small");

bool task_ended(const struct task_run *run)
{
    const struct running *r = container_of(run, struct running, run);

    return atomic_load(&r->ended) != END_NOT || clock_mono_ns() > atomic_load(&r->lease_until_ns);
}

void worker_hint(struct worker *w)
{
    mutex_lock(&w->lock);
    if (w->hints < w->o.threads)
        w->hints++;
    cond_signal(&w->work);
    mutex_unlock(&w->lock);
}

/* Q8: a random order in which a queue comes before others as its weight says. Each gets the time
 * until the first event of a process with its weight as rate: sorted, that is drawing without
 * putting back. */
static void draw_order(const struct worker *w, struct str *out)
{
    double when[WORKER_QUEUES_MAX] = {0};

    for (size_t i = 0; i < queue_weight_count; i++) {
        double u = ((double)(random_u64() >> 11) + 1) / 9007199254740993.0;
        double t = -log(u) / queue_weights[i].weight;
        size_t at = i;
        for (; at > 0 && when[at - 1] > t; at--) {
            when[at] = when[at - 1];
            out[at] = out[at - 1];
        }
        when[at] = t;
        out[at] = w->names[i];
    }
}

static const struct task_handler *handler_of(const struct worker *w, struct str type)
{
    for (size_t i = 0; i < w->o.handler_count; i++)
        if (str_eq(type, str_z(w->handlers[i].type)))
            return &w->handlers[i];
    return NULL;
}

/* What became of the run, written to the queue. */
static int write_outcome(struct worker *w, const struct running *r, int code, const struct err *why,
                         struct err *err)
{
    const struct task *t = &r->task;

    if (code == 0)
        return r->run.done ? 0 : queue_done(w->o.queue, t, err);
    switch ((enum ending_why)atomic_load(&r->ended)) {
    case END_NOT:
        break;
    case END_STOP:
        return queue_requeue(w->o.queue, t, err);
    case END_LOST:
        return err_code(err, ERR_NOT_FOUND);
    case END_LATE:
        return queue_retry(w->o.queue, t, -1, true, STR("its time was over"), err);
    case END_CANCELLED:
        return queue_archive(w->o.queue, t, STR("cancelled"), err);
    }
    if (code == ERR_AGAIN)
        return queue_retry(w->o.queue, t, r->run.put_back_s ? r->run.put_back_s : PUT_BACK_S, false,
                           str_z(why->text), err);
    if (code == ERR_INVALID)
        return queue_archive(w->o.queue, t, str_z(why->text), err);
    return queue_retry(w->o.queue, t, -1, true, str_z(why->text), err);
}

/* Q2, Q5: again and again while the lease lasts; afterwards the task is somebody else's. */
static int write_while_leased(struct worker *w, struct running *r, int code, const struct err *why,
                              struct err *err)
{
    int rc = ERR_UNAVAILABLE;

    for (;;) {
        uint64_t now = clock_mono_ns();
        if (now > atomic_load(&r->lease_until_ns))
            return err_set(err, ERR_NOT_FOUND, "the lease has ended");
        rc = write_outcome(w, r, code, why, err);
        if (rc == 0 || rc == ERR_NOT_FOUND)
            return rc;
        mutex_lock(&w->lock);
        cond_wait_until(&w->idle, &w->lock, now + (uint64_t)STORE_DOWN_MS * 1000000);
        mutex_unlock(&w->lock);
    }
}

static void settle(struct worker *w, struct running *r, int code, const struct err *why)
{
    struct err err = {0};

    if (write_while_leased(w, r, code, why, &err) < 0)
        log_warn(&r->run.log, "task.outcome_lost", log_z("error", err.text));
    if (code == 0)
        atomic_fetch_add(&w->done, 1);
    else if (code == ERR_AGAIN || atomic_load(&r->ended))
        atomic_fetch_add(&w->put_back, 1);
    else
        atomic_fetch_add(&w->failed, 1);
    if (code < 0 && code != ERR_AGAIN && !atomic_load(&r->ended))
        log_warn(&r->run.log, "task.failed", log_z("code", err_name(code)),
                 log_z("error", why->text), log_i("tries", r->task.retried + 1));
}

static void run_task(struct worker *w, struct running *r)
{
    const struct task_handler *h = handler_of(w, r->task.type);
    struct err err = {0};
    int code;

    if (!h) {
        code = err_set(&err, ERR_INVALID, "nobody here knows tasks of type " STR_FMT,
                       STR_ARG(r->task.type));
    } else {
        r->run.ctx = h->ctx;
        code = h->fn(&r->run, &err);
    }
    settle(w, r, code, &err);
}

static void enter(struct worker *w, struct running *r)
{
    const struct task *t = &r->task;

    r->run.task = t;
    r->run.log = log_with(w->o.log, log_s("task", t->type));
    r->run.log = log_with(&r->run.log, log_s("id", t->id));
    r->started_ms = clock_wall_ms();
    if (t->timeout_s > 0)
        r->deadline_ns = r->started_ns + (uint64_t)t->timeout_s * 1000000000;
    mutex_lock(&w->lock);
    if (w->stop) /* it was taken while the stop began */
        atomic_store(&r->ended, END_STOP);
    list_push(&w->running, &r->node);
    w->busy++;
    if (w->hints < w->o.threads)
        w->hints++; /* where one task was there may be more */
    cond_signal(&w->work);
    mutex_unlock(&w->lock);
}

static void leave(struct worker *w, struct running *r)
{
    mutex_lock(&w->lock);
    list_remove(&r->node);
    w->busy--;
    cond_broadcast(&w->idle);
    mutex_unlock(&w->lock);
}

/* One task, if there is one; else false. */
static bool work_once(struct worker *w, struct arena *a)
{
    struct str order[WORKER_QUEUES_MAX];
    struct running r = {.run = {.arena = a}, .started_ns = clock_mono_ns()};
    struct err err = {0};

    draw_order(w, order);
    atomic_init(&r.lease_until_ns, r.started_ns + LEASE_NS);
    atomic_init(&r.ended, END_NOT);
    int code = queue_take(w->o.queue, a, order, queue_weight_count, &r.task, &err);
    if (code < 0 && code != ERR_NOT_FOUND && code != ERR_STORE)
        log_warn(w->o.log, "worker.take", log_z("error", err.text));
    if (code < 0)
        return false;
    enter(w, &r);
    if (atomic_load(&r.ended) == END_STOP)
        settle(w, &r, ERR_SHUTDOWN, &err);
    else
        run_task(w, &r);
    leave(w, &r);
    return true;
}

static bool await_work(struct worker *w)
{
    mutex_lock(&w->lock);
    while (!w->stop && w->hints == 0)
        cond_wait(&w->work, &w->lock);
    if (w->hints)
        w->hints--;
    bool go = !w->stop;
    mutex_unlock(&w->lock);
    return go;
}

static bool stopped(struct worker *w)
{
    mutex_lock(&w->lock);
    bool stop = w->stop;
    mutex_unlock(&w->lock);
    return stop;
}

static void work(void *ctx)
{
    struct worker *w = ctx;
    struct arena a = ARENA_INIT(RUN_ARENA_MAX);

    while (await_work(w))
        while (!stopped(w) && work_once(w, &a))
            arena_reset(&a);
    arena_release(&a);
}

/* --- start and stop --- */

static void on_work(void *ctx, struct str channel, struct str message)
{
    worker_hint(ctx);
}

static void on_cancel(void *ctx, struct str channel, struct str message)
{
    struct worker *w = ctx;

    if (!channel.p)
        return;
    mutex_lock(&w->lock);
    list_each (&w->running, struct running, node, r)
        if (str_eq(r->task.id, message))
            atomic_store(&r->ended, END_CANCELLED);
    mutex_unlock(&w->lock);
}

static void name_itself(struct worker *w)
{
    char uuid[ID_HEX_LEN + 1];

    id_hex(uuid);
    if (gethostname(w->host, sizeof(w->host) - 1) != 0)
        snprintf(w->host, sizeof(w->host), "localhost");
    snprintf(w->id, sizeof(w->id), "%s:%d:%s", w->host, (int)getpid(), uuid);
}

static int start_threads(struct worker *w, struct err *err)
{
    struct store *s = queue_store(w->o.queue);
    int code = store_subscribe(&w->wake_up, s, QUEUE_CHANNEL, on_work, w, err);

    if (code == 0)
        code = store_subscribe(&w->cancel, s, QUEUE_CANCEL, on_cancel, w, err);
    if (code == 0)
        code = thread_start(&w->keeper, "task-keeper", 0, worker_keep, w, err);
    for (size_t i = 0; code == 0 && i < w->o.threads; i++)
        code = thread_start(&w->threads[i], "task", STACK_BYTES, work, w, err);
    return code;
}

int worker_start(struct worker **out, const struct worker_options *o, struct err *err)
{
    struct worker *w = xcalloc(1, sizeof(*w));

    BUG_ON(o->handler_count > WORKER_HANDLERS_MAX);
    w->o = *o;
    memcpy(w->handlers, o->handlers, o->handler_count * sizeof(*o->handlers));
    w->o.threads = o->threads ? o->threads : THREADS;
    w->o.grace_ms = o->grace_ms ? o->grace_ms : GRACE_MS;
    w->started_ms = clock_wall_ms();
    w->threads = xcalloc(w->o.threads, sizeof(*w->threads));
    for (size_t i = 0; i < queue_weight_count; i++)
        w->names[i] = str_z(queue_weights[i].name);
    name_itself(w);
    mutex_init(&w->lock, "worker");
    cond_init(&w->work);
    cond_init(&w->idle);
    list_init(&w->running);
    w->hints = w->o.threads;
    int code = start_threads(w, err);
    if (code < 0) {
        worker_stop(w);
        return code;
    }
    *out = w;
    return 0;
}

/* Those that run may end by themselves until the deadline, then are told to. */
static void drain(struct worker *w)
{
    uint64_t deadline = clock_mono_ns() + w->o.grace_ms * 1000000;

    mutex_lock(&w->lock);
    w->stop = true;
    cond_broadcast(&w->work);
    while (w->busy && cond_wait_until(&w->idle, &w->lock, deadline))
        ;
    list_each (&w->running, struct running, node, r)
        atomic_store(&r->ended, END_STOP);
    bool late = w->busy > 0;
    mutex_unlock(&w->lock);
    if (late && w->o.on_end)
        w->o.on_end(w->o.end_ctx);
}

void worker_stop(struct worker *w)
{
    if (!w)
        return;
    drain(w);
    for (size_t i = 0; i < w->o.threads; i++)
        thread_join(&w->threads[i]);
    mutex_lock(&w->lock);
    w->quit = true;
    cond_broadcast(&w->idle);
    mutex_unlock(&w->lock);
    thread_join(&w->keeper);
    store_unsubscribe(w->wake_up);
    store_unsubscribe(w->cancel);
    cond_release(&w->work);
    cond_release(&w->idle);
    mutex_release(&w->lock);
    free(w->threads);
    free(w);
}

void worker_stats(struct worker *w, struct worker_stats *out)
{
    mutex_lock(&w->lock);
    *out = (struct worker_stats){.threads = w->o.threads, .busy = w->busy};
    mutex_unlock(&w->lock);
    out->done = atomic_load(&w->done);
    out->failed = atomic_load(&w->failed);
    out->put_back = atomic_load(&w->put_back);
}
