/* From a request to a handler of the tracker's models, and back. */
#include "api/swarm.h"

#include <math.h>

static int answer(struct swarm_call *c, const struct swarm_handler *h)
{
    struct api_json j;
    struct err err = {0};
    int code;

    api_json_begin(&j);
    c->w = &j.w;
    if (h->list) {
        json_out_key(c->w, h->list);
        json_out_open(c->w, '[');
    }
    code = h->run(c, &err);
    if (h->list)
        json_out_close(c->w, ']');
    if (code == 0 && h->status != 204)
        return api_json_send(c->req, h->status, &j);
    api_json_drop(&j);
    if (code == ERR_NOT_FOUND && h->missing)
        code = err_set(&err, code, "%s", h->missing);
    return code < 0 ? api_send_failure(c->req, code, &err) : api_send_done(c->req);
}

int api_swarm_run(struct swarm_call *c, const struct swarm_handler *h)
{
    int code;

    if (!http_may_block(c->req))
        return ERR_AGAIN;
    if (!c->api->o.swarm)
        return api_send_error(c->req, 501, "unsupported", "this weir has no tracker");
    c->cache = c->api->o.swarm->cache;
    if (h->takes_body && !api_read_json(c->req, &c->body, &code))
        return code;
    code = answer(c, h);
    json_decref(c->body);
    return code;
}

int api_swarm_factor(const json_t *object, const char *name, double *out, struct err *err)
{
    const json_t *value = json_object_get(object, name);

    if (!value)
        return 0;
    if (!json_is_number(value) || !isfinite(json_number_value(value)) ||
        json_number_value(value) < 0)
        return err_set(err, ERR_INVALID, "%s is a number that is not below 0", name);
    *out = json_number_value(value);
    return 0;
}
