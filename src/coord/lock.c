/* Locks in lockDB, and the thread that keeps those that are held alive. */
#include "coord/lock.h"

#include "base/clock.h"
#include "base/ids.h"
#include "coord/scripts.h"
#include "os/thread.h"

#include <stdlib.h>

enum {
    TTL_MS = 10000,
    REFRESH_PARTS = 3, /* of a life, between two refreshes: one may fail */
    WAIT_MS = 50,      /* between two looks at a lock that somebody has */
    LOCK_ARENA_MAX = 4 * 1024 * 1024,
};

struct lock {
    struct list node; /* in locks.held */
    struct locks *locks;
    char *key;
    size_t key_len;
    char token[ID_HEX_LEN + 1];
    _Atomic(uint64_t) until_ns; /* by our own clock, from before the store was asked; 0: lost */
};

struct locks {
    struct locks_options o;
    struct thread keeper;
    struct mutex lock; /* class "locks"; guards what follows */
    struct cond changed;
    struct list held;
    size_t count;
    bool stop;
};

static void keep(void *ctx);

int locks_open(struct locks **out, const struct locks_options *o, struct err *err)
{
    struct locks *l = xcalloc(1, sizeof(*l));

    l->o = *o;
    l->o.ttl_ms = o->ttl_ms ? o->ttl_ms : TTL_MS;
    mutex_init(&l->lock, "locks");
    cond_init(&l->changed);
    list_init(&l->held);
    int code = thread_start(&l->keeper, "lock-keeper", 0, keep, l, err);
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
    l->stop = true;
    cond_broadcast(&l->changed);
    mutex_unlock(&l->lock);
    thread_join(&l->keeper);
    cond_release(&l->changed);
    mutex_release(&l->lock);
    free(l);
}

static void key_of(struct buf *out, const char *prefix, const struct str *parts, size_t count)
{
    buf_append_z(out, prefix);
    for (size_t i = 0; i < count; i++) {
        buf_append_char(out, ':');
        store_key_part(out, parts[i]);
    }
}

void lock_key_object(struct buf *out, struct str storage, struct str bucket, struct str object)
{
    key_of(out, "lk", (const struct str[]){storage, bucket, object}, 3);
}

void lock_key_bucket(struct buf *out, struct str storage, struct str bucket)
{
    key_of(out, "lkb", (const struct str[]){storage, bucket}, 2);
}

void lock_key_user(struct buf *out, struct str storage, struct str user)
{
    key_of(out, "lku", (const struct str[]){storage, user}, 2);
}

static struct lock *lock_new(struct locks *l, struct str key)
{
    struct lock *lock = xcalloc(1, sizeof(*lock));

    lock->locks = l;
    lock->key = xmalloc(key.len + 1);
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

/* Asks once. A command whose fate is not known (a time-out) leaves our token there at worst, which
 * ends by itself. */
static int ask(struct lock *lock, struct err *err)
{
    struct locks *l = lock->locks;
    struct arena a = ARENA_INIT(4 * KIB);
    const struct str args[] = {lock_key(lock), lock_token(lock),
                               arena_fmt(&a, "%llu", (unsigned long long)l->o.ttl_ms)};
    uint64_t since_ns = clock_mono_ns();
    struct reply *reply;
    int code = coord_eval(l->o.store, &a, &reply, SCRIPT_lock_take, args, ARRAY_SIZE(args), err);

    if (code == 0 && reply->integer != 1)
        code = err_set(err, ERR_BUSY, "somebody has the lock %s", lock->key);
    if (code == 0)
        atomic_store(&lock->until_ns, since_ns + l->o.ttl_ms * 1000000);
    arena_release(&a);
    return code;
}

static void enlist(struct lock *lock)
{
    struct locks *l = lock->locks;

    mutex_lock(&l->lock);
    list_push(&l->held, &lock->node);
    if (l->count++ == 0)
        cond_broadcast(&l->changed);
    mutex_unlock(&l->lock);
}

int lock_wait(struct lock **out, struct locks *l, struct str key, uint64_t wait_ms, struct err *err)
{
    struct lock *lock = lock_new(l, key);
    uint64_t deadline = clock_mono_ns() + wait_ms * 1000000;
    int code;

    while ((code = ask(lock, err)) == ERR_BUSY && clock_mono_ns() < deadline) {
        mutex_lock(&l->lock);
        cond_wait_until(&l->changed, &l->lock, clock_mono_ns() + (uint64_t)WAIT_MS * 1000000);
        mutex_unlock(&l->lock);
    }
    if (code < 0) {
        lock_free(lock);
        return code;
    }
    enlist(lock);
    *out = lock;
    return 0;
}

int lock_take(struct lock **out, struct locks *l, struct str key, struct err *err)
{
    return lock_wait(out, l, key, 0, err);
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

/* A failure is no matter: it ends by itself. */
void lock_release(struct lock *lock)
{
    struct arena a = ARENA_INIT(4 * KIB);
    struct reply *reply;

    if (!lock)
        return;
    struct locks *l = lock->locks;
    mutex_lock(&l->lock);
    list_remove(&lock->node);
    l->count--;
    mutex_unlock(&l->lock);
    const struct str args[] = {lock_key(lock), lock_token(lock)};
    struct err err = {0};
    if (coord_eval(l->o.store, &a, &reply, SCRIPT_lock_release, args, ARRAY_SIZE(args), &err) < 0)
        log_warn(l->o.log, "lock.release", log_z("error", err.text));
    mutex_lock(&l->lock);
    cond_broadcast(&l->changed);
    mutex_unlock(&l->lock);
    arena_release(&a);
    lock_free(lock);
}

/* --- keeping them --- */

/* Life, then key and token of all that are held. */
static struct store_args collect(struct locks *l, struct arena *a)
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

/* The token of a key among what was asked for; empty: none. */
static struct str token_in(const struct store_args *asked, struct str key)
{
    for (size_t i = 1; i + 1 < asked->argc; i += 2)
        if (str_eq(asked->argv[i], key))
            return asked->argv[i + 1];
    return STR_EMPTY;
}

static bool lists(const struct reply *r, struct str key)
{
    for (size_t i = 0; i < r->count; i++)
        if (str_eq(r->items[i].str, key))
            return true;
    return false;
}

static void note(struct locks *l, const struct store_args *asked, const struct reply *lost,
                 uint64_t since_ns)
{
    mutex_lock(&l->lock);
    list_each (&l->held, struct lock, node, lock) {
        if (!str_eq(token_in(asked, lock_key(lock)), lock_token(lock)))
            continue; /* taken since */
        if (lists(lost, lock_key(lock)))
            atomic_store(&lock->until_ns, 0);
        else if (atomic_load(&lock->until_ns))
            atomic_store(&lock->until_ns, since_ns + l->o.ttl_ms * 1000000);
    }
    mutex_unlock(&l->lock);
}

static void refresh(struct locks *l)
{
    struct arena a = ARENA_INIT(LOCK_ARENA_MAX);
    struct store_args asked = collect(l, &a);
    uint64_t since_ns = clock_mono_ns();
    struct reply *reply;
    struct err err = {0};

    if (asked.argc > 1) {
        if (coord_eval(l->o.store, &a, &reply, SCRIPT_lock_refresh, asked.argv, asked.argc, &err) <
            0)
            log_warn(l->o.log, "lock.refresh", log_z("error", err.text));
        else
            note(l, &asked, reply, since_ns);
    }
    arena_release(&a);
}

static bool sleep_a_part(struct locks *l)
{
    uint64_t until = clock_mono_ns() + l->o.ttl_ms * 1000000 / REFRESH_PARTS;

    mutex_lock(&l->lock);
    while (!l->stop && (l->count == 0 || clock_mono_ns() < until)) {
        if (l->count == 0)
            cond_wait(&l->changed, &l->lock);
        else
            cond_wait_until(&l->changed, &l->lock, until);
    }
    bool go = !l->stop;
    mutex_unlock(&l->lock);
    return go;
}

static void keep(void *ctx)
{
    struct locks *l = ctx;

    while (sleep_a_part(l))
        refresh(l);
}
