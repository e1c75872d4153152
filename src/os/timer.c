/* Timers: a binary heap ordered by due time, and one thread that sleeps until the first timer is
 * due. */
#include "os/timer.h"
#include "base/clock.h"
#include "base/vec.h"

struct timers {
    /* Guards all members below, and the members heap_index, due_ns and period_ns of each timer. */
    struct mutex lock;
    /* Signalled when another timer is the first, or the thread must end. */
    struct cond changed;
    struct cond returned;     /* signalled when a callback has returned */
    VEC(struct timer *) heap; /* item 0 is not used, so that heap_index 0 means "not set" */
    /* The timer whose callback runs now. The pointer is only compared and never followed, because
     * the callback may free the timer. */
    struct timer *running;
    struct thread thread;
    bool stopping;
};

static void heap_place(struct timers *ts, size_t i, struct timer *t)
{
    ts->heap.items[i] = t;
    t->heap_index = i;
}

static void sift_up(struct timers *ts, size_t i, struct timer *t)
{
    for (; i > 1 && ts->heap.items[i / 2]->due_ns > t->due_ns; i /= 2)
        heap_place(ts, i, ts->heap.items[i / 2]);
    heap_place(ts, i, t);
}

static void sift_down(struct timers *ts, size_t i, struct timer *t)
{
    for (size_t child; (child = 2 * i) < ts->heap.len; i = child) {
        if (child + 1 < ts->heap.len &&
            ts->heap.items[child + 1]->due_ns < ts->heap.items[child]->due_ns)
            child++;
        if (ts->heap.items[child]->due_ns >= t->due_ns)
            break;
        heap_place(ts, i, ts->heap.items[child]);
    }
    heap_place(ts, i, t);
}

static void heap_add(struct timers *ts, struct timer *t)
{
    vec_push(&ts->heap, t);
    sift_up(ts, ts->heap.len - 1, t);
}

static void heap_remove(struct timers *ts, struct timer *t)
{
    size_t i = t->heap_index;
    struct timer *last;

    if (i == 0)
        return;
    t->heap_index = 0;
    last = vec_pop(&ts->heap);
    if (last == t)
        return;
    sift_down(ts, i, last);
    sift_up(ts, last->heap_index, last);
}

static uint64_t after(uint64_t ns, uint64_t delay_ns)
{
    return ns > UINT64_MAX - delay_ns ? UINT64_MAX : ns + delay_ns;
}

/* Calls the callback of the first timer, which is due. A periodic timer is set again before its
 * callback runs, so that the callback may change or cancel the next call. Periods that were missed
 * are left out. */
static void run_first(struct timers *ts, uint64_t now)
{
    struct timer *t = ts->heap.items[1];
    thread_fn *fn = t->fn;
    void *ctx = t->ctx;

    heap_remove(ts, t);
    if (t->period_ns) {
        t->due_ns = after(t->due_ns, t->period_ns);
        if (t->due_ns <= now)
            t->due_ns = after(now, t->period_ns);
        heap_add(ts, t);
    }
    ts->running = t;
    mutex_unlock(&ts->lock);
    fn(ctx);
    mutex_lock(&ts->lock);
    ts->running = NULL;
    cond_broadcast(&ts->returned);
}

static void timers_main(void *ctx)
{
    struct timers *ts = ctx;

    mutex_lock(&ts->lock);
    while (!ts->stopping) {
        uint64_t now = clock_mono_ns();
        if (ts->heap.len == 1)
            cond_wait(&ts->changed, &ts->lock);
        else if (ts->heap.items[1]->due_ns > now)
            cond_wait_until(&ts->changed, &ts->lock, ts->heap.items[1]->due_ns);
        else
            run_first(ts, now);
    }
    mutex_unlock(&ts->lock);
}

static void timers_drop(struct timers *ts)
{
    vec_release(&ts->heap);
    cond_release(&ts->changed);
    cond_release(&ts->returned);
    mutex_release(&ts->lock);
    free(ts);
}

int timers_new(struct timers **out, struct err *err)
{
    struct timers *ts = xzalloc(sizeof(*ts));
    int code;

    mutex_init(&ts->lock, "timers");
    cond_init(&ts->changed);
    cond_init(&ts->returned);
    vec_push(&ts->heap, NULL);
    code = thread_start(&ts->thread, "timers", 0, timers_main, ts, err);
    if (code < 0)
        timers_drop(ts);
    else
        *out = ts;
    return code;
}

void timers_free(struct timers *ts)
{
    if (!ts)
        return;
    mutex_lock(&ts->lock);
    ts->stopping = true;
    cond_signal(&ts->changed);
    mutex_unlock(&ts->lock);
    thread_join(&ts->thread);
    timers_drop(ts);
}

void timer_set(struct timers *ts, struct timer *t, uint64_t delay_ns, uint64_t period_ns,
               thread_fn *fn, void *ctx)
{
    uint64_t due = after(clock_mono_ns(), delay_ns);

    mutex_lock(&ts->lock);
    heap_remove(ts, t);
    t->due_ns = due;
    t->period_ns = period_ns;
    t->fn = fn;
    t->ctx = ctx;
    heap_add(ts, t);
    if (t->heap_index == 1)
        cond_signal(&ts->changed);
    mutex_unlock(&ts->lock);
}

void timer_cancel(struct timers *ts, struct timer *t)
{
    mutex_lock(&ts->lock);
    BUG_ON(ts->running == t && pthread_equal(ts->thread.id, pthread_self()));
    heap_remove(ts, t);
    while (ts->running == t) {
        cond_wait(&ts->returned, &ts->lock);
        heap_remove(ts, t); /* the callback that ran may have set the timer again */
    }
    mutex_unlock(&ts->lock);
}
