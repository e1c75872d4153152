/* The recorder: the thread that records ended requests to remote storages.
 *
 * A request is recorded a moment after it was answered, together with other requests. Until then
 * its intent exists. If weir died now, the next process would find the intent and record the change
 * (docs/replication.md, R1 and R4). A request counts in its phase until it is recorded, or is left
 * to a task. So when an epoch is reached, every earlier change is recorded or has a task. During a
 * switch, when version vectors decide where reads go, the answer waits for the record. */
#include "base/clock.h"
#include "replica/tap/tap_int.h"

#include <stdlib.h>

enum {
    RECORD_MAX = 256, /* most requests in one record */
    LINGER_MS = 10,
    RETRY_MS = 200,
    SWITCH_WAIT_MS = 5000,
};

/* --- handing requests over --- */

void recorder_take(struct taps *t, struct ended *e, bool answers)
{
    mutex_lock(&t->lock);
    list_push(&t->over, &e->node);
    uint64_t number = ++t->over_count;
    bool wait = answers && atomic_load(&t->switching);
    t->hurry += wait;
    if (t->recorder_asleep || wait)
        cond_signal(&t->over_wake);
    uint64_t until = wait ? clock_mono_ns() + SWITCH_WAIT_MS * NS_PER_MS : 0;
    while (wait && t->over_recorded < number &&
           /* cond_wait_until() returns false when `until` is reached; then the wait ends. */
           cond_wait_until(&t->over_moved, &t->lock, until))
        ;
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

/* --- the thread --- */

/* Takes requests out of the list `over`. Waits until the list has a request, and then a moment for
 * more requests, unless a caller waits for a record. Returns the number of requests taken; 0: the
 * recorder stops. */
static size_t take_ended(struct taps *t, struct ended **out)
{
    size_t count = 0;

    mutex_lock(&t->lock);
    t->recorder_asleep = true;
    while (list_empty(&t->over) && !t->recorder_stop)
        cond_wait(&t->over_wake, &t->lock);
    t->recorder_asleep = false;
    uint64_t until = clock_mono_ns() + LINGER_MS * NS_PER_MS;
    while (!t->recorder_stop && !t->hurry && cond_wait_until(&t->over_wake, &t->lock, until))
        ;
    while (count < RECORD_MAX && !list_empty(&t->over)) {
        struct ended *e = list_entry(list_shift(&t->over), struct ended, node);
        if (e->in) {
            e->in->left |= e->outcome == OUTCOME_UNKNOWN;
            e->last = --e->in->members == 0;
        }
        out[count++] = e;
    }
    mutex_unlock(&t->lock);
    return count;
}

/* Makes tasks for requests whose intents are in the journal. `all` true: for all of them that may
 * have changed something; false: only for those whose outcome is not known. The task of a request
 * records its change when it comes due. */
static int leave_tasks(struct taps *t, struct ended **some, size_t count, bool all, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        struct ended *e = some[i];
        bool wanted = all ? e->outcome != OUTCOME_REFUSED : e->outcome == OUTCOME_UNKNOWN;
        if (e->in || e->left || !wanted)
            continue;
        code = note_leave(t, e, err);
        e->left = code == 0;
    }
    return code;
}

static int record_some(struct taps *t, struct ended **some, size_t count, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct str ids[RECORD_MAX];
    /* The record need not be synced. It also ends the intents, so a crash that loses the record
     * brings the intents back. */
    struct record rec = {.intents = ids, .relaxed = true};
    struct changes_out out;
    int code = changes_out_init(&out, &a, err);

    if (code == 0)
        code = leave_tasks(t, some, count, false, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        const struct ended *e = some[i];
        const struct journal_entry *w = &e->what;
        size_t first = out.count;
        if (e->outcome != OUTCOME_REFUSED)
            changes_add(&out, w->changes, w->storage, w->bucket, w->key, 0);
        /* A change whose outcome is not known must not get a higher number than a later write to
         * the other storage, so it is recorded as late (R4). */
        for (size_t n = first; n < out.count; n++)
            out.items[n].late = e->outcome == OUTCOME_UNKNOWN;
        if (e->in && e->last && !e->in->left)
            ids[rec.intent_count++] = str_z(e->in->id);
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

/* Waits before another try. Returns false when the recorder stops. */
static bool pause_retry(struct taps *t)
{
    uint64_t until = clock_mono_ns() + RETRY_MS * NS_PER_MS;

    mutex_lock(&t->lock);
    while (!t->recorder_stop && cond_wait_until(&t->over_wake, &t->lock, until))
        ;
    bool go_on = !t->recorder_stop;
    mutex_unlock(&t->lock);
    return go_on;
}

/* Records requests. If that fails, the task of each intent records its change later. An entry of
 * the journal has no task yet, so one is made. If the store refuses that task too, the recorder
 * tries again until the store accepts it or weir stops. */
static int record_surely(struct taps *t, struct ended **some, size_t count)
{
    struct err err = {0};
    int code;

    while ((code = record_some(t, some, count, &err)) < 0) {
        if (!atomic_load(&t->stuck))
            log_warn(t->o.log, "replica.intents_left", log_s("storage", some[0]->what.storage),
                     log_u("requests", count), log_z("error", err.text));
        if (leave_tasks(t, some, count, true, &err) == 0)
            break;
        atomic_store(&t->stuck, true);
        if (!pause_retry(t))
            break;
    }
    atomic_store(&t->stuck, false);
    return code;
}

static void settle_some(struct taps *t, struct ended **some, size_t count)
{
    int code = record_surely(t, some, count);

    for (size_t i = 0; i < count; i++) {
        const struct ended *e = some[i];
        if (!e->in)
            note_end(t, e, code == 0 || e->left || e->outcome == OUTCOME_REFUSED);
    }
    mutex_lock(&t->lock);
    for (size_t i = 0; i < count; i++) {
        struct intent *in = some[i]->in;
        phase_leave(t, some[i]->phase);
        if (in)
            in->left |= code < 0;
        if (in && some[i]->last) {
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
