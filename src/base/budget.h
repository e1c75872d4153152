/* A limit on the memory that many requests use together. A request takes bytes from the budget
 * before it allocates them, and gives them back when it frees them. A budget may be a part of a
 * larger budget: bytes taken from the part are taken from the whole as well. Any thread may use a
 * budget without a lock. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include "base/base.h"

#include <stdatomic.h>

struct budget {
    _Atomic(size_t) used;
    size_t max;
    struct budget *whole; /* the larger budget that this budget is a part of; NULL: none */
};

void budget_init(struct budget *b, size_t max, struct budget *whole);
/* Takes the bytes from the budget. Returns false, and takes nothing, when fewer bytes are left. */
bool budget_take(struct budget *b, size_t bytes) MUST_CHECK;
void budget_give(struct budget *b, size_t bytes);

#endif
