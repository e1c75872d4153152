/* The S3 interface: an http_handler_fn that finds the operation in one table, checks who asks and
 * whether that user may do it, and runs the operation on the storage that holds the bucket.
 * docs/gateway.md has the order of the steps, the limits and the table of operations.
 *
 * The gateway keeps no state of a request after its answer, so any number of servers may share one
 * gateway. */
#ifndef S3_GATEWAY_GATEWAY_H
#define S3_GATEWAY_GATEWAY_H

#include "http/server.h"
#include "route/resolve.h"
#include "route/users.h"

struct access_log;
struct change_capture;
struct gateway;
struct notify;
struct object_torrents;

struct gateway_options {
    struct routes *routes; /* all pointers here are borrowed, unless a comment says otherwise */
    struct users *users;
    /* No request is served while the store is halted. NULL: it is never halted. */
    const struct store *store;
    struct str region; /* empty: us-east-1 */
    struct str domain; /* buckets are also reached as <bucket>.<domain>; empty: only by path */
    struct str website_domain; /* <bucket>.<website_domain> is the bucket's website; empty: there
                                  are no websites */
    struct notify *notify;     /* sends event notifications; NULL: none are sent */
    struct access_log *access_log; /* access logs of buckets; NULL: requests are not logged */
    const struct change_capture *capture; /* s3/gateway/capture.h; NULL: changes are not captured */
    const struct bucket_sides *sides; /* route/sides.h; NULL: no bucket is ever on two storages */
    const struct object_torrents *torrents; /* s3/gateway/torrent.h; NULL: no torrents are made */
    struct str url; /* public address of this endpoint; empty: the address that a request names */
    bool allow_v2;  /* signatures of version 2 are accepted */
    struct str storage_classes; /* names separated by commas; empty: the storage classes of S3 */
    const char *key_file;   /* path of the key file (meta/keyring.h); copied; NULL: nothing can be
                               encrypted */
    uint64_t max_buckets;   /* limit on the buckets of one user on local storages; 0: no limit */
    size_t document_memory; /* bytes of memory for the documents of all requests together; 0: 256
                               MiB */
    bool sse_c_over_http;   /* customers' keys are also accepted without TLS from other machines */
    const struct log *log;
};

struct gateway *gateway_new(const struct gateway_options *o);
void gateway_free(struct gateway *g); /* call it when no server uses `g` any more; NULL is fine */

/* Handles a request; ctx is the gateway. */
int gateway_handle(struct http_request *req, void *ctx);

#endif
