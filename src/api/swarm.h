/* What the handlers of the tracker's models share. Apart from api_int.h, as nobody else needs the
 * tracker's headers. */
#ifndef API_SWARM_H
#define API_SWARM_H

#include "api/api_int.h"
#include "swarm/cache.h"
#include "swarm/service.h"

enum { SWARM_LIST_MAX = 100000, SWARM_LIST_DEFAULT = 10000 };

/* A request under way, on a thread that may wait. */
struct swarm_call {
    struct api *api;
    struct http_request *req;
    const struct route_params *params;
    struct cache *cache; /* the models */
    json_t *body;        /* NULL when the handler takes none */
    struct json_out *w;  /* the answer's open object; or its array, when the handler lists */
};

typedef int swarm_fn(struct swarm_call *c, struct err *err);

struct swarm_handler {
    swarm_fn *run;
    int status;          /* when it succeeds; 204 has no body */
    bool takes_body;     /* a JSON object */
    const char *list;    /* the array that is the answer's first member; NULL: none */
    const char *missing; /* what ERR_NOT_FOUND says; NULL: as the error has it */
};

/* Runs the handler and answers. */
int api_swarm_run(struct swarm_call *c, const struct swarm_handler *h) MUST_CHECK;

/* A row: the route_fn of that name runs `fn` and answers `code`; what follows are other members. */
#define SWARM_ROUTE(name, fn, code, ...)                                                           \
    int name(struct http_request *req, const struct route_params *params, void *ctx)               \
    {                                                                                              \
        return api_swarm_run(&(struct swarm_call){.api = ctx, .req = req, .params = params},       \
                             &(struct swarm_handler){.run = fn, .status = code, __VA_ARGS__});     \
    }

/* A number of the body that may be left out; ERR_INVALID: it is below 0 or no number. */
int api_swarm_factor(const json_t *object, const char *name, double *out,
                     struct err *err) MUST_CHECK;

#endif
