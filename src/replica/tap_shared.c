/* Intents of requests that begin at once, and the thread that records what ended.
 *
 * An intent is a durable step of the store, so requests that come while one is being announced
 * share the next. A request that has ended is recorded a moment after it was answered, with others:
 * until then its intent is there, and would be recorded in its place if weir died (R1, R4). Its
 * phase ends with the record, so that an epoch still means that everything before is recorded.
 * During a switch, when reads go by the vectors, it is answered when it has been recorded. */
#include "base/clock.h"
#include "replica/tap_int.h"

#include <stdlib.h>

enum {
    SHARE_MAX = 64,   /* keys of one intent */
    RECORD_MAX = 256, /* requests that are recorded at once */
    LINGER_MS = 10,
    MS = 1000 * 1000,
};

/* A request that waits for its intent; of its own stack. */
struct joining {
    struct list node;
    const struct intended *i;
    bool relaxed;
    struct intent *in;
    size_t member;
    int code;
    struct err err;
    bool done;
};

/* A request that has ended. */
struct ended {
    struct list node;
    struct intent *in;
    struct str key; /* in the intent */
    unsigned phase;
    enum outcome outcome;
    bool last; /* all that share the intent are recorded with it */
};

/* --- announcing --- */

static bool same_place(const struct intended *a, const struct intended *b)
{
    return a->storage == b->storage && a->changes == b->changes && str_eq(a->bucket, b->bucket);
}

/* Takes those that go with the first out of the list; under the lock. */
static size_t gather(struct taps *t, struct joining **out)
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
    in->relaxed = t->o.boot.len;
    for (size_t i = 0; i < count; i++)
        in->relaxed &= some[i]->relaxed;
    int code = in->relaxed ? marks_ensure(t, in->storage, in->what.bucket, err) : 0;
    if (code == 0)
        code = intent_announce(t, in, err);
    if (code < 0) {
        intent_free(in);
        return code;
    }
    intent_keep(t, in);
    *out = in;
    return 0;
}

/* Under the lock, which is let go meanwhile. */
static void announce_first(struct taps *t)
{
    struct joining *some[SHARE_MAX] = {0};
    size_t count = gather(t, some);
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

int shared_begin(struct taps *t, const struct intended *i, bool relaxed, struct capture *out,
                 struct err *err)
{
    struct joining me = {.i = i, .relaxed = relaxed};

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

/* --- recording --- */

void shared_end(struct taps *t, const struct capture *c, enum outcome outcome)
{
    struct ended *e = xmalloc(sizeof(*e));
    struct intent *in = c->intent;

    *e = (struct ended){
        .in = in, .key = in->what.keys[c->member], .phase = c->phase, .outcome = outcome};
    mutex_lock(&t->lock);
    list_push(&t->over, &e->node);
    uint64_t number = ++t->over_count;
    bool wait = atomic_load(&t->switching);
    t->hurry += wait;
    if (t->recorder_asleep || wait)
        cond_signal(&t->over_wake);
    while (wait && t->over_recorded < number)
        cond_wait(&t->over_moved, &t->lock);
    t->hurry -= wait;
    mutex_unlock(&t->lock);
}

int recorder_wait(struct taps *t, uint64_t deadline_ns, struct err *err)
{
    int code = 0;

    mutex_lock(&t->lock);
    uint64_t number = t->over_count;
    t->hurry++;
    cond_signal(&t->over_wake);
    while (t->over_recorded < number && code == 0)
        if (!cond_wait_until(&t->over_moved, &t->lock, deadline_ns))
            code = err_set(err, ERR_TIMEOUT, "changes were not recorded in time");
    t->hurry--;
    mutex_unlock(&t->lock);
    return code;
}

/* What a switch waits for goes at once; others come along with those that end in a moment. */
static size_t take_ended(struct taps *t, struct ended **out)
{
    size_t count = 0;

    mutex_lock(&t->lock);
    t->recorder_asleep = true;
    while (list_empty(&t->over) && !t->recorder_stop)
        cond_wait(&t->over_wake, &t->lock);
    t->recorder_asleep = false;
    uint64_t until = clock_mono_ns() + (uint64_t)LINGER_MS * MS;
    while (!t->recorder_stop && !t->hurry && cond_wait_until(&t->over_wake, &t->lock, until))
        ;
    while (count < RECORD_MAX && !list_empty(&t->over)) {
        struct ended *e = list_entry(list_shift(&t->over), struct ended, node);
        e->in->left |= e->outcome == OUTCOME_UNKNOWN;
        e->last = --e->in->members == 0;
        out[count++] = e;
    }
    mutex_unlock(&t->lock);
    return count;
}

static int record_some(struct taps *t, struct ended **some, size_t count, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct str ids[RECORD_MAX];
    /* What is lost with a crash of the machine is lost with the end of the intents. */
    struct record rec = {.intents = ids, .relaxed = true};
    struct changes_out out;
    int code = changes_out_init(&out, &a, err);

    for (size_t i = 0; i < count && code == 0; i++) {
        const struct intent *in = some[i]->in;
        size_t first = out.count;
        if (some[i]->outcome != OUTCOME_REFUSED)
            changes_add(&out, in->what.changes, in->storage, in->what.bucket, some[i]->key, 0);
        for (size_t n = first; n < out.count; n++) /* R4 */
            out.items[n].late = some[i]->outcome == OUTCOME_UNKNOWN;
        if (some[i]->last && !in->left)
            ids[rec.intent_count++] = str_z(in->id);
    }
    if (code == 0)
        code = arena_error(&a);
    rec.changes = out.items;
    rec.count = out.count;
    if (code == 0)
        code = taps_record(t, &rec, err);
    arena_release(&a);
    return code;
}

/* What cannot be recorded now is when the intents come due. */
static void settle_some(struct taps *t, struct ended **some, size_t count)
{
    struct err err = {0};
    int code = record_some(t, some, count, &err);

    if (code < 0)
        log_warn(t->o.log, "replica.intents_left", log_s("storage", some[0]->in->storage),
                 log_u("requests", count), log_z("error", err.text));
    mutex_lock(&t->lock);
    for (size_t i = 0; i < count; i++) {
        struct intent *in = some[i]->in;
        in->left |= code < 0;
        phase_leave(t, some[i]->phase);
        if (some[i]->last) {
            list_remove(&in->node);
            intent_free(in);
        }
        free(some[i]);
    }
    t->over_recorded += count;
    cond_broadcast(&t->over_moved);
    mutex_unlock(&t->lock);
}

static void recorder_main(void *ctx)
{
    struct taps *t = ctx;
    struct ended *some[RECORD_MAX];
    size_t count;

    while ((count = take_ended(t, some)) > 0)
        settle_some(t, some, count);
}

int recorder_start(struct taps *t, struct err *err)
{
    return thread_start(&t->recorder, "tap-recorder", 0, recorder_main, t, err);
}

void recorder_stop(struct taps *t)
{
    mutex_lock(&t->lock);
    t->recorder_stop = true;
    cond_signal(&t->over_wake);
    mutex_unlock(&t->lock);
    thread_join(&t->recorder);
}
