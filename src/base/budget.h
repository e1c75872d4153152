/* A bound on memory that many requests share: each takes what it is about to hold and gives it back
 * when it lets go. A budget may be a part of a larger one; what is taken from it is taken from
 * both. Any thread, no lock. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include "base/base.h"

#include <stdatomic.h>

struct budget {
    _Atomic(size_t) used;
    size_t max;
    struct budget *whole; /* that this one is a part of; NULL: none */
};

void budget_init(struct budget *b, size_t max, struct budget *whole);
/* False when there is not so much left; then nothing was taken. */
bool budget_take(struct budget *b, size_t bytes) MUST_CHECK;
void budget_give(struct budget *b, size_t bytes);

#endif
