/* All swarms in memory: what the public mode answers from. docs/swarm.md, M1 to M7.
 *
 * A peer is its address and port. Torrents are in stripes by a keyed hash (who announces chooses
 * the hashes), each with a lock of its own that is held for one announce. Any thread. Nothing is
 * allocated per announce but when a swarm grows; nothing sweeps: a call of swarms_clean() looks at
 * a few torrents. */
#ifndef SWARM_SWARMS_H
#define SWARM_SWARMS_H

#include "base/err.h"
#include "base/log.h"
#include "swarm/announce.h"

struct swarms;

struct swarms_options {
    bool open;                        /* torrents that were not added are tracked too */
    uint64_t max_torrents, max_peers; /* past them: those with the fewest peers go first */
    uint32_t max_per_address;         /* of one, or of a /64 of IPv6, in a torrent; 0: any number */
    uint32_t peer_timeout_s;
    uint32_t numwant, max_numwant; /* default and bound; the room in the answer bounds too */
    const struct log *log;
};
int swarms_new(struct swarms **out, const struct swarms_options *o, struct err *err) MUST_CHECK;
void swarms_free(struct swarms *s);

/* What an announce changed, for those that share it with other trackers. */
enum swarm_change {
    SWARM_CHANGE_NONE, /* refreshed a peer that was told of lately */
    SWARM_CHANGE_SEEDER,
    SWARM_CHANGE_LEECHER,
    SWARM_CHANGE_COMPLETED, /* a leecher became a seeder: a snatch */
    SWARM_CHANGE_STOPPED,
    SWARM_CHANGE_STOPPED_COMPLETED /* a leecher stopped with nothing left: a snatch */
};

/* `now_s` is any clock that counts seconds and does not go back, the same in all calls. The answer
 * is of before the announcer came, so it is never among the peers; the counts have it. */
enum swarm_change swarms_announce(struct swarms *s, const struct announce *a, uint32_t now_s,
                                  struct announce_answer *out);
void swarms_scrape(struct swarms *s, const uint8_t *hashes, size_t count, struct scrape_entry *out);
/* Brings what the next announce of this torrent looks at into the cache of the processor. */
void swarms_prefetch(const struct swarms *s, const uint8_t *info_hash);

/* Which torrents may be tracked, when not open. Any number: max_torrents bounds the others.
 * Removing drops its peers. */
void swarms_add(struct swarms *s, const uint8_t *info_hash, uint64_t snatches);
void swarms_remove(struct swarms *s, const uint8_t *info_hash);

/* A change that another tracker told of. `seconds_ago`: when the peer announced there. */
void swarms_apply(struct swarms *s, const struct announce *a, enum swarm_change change,
                  uint32_t now_s, uint32_t seconds_ago);

/* A peer as the store has it, read when others may have told of newer: only if memory knows less.
 */
void swarms_take(struct swarms *s, const struct announce *a, uint32_t now_s, uint32_t seconds_ago);

/* Looks at the next few torrents; peers past the timeout go, torrents without peers that were not
 * added go. Called all the time, by any thread. */
void swarms_clean(struct swarms *s, uint32_t now_s);

/* To and from a file (durable: temporary file, sync, rename); a stripe at a time, announces go on.
 * One at a time writes a file. A file that is damaged is ERR_CORRUPT and nothing of it is taken.
 * Ages are kept by the wall clock. ERR_NOT_FOUND: no file. */
int swarms_save(struct swarms *s, const char *path, uint32_t now_s, struct err *err) MUST_CHECK;
int swarms_load(struct swarms *s, const char *path, uint32_t now_s, struct err *err) MUST_CHECK;

struct swarms_stats {
    uint64_t torrents, added; /* tracked; of those that were added */
    uint64_t seeders4, leechers4, seeders6, leechers6;
    uint64_t snatches, evicted, bytes;
    uint64_t crowded; /* announces that were answered and not kept: max_per_address */
};
void swarms_stats(struct swarms *s, struct swarms_stats *out);

#endif
