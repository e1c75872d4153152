/* Shared by the files of torrents: torrents*.c. */
#ifndef SWARM_TORRENTS_INT_H
#define SWARM_TORRENTS_INT_H

#include "base/clock.h"
#include "os/loop.h"
#include "swarm/cache.h"
#include "swarm/torrents.h"

enum {
    FLIGHTS_MAX = 4,            /* requests that may hash an object at the same time */
    TORRENT_WORK_S = S_PER_DAY, /* how long the progress of a task is kept */
    TORRENTS_PAGE = 100,
};
#define TORRENT_ARENA_MAX (96 * MIB)

struct torrents {
    struct torrents_options o;
    char *prefix, *tracker_url; /* owned */
    struct cache *cache;        /* through which the tracker learns of torrents */
    struct object_torrents interface;
    struct loop collector;
    struct mutex lock; /* class "torrents"; guards the members below */
    struct cond changed;
    struct list flights; /* requests that hash an object now */
    size_t flight_count;
    bool stop;
};

/* What the store keeps of an object version. */
struct torrent_record {
    struct str etag;
    uint64_t size;
    bool ready;           /* the object version has been hashed */
    struct pieces pieces; /* in the arena of the call; must not be released */
    int64_t made_s;
    struct str hashes[TORRENT_KINDS];
};

/* A torrent of an object version, for the tracker. */
struct torrent_known {
    struct str etag;
    enum torrent_kind kind;
    struct torrent_hashes hashes;
};

/* A record that claims an info hash. */
struct torrent_claim {
    struct str text, member;
    enum torrent_kind kind;
};

/* An object version to hash. */
struct torrent_job {
    struct bucket *bucket;
    struct str member;
    const struct object_info *info;
    struct task_run *run; /* the task that hashes; NULL: a request does */
};

/* What the tracker must do: remove a torrent; add it; add it even if an operator has withdrawn
 * it. */
enum torrent_track { TRACK_NOT, TRACK_OFFER, TRACK_AGAIN };
/* Adds a torrent to the tracker, or removes it. ERR_PRECONDITION: TRACK_OFFER of a torrent that an
 * operator has withdrawn. */
int torrents_track(struct torrents *t, const uint8_t *info_hash, enum torrent_track what,
                   struct err *err) MUST_CHECK;

/* --- torrents_record.c: the store --- */

int torrent_member_parse(struct torrent_id *out, struct arena *a, struct str member,
                         struct err *err) MUST_CHECK;

/* Reads a record. With `hashes` also the hashes of the pieces are read, which may be megabytes.
 * ERR_NOT_FOUND: there is no record. */
int record_read(struct torrents *t, struct arena *a, struct str member, bool hashes,
                struct torrent_record *out, struct err *err) MUST_CHECK;
/* Begins a record without hashes; a record with another ETag is replaced. */
int record_begin(struct torrents *t, struct arena *a, struct str member,
                 const struct object_info *info, struct err *err) MUST_CHECK;
int record_keep(struct torrents *t, struct arena *a, struct str member, struct str etag,
                const struct pieces *p, struct err *err) MUST_CHECK;
/* Claim the info hashes of a torrent for a record, and release them. Several records may have the
 * same hash. Each record claims it before the tracker learns of it. When the last claim is
 * released, the torrent is removed from the tracker. */
int record_claim(struct torrents *t, struct arena *a, struct str member,
                 const struct torrent_known *known, struct err *err) MUST_CHECK;
int record_release(struct torrents *t, struct arena *a, struct str member,
                   const struct torrent_known *known, struct err *err) MUST_CHECK;
/* Records that the tracker knows the torrent of this kind (O5). ERR_CONFLICT: the record has
 * another ETag. */
int record_known(struct torrents *t, struct arena *a, struct str member,
                 const struct torrent_known *known, struct err *err) MUST_CHECK;
int record_remove(struct torrents *t, struct arena *a, struct str member,
                  const struct torrent_record *r, struct err *err) MUST_CHECK;
/* Replaces `c` by the next claim of the hash; an empty `c` asks for the first one. ERR_NOT_FOUND:
 * there is no further claim. */
int record_by_hash(struct torrents *t, struct arena *a, struct str hex, struct torrent_claim *c,
                   struct err *err) MUST_CHECK;
int record_members(struct torrents *t, struct arena *a, struct str after, size_t limit,
                   struct reply **out, struct err *err) MUST_CHECK;
int record_progress(struct torrents *t, struct str member, uint64_t done,
                    struct err *err) MUST_CHECK;
uint64_t record_done(struct torrents *t, struct arena *a, struct str member);

/* --- torrents_work.c: hashing --- */

/* Reads the object and stores its hashes. ERR_CONFLICT: the object has changed. */
int torrents_hash(struct torrents *t, const struct torrent_job *job, struct err *err) MUST_CHECK;
/* Makes sure that the object gets its hashes: in this call, in another call that is under way, or
 * by a task. 0: the hashes are stored. S3_SLOW_DOWN: not yet. */
int torrents_ensure(struct torrents *t, const struct torrent_job *job, struct err *err) MUST_CHECK;
void torrents_cancel(struct torrents *t, struct str member, struct str etag);
loop_step_fn torrents_collector;

/* --- torrents_urls.c --- */

/* Makes the announce URLs of the tracker in the arena. Returns how many there are. */
size_t torrent_announces(const struct torrents *t, struct arena *a, struct str host,
                         struct str passkey, struct str out[TORRENT_ANNOUNCES_MAX]);

#endif
