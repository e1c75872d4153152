/* Shared intents. An intent is announced (its task is queued) by a durable step of the store, which
 * takes time. So requests that come while an intent is being announced share the next intent. */
#include "replica/tap/tap_int.h"

#include <stdlib.h>

enum { SHARE_MAX = 64 }; /* most keys of one intent */

/* A request that waits for its shared intent. The struct is on the stack of the request's
 * thread. */
struct joining {
    struct list node;
    const struct intended *i;
    struct intent *in;
    size_t member;
    int code;
    struct err err;
    bool done;
};

static bool same_place(const struct intended *a, const struct intended *b)
{
    return a->storage == b->storage && a->changes == b->changes && str_eq(a->bucket, b->bucket);
}

/* Takes the first waiting request out of the list, and the requests that can share its intent.
 * Returns their number. Called under the lock. */
static size_t joining_gather(struct taps *t, struct joining **out)
{
    size_t count = 0, bytes = 0;

    list_each (&t->joining, struct joining, node, j) {
        if (count == SHARE_MAX || (count && !same_place(out[0]->i, j->i)))
            continue;
        bytes += intent_key_len(j->i->keys[0]);
        if (count && bytes > INTENT_PAYLOAD_MAX)
            break;
        out[count++] = j;
    }
    for (size_t i = 0; i < count; i++)
        list_remove(&out[i]->node);
    return count;
}

static int announce_some(struct taps *t, struct joining **some, size_t count, struct intent **out,
                         struct err *err)
{
    struct str keys[SHARE_MAX];

    for (size_t i = 0; i < count; i++)
        keys[i] = some[i]->i->keys[0];
    struct intent *in = intent_new(some[0]->i, keys, count);
    in->shared = true;
    in->members = count;
    int code = intent_announce(t, in, INTENT_DELAY_S, err);
    if (code < 0) {
        intent_free(in);
        return code;
    }
    intent_keep(t, in);
    *out = in;
    return 0;
}

/* Announces an intent for the first waiting requests. Called under the lock, which is released
 * meanwhile. */
static void announce_first(struct taps *t)
{
    struct joining *some[SHARE_MAX] = {0};
    size_t count = joining_gather(t, some);
    struct intent *in = NULL;
    struct err err = {0};

    BUG_ON(count == 0);
    t->announcing = true;
    mutex_unlock(&t->lock);
    int code = announce_some(t, some, count, &in, &err);
    mutex_lock(&t->lock);
    t->announcing = false;
    for (size_t i = 0; i < count; i++) {
        some[i]->in = in;
        some[i]->member = i;
        some[i]->code = code;
        some[i]->err = err;
        some[i]->done = true;
    }
    cond_broadcast(&t->announced);
}

int shared_begin(struct taps *t, const struct intended *i, struct capture *out, struct err *err)
{
    struct joining me = {.i = i};

    mutex_lock(&t->lock);
    list_push(&t->joining, &me.node);
    while (!me.done) {
        if (t->announcing)
            cond_wait(&t->announced, &t->lock);
        else
            announce_first(t);
    }
    mutex_unlock(&t->lock);
    if (me.code < 0)
        return err_set(err, me.code, "%s", me.err.text);
    out->intent = me.in;
    out->member = me.member;
    return 0;
}

void shared_end(struct taps *t, const struct capture *c, enum outcome outcome)
{
    struct intent *in = c->intent;
    struct ended *e = c->noted;

    if (!e) {
        e = xzalloc(sizeof(*e));
        *e = (struct ended){
            .in = in,
            .what = {in->storage, in->what.bucket, in->what.keys[c->member], in->what.changes}};
    }
    e->phase = c->phase;
    e->outcome = outcome;
    recorder_take(t, e, true);
}
