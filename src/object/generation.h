/* Numbers for the state of buckets' infos and documents (storage.generations). As long as the
 * number of a bucket stays the same, its info and its documents have not changed. Buckets share
 * numbers by the hash of their names, so a number may change although its bucket has not. Any
 * thread may call. */
#ifndef OBJECT_GENERATION_H
#define OBJECT_GENERATION_H

#include "base/str.h"

#include <stdatomic.h>

enum { GENERATIONS = 256 };

struct generations {
    _Atomic(uint64_t) counts[GENERATIONS];
};

void generations_init(struct generations *g);
/* Returns the bucket's number. 0: a change is under way, or `g` is NULL. Does not wait. */
uint64_t generation_get(struct generations *g, struct str bucket);
/* Call these before and after every change of a bucket's info or documents, whether it succeeds or
 * not. */
void generation_begin(struct generations *g, struct str bucket);
void generation_end(struct generations *g, struct str bucket);

#endif
