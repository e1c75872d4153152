/* Torrents of objects, as the gateway asks for them; swarm/ makes them (docs/torrents.md). */
#ifndef S3_GATEWAY_TORRENT_H
#define S3_GATEWAY_TORRENT_H

#include "object/bucket.h"

struct torrent_ask {
    struct bucket *bucket;          /* that it is read from; borrowed */
    const struct object_info *info; /* of the version: key, version, ETag, size, encryption */
    struct str kind;                /* "1", "2", "hybrid", as it was asked for; empty: "1" */
    struct str url;     /* where anybody gets that version; empty: no web seed is named */
    struct str host;    /* by which who asks has reached us, without a port; may be empty */
    struct str passkey; /* of a private tracker, for the addresses of it; may be empty */
    bool http_seed;     /* the address is named as a seed of BEP 17 */
    bool brings_back;   /* an operator asks: also one that was taken off the tracker */
};

/* In the caller's arena, but the file. */
struct torrent_answer {
    struct buf file;   /* the caller releases it, also after a failure */
    struct str name;   /* the file's that it is about */
    struct str v1, v2; /* info hashes in hex; empty: it has none of that version */
    struct str magnet;
};

/* Where an object is, for its address; an empty version: the current one. */
struct torrent_place {
    struct str bucket, key, version;
};
/* "https://s3.example.org/bucket/key?versionId=...", in the arena. `base` without a path; an empty
 * bucket: the base names it. */
struct str torrent_object_url(struct arena *a, struct str base, const struct torrent_place *at);

/* The name or address in a Host header, without its port; empty when it is none. */
struct str torrent_host(struct str header);

struct object_torrents {
    /* SlowDown, with words: it is being made, ask again. InvalidArgument: the kind. InvalidRequest:
     * no torrent can be made of it. AccessDenied: an operator took it off the tracker.
     * ERR_CONFLICT: it was replaced meanwhile. May take as long as some hundreds of megabytes take
     * to be read. */
    int (*write)(void *ctx, struct arena *a, const struct torrent_ask *ask,
                 struct torrent_answer *out, struct err *err);
    /* Which bytes of the version a piece is, for a seed of BEP 17. ERR_NOT_FOUND: the info hash
     * (SHA-1, raw) is of no torrent of it, or there is no such piece; else as write. */
    int (*piece)(void *ctx, const struct torrent_ask *ask, struct str info_hash, uint64_t piece,
                 struct object_range *out, struct err *err);
    void *ctx;
};

#endif
