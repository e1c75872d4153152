/* Between the files of checks. */
#ifndef COORD_CHECK_INT_H
#define COORD_CHECK_INT_H

#include "coord/check.h"
#include "coord/queue_int.h"

enum { CHECK_ARENA_MAX = 1024 * 1024 };

#define CHECK_IDS STR("w:ccv:id")

/* The key `w:ccv:<kind>:<id>`. Kinds: c (settings and counters), stor (locations), l (cursor),
 * d (differences), f (open repairs of a fix). */
struct str check_key(struct arena *a, const char *kind, struct str id);

/* For qsort(): locations by storage, then by bucket. */
int check_location_order(const void *a, const void *b);

#endif
