/* Torrents of objects: the calls by which the gateway asks for them. swarm/ implements them
 * (docs/torrents.md). */
#ifndef S3_GATEWAY_TORRENT_H
#define S3_GATEWAY_TORRENT_H

#include "object/bucket.h"

struct torrent_ask {
    struct bucket *bucket;          /* the bucket that the object is read from; borrowed */
    const struct object_info *info; /* key, version, ETag, size and encryption of the version */
    struct str kind;                /* "1", "2" or "hybrid", as the request says; empty: "1" */
    struct str url;     /* public address of that version; empty: the torrent names no web seed */
    struct str host;    /* host that the client named, without its port; may be empty */
    struct str passkey; /* passkey for the addresses of a private tracker; may be empty */
    bool http_seed;     /* the torrent names `url` as a seed of BEP 17 */
    /* The user is an operator, who may also bring back a torrent that was removed from the
     * tracker. */
    bool brings_back;
};

/* Everything but `file` is in the caller's arena. */
struct torrent_answer {
    struct buf file;   /* the torrent file; the caller releases it, also after a failure */
    struct str name;   /* name of the file that the torrent describes */
    struct str v1, v2; /* info hashes in hex; empty: the torrent has none of that version */
    struct str magnet;
};

/* The parts of an object's address. An empty version is the current one. */
struct torrent_place {
    struct str bucket, key, version;
};
/* Returns "https://s3.example.org/bucket/key?versionId=...", in the arena. `base` has no path. An
 * empty bucket means that the host in `base` names the bucket. */
struct str torrent_object_url(struct arena *a, struct str base, const struct torrent_place *at);

/* Returns the name or address in a Host header, without its port; empty: the header is
 * malformed. */
struct str torrent_host(struct str header);

struct object_torrents {
    /* Makes the torrent of a version. To do so, the call may first have to read some hundreds of
     * megabytes of the object. SlowDown, with a text: the torrent is still being made, and the
     * client should ask again. InvalidArgument: there is no such kind. InvalidRequest: no torrent
     * can be made of the object. AccessDenied: an operator took the torrent off the tracker.
     * ERR_CONFLICT: the object was replaced meanwhile. */
    int (*write)(void *ctx, struct arena *a, const struct torrent_ask *ask,
                 struct torrent_answer *out, struct err *err);
    /* Finds the range of the version's bytes that a piece covers, for a seed of BEP 17.
     * ERR_NOT_FOUND: the version has no torrent with this info hash (SHA-1, raw), or no such piece.
     * Other errors are those of write(). */
    int (*piece)(void *ctx, const struct torrent_ask *ask, struct str info_hash, uint64_t piece,
                 struct object_range *out, struct err *err);
    void *ctx;
};

#endif
