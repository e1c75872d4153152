/* Shared by the files of the room's routes. */
#ifndef SWARM_REST_REST_H
#define SWARM_REST_REST_H

#include "swarm/cache.h"
#include "swarm/room.h"

enum { SWARM_PAGE_USUAL = 10000, SWARM_PAGE_MAX = 100000 };

/* Returns the tracker's models in the store (cache.h), for a call of one of the room's routes. */
struct cache *swarm_models(const struct rest_call *c);

#endif
