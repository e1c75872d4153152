/* Inside of sharing: for share*.c only. */
#ifndef SWARM_SHARE_INT_H
#define SWARM_SHARE_INT_H

#include "base/list.h"
#include "base/map.h"
#include "os/thread.h"
#include "swarm/cache_int.h"
#include "swarm/share.h"

enum {
    INSTANCE_LEN = 8,
    SHARE_BATCH = 64,   /* changes in one script: it holds up the store for about a millisecond */
    SHARE_KEY_MAX = 64, /* bytes of a client's key that are told */
    ASKED_MAX = 1024,   /* torrents that wait to be taken over first */
    ASKED_SEEN = 4096,  /* of those that were asked for lately */
    SHARE_STEPS = 3,    /* that a change is written as, at most */
};

/* A change that waits: the newest of its peer, and whether it completed on the way there. */
struct share_item {
    struct list node;
    uint8_t name[INFO_HASH_LEN + COMPACT6_LEN]; /* of the peer in the map: info hash and address */
    size_t name_len;
    uint8_t peer_id[PEER_ID_LEN];
    uint8_t key[SHARE_KEY_MAX];
    size_t key_len;
    struct peer_addr addr;
    uint64_t uploaded, downloaded, left;
    enum swarm_change change;
    bool leeched, completed; /* before this change, since the peer was written last */
    bool paused;
    uint32_t at_s; /* by options.now */
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
    struct share_item *batch[SHARE_BATCH]; /* gathered and not known to be written */
    size_t batch_len;
    bool stop, anew; /* anew: all swarms are to be taken over (H4) */
    struct share_stats stats;
    uint8_t asked[ASKED_MAX][INFO_HASH_LEN]; /* to be taken over first */
    size_t asked_count;
    uint64_t seen[ASKED_SEEN]; /* hashes of those that were, while taking over */
    bool taking;               /* not all swarms are taken over yet */

    /* of the thread alone */
    uint64_t batch_number;
    size_t batch_written, batch_told; /* changes of it, as share_write() found */
    struct buf cursor;                /* in the list of torrents, while taking over */
};

/* share_write.c: the batch, of some that wait unless there is one yet; false: nothing waits. A
 * batch stays as it is until the store has said that it is written: only so can the store know one
 * that it has by its number. */
bool share_gather(struct share *s);
/* 0: there is nothing more to do for it, though the store may have refused some changes, or all,
 * for good (H5); that was logged. Else it has to be tried again. */
int share_write(struct share *s, struct err *err) MUST_CHECK;
/* The batch is dealt with. */
void share_done(struct share *s);
/* What another told; our own is passed over. Malformed ones are too. */
void share_apply(struct share *s, struct str message);

/* share_take.c: a step of taking the swarms over; the thread's. False: there is nothing to do. */
bool share_take(struct share *s, int *code, struct err *err);
/* A torrent that is announced; under the lock. */
void share_ask(struct share *s, const uint8_t *info_hash);

#endif
