/* Shared by share*.c, which share public swarms between trackers. */
#ifndef SWARM_SHARE_INT_H
#define SWARM_SHARE_INT_H

#include "base/list.h"
#include "base/map.h"
#include "os/thread.h"
#include "swarm/cache_int.h"
#include "swarm/share.h"

enum {
    INSTANCE_LEN = 8,
    /* Changes that one run of the script writes; one run blocks the store for about 1 ms. */
    SHARE_BATCH = 64,
    /* At most this many bytes of a client's key are published; the rest is left out. */
    SHARE_KEY_MAX = 64,
    ASKED_MAX = 1024,  /* most torrents in `asked`, which the take-over loads first */
    ASKED_SEEN = 4096, /* size of `seen`, which remembers recently announced torrents */
    SHARE_STEPS = 3,   /* one waiting item is written as up to this many changes */
};

/* A change that waits to be written: the newest change of a peer, merged with its earlier waiting
 * changes. */
struct share_item {
    struct list node;
    /* Info hash and compact address; the key in `by_name`. */
    uint8_t name[INFO_HASH_LEN + COMPACT6_LEN];
    size_t name_len;
    uint8_t peer_id[PEER_ID_LEN];
    uint8_t key[SHARE_KEY_MAX];
    size_t key_len;
    struct peer_addr addr;
    uint64_t uploaded, downloaded, left;
    enum swarm_change change;
    /* `leeched`: since the last write the peer was a leecher and then completed. `completed`: since
     * the last write the peer completed its download. */
    bool leeched, completed;
    bool paused;
    uint32_t at_s; /* time of the announce, by share_options.now */
};

struct share {
    struct share_options o;
    uint8_t instance[INSTANCE_LEN];
    struct buf channel;
    struct store_subscription *subscription;
    struct thread thread;
    struct mutex lock;
    struct cond changed;

    /* guarded by the lock */
    struct list waiting; /* share_item, the oldest first */
    struct map by_name;
    struct share_item *batch[SHARE_BATCH]; /* the changes that are being written */
    size_t batch_len;
    bool stop, anew; /* anew: all swarms must be loaded from the store again (H4) */
    struct share_stats stats;
    /* Info hashes of torrents that the take-over loads first. */
    uint8_t asked[ASKED_MAX][INFO_HASH_LEN];
    size_t asked_count;
    /* Hashes of the info hashes that were announced during the take-over. */
    uint64_t seen[ASKED_SEEN];
    bool taking; /* the take-over is under way */

    /* used by the thread alone */
    uint64_t batch_number;
    size_t batch_written, batch_told; /* changes of the batch that were written, and published */
    struct buf cursor; /* position in the store's list of torrents during the take-over */
};

/* share_write.c. Fills the batch from the waiting changes, unless the last batch is still
 * unwritten. False: there is nothing to write. A batch stays the same until the store confirms it,
 * because the store recognizes a repeated batch by its number. */
bool share_gather(struct share *s);
/* Writes the batch to the store. 0: the batch is done; changes that the store refused for good (H5)
 * were logged. A negative code: the same batch must be written again. */
int share_write(struct share *s, struct err *err) MUST_CHECK;
/* Frees the batch after share_write() returned 0. */
void share_done(struct share *s);
/* Applies another tracker's message to the swarms in memory. Our own messages and malformed
 * messages are skipped. */
void share_apply(struct share *s, struct str message);

/* share_take.c. Does one step of the take-over, in the thread, and sets *code to the step's result.
 * False: no take-over is under way. */
bool share_take(struct share *s, int *code, struct err *err);
/* Makes the take-over load this torrent soon, because a client announced it. The caller holds the
 * lock. */
void share_ask(struct share *s, const uint8_t *info_hash);

#endif
