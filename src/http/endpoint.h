/* Options that every HTTP server gets from the configuration: limits on connections, threads,
 * deadlines. */
#ifndef HTTP_ENDPOINT_H
#define HTTP_ENDPOINT_H

#include "conf/conf.h"
#include "http/server.h"

enum {
    PER_ADDRESS_SHARE = 8,   /* one peer address may have an eighth of all connections */
    PER_ADDRESS_LEAST = 256, /* but at least this many, within the limit on all connections */
};

/* Sets the options that the configuration has in `o`, and leaves the other options unchanged.
 * ERR_INVALID: the value of http.proxies is malformed. */
int endpoint_options(struct http_server_options *o, const struct conf *conf,
                     struct err *err) MUST_CHECK;

#endif
