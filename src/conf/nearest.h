/* "Did you mean": the name nearest to what was typed. */
#ifndef CONF_NEAREST_H
#define CONF_NEAREST_H

#include "base/str.h"

/* Start with NEAREST_INIT(typed), offer every name, then read `best`: NULL when none is near enough
 * (more than a third of the letters wrong) to be what was meant. */
struct nearest {
    struct str typed;
    const char *best; /* borrowed from the offers */
    size_t distance;
};

#define NEAREST_INIT(text)                                                                         \
    ((struct nearest){.typed = (text), .distance = size_max(1, (text).len / 3) + 1})

void nearest_offer(struct nearest *n, const char *name);

/* Letters inserted, dropped, changed or swapped with their neighbour; case is not counted. Of names
 * longer than NEAREST_MAX: NEAREST_MAX. */
enum { NEAREST_MAX = 64 };
size_t nearest_distance(struct str a, struct str b);

#endif
