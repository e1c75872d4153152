/* Groups of calls: calls that would have to wait for a connection are sent together, in one write
 * on one connection. Redis reads them in one go, and syncs its log once for all of them
 * (docs/store-redis.md, R10).
 *
 * A group is sent as a flight (os/flight.h). There may be as many flights at once as the pool may
 * have connections. */
#include "store/redis_int.h"

enum {
    GROUP_CALLS = 128, /* most calls in one group */
    GROUP_BYTES = 256 * KIB,
};

struct group_call {
    struct flight_call flight;
    struct str wire;
    struct arena *arena;
    uint64_t deadline_ns;
    struct reply *reply;
    int code;
    struct err *err; /* may be NULL */
};

static struct group_call *group_call_of(struct flight_call *c)
{
    return container_of(c, struct group_call, flight);
}

void redis_groups_init(struct redis_groups *g, struct redis_pool *pool)
{
    *g = (struct redis_groups){.pool = pool};
    mutex_init(&g->flights.lock, "store.redis.groups");
    flights_init(&g->flights, pool->max);
}

void redis_groups_release(struct redis_groups *g)
{
    flights_release(&g->flights);
}

/* --- one flight --- */

static void group_fail(struct group_call *const *calls, size_t count, int code,
                       const struct err *err)
{
    for (size_t i = 0; i < count; i++)
        calls[i]->code = err_set(calls[i]->err, code, "%s", err->text);
}

/* Sends the calls. If there is only one call and it could not be sent, it did not run (R3). */
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
    if (code == ERR_NO_MEMORY) /* only this call's arena is full, but later replies were not read */
        code = err_set(&err, ERR_CLOSED, "the connection was given up");
    if (got < count)
        group_fail(calls + got + 1, count - got - 1, code, &err);
    redis_pool_end(g->pool, conn, got < count || replica);
}

/* --- which calls are in a flight --- */

/* Whether the call can join a flight that has *ctx bytes so far. */
static bool group_fits(void *ctx, struct flight_call *c)
{
    size_t *bytes = ctx;

    if (*bytes >= GROUP_BYTES)
        return false;
    *bytes += group_call_of(c)->wire.len;
    return true;
}

/* Leads a flight: makes the round trip for the caller's own call and for the calls that wait. */
static void group_lead(struct redis_groups *g, struct group_call *leader)
{
    struct flight_call *flying[GROUP_CALLS] = {&leader->flight};
    struct group_call *calls[GROUP_CALLS] = {leader};
    size_t bytes = leader->wire.len;
    size_t count = flight_board(&g->flights, flying, GROUP_CALLS, group_fits, &bytes);

    for (size_t i = 1; i < count; i++)
        calls[i] = group_call_of(flying[i]);
    group_fly(g, calls, count);
    flight_end(&g->flights, flying, count);
}

int redis_group_call(struct redis_groups *g, struct arena *arena, struct reply **out,
                     struct str wire, uint64_t deadline_ns, struct err *err)
{
    struct group_call c = {.wire = wire, .arena = arena, .deadline_ns = deadline_ns, .err = err};
    enum flight_state state = flight_begin(&g->flights, &c.flight, deadline_ns);

    if (state == FLIGHT_WAITS)
        c.code = err_set(err, ERR_UNAVAILABLE, "redis answers too slowly");
    else if (state == FLIGHT_LEADS)
        group_lead(g, &c);
    if (c.code == 0)
        *out = c.reply;
    return c.code;
}
