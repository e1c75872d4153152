/* "Did you mean ...?": finds the name that is nearest to a typed one. */
#ifndef CONF_NEAREST_H
#define CONF_NEAREST_H

#include "base/str.h"

/* Start with NEAREST_INIT(typed), offer every name, then read `best`. It is NULL when no name is
 * near enough: in every one more than a third of the letters differ. */
struct nearest {
    struct str typed;
    const char *best; /* borrowed from the offers */
    size_t distance;
};

#define NEAREST_INIT(text)                                                                         \
    ((struct nearest){.typed = (text), .distance = size_max(1, (text).len / 3) + 1})

void nearest_offer(struct nearest *n, const char *name);

/* How many letters were inserted, dropped, changed or swapped with their neighbour; case is
 * ignored. For names longer than NEAREST_MAX it is NEAREST_MAX. */
enum { NEAREST_MAX = 64 };
size_t nearest_distance(struct str a, struct str b);

#endif
