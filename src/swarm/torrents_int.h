/* Between the files of torrents. */
#ifndef SWARM_TORRENTS_INT_H
#define SWARM_TORRENTS_INT_H

#include "os/thread.h"
#include "swarm/cache.h"
#include "swarm/torrents.h"

enum {
    FLIGHTS_MAX = 4,            /* objects that are hashed at once while somebody waits */
    TORRENT_WORK_S = 24 * 3600, /* how long a number of bytes done is kept */
    TORRENTS_PAGE = 100,
};
#define TORRENT_ARENA_MAX (96 * MIB)

struct torrents {
    struct torrents_options o;
    char *prefix, *tracker_url; /* owned */
    struct cache *cache;        /* by which the tracker is told */
    struct object_torrents interface;
    struct thread collector;
    struct mutex lock; /* class "torrents"; guards what follows */
    struct cond changed;
    struct list flights;
    size_t flight_count;
    bool stop;
};

/* What is kept of one. */
struct torrent_record {
    struct str etag;
    uint64_t size;
    bool ready;           /* else it is to be hashed */
    struct pieces pieces; /* strings in the arena of the call: not released */
    int64_t made_s;
    struct str hashes[TORRENT_KINDS];
};

struct torrent_known {
    struct str etag;
    enum torrent_kind kind;
    struct torrent_hashes hashes;
};

/* A record that an info hash is of. */
struct torrent_claim {
    struct str text, member;
    enum torrent_kind kind;
};

/* An object version to hash. */
struct torrent_job {
    struct bucket *bucket;
    struct str member;
    const struct object_info *info;
    struct task_run *run; /* NULL: somebody waits */
};

/* What the tracker is told of a torrent: to know it no longer, to know it, to know it though an
 * operator had taken it off. */
enum torrent_track { TRACK_NOT, TRACK_OFFER, TRACK_AGAIN };
/* ERR_PRECONDITION: it is offered, and an operator has taken it off. */
int torrents_track(struct torrents *t, const uint8_t *info_hash, enum torrent_track what,
                   struct err *err) MUST_CHECK;

/* --- torrents_record.c: the store --- */

int torrent_member_parse(struct torrent_id *out, struct arena *a, struct str member,
                         struct err *err) MUST_CHECK;

/* `hashes`: those of the pieces too, which may be megabytes. ERR_NOT_FOUND. */
int record_read(struct torrents *t, struct arena *a, struct str member, bool hashes,
                struct torrent_record *out, struct err *err) MUST_CHECK;
/* A record without hashes, in the place of one of another ETag. */
int record_begin(struct torrents *t, struct arena *a, struct str member,
                 const struct object_info *info, struct err *err) MUST_CHECK;
int record_keep(struct torrents *t, struct arena *a, struct str member, struct str etag,
                const struct pieces *p, struct err *err) MUST_CHECK;
/* An info hash may be of several records: each claims it before the tracker is told, and it leaves
 * the tracker with the last. */
int record_claim(struct torrents *t, struct arena *a, struct str member,
                 const struct torrent_known *known, struct err *err) MUST_CHECK;
int record_release(struct torrents *t, struct arena *a, struct str member,
                   const struct torrent_known *known, struct err *err) MUST_CHECK;
/* The torrent of that kind was told to the tracker (O5). ERR_CONFLICT: the record is of another
 * ETag. */
int record_known(struct torrents *t, struct arena *a, struct str member,
                 const struct torrent_known *known, struct err *err) MUST_CHECK;
int record_remove(struct torrents *t, struct arena *a, struct str member,
                  const struct torrent_record *r, struct err *err) MUST_CHECK;
/* The one behind `c` (at first an empty one) that claims the hash. ERR_NOT_FOUND. */
int record_by_hash(struct torrents *t, struct arena *a, struct str hex, struct torrent_claim *c,
                   struct err *err) MUST_CHECK;
int record_members(struct torrents *t, struct arena *a, struct str after, size_t limit,
                   struct reply **out, struct err *err) MUST_CHECK;
int record_progress(struct torrents *t, struct str member, uint64_t done,
                    struct err *err) MUST_CHECK;
uint64_t record_done(struct torrents *t, struct arena *a, struct str member);

/* --- torrents_work.c: hashing --- */

/* Reads the object and keeps its hashes. ERR_CONFLICT: it is another by now. */
int torrents_hash(struct torrents *t, const struct torrent_job *job, struct err *err) MUST_CHECK;
/* Makes sure that it is being hashed, or was: at once, by another who does, or by a task. 0: it is
 * done. S3_SLOW_DOWN: not yet. */
int torrents_ensure(struct torrents *t, const struct torrent_job *job, struct err *err) MUST_CHECK;
void torrents_cancel(struct torrents *t, struct str member, struct str etag);
void torrents_collector(void *ctx);

/* --- torrents_urls.c --- */

/* Where the tracker is announced to, in the arena; how many. */
size_t torrent_announces(const struct torrents *t, struct arena *a, struct str host,
                         struct str passkey, struct str out[TORRENT_ANNOUNCES_MAX]);

#endif
