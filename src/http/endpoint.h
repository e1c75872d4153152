/* The options that every HTTP server gets from the configuration: caps, threads, deadlines. */
#ifndef HTTP_ENDPOINT_H
#define HTTP_ENDPOINT_H

#include "conf/conf.h"
#include "http/server.h"

enum {
    PER_ADDRESS_SHARE = 8,   /* one address may have an eighth of all connections */
    PER_ADDRESS_LEAST = 256, /* but at least this many, if the cap on all connections allows it */
};

/* Sets the options from the configuration in `o`; the others stay. ERR_INVALID: http.proxies cannot
 * be read. */
int endpoint_options(struct http_server_options *o, const struct conf *conf,
                     struct err *err) MUST_CHECK;

#endif
