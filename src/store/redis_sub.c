/* Subscriptions: one connection and one thread for all of a store's channels.
 *
 * Only the thread uses the connection. Other threads change the list of subscriptions under the
 * lock and wake the thread, which sends a SUBSCRIBE for every subscription without a ticket. A
 * ticket is the number of a SUBSCRIBE among those of the connection. Redis answers each SUBSCRIBE
 * once, in order. So a subscription is confirmed or refused when the number of answers reaches its
 * ticket (docs/store-redis.md, R8). On a new connection no subscription has a ticket. */
#include "store/redis_int.h"

#include "base/clock.h"
#include "os/file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* After this time without input from Redis, the thread sends a PING. */
#define PING_AFTER_NS (5 * NS_PER_S)

enum sub_state { SUB_WANTED, SUB_SENT, SUB_CONFIRMED, SUB_REFUSED };

struct redis_sub {
    struct store_subscription base;
    struct list node;
    char *channel_bytes; /* owned */
    struct str channel;  /* points to channel_bytes */
    store_message_fn *fn;
    void *ctx;
    enum sub_state state;
    uint64_t ticket;  /* number of its SUBSCRIBE on this connection; only in SUB_SENT */
    uint64_t message; /* number of the latest message that was given to fn */
    /* Messages may have been missed. Once the subscription is confirmed, fn is called with a NULL
     * channel. */
    bool lapsed;
    struct err reason; /* why Redis refused the SUBSCRIBE; only in SUB_REFUSED */
};

void redis_subs_init(struct redis_subs *s, struct store *store,
                     const struct redis_endpoint *endpoint, const struct log *log)
{
    *s = (struct redis_subs){.store = store, .endpoint = endpoint, .log = log, .wake = -1};
    list_init(&s->follower.node);
    mutex_init(&s->lock, "store.redis.subs");
    cond_init(&s->changed);
    list_init(&s->subs);
}

static void sub_free(struct redis_sub *sub)
{
    list_remove(&sub->node);
    free(sub->channel_bytes);
    free(sub);
}

/* Wakes the thread, which may wait on the condition or in poll(). */
static void wake_thread(struct redis_subs *s)
{
    uint64_t one = 1;

    cond_broadcast(&s->changed);
    BUG_ON(write(s->wake, &one, sizeof(one)) < 0);
}

void redis_subs_release(struct redis_subs *s)
{
    mutex_lock(&s->lock);
    s->stop = true;
    if (s->thread.started)
        wake_thread(s);
    mutex_unlock(&s->lock);
    thread_join(&s->thread);
    redis_master_unfollow(s->endpoint->master, &s->follower);
    list_each_safe (&s->subs, struct redis_sub, node, sub)
        sub_free(sub);
    fd_close(&s->wake);
    buf_release(&s->leaving);
    cond_release(&s->changed);
    mutex_release(&s->lock);
}

/* Calls the subscription's fn; the lock is released during the call. redis_unsubscribe() waits
 * while its subscription is `running`. */
static void sub_call(struct redis_subs *s, struct redis_sub *sub, struct str channel,
                     struct str message)
{
    s->running = sub;
    mutex_unlock(&s->lock);
    sub->fn(sub->ctx, channel, message);
    mutex_lock(&s->lock);
    s->running = NULL;
    cond_broadcast(&s->changed);
}

/* Gives a message to the subscriptions of its channel. The list may change during each call, so the
 * next subscription is searched from the start. */
static void subs_deliver(struct redis_subs *s, struct str channel, struct str message)
{
    bool found = true;

    s->message++;
    while (found && !s->stop) {
        found = false;
        list_each (&s->subs, struct redis_sub, node, sub) {
            if (sub->state != SUB_CONFIRMED || sub->message >= s->message ||
                !str_eq(sub->channel, channel))
                continue;
            sub->message = s->message;
            found = true;
            sub_call(s, sub, channel, message);
            break;
        }
    }
}

/* Handles the answer to the oldest SUBSCRIBE that is not answered yet. `error` is NULL if Redis
 * accepted that SUBSCRIBE. */
static void confirm(struct redis_subs *s, const struct reply *error)
{
    if (s->confirmed == s->sent)
        return;
    s->confirmed++;
    list_each (&s->subs, struct redis_sub, node, sub) {
        if (sub->state != SUB_SENT || sub->ticket != s->confirmed)
            continue;
        sub->state = error ? SUB_REFUSED : SUB_CONFIRMED;
        sub->message = s->message;
        if (error) {
            int code = redis_refusal(error->str);
            err_set(&sub->reason, code ? code : ERR_INVALID, "redis: " STR_FMT,
                    STR_ARG(error->str));
            if (sub->lapsed)
                log_warn(s->log, "store.subscription_refused", log_s("channel", sub->channel),
                         log_z("error", sub->reason.text));
        } else if (sub->lapsed) {
            sub->lapsed = false;
            sub_call(s, sub, STR_EMPTY, STR_EMPTY);
        }
        break;
    }
    cond_broadcast(&s->changed);
}

static void take_reply(struct redis_subs *s, const struct reply *r)
{
    mutex_lock(&s->lock);
    if (r->type == REPLY_ERROR)
        confirm(s, r);
    else if (r->type == REPLY_ARRAY && r->count == 3 && str_eq(r->items[0].str, STR("message")))
        subs_deliver(s, r->items[1].str, r->items[2].str);
    else if (r->type == REPLY_ARRAY && r->count == 3 && str_eq(r->items[0].str, STR("subscribe")))
        confirm(s, NULL);
    mutex_unlock(&s->lock);
}

/* Writes the commands that wait to be sent on the connection. */
static void write_pending(struct redis_subs *s, struct buf *wire)
{
    buf_append_str(wire, buf_str(&s->leaving));
    buf_reset(&s->leaving);
    list_each (&s->subs, struct redis_sub, node, sub) {
        if (sub->state != SUB_WANTED)
            continue;
        resp_write(wire, (struct str[]){STR("SUBSCRIBE"), sub->channel}, 2);
        sub->state = SUB_SENT;
        sub->ticket = ++s->sent;
    }
}

/* Waits for input. False: `until_ns` has come, or the thread was woken and may have to send. */
static bool wait_input(struct redis_subs *s, struct redis_conn *c, uint64_t until_ns)
{
    struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
    uint64_t now = clock_mono_ns(), woken;

    if (redis_conn_has_input(c))
        return true;
    if (poll(fds, 2, until_ns > now ? (int)((until_ns - now) / NS_PER_MS) + 1 : 0) <= 0)
        return false;
    if (fds[1].revents && read(s->wake, &woken, sizeof(woken)) < 0)
        BUG_ON(errno != EAGAIN);
    return fds[0].revents != 0;
}

/* The connection of the subscriptions, with the state that only its thread uses. */
struct line {
    struct redis_conn *conn;
    struct buf wire;
    uint64_t heard_ns;  /* when Redis last sent something */
    uint64_t pinged_ns; /* when the PING was sent whose answer is awaited; 0: none */
};

/* Sends the waiting commands, and a PING when it is time for one. */
static int subs_send_pending(struct redis_subs *s, struct line *l, struct err *err)
{
    uint64_t now = clock_mono_ns();

    if (l->pinged_ns && now > l->pinged_ns + s->timeout_ns)
        return err_set(err, ERR_TIMEOUT, "redis did not answer a ping in time");
    buf_reset(&l->wire);
    mutex_lock(&s->lock);
    write_pending(s, &l->wire);
    mutex_unlock(&s->lock);
    if (!l->pinged_ns && now > l->heard_ns + PING_AFTER_NS) {
        resp_write(&l->wire, (struct str[]){STR("PING")}, 1);
        l->pinged_ns = now;
    }
    return l->wire.len ? redis_conn_send(l->conn, buf_str(&l->wire), now + s->timeout_ns, err) : 0;
}

static bool is_done(struct redis_subs *s)
{
    bool done;

    mutex_lock(&s->lock);
    done = s->stop || list_empty(&s->subs);
    mutex_unlock(&s->lock);
    return done;
}

/* Fails when the connection's Redis is not the master any more, because the messages of a former
 * master do not count (docs/store-redis.md, M3). */
static int check_master(const struct redis_subs *s, const struct redis_conn *c, struct err *err)
{
    if (c->generation == redis_master_generation(s->endpoint->master))
        return 0;
    return err_set(err, ERR_CLOSED, "another redis is the master now");
}

/* Sends and receives on the connection until it is not needed any more. Below 0: the connection
 * broke. 0: the store is closed, or there is no subscription left. */
static int subs_serve(struct redis_subs *s, struct redis_conn *c, struct err *err)
{
    struct line line = {.conn = c, .heard_ns = clock_mono_ns()};
    struct arena arena = {0};
    struct reply *reply;
    int rc = 0;

    while (rc == 0 && !is_done(s)) {
        rc = check_master(s, c, err);
        if (rc == 0)
            rc = subs_send_pending(s, &line, err);
        if (rc < 0 || !wait_input(s, c,
                                  line.pinged_ns ? line.pinged_ns + s->timeout_ns
                                                 : line.heard_ns + PING_AFTER_NS))
            continue;
        rc = redis_conn_receive(c, &arena, &reply, clock_mono_ns() + s->timeout_ns, err);
        if (rc == 0)
            take_reply(s, reply);
        arena_reset(&arena);
        line.heard_ns = clock_mono_ns();
        line.pinged_ns = 0;
    }
    buf_release(&line.wire);
    arena_release(&arena);
    return rc;
}

/* Called under the lock when the connection has ended: all subscriptions are made again on the next
 * connection. `lost` is false if the connection was closed because there was no subscription: then
 * later subscriptions have missed nothing. */
static void forget_tickets(struct redis_subs *s, bool lost)
{
    s->connected = false;
    s->sent = s->confirmed = 0;
    s->lapses += lost;
    buf_reset(&s->leaving);
    list_each (&s->subs, struct redis_sub, node, sub) {
        sub->state = SUB_WANTED;
        sub->lapsed |= lost;
    }
    cond_broadcast(&s->changed);
}

/* Opens a connection and serves it until it ends. */
static int session(struct redis_subs *s, struct err *err)
{
    struct redis_conn *c = NULL;
    int rc = redis_conn_open(&c, s->endpoint, clock_mono_ns() + s->timeout_ns, err);

    if (rc == 0) {
        /* Subscribers that learn of missed messages will read from Redis at once, so the pool's
         * back-off must end. */
        redis_pool_is_back(s->pool);
        mutex_lock(&s->lock);
        s->connected = true;
        mutex_unlock(&s->lock);
        rc = subs_serve(s, c, err);
        if (rc < 0)
            redis_master_doubt(s->endpoint->master, c->generation);
    }
    redis_conn_close(c);
    mutex_lock(&s->lock);
    forget_tickets(s, rc < 0);
    mutex_unlock(&s->lock);
    return rc;
}

/* Runs one session. A failure begins a back-off, and only the first failure in a row is logged. */
static void run_session(struct redis_subs *s, struct redis_backoff *backoff)
{
    struct err err = {0};
    uint64_t began = clock_mono_ns();
    int rc = session(s, &err);

    if (rc == 0 || clock_mono_ns() - began > PING_AFTER_NS)
        *backoff = (struct redis_backoff){0};
    if (rc == 0)
        return;
    if (backoff->delay_ns == 0)
        log_warn(s->log, "store.subscription_lost", log_z("error", err.text));
    redis_backoff_fail(backoff, began);
}

static void subs_thread(void *ctx)
{
    struct redis_subs *s = ctx;
    struct redis_backoff backoff = {0};

    mutex_lock(&s->lock);
    while (!s->stop) {
        if (list_empty(&s->subs)) {
            cond_wait(&s->changed, &s->lock);
        } else if (clock_mono_ns() < backoff.retry_at_ns) {
            cond_wait_until(&s->changed, &s->lock, backoff.retry_at_ns);
        } else {
            mutex_unlock(&s->lock);
            run_session(s, &backoff);
            mutex_lock(&s->lock);
        }
    }
    mutex_unlock(&s->lock);
}

static int subs_start_thread(struct redis_subs *s, struct err *err)
{
    if (s->thread.started)
        return 0;
    if (s->wake < 0)
        s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake < 0)
        return err_errno(err, errno, "subscribing");
    s->follower.wake = s->wake;
    redis_master_follow(s->endpoint->master, &s->follower);
    return thread_start(&s->thread, "redis-sub", 0, subs_thread, s, err);
}

/* Waits until Redis has answered the SUBSCRIBE. If the connection fails or the deadline passes
 * before, marks the subscription as lapsed: once the subscription is made, its fn learns that
 * messages were missed. */
static int await(struct redis_subs *s, struct redis_sub *sub, uint64_t deadline_ns, struct err *err)
{
    uint64_t lapses = s->lapses;

    while (sub->state == SUB_WANTED || sub->state == SUB_SENT) {
        if (s->lapses != lapses || !cond_wait_until(&s->changed, &s->lock, deadline_ns)) {
            sub->lapsed = true;
            return 0;
        }
    }
    if (sub->state == SUB_REFUSED)
        return err_set(err, sub->reason.code, "%s", sub->reason.text);
    return 0;
}

int redis_subscribe(struct store_subscription **out, struct redis_subs *s, struct str channel,
                    store_message_fn *fn, void *ctx, struct err *err)
{
    struct redis_sub *sub = xcalloc(1, sizeof(*sub));
    int rc;

    sub->base.store = s->store;
    sub->channel_bytes = str_dup(channel);
    sub->channel = str_n(sub->channel_bytes, channel.len);
    sub->fn = fn;
    sub->ctx = ctx;
    list_init(&sub->node);

    mutex_lock(&s->lock);
    rc = subs_start_thread(s, err);
    if (rc == 0) {
        list_push(&s->subs, &sub->node);
        wake_thread(s);
        rc = await(s, sub, clock_mono_ns() + s->timeout_ns, err);
    }
    if (rc == 0)
        *out = &sub->base;
    else
        sub_free(sub);
    mutex_unlock(&s->lock);
    return rc;
}

static bool has_channel(struct redis_subs *s, struct str channel)
{
    list_each (&s->subs, struct redis_sub, node, sub)
        if (str_eq(sub->channel, channel))
            return true;
    return false;
}

void redis_unsubscribe(struct redis_subs *s, struct store_subscription *base)
{
    struct redis_sub *sub = container_of(base, struct redis_sub, base);

    BUG_ON(s->thread.started && pthread_equal(s->thread.id, pthread_self()));
    mutex_lock(&s->lock);
    list_remove(&sub->node);
    while (s->running == sub)
        cond_wait(&s->changed, &s->lock);
    if (s->connected && !has_channel(s, sub->channel))
        resp_write(&s->leaving, (struct str[]){STR("UNSUBSCRIBE"), sub->channel}, 2);
    wake_thread(s);
    sub_free(sub);
    mutex_unlock(&s->lock);
}
