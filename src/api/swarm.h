/* What the handlers of the tracker's models share. Apart from api_int.h, as nobody else needs the
 * tracker's headers. */
#ifndef API_SWARM_H
#define API_SWARM_H

#include "api/api_int.h"
#include "swarm/cache.h"
#include "swarm/service.h"

enum { SWARM_LIST_MAX = 100000, SWARM_LIST_DEFAULT = 10000 };

/* The models, on a thread that may wait. False: *answer is what the handler returns. */
bool api_swarm(struct api *api, struct http_request *req, struct cache **out,
               int *answer) MUST_CHECK;
/* A number of the body that may be left out; ERR_INVALID: it is below 0 or no number. */
int api_swarm_factor(const json_t *object, const char *name, double *out,
                     struct err *err) MUST_CHECK;
void api_swarm_member_f64(struct json_out *w, const char *name, double v);

#endif
