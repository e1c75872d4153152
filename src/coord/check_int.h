/* Declarations that check.c and check_read.c share. */
#ifndef COORD_CHECK_INT_H
#define COORD_CHECK_INT_H

#include "coord/check.h"
#include "coord/queue_int.h"

enum { CHECK_ARENA_MAX = 1024 * 1024 };

#define CHECK_IDS STR("w:ccv:id")

/* Makes the key `w:ccv:<kind>:<id>` in the arena. Kinds: c (settings and counters), stor
 * (locations), l (cursor), d (differences), f (open repairs of a fix). */
struct str check_key(struct arena *a, const char *kind, struct str id);

/* Orders locations by storage, then by bucket; for qsort(). */
int check_location_order(const void *a, const void *b);

#endif
