/* Wakes many waiters: each waiter that wakes up wakes two more. The list of waiters is used as a
 * binary tree, like a heap (docs/db.md, W10). */
#include "db/db_int.h"

static void wake_next(const struct waiter *w)
{
    for (size_t i = 0; i < ARRAY_SIZE(w->wakes); i++)
        if (w->wakes[i])
            sem_post(&w->wakes[i]->wake);
}

void wake_by(struct waiter **waker, struct waiter *w)
{
    struct waiter *by = *waker;

    w->wakes[0] = w->wakes[1] = NULL;
    if (!by) {
        *waker = w;
    } else if (!by->wakes[0]) {
        by->wakes[0] = w;
    } else {
        by->wakes[1] = w;
        *waker = list_entry(by->node.next, struct waiter, node);
    }
}

void wake_tree(struct list *done, struct waiter *self)
{
    struct waiter *first = list_empty(done) ? NULL : list_entry(done->next, struct waiter, node);

    list_init(done);
    if (!first)
        return;
    if (first != self) {
        sem_post(&first->wake);
        return;
    }
    self->answered = true;
    wake_next(self);
}

void wake_await(struct waiter *self)
{
    while (sem_wait(&self->wake) != 0)
        ;
    wake_next(self);
}
