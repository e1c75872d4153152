/* Shared by the files of sharing: share*.c. */
#ifndef SWARM_SHARE_INT_H
#define SWARM_SHARE_INT_H

#include "base/list.h"
#include "base/map.h"
#include "os/thread.h"
#include "swarm/cache_int.h"
#include "swarm/share.h"

enum {
    INSTANCE_LEN = 8,
    SHARE_BATCH = 64,   /* changes in one script, which blocks the store for about a millisecond */
    SHARE_KEY_MAX = 64, /* bytes of a client's key that are published */
    ASKED_MAX = 1024,   /* torrents that may wait to be loaded first */
    ASKED_SEEN = 4096,  /* torrents remembered as recently asked for */
    SHARE_STEPS = 3,    /* a waiting change is written as up to this many changes */
};

/* A change that waits to be written: the newest change of a peer, merged with its earlier waiting
 * changes. */
struct share_item {
    struct list node;
    uint8_t name[INFO_HASH_LEN + COMPACT6_LEN]; /* info hash and address: the key in `by_name` */
    size_t name_len;
    uint8_t peer_id[PEER_ID_LEN];
    uint8_t key[SHARE_KEY_MAX];
    size_t key_len;
    struct peer_addr addr;
    uint64_t uploaded, downloaded, left;
    enum swarm_change change;
    bool leeched,
        completed; /* since the last write the peer leeched before it completed; it completed */
    bool paused;
    uint32_t at_s; /* when the peer announced, by share_options.now */
};

struct share {
    struct share_options o;
    uint8_t instance[INSTANCE_LEN];
    struct buf channel;
    struct store_subscription *subscription;
    struct thread thread;
    struct mutex lock;
    struct cond changed;

    /* under the lock */
    struct list waiting; /* share_item, the oldest first */
    struct map by_name;
    struct share_item *batch[SHARE_BATCH]; /* being written */
    size_t batch_len;
    bool stop, anew; /* anew: all swarms must be loaded from the store again (H4) */
    struct share_stats stats;
    uint8_t asked[ASKED_MAX][INFO_HASH_LEN]; /* torrents to load first */
    size_t asked_count;
    uint64_t seen[ASKED_SEEN]; /* hashes of torrents that were asked for during the take-over */
    bool taking;               /* the take-over is under way */

    /* used by the thread alone */
    uint64_t batch_number;
    size_t batch_written, batch_told; /* changes of the batch that were written, and published */
    struct buf cursor; /* position in the store's list of torrents during the take-over */
};

/* share_write.c. Fills the batch from the waiting changes, unless there is a batch already. False:
 * nothing waits. A batch stays the same until the store confirms it, because the store recognizes a
 * repeated batch by its number. */
bool share_gather(struct share *s);
/* Writes the batch. 0: the batch is done; changes that the store refused for good (H5) were
 * logged. Otherwise the batch must be tried again. */
int share_write(struct share *s, struct err *err) MUST_CHECK;
/* Frees the batch after share_write() returned 0. */
void share_done(struct share *s);
/* Applies a message of another tracker. Our own messages and malformed ones are skipped. */
void share_apply(struct share *s, struct str message);

/* share_take.c. One step of the take-over, by the thread. False: the take-over is complete. */
bool share_take(struct share *s, int *code, struct err *err);
/* Makes the take-over load this torrent soon, because a client announced it. Under the lock. */
void share_ask(struct share *s, const uint8_t *info_hash);

#endif
