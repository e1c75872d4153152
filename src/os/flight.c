/* Flights: several threads share one request to a server (flight.h). */
#include "os/flight.h"

#include "base/clock.h"

#include <errno.h>

void flights_init(struct flights *f, size_t max)
{
    list_init(&f->waiting);
    f->count = 0;
    f->max = max;
}

void flights_release(struct flights *f)
{
    BUG_ON(f->count || !list_empty(&f->waiting)); /* a call is still running */
    mutex_release(&f->lock);
}

/* Begins a flight if fewer than `max` flights are on their way, and returns true. Otherwise adds
 * the call to the waiting calls. */
static bool flight_may_lead(struct flights *f, struct flight_call *c)
{
    mutex_lock(&f->lock);
    bool leads = f->count < f->max;
    if (leads)
        f->count++;
    else
        list_push(&f->waiting, &c->node);
    mutex_unlock(&f->lock);
    return leads;
}

/* Waits until the call is woken. FLIGHT_WAITS: the deadline has passed, and the call is no longer
 * in the list. A call that was taken along may read its answer after this: the leader stores the
 * answers before flight_end() takes the lock. */
static enum flight_state flight_await(struct flights *f, struct flight_call *c,
                                      uint64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    int rc;

    while ((rc = sem_clockwait(&c->woken, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR)
        ;
    mutex_lock(&f->lock);
    enum flight_state state = c->state;
    if (state == FLIGHT_WAITS)
        list_remove(&c->node);
    mutex_unlock(&f->lock);
    while (rc != 0 && state != FLIGHT_WAITS && (rc = sem_wait(&c->woken)) != 0)
        ;
    return state;
}

enum flight_state flight_begin(struct flights *f, struct flight_call *c, uint64_t deadline_ns)
{
    c->state = FLIGHT_WAITS;
    sem_init(&c->woken, 0, 0);
    enum flight_state state =
        flight_may_lead(f, c) ? FLIGHT_LEADS : flight_await(f, c, deadline_ns);
    sem_destroy(&c->woken); /* the last post came before the wait ended */
    return state;
}

size_t flight_board(struct flights *f, struct flight_call **calls, size_t room,
                    bool (*fits)(void *ctx, struct flight_call *c), void *ctx)
{
    size_t count = 1;

    mutex_lock(&f->lock);
    for (struct list *at = f->waiting.next, *next; at != &f->waiting && count < room; at = next) {
        struct flight_call *c = list_entry(at, struct flight_call, node);
        next = at->next;
        if (!fits(ctx, c))
            continue;
        list_remove(at);
        c->state = FLIGHT_TAKEN;
        calls[count++] = c;
    }
    mutex_unlock(&f->lock);
    return count;
}

void flight_end(struct flights *f, struct flight_call *const *calls, size_t count)
{
    struct flight_call *leader = NULL;

    mutex_lock(&f->lock);
    if (list_empty(&f->waiting)) {
        f->count--;
    } else {
        leader = list_entry(list_shift(&f->waiting), struct flight_call, node);
        leader->state = FLIGHT_LEADS;
    }
    mutex_unlock(&f->lock);
    if (leader)
        sem_post(&leader->woken);
    for (size_t i = 1; i < count; i++)
        sem_post(&calls[i]->woken);
}
