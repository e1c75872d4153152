/* The requests under way in a sharded bucket, and the map that they obey (T1 and T2 are in
 * table.h). */
#include "shard/table.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"
#include "os/thread.h"

#include <stdalign.h>
#include <stdlib.h>

enum { TABLE_STRIPES = 64, CACHE_LINE = 64 };

/* An installed map. It is kept until every stripe has replaced it and no pass uses it any more. */
struct table_map {
    alignas(CACHE_LINE) struct shard_map *map; /* a reference */
    _Atomic(unsigned) stripes;                 /* number of stripes that use the map */
    struct {
        alignas(CACHE_LINE) unsigned passes; /* number of the stripe's passes that use it;
                                                guarded by the stripe's lock */
    } use[TABLE_STRIPES];
};

struct table_stripe {
    alignas(CACHE_LINE) struct mutex lock; /* lock class "shard.stripe" */
    struct table_map *map;
    struct list passes;
};

struct shard_table {
    struct table_stripe stripes[TABLE_STRIPES];
    uint64_t seed; /* seed of the hash that chooses the stripe of a key */
    /* How many threads wait for passes to end. A pass that ends reads this number, and wakes the
     * threads. */
    alignas(CACHE_LINE) _Atomic(unsigned) drainers;

    alignas(CACHE_LINE) table_open_fn *open;
    void *ctx;
    uint64_t wait_ns, patience_ns;

    /* Lock class "shard.table". It is held while a map is installed in all stripes. So the
     * thread that holds the lock finds the same map in all stripes. Locks of stripes are taken
     * under it. */
    struct mutex lock;
    struct table_map *current;
    struct cond installed; /* a map was installed, or a thread has tried to open a window */
    struct cond left;      /* a pass ended while there were drainers */
    unsigned waiting;      /* number of threads that wait for a closed key */
    /* Number of requests that have waited, and of those that were refused because the key stayed
     * closed. */
    uint64_t waits, refusals;
    bool opening;           /* a thread calls open() */
    uint64_t open_after_ns; /* no thread calls open() before this time */
};

/* --- life --- */

static void *table_alloc(size_t size)
{
    void *p = aligned_alloc(CACHE_LINE, size);

    BUG_ON(!p);
    memset(p, 0, size);
    return p;
}

/* Takes over the caller's reference to the map. */
static struct table_map *table_map_new(struct shard_map *m)
{
    struct table_map *held = table_alloc(sizeof(*held));

    held->map = m;
    atomic_init(&held->stripes, TABLE_STRIPES);
    return held;
}

/* Ends one stripe's use of the map. */
static void table_map_release(struct table_map *held)
{
    if (atomic_fetch_sub_explicit(&held->stripes, 1, memory_order_acq_rel) > 1)
        return;
    map_unref(held->map);
    free(held);
}

struct shard_table *table_new(struct shard_map *first, table_open_fn *open, void *ctx)
{
    struct shard_table *t = table_alloc(sizeof(*t));

    t->seed = random_u64();
    t->open = open;
    t->ctx = ctx;
    t->wait_ns = PASS_WAIT_MS * NS_PER_MS;
    t->patience_ns = PASS_PATIENCE_MS * NS_PER_MS;
    t->current = table_map_new(map_ref(first));
    mutex_init(&t->lock, "shard.table");
    cond_init(&t->installed);
    cond_init(&t->left);
    for (int i = 0; i < TABLE_STRIPES; i++) {
        mutex_init(&t->stripes[i].lock, "shard.stripe");
        list_init(&t->stripes[i].passes);
        t->stripes[i].map = t->current;
    }
    return t;
}

void table_free(struct shard_table *t)
{
    if (!t)
        return;
    BUG_ON(t->waiting);
    for (int i = 0; i < TABLE_STRIPES; i++) {
        BUG_ON(!list_empty(&t->stripes[i].passes));
        table_map_release(t->stripes[i].map);
        mutex_release(&t->stripes[i].lock);
    }
    cond_release(&t->left);
    cond_release(&t->installed);
    mutex_release(&t->lock);
    free(t);
}

struct shard_map *table_map(struct shard_table *t)
{
    mutex_lock(&t->lock);
    struct shard_map *m = map_ref(t->current->map);
    mutex_unlock(&t->lock);
    return m;
}

void table_set_times(struct shard_table *t, uint64_t wait_ms, uint64_t patience_ms)
{
    t->wait_ns = wait_ms * NS_PER_MS;
    t->patience_ns = patience_ms * NS_PER_MS;
}

unsigned table_waiting(struct shard_table *t)
{
    mutex_lock(&t->lock);
    unsigned waiting = t->waiting;
    mutex_unlock(&t->lock);
    return waiting;
}

void table_waits(struct shard_table *t, uint64_t *waits, uint64_t *refusals)
{
    mutex_lock(&t->lock);
    *waits = t->waits;
    *refusals = t->refusals;
    mutex_unlock(&t->lock);
}

/* --- waiting for a closed key --- */

/* The time limits of one waiting request. */
struct table_wait {
    uint64_t deadline_ns; /* 0: the request has not begun to wait */
    uint64_t patience_ns; /* time at which the request opens the window itself */
};

static void table_wait_begin(struct shard_table *t, struct table_wait *w)
{
    uint64_t now = clock_mono_ns();

    if (w->deadline_ns)
        return;
    w->deadline_ns = now + t->wait_ns;
    w->patience_ns = now + t->patience_ns;
}

/* Calls open() for the window that map `number` has closed. Only one thread at a time does so. The
 * lock is held before and after the call, but not during open(). */
static void table_try_open(struct shard_table *t, uint64_t number)
{
    t->opening = true;
    mutex_unlock(&t->lock);
    t->open(t->ctx, number);
    mutex_lock(&t->lock);
    t->opening = false;
    t->open_after_ns = clock_mono_ns() + t->patience_ns;
    cond_broadcast(&t->installed); /* so that another waiting thread can be the next to try */
}

/* Waits until a map above `number` is installed. Map `number` has closed a key of the request. */
static int table_wait_for(struct shard_table *t, struct table_wait *w, uint64_t number,
                          struct err *err)
{
    int code = 0;

    table_wait_begin(t, w);
    mutex_lock(&t->lock);
    t->waiting++;
    t->waits++;
    while (t->current->map->number <= number) {
        uint64_t now = clock_mono_ns(), until = w->deadline_ns;
        uint64_t open_at = w->patience_ns > t->open_after_ns ? w->patience_ns : t->open_after_ns;
        if (now >= w->deadline_ns) {
            code = err_set(err, ERR_BUSY, "the key is being moved to another shard");
            t->refusals++;
            break;
        }
        if (t->open && !t->opening && now >= open_at) {
            table_try_open(t, number);
            continue;
        }
        if (t->open && !t->opening && open_at < until)
            until = open_at;
        cond_wait_until(&t->installed, &t->lock, until);
    }
    t->waiting--;
    mutex_unlock(&t->lock);
    return code;
}

/* --- passes --- */

static unsigned table_stripe_of(const struct shard_table *t, struct str key)
{
    return hash_xxh3(key, t->seed) % TABLE_STRIPES;
}

static int pass_check_state(const struct shard_map *m, struct err *err)
{
    if (m->state == SHARD_DELETING)
        return err_set(err, ERR_CONFLICT, "the bucket is being deleted");
    if (m->state == SHARD_PLAIN)
        return err_set(err, ERR_NO_BUCKET, "the bucket is not sharded any more");
    return 0;
}

/* Adds the pass to its stripe. ERR_AGAIN: a map has closed the pass's key, and *number is the
 * number of that map. The caller has set use, stripe, and the key or the beginning of the window in
 * `out`. */
static int pass_link(struct shard_table *t, struct pass *out, uint64_t *number, struct err *err)
{
    struct table_stripe *stripe = &t->stripes[out->stripe];

    mutex_lock(&stripe->lock);
    const struct shard_map *m = stripe->map->map;
    int code = pass_check_state(m, err);
    if (code == 0 && out->is_window) {
        out->segment = map_segment_after(m, out->window.after);
        out->window.upto = map_window(m, out->segment).upto;
    }
    if (code == 0 &&
        (out->is_window ? map_closes_window(m, &out->window) : map_closes(m, out->window.upto))) {
        code = ERR_AGAIN;
        *number = m->number;
    }
    if (code == 0) {
        out->table = t;
        out->held = stripe->map;
        out->map = m;
        out->held->use[out->stripe].passes++;
        list_push(&stripe->passes, &out->node);
    }
    mutex_unlock(&stripe->lock);
    if (code == 0 && !out->is_window)
        out->segment = map_segment_of(m, out->window.upto);
    return code;
}

static void pass_init(struct shard_table *t, struct pass *out, struct str key, enum pass_use use,
                      bool is_window)
{
    *out = (struct pass){
        .use = use,
        .is_window = is_window,
        .stripe = table_stripe_of(t, key),
        .since_ns = clock_mono_ns(),
    };
    *(is_window ? &out->window.after : &out->window.upto) = key;
}

static int pass_take_one(struct shard_table *t, bool may_wait, struct pass *out, struct err *err)
{
    struct table_wait wait = {0};
    uint64_t number;
    int code;

    while ((code = pass_link(t, out, &number, err)) == ERR_AGAIN) {
        if (!may_wait)
            return err_code(err, ERR_AGAIN);
        code = table_wait_for(t, &wait, number, err);
        if (code < 0)
            return code;
        out->since_ns = clock_mono_ns();
    }
    return code;
}

int pass_take(struct shard_table *t, struct str key, enum pass_use use, bool may_wait,
              struct pass *out, struct err *err)
{
    pass_init(t, out, key, use, false);
    return pass_take_one(t, may_wait, out, err);
}

int pass_take_after(struct shard_table *t, struct str after, struct pass *out, struct err *err)
{
    pass_init(t, out, after, PASS_READ, true);
    return pass_take_one(t, true, out, err);
}

/* Adds a pass for each key. After an error none is added. ERR_AGAIN: one of the keys is closed by
 * map *number, or the passes got different maps (*number is 0). */
static int pass_link_all(struct shard_table *t, const struct str *keys, size_t count,
                         enum pass_use use, struct pass *out, uint64_t *number, struct err *err)
{
    size_t linked = 0;
    int code = 0;

    for (; linked < count && code == 0; linked++) {
        pass_init(t, &out[linked], keys[linked], use, false);
        code = pass_link(t, &out[linked], number, err);
        if (code == 0 && out[linked].held != out[0].held) {
            code = ERR_AGAIN;
            *number = 0;
        }
    }
    for (size_t i = 0; code < 0 && i < linked; i++)
        pass_leave(&out[i]);
    return code;
}

int pass_take_all(struct shard_table *t, const struct str *keys, size_t count, enum pass_use use,
                  struct pass *out, struct err *err)
{
    struct table_wait wait = {0};
    uint64_t number = 0;
    int code;

    BUG_ON(count > PASS_KEYS_MAX);
    for (size_t i = 0; i < count; i++)
        out[i] = (struct pass){0};
    while ((code = pass_link_all(t, keys, count, use, out, &number, err)) == ERR_AGAIN) {
        /* With number 0 this waits until the map that is being installed is in all stripes. */
        code = table_wait_for(t, &wait, number, err);
        if (code < 0)
            return code;
    }
    return code;
}

static void table_wake_drainers(struct shard_table *t)
{
    /* Both sides use sequentially consistent atomics. A pass first ends and then reads `drainers`;
     * a drainer first counts itself in `drainers` and then looks for passes. So at least one of the
     * two sees the other. */
    if (atomic_load(&t->drainers) == 0)
        return;
    mutex_lock(&t->lock);
    cond_broadcast(&t->left);
    mutex_unlock(&t->lock);
}

void pass_head(struct pass *p)
{
    if (!p->table)
        return;
    atomic_store(&p->has_head, true);
    table_wake_drainers(p->table);
}

void pass_leave(struct pass *p)
{
    struct shard_table *t = p->table;

    if (!t)
        return;
    struct table_stripe *stripe = &t->stripes[p->stripe];
    struct table_map *held = p->held;
    mutex_lock(&stripe->lock);
    list_remove(&p->node);
    bool last = --held->use[p->stripe].passes == 0 && stripe->map != held;
    mutex_unlock(&stripe->lock);
    p->table = NULL;
    if (last)
        table_map_release(held);
    table_wake_drainers(t);
}

/* --- installing, draining --- */

bool table_install(struct shard_table *t, struct shard_map *m)
{
    bool newer;

    mutex_lock(&t->lock);
    newer = m->number > t->current->map->number;
    if (newer) {
        t->current = table_map_new(map_ref(m));
        for (int i = 0; i < TABLE_STRIPES; i++) {
            struct table_stripe *stripe = &t->stripes[i];
            mutex_lock(&stripe->lock);
            struct table_map *old = stripe->map;
            bool idle = old->use[i].passes == 0;
            stripe->map = t->current;
            mutex_unlock(&stripe->lock);
            if (idle)
                table_map_release(old);
        }
        cond_broadcast(&t->installed);
        cond_broadcast(&t->left); /* a drainer that waits under an older map gives up */
    }
    mutex_unlock(&t->lock);
    return newer;
}

/* Whether the closed window of the map cannot be drained yet because of this pass. */
static bool pass_blocks(const struct pass *p, const struct shard_map *m)
{
    if (p->map->number >= m->number || (p->use == PASS_READ && atomic_load(&p->has_head)))
        return false;
    return p->is_window ? map_closes_window(m, &p->window) : map_closes(m, p->window.upto);
}

/* Does what table_drained() does. The caller holds the lock. */
static bool table_is_drained(struct shard_table *t, uint64_t number)
{
    const struct shard_map *m = t->current->map;
    bool drained = m->number == number;

    mutex_assert_held(&t->lock);
    for (int i = 0; i < TABLE_STRIPES && drained; i++) {
        mutex_lock(&t->stripes[i].lock);
        list_each (&t->stripes[i].passes, struct pass, node, p) {
            if (pass_blocks(p, m)) {
                drained = false;
                break;
            }
        }
        mutex_unlock(&t->stripes[i].lock);
    }
    return drained;
}

bool table_drained(struct shard_table *t, uint64_t number)
{
    return table_drain(t, number, 0);
}

bool table_drain(struct shard_table *t, uint64_t number, uint64_t deadline_ns)
{
    bool drained, in_time = true;

    mutex_lock(&t->lock);
    atomic_fetch_add(&t->drainers, 1);
    while (!(drained = table_is_drained(t, number)) && in_time && t->current->map->number == number)
        in_time = deadline_ns && cond_wait_until(&t->left, &t->lock, deadline_ns);
    atomic_fetch_sub(&t->drainers, 1);
    mutex_unlock(&t->lock);
    return drained;
}

void table_await(struct shard_table *t, uint64_t number, uint64_t deadline_ns)
{
    bool in_time = true;

    mutex_lock(&t->lock);
    while (in_time && t->current->map->number == number)
        in_time = cond_wait_until(&t->installed, &t->lock, deadline_ns);
    mutex_unlock(&t->lock);
}

/* Finds the first key of the pass in the window. Stores it in `key` if it is smaller than `key`. */
static void pass_note_busy(const struct pass *p, const struct shard_window *w, struct buf *key)
{
    struct str first = p->window.upto;
    bool follows = false; /* the first key is `first` followed by one zero byte */

    if (p->is_window) {
        if (!window_overlaps(&p->window, w))
            return;
        first = str_cmp(p->window.after, w->after) > 0 ? p->window.after : w->after;
        follows = true;
    } else if (!window_has(w, first)) {
        return;
    }
    int order = key->len ? str_cmp(first, buf_str(key)) : -1;
    if (order >= 0)
        return;
    buf_reset(key);
    buf_append_str(key, first);
    if (follows)
        buf_append_char(key, 0);
}

struct str table_smallest_busy(struct shard_table *t, const struct shard_window *w, uint64_t age_ns,
                               struct arena *a)
{
    uint64_t now = clock_mono_ns();
    struct buf key = {0};

    for (int i = 0; i < TABLE_STRIPES; i++) {
        mutex_lock(&t->stripes[i].lock);
        list_each (&t->stripes[i].passes, struct pass, node, p) {
            bool old = now >= p->since_ns && now - p->since_ns >= age_ns;
            if (old && !(p->use == PASS_READ && atomic_load(&p->has_head)))
                pass_note_busy(p, w, &key);
        }
        mutex_unlock(&t->stripes[i].lock);
    }
    struct str smallest = arena_str(a, buf_str(&key));
    buf_release(&key);
    return smallest;
}
