/* Torrents of objects. When somebody asks for the torrent of an object version, the version is
 * hashed, and its hashes are kept in the store (swarmDB). Torrent files are made from these hashes.
 * docs/torrents.md has the invariants (O1 to O8) and the keys. Any thread may call these functions;
 * the calls may wait. */
#ifndef SWARM_TORRENTS_H
#define SWARM_TORRENTS_H

#include "base/log.h"
#include "coord/queue.h"
#include "coord/worker.h"
#include "os/sock.h"
#include "meta/keyring.h"
#include "s3/gateway/torrent.h"
#include "swarm/torrent.h"

#define TORRENT_TASK_TYPE "torrent:hash"
#define TORRENT_QUEUE     "torrents"
enum { TORRENT_QUEUE_WEIGHT = 2 }; /* see docs/queue.md, "Queues" */

struct torrents;

/* All pointers are borrowed. */
struct torrents_options {
    struct store *store; /* the tracker's database (store.redis.swarmDB) */
    struct str prefix;   /* the beginning of each key; may be empty */
    struct queue *queue;
    struct keyring *keys; /* for encrypted objects; NULL: encrypted objects cannot be read */
    struct storage *(*find)(void *ctx, struct str name);
    void *find_ctx;
    /* For example "http://tracker.example.org:6969"; empty: made from `http` and `udp`. */
    struct str tracker_url;
    /* Where the tracker listens; len 0: the tracker does not serve this protocol. */
    struct sock_addr http, udp;
    bool is_private;
    /* Objects of up to this many bytes are hashed during the request; 0: 256 MiB. */
    uint64_t at_once;
    uint64_t collect_ms; /* pause between two calls of torrents_collect(); 0: it is not called */
    /* Adds a torrent to the tracker if `known` is true, else removes it. NULL: torrents are added
     * and removed through the store. */
    int (*track)(void *ctx, const uint8_t *info_hash, bool known, struct err *err);
    void *track_ctx;
    const struct log *log;
};
int torrents_open(struct torrents **out, const struct torrents_options *o,
                  struct err *err) MUST_CHECK;
/* Stops and frees. No other call may be under way. NULL is fine. */
void torrents_close(struct torrents *t);

/* Sets where the tracker really listens, because the options may have port 0. NULL: the tracker
 * listens where the options say. Must be called before any other function. */
void torrents_listen(struct torrents *t, const struct sock_addr *http, const struct sock_addr *udp);

/* Returns the interface through which the gateway makes torrents (struct gateway_options). */
const struct object_torrents *torrents_of_objects(struct torrents *t);

/* Implements object_torrents.write (s3/gateway/torrent.h). */
int torrents_write(struct torrents *t, struct arena *a, const struct torrent_ask *ask,
                   struct torrent_answer *out, struct err *err) MUST_CHECK;

/* Implements object_torrents.piece. */
int torrents_piece(struct torrents *t, const struct torrent_ask *ask, struct str info_hash,
                   uint64_t piece, struct object_range *out, struct err *err) MUST_CHECK;

/* Names an object version. torrent_member() writes the name as "storage:bucket:key:version", with
 * each part escaped. */
struct torrent_id {
    struct str storage, bucket, key, version;
};
struct str torrent_member(struct arena *a, const struct torrent_id *id);

/* An object version that has hashes, or is being hashed. Strings are in the arena. */
struct torrent_row {
    struct str storage, bucket, key, version, etag;
    uint64_t size;
    uint32_t piece_length; /* 0: not known yet */
    bool ready;
    uint64_t done;  /* bytes hashed so far, until the row is ready */
    int64_t made_s; /* when the hashes were ready: seconds since 1970; 0: not ready */
    /* Info hashes in hex, separated by a space; empty: no torrent of this kind was made. */
    struct str hashes[TORRENT_KINDS];
    struct str position; /* the row's name, by which the list is sorted (torrent_member()) */
};
/* Lists up to `limit` rows behind the position `after`, in the order of storage, bucket, key and
 * version. */
int torrents_list(struct torrents *t, struct arena *a, struct str after, size_t limit,
                  struct torrent_row **out, size_t *count, struct err *err) MUST_CHECK;
/* Finds a row by one of its info hashes (40 or 64 hexadecimal digits), or by its position. *kind is
 * the kind of torrent that has this hash; for a position it is the first kind, in the order of
 * enum torrent_kind, for which the row has a hash. ERR_NOT_FOUND: there is no such row. */
int torrents_find(struct torrents *t, struct arena *a, struct str name, struct torrent_row *out,
                  enum torrent_kind *kind, struct err *err) MUST_CHECK;
/* Makes the torrent file and magnet link of a row from its hashes, without reading the object. */
int torrents_show(struct torrents *t, struct arena *a, const struct torrent_row *row,
                  const struct torrent_ask *ask, struct torrent_answer *out,
                  struct err *err) MUST_CHECK;
/* Removes the row with its hashes, and removes its torrents from the tracker. */
int torrents_remove(struct torrents *t, struct arena *a, const struct torrent_row *row,
                    struct err *err) MUST_CHECK;

/* Removes the rows of object versions that no longer exist (O6). *gone is the number of removed
 * rows; `gone` may be NULL. */
int torrents_collect(struct torrents *t, size_t *gone, struct err *err) MUST_CHECK;

/* Runs a task of the type TORRENT_TASK_TYPE: hashes an object. run->ctx is the struct torrents. */
int torrents_handle(struct task_run *run, struct err *err);

#endif
