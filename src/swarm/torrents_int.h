/* Declarations that the files torrents*.c share. A record is the data in the store about an object
 * version; a member is the name of an object version, as torrent_member() writes it. */
#ifndef SWARM_TORRENTS_INT_H
#define SWARM_TORRENTS_INT_H

#include "base/clock.h"
#include "os/loop.h"
#include "swarm/cache.h"
#include "swarm/torrents.h"

enum {
    FLIGHTS_MAX = 4,            /* most requests that hash an object at the same time */
    TORRENT_WORK_S = S_PER_DAY, /* seconds for which the progress of a task is kept */
    TORRENTS_PAGE = 100,
};
#define TORRENT_ARENA_MAX (96 * MIB)

struct torrents {
    struct torrents_options o;
    char *prefix, *tracker_url; /* owned */
    struct cache *cache;        /* the tracker's models; a torrent that is added here is tracked */
    struct object_torrents interface;
    struct loop collector;
    struct mutex lock; /* class "torrents"; guards the members below */
    struct cond changed;
    struct list flights; /* requests that are hashing an object */
    size_t flight_count;
    bool stop;
};

/* A record: the data in the store about an object version. */
struct torrent_record {
    struct str etag;
    uint64_t size;
    bool ready;           /* the object version has been hashed */
    struct pieces pieces; /* in the arena of the call; must not be released */
    int64_t made_s;
    struct str hashes[TORRENT_KINDS];
};

/* A torrent of an object version that the tracker knows. */
struct torrent_known {
    struct str etag;
    enum torrent_kind kind;
    struct torrent_hashes hashes;
};

/* A claim: a record has this info hash, in its torrent of this kind. `text` is the claim as the
 * store has it; `member` names the record. */
struct torrent_claim {
    struct str text, member;
    enum torrent_kind kind;
};

/* An object version that is to be hashed. */
struct torrent_job {
    struct bucket *bucket;
    struct str member;
    const struct object_info *info;
    struct task_run *run; /* the task that hashes the object; NULL: a request hashes it */
};

/* TRACK_NOT removes a torrent from the tracker, TRACK_OFFER adds it unless an operator has
 * withdrawn it, TRACK_AGAIN adds it in any case. */
enum torrent_track { TRACK_NOT, TRACK_OFFER, TRACK_AGAIN };
/* Adds a torrent to the tracker, or removes it. ERR_PRECONDITION: an operator has withdrawn the
 * torrent (TRACK_OFFER). */
int torrents_track(struct torrents *t, const uint8_t *info_hash, enum torrent_track what,
                   struct err *err) MUST_CHECK;

/* --- torrents_record.c: the store --- */

int torrent_member_parse(struct torrent_id *out, struct arena *a, struct str member,
                         struct err *err) MUST_CHECK;

/* Reads a record. With `hashes` it also reads the hashes of the pieces, which may be megabytes.
 * ERR_NOT_FOUND: there is no record. */
int record_read(struct torrents *t, struct arena *a, struct str member, bool hashes,
                struct torrent_record *out, struct err *err) MUST_CHECK;
/* Writes a new record without hashes. If the record has another ETag than `info`, it is replaced.
 */
int record_begin(struct torrents *t, struct arena *a, struct str member,
                 const struct object_info *info, struct err *err) MUST_CHECK;
int record_keep(struct torrents *t, struct arena *a, struct str member, struct str etag,
                const struct pieces *p, struct err *err) MUST_CHECK;
/* record_claim() claims the info hashes of a torrent for a record; record_release() gives them up.
 * Several records may have the same hash. Each record claims a hash before it adds the torrent to
 * the tracker. When the last claim is given up, the torrent is removed from the tracker. */
int record_claim(struct torrents *t, struct arena *a, struct str member,
                 const struct torrent_known *known, struct err *err) MUST_CHECK;
int record_release(struct torrents *t, struct arena *a, struct str member,
                   const struct torrent_known *known, struct err *err) MUST_CHECK;
/* Notes in the record that the tracker knows the record's torrent of this kind (O5). ERR_CONFLICT:
 * the record has another ETag than `known`. */
int record_known(struct torrents *t, struct arena *a, struct str member,
                 const struct torrent_known *known, struct err *err) MUST_CHECK;
int record_remove(struct torrents *t, struct arena *a, struct str member,
                  const struct torrent_record *r, struct err *err) MUST_CHECK;
/* Finds the claims of a hash one by one: replaces *c by the next claim. An empty *c asks for the
 * first claim. ERR_NOT_FOUND: there is no further claim. */
int record_by_hash(struct torrents *t, struct arena *a, struct str hex, struct torrent_claim *c,
                   struct err *err) MUST_CHECK;
int record_members(struct torrents *t, struct arena *a, struct str after, size_t limit,
                   struct reply **out, struct err *err) MUST_CHECK;
int record_progress(struct torrents *t, struct str member, uint64_t done,
                    struct err *err) MUST_CHECK;
uint64_t record_done(struct torrents *t, struct arena *a, struct str member);

/* --- torrents_work.c: hashing --- */

/* Reads the object and stores its hashes. ERR_CONFLICT: the object was replaced or removed. */
int torrents_hash(struct torrents *t, const struct torrent_job *job, struct err *err) MUST_CHECK;
/* Makes sure that the object is hashed: hashes it in this call, waits for another call that is
 * hashing it, or adds a task that does. 0: the hashes are stored. S3_SLOW_DOWN: the hashes are not
 * stored yet. */
int torrents_ensure(struct torrents *t, const struct torrent_job *job, struct err *err) MUST_CHECK;
void torrents_cancel(struct torrents *t, struct str member, struct str etag);
loop_step_fn torrents_collector;

/* --- torrents_urls.c --- */

/* Makes the announce URLs of the tracker, in the arena. Returns the number of URLs. */
size_t torrent_announces(const struct torrents *t, struct arena *a, struct str host,
                         struct str passkey, struct str out[TORRENT_ANNOUNCES_MAX]);

#endif
