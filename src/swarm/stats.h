/* The tracker's numbers for people and programs: the page of statistics, `weir swarm stats`. */
#ifndef SWARM_STATS_H
#define SWARM_STATS_H

#include "base/json.h"
#include "swarm/tracker.h"

/* Members of an object that is open. */
void stats_members(struct json_out *w, struct tracker *t);
/* A page of HTML with the same. */
void stats_page(struct buf *out, struct tracker *t);

#endif
