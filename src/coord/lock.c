/* Locks in the store, and the thread that renews held locks (coord/lock.h). */
#include "coord/lock.h"

#include "base/clock.h"
#include "base/ids.h"
#include "coord/scripts.h"
#include "os/loop.h"

#include <stdlib.h>

enum {
    TTL_MS = 10000,
    REFRESH_PARTS = 3, /* number of renewals in a lock's time to live, so that one may fail */
    /* A lock counts as lost when the last tenth of its time to live begins (C1). */
    MARGIN_PARTS = 10,
    WAIT_MS = 50, /* pause between two attempts to take a lock */
    LOCK_ARENA_MAX = 4 * 1024 * 1024,
};

struct lock {
    struct list node; /* in locks.held */
    struct locks *locks;
    char *key;
    size_t key_len;
    char token[LOCK_TOKEN_MAX + 1];
    /* Until when the lock counts as held (clock_mono_ns()). That time is counted from the moment
     * before the store was asked. 0: the lock was lost. */
    _Atomic(uint64_t) until_ns;
};

struct locks {
    struct locks_options o;
    struct loop keeper;
    struct mutex lock; /* class "locks"; guards the members below */
    struct cond changed;
    struct list held;
    size_t count;
    size_t waiting; /* number of threads that wait for a lock that another holder has */
};

static loop_step_fn locks_keep;

static struct loop_sleep locks_rest(const struct locks *l)
{
    return loop_sleep_ns(l->o.ttl_ms * NS_PER_MS / REFRESH_PARTS);
}

int locks_open(struct locks **out, const struct locks_options *o, struct err *err)
{
    struct locks *l = xcalloc(1, sizeof(*l));

    l->o = *o;
    l->o.ttl_ms = o->ttl_ms ? o->ttl_ms : TTL_MS;
    mutex_init(&l->lock, "locks");
    cond_init(&l->changed);
    list_init(&l->held);
    int code =
        loop_start(&l->keeper,
                   &(struct loop_options){
                       .name = "lock-keeper", .step = locks_keep, .ctx = l, .first = locks_rest(l)},
                   err);
    if (code < 0) {
        locks_close(l);
        return code;
    }
    *out = l;
    return 0;
}

void locks_close(struct locks *l)
{
    if (!l)
        return;
    mutex_lock(&l->lock);
    BUG_ON(l->count);
    mutex_unlock(&l->lock);
    loop_stop(&l->keeper);
    cond_release(&l->changed);
    mutex_release(&l->lock);
    free(l);
}

static void lock_key_write(struct buf *out, const char *prefix, const struct str *parts,
                           size_t count)
{
    buf_append_z(out, prefix);
    for (size_t i = 0; i < count; i++) {
        buf_append_char(out, ':');
        store_key_part(out, parts[i]);
    }
}

void lock_key_object(struct buf *out, struct str storage, struct str bucket, struct str object)
{
    lock_key_write(out, "lk", (const struct str[]){storage, bucket, object}, 3);
}

void lock_key_bucket(struct buf *out, struct str storage, struct str bucket)
{
    lock_key_write(out, "lkb", (const struct str[]){storage, bucket}, 2);
}

void lock_key_user(struct buf *out, struct str storage, struct str user)
{
    lock_key_write(out, "lku", (const struct str[]){storage, user}, 2);
}

static uint64_t locks_until(const struct locks *l, uint64_t since_ns)
{
    uint64_t ttl_ns = l->o.ttl_ms * NS_PER_MS;

    return since_ns + ttl_ns - ttl_ns / MARGIN_PARTS;
}

static struct lock *lock_new(struct locks *l, struct str key)
{
    struct lock *lock = xcalloc(1, sizeof(*lock));

    lock->locks = l;
    lock->key = xzalloc(key.len + 1);
    memcpy(lock->key, key.p, key.len);
    lock->key[key.len] = '\0';
    lock->key_len = key.len;
    id_hex(lock->token);
    return lock;
}

static void lock_free(struct lock *lock)
{
    free(lock->key);
    free(lock);
}

/* Tries once to take each of the locks; taken[i] says whether locks[i] was taken. When the outcome
 * is not known, because the call timed out, the tokens may stay in the store until they expire. */
static int locks_ask(struct lock *const *locks, size_t count, bool *taken, struct err *err)
{
    struct locks *l = locks[0]->locks;
    struct arena a = ARENA_INIT(LOCK_ARENA_MAX);
    struct str args[1 + 2 * LOCKS_MAX];
    uint64_t since_ns = clock_mono_ns();
    struct reply *reply;

    args[0] = arena_fmt(&a, "%llu", (unsigned long long)l->o.ttl_ms);
    for (size_t i = 0; i < count; i++) {
        args[1 + 2 * i] = lock_key(locks[i]);
        args[2 + 2 * i] = lock_token(locks[i]);
    }
    int code = coord_eval(l->o.store, &a, &reply, SCRIPT_lock_take, args, 1 + 2 * count, err);
    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && reply->count != count)
        code = err_set(err, ERR_TYPE, "the store gave a malformed answer about locks");
    for (size_t i = 0; code == 0 && i < count; i++) {
        taken[i] = reply->items[i].integer == 1;
        if (taken[i])
            atomic_store(&locks[i]->until_ns, locks_until(l, since_ns));
    }
    arena_release(&a);
    return code;
}

static int lock_ask(struct lock *lock, struct err *err)
{
    bool taken = false;
    int code = locks_ask(&lock, 1, &taken, err);

    return code == 0 && !taken ? err_set(err, ERR_BUSY, "somebody else has the lock %s", lock->key)
                               : code;
}

static void lock_enlist(struct lock *lock)
{
    struct locks *l = lock->locks;

    mutex_lock(&l->lock);
    list_push(&l->held, &lock->node);
    l->count++;
    mutex_unlock(&l->lock);
}

int lock_wait(struct lock **out, struct locks *l, struct str key, uint64_t wait_ms, struct err *err)
{
    struct lock *lock = lock_new(l, key);
    uint64_t deadline = clock_mono_ns() + wait_ms * NS_PER_MS;
    int code;

    while ((code = lock_ask(lock, err)) == ERR_BUSY && clock_mono_ns() < deadline) {
        mutex_lock(&l->lock);
        l->waiting++;
        cond_wait_until(&l->changed, &l->lock, clock_mono_ns() + WAIT_MS * NS_PER_MS);
        l->waiting--;
        mutex_unlock(&l->lock);
    }
    if (code < 0) {
        lock_free(lock);
        return code;
    }
    lock_enlist(lock);
    *out = lock;
    return 0;
}

int lock_take(struct lock **out, struct locks *l, struct str key, struct err *err)
{
    return lock_wait(out, l, key, 0, err);
}

int lock_take_many(struct lock **out, struct locks *l, const struct str *keys, size_t count,
                   struct err *err)
{
    bool taken[LOCKS_MAX] = {0};

    BUG_ON(count == 0 || count > LOCKS_MAX);
    for (size_t i = 0; i < count; i++)
        out[i] = lock_new(l, keys[i]);
    int code = locks_ask(out, count, taken, err);
    for (size_t i = 0; i < count; i++) {
        if (taken[i]) {
            lock_enlist(out[i]);
        } else {
            lock_free(out[i]);
            out[i] = NULL;
        }
    }
    return code;
}

int lock_adopt(struct lock **out, struct locks *l, struct str key, struct str token,
               uint64_t since_ns, struct err *err)
{
    if (token.len == 0 || token.len > LOCK_TOKEN_MAX)
        return err_set(err, ERR_INVALID, "a lock's token has 1 to %d bytes", LOCK_TOKEN_MAX);
    struct lock *lock = lock_new(l, key);
    memcpy(lock->token, token.p, token.len);
    lock->token[token.len] = '\0';
    atomic_store(&lock->until_ns, locks_until(l, since_ns));
    lock_enlist(lock);
    *out = lock;
    return 0;
}

bool lock_held(const struct lock *lock)
{
    return clock_mono_ns() < atomic_load(&lock->until_ns);
}

struct str lock_key(const struct lock *lock)
{
    return str_n(lock->key, lock->key_len);
}

struct str lock_token(const struct lock *lock)
{
    return str_z(lock->token);
}

static void locks_delist(struct locks *l, struct lock **locks, size_t count)
{
    mutex_lock(&l->lock);
    for (size_t i = 0; i < count; i++)
        list_remove(&locks[i]->node);
    l->count -= count;
    mutex_unlock(&l->lock);
}

/* Releases several locks by one script. A failure is only logged, because the locks then expire by
 * themselves. */
void lock_release_many(struct lock **locks, size_t count)
{
    struct arena a = ARENA_INIT(LOCK_ARENA_MAX);
    struct lock *held[LOCKS_MAX];
    struct str args[2 * LOCKS_MAX];
    struct reply *reply;
    struct err err = {0};
    size_t n = 0;

    BUG_ON(count > LOCKS_MAX);
    for (size_t i = 0; i < count; i++)
        if (locks[i])
            held[n++] = locks[i];
    if (n == 0)
        return;
    struct locks *l = held[0]->locks;
    locks_delist(l, held, n);
    for (size_t i = 0; i < n; i++) {
        args[2 * i] = lock_key(held[i]);
        args[2 * i + 1] = lock_token(held[i]);
    }
    if (coord_eval(l->o.store, &a, &reply, SCRIPT_lock_release, args, 2 * n, &err) < 0)
        log_warn(l->o.log, "lock.release", log_z("error", err.text));
    mutex_lock(&l->lock);
    if (l->waiting)
        cond_broadcast(&l->changed);
    mutex_unlock(&l->lock);
    arena_release(&a);
    for (size_t i = 0; i < n; i++)
        lock_free(held[i]);
}

void lock_release(struct lock *lock)
{
    lock_release_many(&lock, 1);
}

void lock_leave(struct lock *lock)
{
    if (!lock)
        return;
    locks_delist(lock->locks, &lock, 1);
    lock_free(lock);
}

/* --- renewing --- */

/* Makes the renewal script's arguments: the time to live, then the key and the token of each held
 * lock. */
static struct store_args locks_collect(struct locks *l, struct arena *a)
{
    size_t n = 0;

    mutex_lock(&l->lock);
    struct str *args = arena_array(a, 1 + 2 * l->count, sizeof(*args));
    if (args)
        args[n++] = arena_fmt(a, "%llu", (unsigned long long)l->o.ttl_ms);
    list_each (&l->held, struct lock, node, lock) {
        if (args) {
            args[n++] = arena_str(a, lock_key(lock));
            args[n++] = arena_str(a, lock_token(lock));
        }
    }
    mutex_unlock(&l->lock);
    return (struct store_args){args, arena_error(a) == 0 ? n : 0};
}

/* Gives the token that the renewal sent with this key; empty: the key was not sent. */
static struct str locks_token_in(const struct store_args *asked, struct str key)
{
    for (size_t i = 1; i + 1 < asked->argc; i += 2)
        if (str_eq(asked->argv[i], key))
            return asked->argv[i + 1];
    return STR_EMPTY;
}

static bool reply_lists_key(const struct reply *r, struct str key)
{
    for (size_t i = 0; i < r->count; i++)
        if (str_eq(r->items[i].str, key))
            return true;
    return false;
}

static void locks_note(struct locks *l, const struct store_args *asked, const struct reply *lost,
                       uint64_t since_ns)
{
    mutex_lock(&l->lock);
    list_each (&l->held, struct lock, node, lock) {
        if (!str_eq(locks_token_in(asked, lock_key(lock)), lock_token(lock)))
            continue; /* this lock was taken after the renewal was sent */
        if (reply_lists_key(lost, lock_key(lock)))
            atomic_store(&lock->until_ns, 0);
        else if (atomic_load(&lock->until_ns))
            atomic_store(&lock->until_ns, locks_until(l, since_ns));
    }
    mutex_unlock(&l->lock);
}

static void locks_refresh(struct locks *l)
{
    struct arena a = ARENA_INIT(LOCK_ARENA_MAX);
    struct store_args asked = locks_collect(l, &a);
    uint64_t since_ns = clock_mono_ns();
    struct reply *reply;
    struct err err = {0};

    if (asked.argc > 1) {
        if (coord_eval(l->o.store, &a, &reply, SCRIPT_lock_refresh, asked.argv, asked.argc, &err) <
            0)
            log_warn(l->o.log, "lock.refresh", log_z("error", err.text));
        else
            locks_note(l, &asked, reply, since_ns);
    }
    arena_release(&a);
}

static struct loop_sleep locks_keep(void *ctx)
{
    struct locks *l = ctx;

    locks_refresh(l);
    return locks_rest(l);
}
