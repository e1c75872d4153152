/* A pool of connections to one Redis. The connection that was used last is taken first, the number
 * of connections is bounded, and there is a back-off while Redis is down. */
#include "store/redis_int.h"

#include "base/clock.h"
#include "base/ids.h"

enum { BACKOFF_FIRST_MS = 10, BACKOFF_MAX_MS = 1000, IDLE_MAX_S = 60 };

void redis_backoff_fail(struct redis_backoff *b, uint64_t began_ns)
{
    uint64_t now = clock_mono_ns();

    if (b->delay_ns == 0)
        b->delay_ns = BACKOFF_FIRST_MS * NS_PER_MS;
    else if (began_ns < b->failed_at_ns)
        return; /* the attempt began before the counted failure: both are one failure */
    else
        b->delay_ns = size_min(b->delay_ns * 2, BACKOFF_MAX_MS * NS_PER_MS);
    b->failed_at_ns = now;
    b->retry_at_ns = now + b->delay_ns / 2 + random_below(b->delay_ns / 2);
}

void redis_pool_init(struct redis_pool *p, const struct redis_endpoint *endpoint, size_t max,
                     const struct log *log)
{
    *p = (struct redis_pool){.endpoint = endpoint, .log = log, .max = max};
    mutex_init(&p->lock, "store.redis.pool");
    cond_init(&p->changed);
    list_init(&p->idle);
}

void redis_pool_release(struct redis_pool *p)
{
    struct list *node;

    while ((node = list_shift(&p->idle))) {
        redis_conn_close(list_entry(node, struct redis_conn, node));
        p->open--;
    }
    BUG_ON(p->open); /* a call is still running */
    cond_release(&p->changed);
    mutex_release(&p->lock);
}

static void give_place_back(struct redis_pool *p)
{
    mutex_lock(&p->lock);
    p->open--;
    cond_signal(&p->changed);
    mutex_unlock(&p->lock);
}

/* Called under the lock: whether the back-off is in force. The back-off ends early if another
 * server has become the master since the failure (docs/store-redis.md, M4). */
static bool is_resting(const struct redis_pool *p)
{
    return p->backoff.delay_ns && clock_mono_ns() < p->backoff.retry_at_ns &&
           p->failed_generation == redis_master_generation(p->endpoint->master);
}

/* Called under the lock: takes a place in the pool, which is the right to have a connection open.
 * 1: the caller has a place; *out is its idle connection, or NULL if it must open one. 0: the
 * caller must wait. Below 0: the error because of which there is no place. */
static int try_place(struct redis_pool *p, struct redis_conn **out, bool fresh, struct err *err)
{
    struct list *node = fresh ? NULL : list_shift(&p->idle);

    *out = node ? list_entry(node, struct redis_conn, node) : NULL;
    if (*out)
        return 1;
    if (is_resting(p))
        /* Calls fail at once during the back-off (docs/store-redis.md, R4). */
        return err_set(err, p->failure.code, "%s", p->failure.text);
    if (p->open == p->max && fresh && (node = list_shift(&p->idle))) {
        redis_conn_close(list_entry(node, struct redis_conn, node));
        p->open--;
    }
    if (p->open == p->max)
        return 0;
    p->open++;
    return 1;
}

static int take_place(struct redis_pool *p, struct redis_conn **out, bool fresh,
                      uint64_t deadline_ns, struct err *err)
{
    bool in_time = true;
    int rc;

    mutex_lock(&p->lock);
    while ((rc = try_place(p, out, fresh, err)) == 0) {
        if (!in_time) {
            rc = err_set(err, ERR_UNAVAILABLE, "all %zu connections to redis are in use", p->max);
            break;
        }
        in_time = cond_wait_until(&p->changed, &p->lock, deadline_ns);
    }
    mutex_unlock(&p->lock);
    return rc < 0 ? rc : 0;
}

/* Opens a connection for the place that the caller holds; gives the place back on failure. */
static int redis_pool_open(struct redis_pool *p, uint64_t deadline_ns, struct redis_conn **out,
                           struct err *err)
{
    struct err failure = {0};
    uint64_t began = clock_mono_ns();
    uint64_t generation = redis_master_generation(p->endpoint->master);
    int rc = redis_conn_open(out, p->endpoint, deadline_ns, &failure);
    bool was_down;

    mutex_lock(&p->lock);
    was_down = p->backoff.delay_ns > 0;
    if (rc < 0) {
        redis_backoff_fail(&p->backoff, began);
        p->failure = failure;
        p->failed_generation = generation;
        p->open--;
        cond_signal(&p->changed);
    } else {
        p->backoff = (struct redis_backoff){0};
    }
    mutex_unlock(&p->lock);
    if (rc < 0 && !was_down)
        log_warn(p->log, "store.redis.down", log_z("reason", failure.text));
    if (rc == 0 && was_down)
        log_info(p->log, "store.redis.up");
    return rc < 0 ? err_set(err, rc, "%s", failure.text) : 0;
}

/* Whether an idle connection may be used: the peer has not closed it or sent anything, and it leads
 * to the present master (docs/store-redis.md, M3). */
static bool is_usable(const struct redis_pool *p, struct redis_conn *c)
{
    return c->generation == redis_master_generation(p->endpoint->master) && redis_conn_is_quiet(c);
}

int redis_pool_take(struct redis_pool *p, bool fresh, uint64_t deadline_ns, struct redis_conn **out,
                    struct err *err)
{
    for (;;) {
        int rc = take_place(p, out, fresh, deadline_ns, err);
        if (rc < 0)
            return rc;
        if (!*out)
            return redis_pool_open(p, deadline_ns, out, err);
        if (is_usable(p, *out))
            return 0;
        /* The connection is stale, and nothing was sent on it yet (docs/store-redis.md, R2). */
        redis_pool_drop(p, *out);
    }
}

int redis_pool_send(struct redis_pool *p, struct redis_conn **out, struct str wire, bool whole,
                    uint64_t deadline_ns, struct err *err)
{
    for (bool fresh = false;; fresh = true) {
        struct redis_conn *c = NULL;
        int rc = redis_pool_take(p, fresh, deadline_ns, &c, err);
        if (rc < 0)
            return rc;
        rc = redis_conn_send(c, wire, deadline_ns, err);
        if (rc == 0) {
            *out = c;
            return 0;
        }
        bool reused = c->reused;
        redis_pool_drop(p, c);
        if (!whole)
            return rc;
        if (!reused || rc == ERR_TIMEOUT)
            return err_wrap(err, ERR_UNAVAILABLE, "not sent");
    }
}

void redis_pool_end(struct redis_pool *p, struct redis_conn *c, bool doubtful)
{
    if (!doubtful) {
        redis_pool_give(p, c);
        return;
    }
    redis_master_doubt(p->endpoint->master, c->generation);
    redis_pool_drop(p, c);
}

void redis_pool_give(struct redis_pool *p, struct redis_conn *c)
{
    struct redis_conn *oldest = NULL;

    c->reused = true;
    mutex_lock(&p->lock);
    /* Set under the lock, because the list `idle` is ordered by this time. */
    c->idle_since_ns = clock_mono_ns();
    list_push_front(&p->idle, &c->node);
    oldest = list_entry(p->idle.prev, struct redis_conn, node);
    if (c->idle_since_ns - oldest->idle_since_ns > IDLE_MAX_S * NS_PER_S) {
        list_remove(&oldest->node);
        p->open--;
    } else {
        oldest = NULL;
    }
    cond_signal(&p->changed);
    mutex_unlock(&p->lock);
    redis_conn_close(oldest);
}

void redis_pool_is_back(struct redis_pool *p)
{
    bool was_down;

    mutex_lock(&p->lock);
    was_down = p->backoff.delay_ns > 0;
    p->backoff = (struct redis_backoff){0};
    mutex_unlock(&p->lock);
    if (was_down)
        log_info(p->log, "store.redis.up");
}

void redis_pool_drop(struct redis_pool *p, struct redis_conn *c)
{
    redis_conn_close(c);
    give_place_back(p);
}
