/* What the handlers of the tracker's models share. Apart from api_int.h, as nobody else needs the
 * tracker's headers. */
#ifndef API_SWARM_H
#define API_SWARM_H

#include "api/api_int.h"
#include "swarm/cache.h"
#include "swarm/service.h"

enum { SWARM_LIST_MAX = 100000, SWARM_LIST_DEFAULT = 10000 };

/* All of them ask the store. */
#define SWARM_ROUTE(name, fn, code, ...)                                                           \
    API_ROUTE(name, fn, code, .waits = true, .needs_tracker = true, __VA_ARGS__)

/* A number of the body that may be left out; ERR_INVALID: it is below 0 or no number. */
int api_swarm_factor(const json_t *object, const char *name, double *out,
                     struct err *err) MUST_CHECK;

#endif
