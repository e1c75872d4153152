/* "Did you mean ...?": finds the known name that is nearest to a name that a user typed. */
#ifndef CONF_NEAREST_H
#define CONF_NEAREST_H

#include "base/str.h"

/* How to use it: start with NEAREST_INIT(typed), offer every known name, then read `best`. A name
 * is near if it differs from `typed` in one letter, or in at most a third as many letters as
 * `typed` has. `best` is NULL when no name is near. */
struct nearest {
    struct str typed;
    const char *best; /* borrowed from the names that were offered */
    size_t distance;
};

#define NEAREST_INIT(text)                                                                         \
    ((struct nearest){.typed = (text), .distance = size_max(1, (text).len / 3) + 1})

void nearest_offer(struct nearest *n, const char *name);

/* Returns how many letters must be inserted, dropped, changed or swapped with their neighbour to
 * turn `a` into `b`. Case is ignored. For names longer than NEAREST_MAX the result is NEAREST_MAX.
 */
enum { NEAREST_MAX = 64 };
size_t nearest_distance(struct str a, struct str b);

#endif
