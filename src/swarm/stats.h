/* The tracker's numbers, for the page /stats and for `weir swarm stats`. */
#ifndef SWARM_STATS_H
#define SWARM_STATS_H

#include "base/json.h"
#include "swarm/tracker.h"

/* Writes the numbers as members of the JSON object that is open in `w`. */
void stats_members(struct json_out *w, struct tracker *t);
/* Writes the same numbers as a page of HTML. */
void stats_page(struct buf *out, struct tracker *t);

#endif
