/* What the configuration says of every endpoint: caps, threads, deadlines. */
#ifndef HTTP_ENDPOINT_H
#define HTTP_ENDPOINT_H

#include "conf/conf.h"
#include "http/server.h"

enum {
    PER_ADDRESS_SHARE = 8,   /* one address may have one in so many connections */
    PER_ADDRESS_LEAST = 256, /* but this many, where there are so many */
};

/* Into `o`; the rest of it stays. ERR_INVALID: http.proxies. */
int endpoint_options(struct http_server_options *o, const struct conf *conf,
                     struct err *err) MUST_CHECK;

#endif
