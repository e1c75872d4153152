/* Messages of the embedded engine. A step that publishes adds its messages to a queue; one thread
 * delivers them after the step is committed, in the order of the steps (docs/store.md, invariant
 * 9).
 *
 * The messages of one step are a *ticket*. A ticket enters the queue when the step publishes; steps
 * that write do so one after another, each inside its change. A ticket is settled when its step was
 * committed or undone. The thread waits until the ticket at the head of the queue is settled. */
#include "store/embedded_int.h"

#include <stdlib.h>

enum { QUEUE_MAX = 64 * 1024 * 1024 }; /* most bytes of undelivered messages */

enum ticket_state { TICKET_OPEN, TICKET_COMMITTED, TICKET_DROPPED };

struct message {
    struct list node;
    uint64_t number; /* messages are numbered in the order of publishing */
    struct str channel, text;
    char bytes[];
};

struct pubsub_ticket {
    struct list node;
    struct list messages;
    enum ticket_state state;
};

struct subscription {
    struct store_subscription base;
    struct list node;
    struct str channel;
    store_message_fn *fn;
    void *ctx;
    /* Number of the last message that was given to fn; at first, the number of the last message
     * that was published before the subscription was made. */
    uint64_t seen;
    char bytes[];
};

struct pubsub {
    struct mutex lock;
    /* Signalled when a ticket is settled, a call of fn has ended, or the thread shall stop. */
    struct cond changed;
    struct list queue; /* struct pubsub_ticket, the next to deliver first */
    struct list subscriptions;
    /* The subscription whose fn is running, during which the lock is not held; NULL: none. */
    struct subscription *calling;
    uint64_t last_number;
    size_t bytes;
    bool stopping;
    struct thread thread;
};

static void ticket_free(struct pubsub *p, struct pubsub_ticket *t)
{
    list_each_safe (&t->messages, struct message, node, m) {
        p->bytes -= sizeof(*m) + m->channel.len + m->text.len;
        list_remove(&m->node);
        free(m);
    }
    free(t);
}

/* Returns a subscription to the message's channel that has not got the message yet. */
static struct subscription *next_receiver(struct pubsub *p, const struct message *m)
{
    list_each (&p->subscriptions, struct subscription, node, s)
        if (s->seen < m->number && str_eq(s->channel, m->channel))
            return s;
    return NULL;
}

/* Calls fn of every subscription to the message's channel. The lock is released during each call,
 * so the list is searched from its start again after each call. */
static void pubsub_deliver(struct pubsub *p, const struct message *m)
{
    struct subscription *s;

    while (!p->stopping && (s = next_receiver(p, m))) {
        s->seen = m->number;
        p->calling = s;
        mutex_unlock(&p->lock);
        s->fn(s->ctx, m->channel, m->text);
        mutex_lock(&p->lock);
        p->calling = NULL;
        cond_broadcast(&p->changed);
    }
}

static void pubsub_thread(void *ctx)
{
    struct pubsub *p = ctx;

    mutex_lock(&p->lock);
    while (!p->stopping) {
        struct pubsub_ticket *t = list_entry(p->queue.next, struct pubsub_ticket, node);
        if (list_empty(&p->queue) || t->state == TICKET_OPEN) {
            cond_wait(&p->changed, &p->lock);
            continue;
        }
        list_remove(&t->node);
        if (t->state == TICKET_COMMITTED)
            list_each (&t->messages, struct message, node, m)
                pubsub_deliver(p, m);
        ticket_free(p, t);
    }
    mutex_unlock(&p->lock);
}

int pubsub_new(struct pubsub **out, struct err *err)
{
    struct pubsub *p = xcalloc(1, sizeof(*p));
    int rc;

    mutex_init(&p->lock, "store.pubsub");
    cond_init(&p->changed);
    list_init(&p->queue);
    list_init(&p->subscriptions);
    rc = thread_start(&p->thread, "store-messages", 0, pubsub_thread, p, err);
    if (rc < 0) {
        pubsub_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

void pubsub_free(struct pubsub *p)
{
    if (!p)
        return;
    mutex_lock(&p->lock);
    p->stopping = true;
    cond_broadcast(&p->changed);
    mutex_unlock(&p->lock);
    thread_join(&p->thread);
    list_each_safe (&p->queue, struct pubsub_ticket, node, t)
        ticket_free(p, t);
    list_each_safe (&p->subscriptions, struct subscription, node, s)
        free(s);
    cond_release(&p->changed);
    mutex_release(&p->lock);
    free(p);
}

static struct message *message_new(struct str channel, struct str text)
{
    struct message *m = xzalloc(sizeof(*m) + channel.len + text.len);

    if (channel.len)
        memcpy(m->bytes, channel.p, channel.len);
    if (text.len)
        memcpy(m->bytes + channel.len, text.p, text.len);
    m->channel = str_n(m->bytes, channel.len);
    m->text = str_n(m->bytes + channel.len, text.len);
    return m;
}

static struct pubsub_ticket *ticket_new(struct pubsub *p)
{
    struct pubsub_ticket *t = xcalloc(1, sizeof(*t));

    list_init(&t->messages);
    list_push(&p->queue, &t->node);
    return t;
}

static int64_t count_receivers(struct pubsub *p, struct str channel)
{
    int64_t n = 0;
    list_each (&p->subscriptions, struct subscription, node, s)
        n += str_eq(s->channel, channel);
    return n;
}

int64_t pubsub_publish(struct pubsub *p, struct pubsub_ticket **ticket, struct str channel,
                       struct str text)
{
    size_t size = sizeof(struct message) + channel.len + text.len;
    int64_t receivers;

    mutex_lock(&p->lock);
    receivers = count_receivers(p, channel);
    if (size > QUEUE_MAX || p->bytes > QUEUE_MAX - size) {
        receivers = ERR_BUSY;
    } else if (receivers) {
        struct message *m = message_new(channel, text);
        if (!*ticket)
            *ticket = ticket_new(p);
        m->number = ++p->last_number;
        list_push(&(*ticket)->messages, &m->node);
        p->bytes += size;
    }
    mutex_unlock(&p->lock);
    return receivers;
}

void pubsub_settle(struct pubsub *p, struct pubsub_ticket *ticket, bool committed)
{
    if (!ticket)
        return;
    mutex_lock(&p->lock);
    ticket->state = committed ? TICKET_COMMITTED : TICKET_DROPPED;
    cond_broadcast(&p->changed);
    mutex_unlock(&p->lock);
}

int embedded_subscribe(struct store_subscription **out, struct store *s, struct str channel,
                       store_message_fn *fn, void *ctx, struct err *err)
{
    struct pubsub *p = embedded_of(s)->pubsub;
    struct subscription *sub = xcalloc(1, sizeof(*sub) + channel.len);

    if (channel.len)
        memcpy(sub->bytes, channel.p, channel.len);
    sub->channel = str_n(sub->bytes, channel.len);
    sub->base.store = s;
    sub->fn = fn;
    sub->ctx = ctx;
    mutex_lock(&p->lock);
    sub->seen = p->last_number;
    list_push(&p->subscriptions, &sub->node);
    mutex_unlock(&p->lock);
    *out = &sub->base;
    return 0;
}

void embedded_unsubscribe(struct store_subscription *base)
{
    struct subscription *sub = container_of(base, struct subscription, base);
    struct pubsub *p = embedded_of(base->store)->pubsub;

    /* fn must not unsubscribe: the delivering thread, which calls fn, would wait for itself. */
    BUG_ON(pthread_equal(p->thread.id, pthread_self()));
    mutex_lock(&p->lock);
    list_remove(&sub->node);
    while (p->calling == sub)
        cond_wait(&p->changed, &p->lock);
    mutex_unlock(&p->lock);
    free(sub);
}
