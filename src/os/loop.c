/* The implementation of struct loop, a thread that repeats a step. */
#include "os/loop.h"

/* Sleeps until the time has passed, or until loop_wake() or loop_stop() is called. No wake is lost:
 * loop_wake() sets `woken` before it takes the lock, and the thread reads `woken` under the lock
 * before it sleeps. So either the thread sees the flag, or it sleeps already and gets the
 * signal. */
static void loop_sleep(struct loop *l, struct loop_sleep s)
{
    uint64_t now = clock_mono_ns(), until = s.ns < UINT64_MAX - now ? now + s.ns : UINT64_MAX;
    bool in_time = s.ns > 0;

    mutex_lock(&l->lock);
    while (in_time && !atomic_load(&l->stop) && (s.deaf || !atomic_load(&l->woken)))
        if (until == UINT64_MAX)
            cond_wait(&l->changed, &l->lock);
        else
            in_time = cond_wait_until(&l->changed, &l->lock, until);
    mutex_unlock(&l->lock);
}

static void loop_main(void *ctx)
{
    struct loop *l = ctx;

    for (struct loop_sleep s = l->o.first;; s = l->o.step(l->o.ctx)) {
        loop_sleep(l, s);
        if (atomic_load(&l->stop))
            return;
        /* The flag is reset before the step, so that a wake during the step is not lost. */
        atomic_store(&l->woken, false);
    }
}

int loop_start(struct loop *l, const struct loop_options *o, struct err *err)
{
    BUG_ON(l->thread.started);
    l->o = *o;
    atomic_store(&l->woken, false);
    atomic_store(&l->stop, false);
    if (!atomic_load(&l->ready)) {
        mutex_init(&l->lock, "loop");
        cond_init(&l->changed);
        atomic_store(&l->ready, true);
    }
    return thread_start(&l->thread, o->name, o->stack_size, loop_main, l, err);
}

static void loop_signal(struct loop *l)
{
    mutex_lock(&l->lock);
    cond_signal(&l->changed);
    mutex_unlock(&l->lock);
}

void loop_wake(struct loop *l)
{
    if (atomic_load(&l->ready) && !atomic_exchange(&l->woken, true))
        loop_signal(l);
}

void loop_ask_stop(struct loop *l)
{
    atomic_store(&l->stop, true);
    if (atomic_load(&l->ready))
        loop_signal(l);
}

void loop_stop(struct loop *l)
{
    loop_ask_stop(l);
    thread_join(&l->thread);
}

void loop_pause(struct loop *l, uint64_t ns)
{
    loop_sleep(l, (struct loop_sleep){.ns = ns, .deaf = true});
}

bool loop_is_stopping(const struct loop *l)
{
    return atomic_load(&l->stop);
}
