/* What the files about the tracker's models share. It is apart from api_int.h because no other file
 * needs the tracker's headers. */
#ifndef API_SWARM_H
#define API_SWARM_H

#include "api/api_int.h"
#include "swarm/cache.h"
#include "swarm/service.h"

enum { SWARM_PAGE_USUAL = 10000, SWARM_PAGE_MAX = 100000 };

/* `needs` of these rows: ERR_UNSUPPORTED when this weir has no tracker. */
rest_fn api_needs_tracker;
/* The tracker's models. */
struct cache *api_cache(const struct rest_call *c);

#endif
