/* A limit on the memory that many requests use together. */
#include "base/budget.h"

void budget_init(struct budget *b, size_t max, struct budget *whole)
{
    atomic_init(&b->used, 0);
    b->max = max;
    b->whole = whole;
}

static bool budget_reserve(struct budget *b, size_t bytes)
{
    size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);

    do {
        if (bytes > b->max || used > b->max - bytes)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&b->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool budget_take(struct budget *b, size_t bytes)
{
    if (!budget_reserve(b, bytes))
        return false;
    if (!b->whole || budget_take(b->whole, bytes))
        return true;
    atomic_fetch_sub_explicit(&b->used, bytes, memory_order_relaxed);
    return false;
}

void budget_give(struct budget *b, size_t bytes)
{
    for (; b; b = b->whole) {
        size_t before = atomic_fetch_sub_explicit(&b->used, bytes, memory_order_relaxed);
        BUG_ON(before < bytes);
    }
}
