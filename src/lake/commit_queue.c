/* Makes the commits of one branch wait for each other, in the order in which they came. */
#include "lake/commit_queue.h"

#include "base/clock.h"
#include "base/hash.h"
#include "os/thread.h"

#include <stdlib.h>

struct commit_turn {
    struct list node;
    /* hash of the branch's name; two branches with one hash merely wait for each other */
    uint64_t branch;
    /* signalled when the turn may have become the first of its branch, and when the first turn
     * becomes slow */
    struct cond first;
    bool is_slow;
    bool is_counted; /* the turn waits for a slow turn, and is counted in behind_slow */
};

struct commit_queue {
    struct mutex lock; /* class "commit queue" */
    struct list turns; /* sorted by arrival */
    size_t behind_slow, slow_max;
};

struct commit_queue *commit_queue_new(size_t slow_max)
{
    struct commit_queue *q = xzalloc(sizeof(*q));

    mutex_init(&q->lock, "commit queue");
    list_init(&q->turns);
    q->slow_max = slow_max;
    return q;
}

void commit_queue_free(struct commit_queue *q)
{
    if (!q)
        return;
    BUG_ON(!list_empty(&q->turns));
    mutex_release(&q->lock);
    free(q);
}

static uint64_t turn_hash(struct str partition, struct str branch)
{
    return hash_xxh3(branch, hash_xxh3(partition, 0));
}

static struct commit_turn *turn_first(struct commit_queue *q, uint64_t branch)
{
    list_each (&q->turns, struct commit_turn, node, t)
        if (t->branch == branch)
            return t;
    return NULL;
}

/* Waits until the turn is the first of its branch, or until the deadline; returns true in both
 * cases. Returns false when slow_max turns wait for slow turns already. */
static bool turn_wait(struct commit_queue *q, struct commit_turn *t, uint64_t deadline_ns)
{
    const struct commit_turn *first;
    bool is_late = false;

    while (!is_late && (first = turn_first(q, t->branch)) != t) {
        if (first->is_slow && !t->is_counted) {
            if (q->slow_max && q->behind_slow == q->slow_max)
                return false;
            t->is_counted = true;
            q->behind_slow++;
        }
        is_late = !cond_wait_until(&t->first, &q->lock, deadline_ns);
    }
    q->behind_slow -= t->is_counted;
    return true;
}

static void turn_free(struct commit_turn *t)
{
    cond_release(&t->first);
    free(t);
}

struct commit_turn *commit_turn_take(struct commit_queue *q, struct str partition,
                                     struct str branch, uint64_t limit_ms)
{
    struct commit_turn *t = xzalloc(sizeof(*t));
    uint64_t deadline = clock_mono_ns() + limit_ms * NS_PER_MS;

    t->branch = turn_hash(partition, branch);
    cond_init(&t->first);
    mutex_lock(&q->lock);
    list_push(&q->turns, &t->node);
    bool has_turn = turn_wait(q, t, deadline);
    if (!has_turn)
        list_remove(&t->node);
    mutex_unlock(&q->lock);
    if (has_turn)
        return t;
    turn_free(t);
    return NULL;
}

void commit_turn_set_slow(struct commit_queue *q, struct commit_turn *t, bool is_slow)
{
    mutex_lock(&q->lock);
    t->is_slow = is_slow;
    list_each (&q->turns, struct commit_turn, node, other)
        if (is_slow && other->branch == t->branch)
            cond_signal(&other->first);
    mutex_unlock(&q->lock);
}

void commit_turn_end(struct commit_queue *q, struct commit_turn *t)
{
    struct commit_turn *next;

    mutex_lock(&q->lock);
    list_remove(&t->node);
    next = turn_first(q, t->branch);
    if (next)
        cond_signal(&next->first);
    mutex_unlock(&q->lock);
    turn_free(t);
}

size_t commit_queue_count(struct commit_queue *q)
{
    size_t count = 0;

    mutex_lock(&q->lock);
    list_each (&q->turns, struct commit_turn, node, t)
        count++;
    mutex_unlock(&q->lock);
    return count;
}

bool commit_turn_is_taken(struct commit_queue *q, struct str partition, struct str branch)
{
    mutex_lock(&q->lock);
    bool taken = turn_first(q, turn_hash(partition, branch)) != NULL;
    mutex_unlock(&q->lock);
    return taken;
}
