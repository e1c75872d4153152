/* Threads that take tasks from the queue and run them. docs/queue.md has the invariants (Q1 to
 * Q9). */
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
    STORE_DOWN_MS = 1000, /* pause before a store that failed is asked again */
    RUN_ARENA_MAX = 64 * 1024 * 1024,
};
#define LEASE_NS ((uint64_t)QUEUE_LEASE_S * NS_PER_S)

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

/* Draws a random order of all queues (Q8). Queue i comes first with the probability weight i / sum
 * of the weights, and the same holds for the queues that remain. To get this, each queue draws an
 * exponentially distributed time with its weight as the rate, and the queues are sorted by these
 * times. The order is in the arena; NULL: the arena is full. */
static struct str *worker_draw_order(const struct worker *w, struct arena *a)
{
    struct str *out = arena_array(a, w->o.queue_count, sizeof(*out));
    double *when = arena_array(a, w->o.queue_count, sizeof(*when));

    if (!out || !when)
        return NULL;
    for (size_t i = 0; i < w->o.queue_count; i++) {
        double u = ((double)(random_u64() >> 11) + 1) / 9007199254740993.0;
        double t = -log(u) / w->o.queues[i].weight;
        size_t at = i;
        for (; at > 0 && when[at - 1] > t; at--) {
            when[at] = when[at - 1];
            out[at] = out[at - 1];
        }
        when[at] = t;
        out[at] = w->names[i];
    }
    return out;
}

static const struct task_handler *worker_handler(const struct worker *w, struct str type)
{
    for (size_t i = 0; i < w->o.handler_count; i++)
        if (str_eq(type, str_z(w->o.handlers[i].type)))
            return &w->o.handlers[i];
    return NULL;
}

/* Writes the outcome of a task's run to the queue. `code` is the handler's result, and `why` is the
 * handler's error. */
static int running_write_outcome(struct worker *w, const struct running *r, int code,
                                 const struct err *why, struct err *err)
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
        return queue_retry(w->o.queue, t, -1, true, STR("the task took longer than its timeout"),
                           err);
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

/* Tries to write the outcome as long as the lease lasts (Q2, Q5). After that the task may belong to
 * another worker. */
static int running_write_while_leased(struct worker *w, struct running *r, int code,
                                      const struct err *why, struct err *err)
{
    int rc = ERR_UNAVAILABLE;

    for (;;) {
        uint64_t now = clock_mono_ns();
        if (now > atomic_load(&r->lease_until_ns))
            return err_set(err, ERR_NOT_FOUND, "the lease has ended");
        rc = running_write_outcome(w, r, code, why, err);
        if (rc == 0 || rc == ERR_NOT_FOUND)
            return rc;
        mutex_lock(&w->lock);
        cond_wait_until(&w->idle, &w->lock, now + STORE_DOWN_MS * NS_PER_MS);
        mutex_unlock(&w->lock);
    }
}

static void running_settle(struct worker *w, struct running *r, int code, const struct err *why)
{
    struct err err = {0};

    if (running_write_while_leased(w, r, code, why, &err) < 0)
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

static void running_run(struct worker *w, struct running *r)
{
    const struct task_handler *h = worker_handler(w, r->task.type);
    struct err err = {0};
    int code;

    if (!h) {
        code = err_set(&err, ERR_INVALID, "this process cannot run tasks of type " STR_FMT,
                       STR_ARG(r->task.type));
    } else {
        r->run.ctx = h->ctx;
        code = h->fn(&r->run, &err);
    }
    running_settle(w, r, code, &err);
}

static void running_enter(struct worker *w, struct running *r)
{
    const struct task *t = &r->task;

    r->run.task = t;
    r->run.log = log_with(w->o.log, log_s("task", t->type));
    r->run.log = log_with(&r->run.log, log_s("id", t->id));
    r->started_ms = clock_wall_ms();
    if (t->timeout_s > 0)
        r->deadline_ns = r->started_ns + (uint64_t)t->timeout_s * NS_PER_S;
    mutex_lock(&w->lock);
    if (w->stop) /* the stop began while the task was being taken */
        atomic_store(&r->ended, END_STOP);
    list_push(&w->running, &r->node);
    w->busy++;
    if (w->hints < w->o.threads)
        w->hints++; /* there may be more tasks, so another thread looks too */
    cond_signal(&w->work);
    mutex_unlock(&w->lock);
}

static void running_leave(struct worker *w, struct running *r)
{
    mutex_lock(&w->lock);
    list_remove(&r->node);
    w->busy--;
    cond_broadcast(&w->idle);
    mutex_unlock(&w->lock);
}

/* Takes a task and runs it. Returns false when no task could be taken. */
static bool worker_run_one(struct worker *w, struct arena *a)
{
    struct running r = {.run = {.arena = a}, .started_ns = clock_mono_ns()};
    struct err err = {0};

    arena_reset(a);
    const struct str *order = worker_draw_order(w, a);
    BUG_ON(!order); /* cannot happen: the arena is empty and large */
    atomic_init(&r.lease_until_ns, r.started_ns + LEASE_NS);
    atomic_init(&r.ended, END_NOT);
    int code = queue_take(w->o.queue, a, order, w->o.queue_count, &r.task, &err);
    if (code < 0 && code != ERR_NOT_FOUND && code != ERR_STORE)
        log_warn(w->o.log, "worker.take", log_z("error", err.text));
    if (code < 0)
        return false;
    running_enter(w, &r);
    if (atomic_load(&r.ended) == END_STOP)
        running_settle(w, &r, ERR_SHUTDOWN, &err);
    else
        running_run(w, &r);
    running_leave(w, &r);
    return true;
}

static bool worker_await(struct worker *w)
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

static bool worker_is_stopping(struct worker *w)
{
    mutex_lock(&w->lock);
    bool stop = w->stop;
    mutex_unlock(&w->lock);
    return stop;
}

static void task_thread(void *ctx)
{
    struct worker *w = ctx;
    struct arena a = ARENA_INIT(RUN_ARENA_MAX);

    while (worker_await(w))
        while (!worker_is_stopping(w) && worker_run_one(w, &a))
            ;
    arena_release(&a);
}

/* --- start and stop --- */

static void worker_on_work(void *ctx, struct str channel, struct str message)
{
    worker_hint(ctx);
}

static void worker_on_cancel(void *ctx, struct str channel, struct str message)
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

static void worker_name_itself(struct worker *w)
{
    char uuid[ID_HEX_LEN + 1];

    id_hex(uuid);
    if (gethostname(w->host, sizeof(w->host) - 1) != 0)
        snprintf(w->host, sizeof(w->host), "localhost");
    snprintf(w->id, sizeof(w->id), "%s:%d:%s", w->host, (int)getpid(), uuid);
}

static int worker_start_threads(struct worker *w, struct err *err)
{
    struct store *s = queue_store(w->o.queue);
    int code = store_subscribe(&w->wake_up, s, QUEUE_CHANNEL, worker_on_work, w, err);

    if (code == 0)
        code = store_subscribe(&w->cancel, s, QUEUE_CANCEL, worker_on_cancel, w, err);
    if (code == 0)
        code = loop_start(&w->keeper, &(struct loop_options){"task-keeper", worker_keep, w}, err);
    for (size_t i = 0; code == 0 && i < w->o.threads; i++)
        code = thread_start(&w->threads[i], "task", STACK_BYTES, task_thread, w, err);
    return code;
}

static void worker_copy_queues(struct worker *w, const struct worker_options *o)
{
    struct queue_weight *queues = xcalloc(o->queue_count, sizeof(*queues));

    w->names = xcalloc(o->queue_count, sizeof(*w->names));
    for (size_t i = 0; i < o->queue_count; i++) {
        queues[i] = o->queues[i];
        w->names[i] = str_z(queues[i].name);
        BUG_ON(queues[i].weight < 1);
        for (size_t j = 0; j < i; j++)
            BUG_ON(str_eq(w->names[j], w->names[i]));
    }
    w->o.queues = queues;
}

static void worker_copy_handlers(struct worker *w, const struct worker_options *o)
{
    struct task_handler *handlers = xcalloc(o->handler_count, sizeof(*handlers));

    for (size_t i = 0; i < o->handler_count; i++) {
        handlers[i] = o->handlers[i];
        for (size_t j = 0; j < i; j++)
            BUG_ON(strcmp(handlers[j].type, handlers[i].type) == 0);
    }
    w->o.handlers = handlers;
}

int worker_start(struct worker **out, const struct worker_options *o, struct err *err)
{
    struct worker *w = xcalloc(1, sizeof(*w));

    w->o = *o;
    worker_copy_queues(w, o);
    worker_copy_handlers(w, o);
    w->o.threads = o->threads ? o->threads : THREADS;
    w->o.grace_ms = o->grace_ms ? o->grace_ms : GRACE_MS;
    w->started_ms = clock_wall_ms();
    w->threads = xcalloc(w->o.threads, sizeof(*w->threads));
    worker_name_itself(w);
    mutex_init(&w->lock, "worker");
    cond_init(&w->work);
    cond_init(&w->idle);
    list_init(&w->running);
    w->hints = w->o.threads;
    int code = worker_start_threads(w, err);
    if (code < 0) {
        worker_stop(w);
        return code;
    }
    *out = w;
    return 0;
}

/* Lets running tasks finish for `grace_ms`, then ends them. */
static void worker_drain(struct worker *w)
{
    uint64_t deadline = clock_mono_ns() + w->o.grace_ms * NS_PER_MS;

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
    worker_drain(w);
    for (size_t i = 0; i < w->o.threads; i++)
        thread_join(&w->threads[i]);
    worker_keep_stop(w);
    store_unsubscribe(w->wake_up);
    store_unsubscribe(w->cancel);
    cond_release(&w->work);
    cond_release(&w->idle);
    mutex_release(&w->lock);
    free((void *)w->o.queues);
    free((void *)w->o.handlers);
    free(w->names);
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
