/* This file keeps track of which buckets are replicated, and of the epoch of the policies that this
 * process has reached. It also starts and stops the taps of the local storages. The codes E3, E4,
 * R6 and S3 are those of docs/replication.md. */
#include "replica/tap/tap.h"
#include "base/clock.h"
#include "coord/gateways.h"
#include "replica/tap/tap_int.h"

#include <stdlib.h>

enum {
    TICK_MS = 100,
    SETTLE_MS = 1000,
    POSTPONE_MS = 15 * MS_PER_S,
};

/* Seeds of the hashes of users, and of buckets in a switch; the seed of other buckets is 0. */
static const uint64_t USER_SEED = 0x75736572, SWITCH_SEED = 0x73776974;

/* --- the filter --- */

static unsigned filter_bit(struct str storage, struct str name, uint64_t seed)
{
    return (unsigned)(hash_xxh3(name, hash_xxh3(storage, seed)) % FILTER_BITS);
}

static bool filter_has_bit(const struct filter *f, struct str storage, struct str name,
                           uint64_t seed)
{
    if (!atomic_load_explicit(&f->any, memory_order_acquire))
        return false;
    unsigned bit = filter_bit(storage, name, seed);
    uint64_t word = atomic_load_explicit(&f->words[bit / 64], memory_order_acquire);
    return word >> bit % 64 & 1;
}

bool filter_has(const struct filter *f, const struct filtered *what)
{
    return filter_has_bit(f, what->storage, what->bucket, 0) ||
           (what->changes & CHANGE_BUCKET_MADE &&
            filter_has_bit(f, what->storage, what->user, USER_SEED));
}

static unsigned switch_bit(struct str bucket)
{
    return (unsigned)(hash_xxh3(bucket, SWITCH_SEED) % SWITCH_BITS);
}

const _Atomic(bool) *taps_switching(const struct taps *t)
{
    return &t->switching;
}

bool taps_may_switch(const struct taps *t, struct str bucket)
{
    unsigned bit = switch_bit(bucket);

    return atomic_load(&t->switch_words[bit / 64]) >> bit % 64 & 1;
}

/* Sets every bit, so that every bucket counts as replicated until the policies were read. */
static void filter_all(struct taps *t)
{
    struct filter *f = &t->filter;

    for (size_t i = 0; i < ARRAY_SIZE(f->words); i++)
        atomic_store(&f->words[i], UINT64_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(t->switch_words); i++)
        atomic_store(&t->switch_words[i], UINT64_MAX);
    atomic_store(&f->any, true);
    atomic_store(&t->switching, true);
}

static void bits_set(uint64_t *words, unsigned bit)
{
    words[bit / 64] |= (uint64_t)1 << bit % 64;
}

static void bits_set_policy(uint64_t *words, const struct replication *r)
{
    const struct replication_id *id = &r->id;

    if (!id->bucket.len)
        bits_set(words, filter_bit(id->from, id->user, USER_SEED));
    else if (!r->archived || r->switching)
        bits_set(words, filter_bit(id->from, id->bucket, 0));
    if (r->switching || r->blocked) /* clients may change the destination too (S3) */
        bits_set(words, filter_bit(id->to, id->to_bucket.len ? id->to_bucket : id->bucket, 0));
}

/* Sets the filter by the policies. The bits are set before `any` becomes true, so a reader that
 * finds `any` true also finds the bits. */
static void filter_set(struct taps *t, const struct replication_view *view)
{
    const struct replication *const *all;
    size_t count = replication_view_all(view, &all);
    uint64_t *words = xcalloc(ARRAY_SIZE(t->filter.words), sizeof(*words));
    uint64_t switches[ARRAY_SIZE(t->switch_words)] = {0};
    bool switching = false;

    for (size_t i = 0; i < count; i++) {
        bits_set_policy(words, all[i]);
        if (all[i]->switching)
            bits_set(switches, switch_bit(all[i]->id.bucket));
        switching |= all[i]->switching;
    }
    for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
        atomic_store(&t->switch_words[i], switches[i]);
    if (switching) /* set first, so that a reader that finds a switch's bit also finds this true */
        atomic_store(&t->switching, true);
    for (size_t i = 0; i < ARRAY_SIZE(t->filter.words); i++)
        atomic_store(&t->filter.words[i], words[i]);
    atomic_store(&t->filter.any, count > 0);
    if (!switching)
        atomic_store(&t->switching, false);
    free(words);
}

/* --- local storages --- */

struct tap *taps_find(struct taps *t, const struct storage *s)
{
    size_t count = atomic_load(&t->tap_count);

    for (size_t i = 0; i < count; i++)
        if (t->taps[i]->storage == s)
            return t->taps[i];
    return NULL;
}

static int tap_new_storages(struct taps *t, struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(t->o.routes, all, ARRAY_SIZE(all));
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        size_t have = atomic_load(&t->tap_count);
        if (!storage_can(all[i], STORAGE_TELLS_CHANGES) || taps_find(t, all[i]))
            continue;
        if (have == ARRAY_SIZE(t->taps))
            return err_set(err, ERR_TOO_LARGE,
                           "storage " STR_FMT " is one too many for this process, which has had "
                           "%zu: start it anew",
                           STR_ARG(all[i]->name), have);
        code = tap_start(&t->taps[have], t, all[i], err);
        if (code == 0)
            atomic_store(&t->tap_count, have + 1);
    }
    return code;
}

/* Waits until the changes that began under the old filter are committed. */
static int settle_all(struct taps *t, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < atomic_load(&t->tap_count) && code == 0; i++)
        code = local_tap_settle(t->taps[i]->storage, err);
    return code;
}

/* --- the keeper --- */

/* Brings the filter up to date with the policies. A new storage gets its tap first, before a policy
 * can name the storage as a source. */
static int keep_filter(struct taps *t, struct err *err)
{
    struct replication_view *view = NULL;
    struct err away = {0};

    if (replications_view(t->o.replications, &view, &away) < 0)
        return 0; /* no policies were read yet, so every bucket is captured */
    int code = tap_new_storages(t, err);
    int64_t epoch = replication_view_epoch(view);
    if (code == 0 && epoch != t->applied) {
        filter_set(t, view);
        code = routes_reload(t->o.routes, err); /* the routes may be older than the view */
        if (code == 0)
            code = settle_all(t, err);
        if (code == 0)
            t->applied = epoch;
    }
    replication_view_unref(view);
    return code;
}

/* Returns whether each tap has recorded its rows up to tap.goal. These are the rows that were
 * committed before the last write of the previous phase ended (see keep_epoch()). */
static bool is_recorded(struct taps *t)
{
    for (size_t i = 0; i < atomic_load(&t->tap_count); i++) {
        struct tap *tap = t->taps[i];
        mutex_lock(&tap->lock);
        bool is = atomic_load(&tap->caught_up) && tap->recorded >= tap->goal;
        mutex_unlock(&tap->lock);
        if (!is)
            return false;
    }
    return true;
}

/* Removes the marks of buckets that have a switch. Returns false when some of these marks are left.
 * An epoch is reached only when none is left: a switch begins at its epoch, and from then on the
 * intents of its bucket must be tasks, and not entries of the journal (R6). */
static bool are_marks_clear(struct taps *t)
{
    struct err err = {0};
    int code = marks_clear_switched(t, &err);

    if (code < 0 && code != ERR_BUSY)
        log_warn(t->o.log, "replica.marks_left", log_z("error", err.text));
    return code == 0;
}

/* Moves to the next epoch. Captured writes are counted by the *phase* in which they began. After
 * the filter and the routes have changed, a new phase begins. When all writes of the previous phase
 * have ended, every write that is under way began with the new filter and routes. */
static void keep_epoch(struct taps *t)
{
    unsigned phase = atomic_load(&t->phase);

    if (t->pending >= 0 && !t->ended && atomic_load(&t->under_way[(phase + 1) % 2]) == 0) {
        t->ended = true;
        for (size_t i = 0; i < atomic_load(&t->tap_count); i++)
            t->taps[i]->goal = atomic_load(&t->taps[i]->told);
    }
    if (t->pending >= 0 && t->ended && is_recorded(t) && are_marks_clear(t)) {
        atomic_store(&t->held, t->pending);
        t->pending = -1;
        t->ended = false;
    }
    if (t->pending < 0 && t->applied != atomic_load(&t->held)) {
        t->pending = t->applied;
        atomic_store(&t->phase, phase + 1);
    }
}

/* Tells other processes up to which time this process has recorded its changes, so that they can
 * say whether a replication is in sync. Each round reads the store's time, and then the number of
 * the highest row of each storage. When all of these rows are recorded, a later round reports that
 * everything before that time is recorded. */
static void keep_settled(struct taps *t)
{
    struct str names[ROUTES_STORAGES_MAX];
    size_t count = 0, all = atomic_load(&t->tap_count);
    int64_t now_ms = 0;
    struct err err = {0};

    if (!t->o.config || all == 0 || !atomic_load(&t->filter.any) ||
        clock_mono_ns() - t->settled_ns < SETTLE_MS * NS_PER_MS)
        return;
    t->settled_ns = clock_mono_ns();
    for (size_t i = 0; i < all; i++) {
        struct tap *tap = t->taps[i];
        mutex_lock(&tap->lock);
        if (!tap_name_lost(tap) && atomic_load(&tap->caught_up) && tap->recorded >= tap->settling)
            names[count++] = tap->storage->name;
        mutex_unlock(&tap->lock);
    }
    if (t->settling_ms == 0)
        count = 0;
    if (gateways_settle(t->o.config, names, count, t->settling_ms, &now_ms, &err) < 0)
        return; /* until the next round other processes count these storages as behind */
    t->settling_ms = now_ms;
    for (size_t i = 0; i < all; i++)
        t->taps[i]->settling = atomic_load(&t->taps[i]->told);
}

/* Does a round of the keeper. The round queues the intents that leave_intent() made for changes
 * that ended after the lease. It also brings the filter up to date with the policies. Both must be
 * done before a new lease begins (E3, E4), so the lease's thread may be waiting for the round. */
static void keep_round(struct taps *t)
{
    struct err err = {0}, other = {0};

    mutex_lock(&t->lock);
    uint64_t asked = t->rounds_asked;
    bool waited_for = asked != t->rounds_done;
    mutex_unlock(&t->lock);
    int code = keep_filter(t, &err), left = intents_announce_astray(t, &other);
    if (code == 0 && left < 0) {
        err = other;
        code = left; /* other.code may be 0: not every failure sets it */
    }
    /* If the lease waits for the round, the lease's thread logs the error. */
    if (code < 0 && !waited_for)
        log_warn(t->o.log, "replica.tap_policies", log_z("error", err.text));
    mutex_lock(&t->lock);
    t->rounds_done = asked;
    t->round_code = code;
    t->round_err = err;
    cond_broadcast(&t->round_ended);
    mutex_unlock(&t->lock);
}

/* Waits until the keeper has done a round that began after the call. The lease calls this before a
 * new lease begins (lease_read_first()). */
static int await_round(void *ctx, struct err *err)
{
    struct taps *t = ctx;

    mutex_lock(&t->lock);
    uint64_t mine = ++t->rounds_asked;
    mutex_unlock(&t->lock);
    loop_wake(&t->keeper);
    mutex_lock(&t->lock);
    while (t->rounds_done < mine)
        cond_wait(&t->round_ended, &t->lock);
    int code = t->round_code;
    if (code < 0 && err)
        *err = t->round_err;
    mutex_unlock(&t->lock);
    return code;
}

static int64_t epoch_held(void *ctx)
{
    return taps_epoch(ctx);
}

static void keep_once(struct taps *t)
{
    uint64_t every = (t->o.postpone_ms ? t->o.postpone_ms : POSTPONE_MS) * NS_PER_MS;

    keep_round(t);
    keep_epoch(t);
    names_keep(t);
    keep_settled(t);
    if (clock_mono_ns() - t->postponed_ns < every)
        return;
    t->postponed_ns = clock_mono_ns();
    intents_postpone(t);
    marks_keep(t);
}

static struct loop_sleep taps_keeper_step(void *ctx)
{
    struct taps *t = ctx;

    if (!t->marks_began) {
        marks_keep(t);
        t->marks_began = true;
    }
    keep_once(t);
    return loop_sleep_ms(TICK_MS);
}

/* --- opening and closing --- */

int taps_record(struct taps *t, const struct record *rec, struct err *err)
{
    return (t->o.record ? t->o.record : replication_record)(t->o.replications, rec, err);
}

int taps_open(struct taps **out, const struct taps_options *o, struct err *err)
{
    struct taps *t = xcalloc(1, sizeof(*t));

    t->o = *o;
    t->capture = (struct change_capture){intent_begin, intent_check, intent_end, t};
    t->applied = t->pending = -1;
    t->postponed_ns = clock_mono_ns();
    atomic_init(&t->held, -1);
    list_init(&t->open);
    list_init(&t->astray);
    list_init(&t->joining);
    list_init(&t->over);
    cond_init(&t->announced);
    cond_init(&t->over_wake);
    cond_init(&t->over_moved);
    list_init(&t->held_locks);
    cond_init(&t->lock_moved);
    mutex_init(&t->lock, "replica.intents");
    cond_init(&t->round_ended);
    filter_all(t);
    map_init(&t->marks);
    bool kept = false;
    notes_open(t, &kept);
    int code = marks_load(t, kept, err);
    if (code == 0)
        code = tap_new_storages(t, err);
    if (code == 0)
        code = recorder_start(t, err);
    if (code == 0)
        code = notes_take_left(t, err);
    if (code == 0)
        code =
            loop_start(&t->keeper, &(struct loop_options){"tap-keeper", taps_keeper_step, t}, err);
    if (code < 0) {
        taps_close(t);
        return code;
    }
    if (o->lease) {
        lease_read_first(o->lease, await_round, t);
        lease_tell_epoch(o->lease, epoch_held, t);
    }
    *out = t;
    return 0;
}

void taps_close(struct taps *t)
{
    if (!t)
        return;
    bool kept = t->keeper.thread.started;
    recorder_stop(t);
    loop_stop(&t->keeper);
    if (kept && !t->marks_began) /* taps_close() was called before the keeper's first step */
        marks_keep(t);
    intents_forget_astray(t);
    for (size_t i = 0; i < atomic_load(&t->tap_count); i++)
        tap_stop(t->taps[i]);
    marks_release(t);
    journal_close(t->journal);
    BUG_ON(!list_empty(&t->open) || !list_empty(&t->held_locks));
    cond_release(&t->lock_moved);
    cond_release(&t->round_ended);
    cond_release(&t->announced);
    cond_release(&t->over_wake);
    cond_release(&t->over_moved);
    mutex_release(&t->lock);
    free(t);
}

const struct change_capture *taps_capture(struct taps *t)
{
    return &t->capture;
}

int64_t taps_epoch(struct taps *t)
{
    return atomic_load(&t->held);
}

bool taps_ready(struct taps *t, struct storage *s)
{
    struct tap *tap = taps_find(t, s);

    return !tap || (atomic_load(&tap->ready) && !tap_name_lost(tap));
}

int taps_flush(struct taps *t, struct storage *s, uint64_t number, uint64_t deadline_ns,
               struct err *err)
{
    struct tap *tap = taps_find(t, s);

    return tap ? tap_wait(tap, number, deadline_ns, err) : 0;
}

int taps_settle(struct taps *t, struct storage *s, uint64_t deadline_ns, struct err *err)
{
    struct tap *tap = taps_find(t, s);

    if (!tap)
        return 0;
    if (!atomic_load(&tap->caught_up))
        return err_set(err, ERR_UNAVAILABLE, "changes from before the start are not recorded yet");
    int code = local_tap_settle(s, err);
    return code == 0 ? tap_wait(tap, atomic_load(&tap->told), deadline_ns, err) : code;
}

int taps_await(struct taps *t, const struct storage *s, uint64_t deadline_ns, struct err *err)
{
    struct tap *tap = s ? taps_find(t, s) : NULL;

    if (!s)
        return recorder_wait(t, deadline_ns, err);
    if (!tap) /* the storage is remote, or so new that nothing was written to it */
        return 0;
    if (!atomic_load(&tap->caught_up))
        return err_set(err, ERR_UNAVAILABLE, "changes from before the start are not recorded yet");
    return tap_wait(tap, atomic_load(&tap->told), deadline_ns, err);
}

void taps_stats(struct taps *t, struct taps_stats *out)
{
    *out = (struct taps_stats){.recorded = atomic_load(&t->count_recorded),
                               .intents = atomic_load(&t->count_intents)};
    mutex_lock(&t->lock);
    list_each (&t->open, struct intent, node, i)
        out->open++;
    out->open += atomic_load(&t->noted);
    out->ended = t->over_count - t->over_recorded;
    mutex_unlock(&t->lock);
}
