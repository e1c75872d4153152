/* Groups of calls: calls that would have to wait for a connection are sent together, in one write
 * on one connection. Redis reads them at once, and syncs its log once for all of them
 * (docs/store-redis.md, R10).
 *
 * A *flight* is a group of calls that was sent and is not answered yet. There may be as many
 * flights at a time as the pool may have connections. A call that finds fewer flights begins a
 * flight alone. Otherwise the call waits. When a flight ends, the first call that waits leads the
 * next flight, and takes the other waiting calls along. So no call waits while another flight could
 * begin. */
#include "store/redis_int.h"

#include "base/clock.h"

#include <errno.h>
#include <semaphore.h>

enum {
    GROUP_CALLS = 128, /* most calls in one group */
    GROUP_BYTES = 256 * KIB,
};

/* A call. It is on the stack of the thread that makes it. Once `woken` was posted because the call
 * has ended, no other thread may use the struct. */
struct group_call {
    struct list node; /* in the list `waiting` */
    struct str wire;
    struct arena *arena;
    uint64_t deadline_ns;
    enum {
        GROUP_WAITS,
        GROUP_LEADS,
        GROUP_FLIES
    } state;     /* state of a call that had to wait; guarded by the lock until the call is woken */
    sem_t woken; /* posted when the call shall lead a flight, and when another flight has brought
                    the call's answer */
    struct reply *reply;
    int code;
    struct err *err; /* may be NULL */
};

void redis_groups_init(struct redis_groups *g, struct redis_pool *pool)
{
    *g = (struct redis_groups){.pool = pool};
    mutex_init(&g->lock, "store.redis.groups");
    list_init(&g->waiting);
}

void redis_groups_release(struct redis_groups *g)
{
    BUG_ON(g->flights || !list_empty(&g->waiting)); /* a call is still running */
    mutex_release(&g->lock);
}

/* --- one flight --- */

static void group_fail(struct group_call *const *calls, size_t count, int code,
                       const struct err *err)
{
    for (size_t i = 0; i < count; i++)
        calls[i]->code = err_set(calls[i]->err, code, "%s", err->text);
}

/* Sends the calls. One call alone is whole: if it could not be sent, it did not run (R3). */
static int group_send(struct redis_groups *g, struct group_call *const *calls, size_t count,
                      struct redis_conn **out, struct err *err)
{
    struct buf wire = BUF_INIT(0);
    uint64_t deadline_ns =
        calls[0]->deadline_ns; /* the leader's deadline: its call is the oldest */

    if (count == 1)
        return redis_pool_send(g->pool, out, calls[0]->wire, true, deadline_ns, err);
    for (size_t i = 0; i < count; i++)
        buf_append_str(&wire, calls[i]->wire);
    int code = buf_error(&wire);
    if (code < 0)
        err_code(err, code);
    else
        code = redis_pool_send(g->pool, out, buf_str(&wire), false, deadline_ns, err);
    buf_release(&wire);
    return code;
}

/* Receives the replies, each into the arena of its call. Returns how many calls got their reply; if
 * that is fewer than all, *code is the error that ended the receiving. *replica: the server says
 * that it is a replica. */
static size_t group_receive(struct redis_conn *conn, struct group_call *const *calls, size_t count,
                            int *code, bool *replica, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct group_call *c = calls[i];
        *code = redis_conn_receive(conn, c->arena, &c->reply, calls[0]->deadline_ns, err);
        if (*code < 0)
            return i;
        *replica = *replica || redis_is_replica(c->reply);
    }
    return count;
}

static void group_fly(struct redis_groups *g, struct group_call *const *calls, size_t count)
{
    struct redis_conn *conn = NULL;
    bool replica = false;
    struct err err = {0};
    int code = group_send(g, calls, count, &conn, &err);

    if (code < 0) {
        group_fail(calls, count, code, &err);
        return;
    }
    size_t got = group_receive(conn, calls, count, &code, &replica, &err);
    if (got < count)
        group_fail(calls + got, 1, code, &err);
    if (code == ERR_NO_MEMORY) /* only this call's arena is full, but the replies behind this one
                                  are not read */
        code = err_set(&err, ERR_CLOSED, "the connection was given up");
    if (got < count)
        group_fail(calls + got + 1, count - got - 1, code, &err);
    redis_pool_end(g->pool, conn, got < count || replica);
}

/* --- which calls are in a flight --- */

/* Puts the leader and the calls that wait into one flight. Returns how many calls are in the
 * flight. */
static size_t group_board(struct redis_groups *g, struct group_call *leader,
                          struct group_call *calls[GROUP_CALLS])
{
    size_t count = 0, bytes = leader->wire.len;

    calls[count++] = leader;
    mutex_lock(&g->lock);
    while (count < GROUP_CALLS && bytes < GROUP_BYTES && !list_empty(&g->waiting)) {
        struct group_call *c = list_entry(list_shift(&g->waiting), struct group_call, node);
        c->state = GROUP_FLIES;
        bytes += c->wire.len;
        calls[count++] = c;
    }
    mutex_unlock(&g->lock);
    return count;
}

/* Ends a flight, and lets the first call that waits lead the next flight. */
static void group_pass_on(struct redis_groups *g)
{
    struct group_call *next = NULL;

    mutex_lock(&g->lock);
    if (list_empty(&g->waiting)) {
        g->flights--;
    } else {
        next = list_entry(list_shift(&g->waiting), struct group_call, node);
        next->state = GROUP_LEADS;
    }
    mutex_unlock(&g->lock);
    if (next)
        sem_post(&next->woken);
}

/* Leads a flight: makes the round trip for the caller's own call and for the calls that wait. */
static void group_lead(struct redis_groups *g, struct group_call *leader)
{
    struct group_call *calls[GROUP_CALLS];
    size_t count = group_board(g, leader, calls);

    group_fly(g, calls, count);
    group_pass_on(g);
    for (size_t i = 1; i < count; i++)
        sem_post(&calls[i]->woken);
}

/* Waits until the call is woken. Returns false when the call's deadline has passed; the call is
 * then no longer in the list. */
static bool group_await(struct redis_groups *g, struct group_call *c)
{
    struct timespec until = {.tv_sec = (time_t)(c->deadline_ns / NS_PER_S),
                             .tv_nsec = (long)(c->deadline_ns % NS_PER_S)};
    int rc;

    while ((rc = sem_clockwait(&c->woken, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR)
        ;
    if (rc == 0)
        return true;
    mutex_lock(&g->lock);
    bool waits = c->state == GROUP_WAITS;
    if (waits)
        list_remove(&c->node);
    mutex_unlock(&g->lock);
    while (!waits && sem_wait(&c->woken) != 0)
        ;
    return !waits;
}

/* Begins a flight if there may be one more, and returns true. Otherwise adds the call to the calls
 * that wait, and returns false. */
static bool group_enter(struct redis_groups *g, struct group_call *c)
{
    mutex_lock(&g->lock);
    bool leads = g->flights < g->pool->max;
    if (leads)
        g->flights++;
    else
        list_push(&g->waiting, &c->node);
    mutex_unlock(&g->lock);
    return leads;
}

int redis_group_call(struct redis_groups *g, struct arena *arena, struct reply **out,
                     struct str wire, uint64_t deadline_ns, struct err *err)
{
    struct group_call c = {
        .wire = wire, .arena = arena, .deadline_ns = deadline_ns, .state = GROUP_WAITS, .err = err};

    sem_init(&c.woken, 0, 0);
    bool leads = group_enter(g, &c);
    if (!leads && !group_await(g, &c))
        c.code = err_set(err, ERR_UNAVAILABLE, "redis answers too slowly");
    else if (leads || c.state == GROUP_LEADS)
        group_lead(g, &c);
    sem_destroy(&c.woken);
    if (c.code == 0)
        *out = c.reply;
    return c.code;
}
