/* Locks of objects that clients change during a switch (docs/replication.md, S10). A worker may be
 * copying an older change of the object from the other side. Without the lock the worker would not
 * see a newer change that is not recorded yet, and would overwrite that change. Changes of one
 * process share a lock, so that clients do not wait for each other. */
#include "base/clock.h"
#include "coord/lock.h"
#include "replica/tap/tap_int.h"

#include <stdlib.h>

enum { WAIT_MS = 5000 };

struct shared_lock {
    struct list node;
    struct lock *lock; /* NULL: a thread of this process is taking the lock */
    size_t users;
    size_t len;
    char key[];
};

/* The locks of one change. */
struct held {
    size_t count;
    struct shared_lock *locks[];
};

static struct shared_lock *shared_lock_find(struct taps *t, struct str key)
{
    list_each (&t->held_locks, struct shared_lock, node, s)
        if (str_eq(str_n(s->key, s->len), key))
            return s;
    return NULL;
}

static struct shared_lock *shared_lock_add(struct taps *t, struct str key)
{
    struct shared_lock *s = xcalloc(1, sizeof(*s) + key.len);

    s->users = 1;
    s->len = key.len;
    memcpy(s->key, key.p, key.len);
    list_push(&t->held_locks, &s->node);
    return s;
}

/* Joins the lock of this key if this process holds that lock or is taking it. Otherwise *ours is
 * set to true, and *out to a new lock that the caller must take. Returns false when the wait for
 * another thread took too long. */
static bool shared_lock_join(struct taps *t, struct str key, uint64_t deadline,
                             struct shared_lock **out, bool *ours)
{
    struct shared_lock *s;
    bool in_time = true;

    mutex_lock(&t->lock);
    while ((s = shared_lock_find(t, key)) && !s->lock && in_time)
        in_time = cond_wait_until(&t->lock_moved, &t->lock, deadline);
    *ours = !s;
    if (s && s->lock)
        s->users++;
    else if (!s)
        s = shared_lock_add(t, key);
    mutex_unlock(&t->lock);
    *out = s;
    return in_time;
}

static void shared_lock_drop(struct taps *t, struct shared_lock *s)
{
    struct lock *last = NULL;

    mutex_lock(&t->lock);
    bool gone = --s->users == 0;
    if (gone) {
        list_remove(&s->node);
        last = s->lock;
        cond_broadcast(&t->lock_moved);
    }
    mutex_unlock(&t->lock);
    lock_release(last);
    if (gone)
        free(s);
}

static int shared_lock_take(struct taps *t, struct str key, struct shared_lock **out,
                            struct err *err)
{
    uint64_t deadline = clock_mono_ns() + WAIT_MS * NS_PER_MS;
    struct lock *lock = NULL;
    bool ours;

    if (!shared_lock_join(t, key, deadline, out, &ours))
        return err_set(err, ERR_BUSY, "the object is being brought from the other storage");
    if (!ours)
        return 0;
    int code = lock_wait(&lock, t->o.locks, key, WAIT_MS, err);
    if (code < 0) {
        shared_lock_drop(t, *out);
        return code;
    }
    mutex_lock(&t->lock);
    (*out)->lock = lock;
    cond_broadcast(&t->lock_moved);
    mutex_unlock(&t->lock);
    return 0;
}

int tap_locks_take(struct taps *t, const struct intended *i, void **out, struct err *err)
{
    struct buf key = {0};
    int code = 0;

    if (!t->o.locks || i->key_count == 0)
        return 0;
    struct held *h = xcalloc(1, sizeof(*h) + i->key_count * sizeof(h->locks[0]));
    for (size_t k = 0; k < i->key_count && code == 0; k++) {
        buf_reset(&key);
        lock_key_object(&key, i->storage->name, i->bucket, i->keys[k]);
        code = shared_lock_take(t, buf_str(&key), &h->locks[h->count], err);
        h->count += code == 0;
    }
    buf_release(&key);
    if (code < 0)
        tap_locks_release(t, h);
    else
        *out = h;
    return code;
}

void tap_locks_release(struct taps *t, void *locks)
{
    struct held *h = locks;

    for (size_t k = 0; h && k < h->count; k++)
        shared_lock_drop(t, h->locks[k]);
    free(h);
}
