/* A gateway in front of a remote storage: another gateway, or a scripted peer. */
#ifndef TESTS_UNIT_S3_FORWARD_LAB_H
#define TESTS_UNIT_S3_FORWARD_LAB_H

#include "object/remote/remote.h"
#include "unit/http/peer.h"
#include "unit/s3/gateway_lab.h"

/* Of both, alice and bob are users with the same keys; alice has credentials on the storage. */
struct pair {
    struct gate front, back;
    struct peer *peer; /* instead of back */
    struct storage *remote;
};

/* The front's main storage is the back. */
void pair_start(struct pair *p);
/* The front's main storage is what `fn` plays. */
void pair_start_peer(struct pair *p, peer_fn *fn, const void *ctx);
void pair_stop(struct pair *p);

/* One more remote storage of the front, called `name`, where alice has credentials. */
struct storage *pair_add(struct pair *p, const char *name, const char *url);

/* How a body is framed for the wire. */
struct framed {
    const char *payload; /* x-amz-content-sha256 */
    bool is_signed;
    const char *trailer; /* "x-amz-checksum-crc32:AAAA==" or NULL */
    size_t chunk;        /* bytes in one */
};
/* PUT by alice of `body`, framed; checks the status. `damage`: its sixth byte is changed on the
 * way. */
void pair_put_framed(struct pair *p, const char *path, const struct framed *f, struct str body,
                     bool damage, int status);

/* Base64 of a checksum, for a trailer or header; ends with NUL. */
void pair_checksum(char out[64], enum digest_kind kind, struct str body);

#endif
