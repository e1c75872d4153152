/* The housekeeping of a worker, done by a thread of its own, the keeper. docs/queue.md has the
 * invariants (Q1 to Q9). */
#include "coord/worker_int.h"

#include "base/clock.h"
#include "coord/message.h"
#include "coord/scripts.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    REGISTER_LIFE_S = 10,
    KEEP_ARENA_MAX = 16 * 1024 * 1024,
};
#define LEASE_NS ((uint64_t)QUEUE_LEASE_S * NS_PER_S)

/* Collects the ids and tokens of the running tasks of one queue. */
static struct store_args worker_lease_pairs(struct worker *w, struct arena *a, struct str queue)
{
    size_t n = 0;

    mutex_lock(&w->lock);
    struct str *out = arena_array(a, 2 * w->busy + 1, sizeof(*out));
    list_each (&w->running, struct running, node, r) {
        if (out && str_eq(r->task.queue, queue)) {
            out[n++] = arena_str(a, r->task.id);
            out[n++] = arena_str(a, r->task.token);
        }
    }
    mutex_unlock(&w->lock);
    return (struct store_args){out, arena_error(a) == 0 ? n : 0};
}

static bool store_args_has(const struct store_args *ids, struct str id)
{
    for (size_t i = 0; i < ids->argc; i++)
        if (str_eq(ids->argv[i], id))
            return true;
    return false;
}

static void worker_note_extended(struct worker *w, struct str queue, const struct store_args *asked,
                                 const struct store_args *lost, uint64_t since_ns)
{
    mutex_lock(&w->lock);
    list_each (&w->running, struct running, node, r) {
        if (!str_eq(r->task.queue, queue) || !store_args_has(asked, r->task.id))
            continue;
        if (store_args_has(lost, r->task.id))
            atomic_store(&r->ended, END_LOST);
        else
            atomic_store(&r->lease_until_ns, since_ns + LEASE_NS);
    }
    mutex_unlock(&w->lock);
}

/* Prolongs the leases of the running tasks (Q2). A failure does not lose the leases at once,
 * because they last for two more attempts. */
static void worker_extend_leases(struct worker *w)
{
    for (size_t i = 0; i < w->o.queue_count; i++) {
        struct arena a = ARENA_INIT(KEEP_ARENA_MAX);
        struct store_args asked = worker_lease_pairs(w, &a, w->names[i]), lost = {0};
        struct err err = {0};
        uint64_t since_ns = clock_mono_ns();

        if (asked.argc) {
            if (queue_extend(w->o.queue, &a, w->names[i], &asked, &lost, &err) == 0)
                worker_note_extended(w, w->names[i], &asked, &lost, since_ns);
            else
                log_warn(w->o.log, "worker.extend", log_z("error", err.text));
        }
        arena_release(&a);
    }
}

static void worker_end_late(struct worker *w)
{
    uint64_t now = clock_mono_ns();

    mutex_lock(&w->lock);
    list_each (&w->running, struct running, node, r)
        if (r->deadline_ns && now > r->deadline_ns)
            atomic_store(&r->ended, END_LATE);
    mutex_unlock(&w->lock);
}

typedef int sweep_fn(struct queue *q, const struct store_args *names, size_t *moved,
                     struct err *err);

static void worker_sweep(struct worker *w, sweep_fn *fn, const char *event)
{
    const struct store_args names = {w->names, w->o.queue_count};
    struct err err = {0};
    size_t moved = 1;

    while (moved > 0) {
        if (fn(w->o.queue, &names, &moved, &err) < 0) {
            /* ERR_STORE: the process is halted (coord/installation.h), which was logged. */
            if (err.code != ERR_STORE)
                log_warn(w->o.log, event, log_z("error", err.text));
            return;
        }
    }
}

static void worker_append_running(struct worker *w, struct arena *a, struct str *args,
                                  size_t *count)
{
    struct buf message = {0};

    list_each (&w->running, struct running, node, r) {
        struct worker_info info = {.host = str_z(w->host),
                                   .server_id = str_z(w->id),
                                   .pid = (int)getpid(),
                                   .task = &r->task,
                                   .started_ms = r->started_ms};
        buf_reset(&message);
        worker_message_write(&message, &info);
        args[(*count)++] = arena_str(a, r->task.id);
        args[(*count)++] = arena_str(a, buf_str(&message));
    }
    buf_release(&message);
}

static void worker_register(struct worker *w, bool leaving)
{
    struct arena a = ARENA_INIT(KEEP_ARENA_MAX);
    struct buf message = {0};
    struct reply *reply;
    struct err err = {0};
    size_t count = 0;

    mutex_lock(&w->lock);
    struct server_info info = {.host = str_z(w->host),
                               .id = str_z(w->id),
                               .pid = (int)getpid(),
                               .concurrency = (int)w->o.threads,
                               .active = (int)w->busy,
                               .queues = w->o.queues,
                               .queue_count = w->o.queue_count,
                               .status = w->stop ? "closed" : "active",
                               .started_ms = w->started_ms};
    struct str *args = arena_array(&a, 3 + 2 * w->busy, sizeof(*args));
    if (args) {
        server_message_write(&message, &info);
        args[count++] = str_z(w->id);
        args[count++] = arena_fmt(&a, "%d", REGISTER_LIFE_S);
        if (!leaving) {
            args[count++] = buf_str(&message);
            worker_append_running(w, &a, args, &count);
        }
    }
    mutex_unlock(&w->lock);
    if (arena_error(&a) == 0 &&
        coord_eval(queue_store(w->o.queue), &a, &reply, SCRIPT_queue_register, args, count, &err) <
            0 &&
        err.code != ERR_STORE)
        log_warn(w->o.log, "worker.register", log_z("error", err.text));
    buf_release(&message);
    arena_release(&a);
}

static void worker_forward(struct worker *w)
{
    worker_sweep(w, queue_forward, "worker.forward");
}

static void worker_recover(struct worker *w)
{
    worker_sweep(w, queue_recover, "worker.recover");
}

static void worker_clean(struct worker *w)
{
    worker_sweep(w, queue_clean, "worker.clean");
}

static void worker_enroll(struct worker *w)
{
    worker_register(w, false);
}

/* The chores that the keeper does regularly. They are ordered by urgency, because a slow store
 * delays the chores that follow. */
static const struct chore {
    void (*fn)(struct worker *w);
    uint64_t period_ms;
} chores[WORKER_CHORES] = {
    {worker_end_late, 1000},
    {worker_extend_leases, 10000},
    {worker_hint, 1000} /* a message may have been missed (docs/queue.md, Q9) */,
    {worker_forward, 1000},
    {worker_recover, 5000},
    {worker_enroll, 5000},
    {worker_clean, 8000},
};

struct loop_sleep worker_keep(void *ctx)
{
    struct worker *w = ctx;
    uint64_t soonest = UINT64_MAX, now;

    if (w->chore_ns[0] == 0) {
        worker_enroll(w);
        for (size_t i = 0; i < WORKER_CHORES; i++)
            w->chore_ns[i] = clock_mono_ns() + chores[i].period_ms * NS_PER_MS;
    }
    for (size_t i = 0; i < WORKER_CHORES; i++) {
        now = clock_mono_ns();
        if (now >= w->chore_ns[i]) {
            chores[i].fn(w);
            w->chore_ns[i] = now + chores[i].period_ms * NS_PER_MS;
        }
        soonest = w->chore_ns[i] < soonest ? w->chore_ns[i] : soonest;
    }
    now = clock_mono_ns();
    return loop_sleep_ns(soonest > now ? soonest - now : 0);
}

void worker_keep_stop(struct worker *w)
{
    bool ran = w->keeper.thread.started;

    loop_stop(&w->keeper);
    if (ran)
        worker_register(w, true);
}
