/* From a request to a handler that is a row, and back. */
#include "api/api_int.h"
#include "swarm/service.h"

static int answer(struct api_call *c, const struct api_handler *h)
{
    struct err err = {0};
    int code;

    api_json_begin(&c->answer);
    c->w = &c->answer.w;
    if (h->list) {
        json_out_key(c->w, h->list);
        json_out_open(c->w, '[');
    }
    code = h->run(c, &err);
    if (h->list)
        json_out_close(c->w, ']');
    if (code >= 0 && h->status != 204)
        return api_json_send(c->req, h->status, &c->answer);
    api_json_drop(&c->answer);
    if (code == ERR_NOT_FOUND && h->missing)
        code = err_set(&err, code, "%s", h->missing);
    return code < 0 ? api_send_failure(c->req, code, &err) : api_send_done(c->req);
}

int api_run(struct api_call *c, const struct api_handler *h)
{
    int code;

    if (h->waits && !http_may_block(c->req))
        return ERR_AGAIN;
    if (h->needs_tracker && !c->api->swarm)
        return api_send_error(c->req, 501, "unsupported", "this weir has no tracker");
    if (h->needs_tracker)
        c->cache = c->api->swarm->cache;
    if (h->takes_body && !api_read_json(c->req, &c->body, &code))
        return code;
    code = answer(c, h);
    json_decref(c->body);
    return code;
}
