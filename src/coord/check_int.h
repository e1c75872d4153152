/* Between the files of checks. */
#ifndef COORD_CHECK_INT_H
#define COORD_CHECK_INT_H

#include "coord/check.h"
#include "coord/queue_int.h"

enum { CHECK_ARENA_MAX = 1024 * 1024 };

#define CHECK_IDS STR("w:ccv:id")

/* `w:ccv:<kind>:<id>`; kinds: c (settings and counters), stor, l (cursor), d (differences), f (what
 * a fix has open). */
struct str check_key(struct arena *a, const char *kind, struct str id);

#endif
