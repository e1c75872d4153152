/* All swarms in memory. A *swarm* is all peers of one torrent. In public mode announces are
 * answered from these swarms. docs/swarm.md has the rules, M1 to M8.
 *
 * A peer is an address with a port. Torrents are spread over stripes by a keyed hash (the key is
 * secret, because clients choose the info hashes). A *stripe* is a part of the torrents with a lock
 * of its own, which is held for one announce. An announce allocates memory only when a swarm grows.
 * Old peers are removed little by little: swarms_clean() looks at a few torrents in each call. Any
 * thread may call these functions. */
#ifndef SWARM_SWARMS_H
#define SWARM_SWARMS_H

#include "base/err.h"
#include "base/log.h"
#include "swarm/announce.h"

struct swarms;

struct swarms_options {
    bool open; /* torrents that nobody added (swarms_add()) are tracked too */
    /* At these bounds the torrents with the fewest peers are dropped to make room for new
     * torrents. */
    uint64_t max_torrents, max_peers;
    uint32_t max_per_address; /* most peers of an address or IPv6 /64 in a torrent; 0: any number */
    uint32_t peer_timeout_s;
    uint32_t numwant, max_numwant; /* peers in an answer: the default, and the maximum */
    const struct log *log;
};
int swarms_new(struct swarms **out, const struct swarms_options *o, struct err *err) MUST_CHECK;
void swarms_free(struct swarms *s);

/* The change that an announce made to a swarm. share.h publishes it to other trackers. */
enum swarm_change {
    SWARM_CHANGE_NONE, /* nothing changed, or a peer was refreshed that was published lately */
    SWARM_CHANGE_SEEDER,
    SWARM_CHANGE_LEECHER,
    SWARM_CHANGE_COMPLETED, /* a leecher became a seeder: a snatch */
    SWARM_CHANGE_STOPPED,
    SWARM_CHANGE_STOPPED_COMPLETED /* a leecher stopped with nothing left: a snatch */
};

/* Handles an announce. `now_s` is a clock in seconds that never goes back; all calls use the same
 * clock. The counts in the answer include the client; the list of peers does not. */
enum swarm_change swarms_announce(struct swarms *s, const struct announce *a, uint32_t now_s,
                                  struct announce_answer *out);
void swarms_scrape(struct swarms *s, const uint8_t *hashes, size_t count, struct scrape_entry *out);
/* Prefetches the memory that the next announce of this torrent will read: asks the processor to
 * load it into its cache. */
void swarms_prefetch(const struct swarms *s, const uint8_t *info_hash);

/* swarms_add() adds a torrent to the list of added torrents; swarms_remove() removes it with its
 * peers. When the tracker is not open, only added torrents are tracked. The list has no bound;
 * max_torrents bounds the other torrents. */
void swarms_add(struct swarms *s, const uint8_t *info_hash, uint64_t snatches);
void swarms_remove(struct swarms *s, const uint8_t *info_hash);

/* Applies a change that another tracker published. The peer announced to that tracker
 * `seconds_ago`. */
void swarms_apply(struct swarms *s, const struct announce *a, enum swarm_change change,
                  uint32_t now_s, uint32_t seconds_ago);

/* Adds a peer that was read from the store, unless memory has newer data of the peer. */
void swarms_take(struct swarms *s, const struct announce *a, uint32_t now_s, uint32_t seconds_ago);

/* Looks at the next few torrents: removes peers past the timeout, and torrents that have no peers
 * and were not added. The tracker calls this all the time. Any thread may call it. */
void swarms_clean(struct swarms *s, uint32_t now_s);

/* swarms_save() writes all swarms to a file and replaces the file atomically and durably. Announces
 * go on meanwhile. Only one call at a time may write a file. swarms_load() reads the file back; the
 * wall clock tells how much older the peers are now. ERR_CORRUPT: the file is damaged, and nothing
 * of it was used. ERR_NOT_FOUND: there is no file. */
int swarms_save(struct swarms *s, const char *path, uint32_t now_s, struct err *err) MUST_CHECK;
int swarms_load(struct swarms *s, const char *path, uint32_t now_s, struct err *err) MUST_CHECK;

struct swarms_stats {
    uint64_t torrents, added; /* all torrents in memory, and how many of them were added */
    uint64_t seeders4, leechers4, seeders6, leechers6;
    uint64_t snatches, evicted, bytes;
    /* Number of announces that were answered but added no peer, because of max_per_address. */
    uint64_t crowded;
};
void swarms_stats(struct swarms *s, struct swarms_stats *out);

#endif
