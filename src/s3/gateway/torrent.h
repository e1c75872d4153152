/* Torrents of objects. The gateway asks for them by these declarations, and swarm/ makes them
 * (docs/torrents.md). */
#ifndef S3_GATEWAY_TORRENT_H
#define S3_GATEWAY_TORRENT_H

#include "object/bucket.h"

struct torrent_ask {
    struct bucket *bucket;          /* the bucket that the object is read from; borrowed */
    const struct object_info *info; /* of the version: key, version, ETag, size, encryption */
    struct str kind;                /* "1", "2" or "hybrid", as the request says; empty: "1" */
    struct str url;     /* the public address of that version; empty: the file names no web seed */
    struct str host;    /* the host that the client named, without its port; may be empty */
    struct str passkey; /* for the addresses of a private tracker; may be empty */
    bool http_seed;     /* `url` is named as a seed of BEP 17 */
    bool brings_back;   /* an operator asks, who may also bring back one that was taken off */
};

/* All but the file is in the caller's arena. */
struct torrent_answer {
    struct buf file;   /* the caller releases it, also after a failure */
    struct str name;   /* of the file that the torrent describes */
    struct str v1, v2; /* info hashes in hex; empty: the torrent has none of that version */
    struct str magnet;
};

/* The parts of an object's address; an empty version is the current one. */
struct torrent_place {
    struct str bucket, key, version;
};
/* "https://s3.example.org/bucket/key?versionId=...", in the arena. `base` has no path. An empty
 * bucket means that the host in `base` names the bucket. */
struct str torrent_object_url(struct arena *a, struct str base, const struct torrent_place *at);

/* The name or address in a Host header, without its port; empty: the header is malformed. */
struct str torrent_host(struct str header);

struct object_torrents {
    /* Makes the torrent of a version, which may take as long as some hundreds of megabytes take to
     * be read. SlowDown, with a text: it is being made, the client should ask again.
     * InvalidArgument: there is no such kind. InvalidRequest: no torrent can be made of the object.
     * AccessDenied: an operator took it off the tracker. ERR_CONFLICT: the object was replaced
     * meanwhile. */
    int (*write)(void *ctx, struct arena *a, const struct torrent_ask *ask,
                 struct torrent_answer *out, struct err *err);
    /* The range of the version's bytes that a piece is, for a seed of BEP 17. ERR_NOT_FOUND: the
     * version has no torrent with this info hash (SHA-1, raw), or no such piece. Else as write().
     */
    int (*piece)(void *ctx, const struct torrent_ask *ask, struct str info_hash, uint64_t piece,
                 struct object_range *out, struct err *err);
    void *ctx;
};

#endif
