/* Sets the options of HTTP servers from the configuration. */
#include "http/endpoint.h"

static size_t per_address(const struct conf *conf)
{
    size_t share = conf->http.connections / PER_ADDRESS_SHARE;

    return conf->http.per_address ? conf->http.per_address : size_max(share, PER_ADDRESS_LEAST);
}

int endpoint_options(struct http_server_options *o, const struct conf *conf, struct err *err)
{
    int code = networks_parse(&o->proxies, str_z(conf->http.proxies), err);

    o->fast_workers = conf->http.workers;
    o->max_connections = conf->http.connections;
    o->max_per_address = per_address(conf);
    o->head_timeout_ms = conf->http.head_timeout_ms;
    o->idle_timeout_ms = conf->http.idle_timeout_ms;
    o->body_min_rate = conf->http.body_rate;
    return code < 0 ? err_wrap(err, code, "http.proxies") : 0;
}
