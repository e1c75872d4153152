/* Moving keys between the shards of a bucket: splits, merges, the way back to a plain bucket, and
 * DeleteBucket (docs/sharding.md, "Moving").
 *
 * A *move* hands a part of the key space over to another shard, one window of keys after another.
 * After each window the map is whole, so a move may end, be cancelled or be killed at any moment.
 * What the move has to do is in the map (`move`), so another process takes it over.
 *
 *     mover_begin ──► make the shard, note the move in the map
 *                 ──► for each window: close ──► drain ──► move the rows ──► commit (opens it)
 *                 ──► remove shards without segments, note the end in the map
 *
 * A process has one mover, with one thread that works for all its buckets. At most one move of a
 * bucket is under way. A move that weir began by itself is at work for at most an eighth of the
 * time; a move that somebody asked for may hurry.
 *
 * Any thread may call these functions. Locks: the calls take s->changes ("shard.changes"), then the
 * mover's own lock ("shard.mover"). The callbacks of mover_options are called under s->changes,
 * and never under "shard.mover". */
#ifndef SHARD_MOVE_H
#define SHARD_MOVE_H

#include "base/log.h"
#include "shard/sharded.h"

struct mover;

struct mover_options {
    const struct log *log;
    /* Called when all objects are in the bucket itself: requests for its name shall go to the plain
     * bucket from now on. Until gone() is called, the bucket cannot be sharded again. Must not
     * wait, and must not call the mover. */
    void (*plain)(void *ctx, struct sharded *s);
    /* Called when nothing is left of the sharding: the shards and the map bucket are removed, and
     * after DeleteBucket the bucket too. Must not wait, and must not call the mover. */
    void (*gone)(void *ctx, struct sharded *s);
    void *ctx;
};

/* Makes a mover whose thread does not run yet. */
struct mover *mover_new(const struct mover_options *o);
/* Starts the thread: moves that recovery has found, and those that begin, go on. */
int mover_start(struct mover *m, struct err *err) MUST_CHECK;
/* Ends the thread. Moves stay in their maps, and go on at the next start. */
void mover_stop(struct mover *m);
void mover_free(struct mover *m); /* NULL is fine; the thread must not run */

/* --- recovery --- */

/* Brings a bucket whose process may have been killed at any step to a state in which it can serve:
 * called once for each bucket that a start finds in its log, before the first request. Rows of a
 * window that was being moved go back and the window is opened; a removal goes on if the bucket is
 * empty; shards that no map names are removed; a move is noted, for mover_start(). *serves says
 * whether the bucket is sharded: if not, plain() and gone() were not called, nothing is left of the
 * sharding, and the name is that of a plain bucket or of none. An error: the bucket must not be
 * served. */
int mover_recover(struct mover *m, struct sharded *s, bool *serves, struct err *err) MUST_CHECK;

/* --- moves --- */

struct move_request {
    enum shard_move_kind kind; /* SHARD_SPLIT, SHARD_MERGE or SHARD_DISABLE */
    /* Split: the new boundary; the keys above it, up to the end of their segment, go to a new
     * shard. Empty: the median of the segment with the most keys. Merge: the boundary that goes.
     * Empty: the boundary of the two neighbours that have the fewest keys. Disable: not used. */
    struct str at;
    bool hurry; /* work without pauses */
};

/* Begins a move, and returns when it is noted in the map, or handed to the mover's thread if the
 * boundary has to be looked for. ERR_BUSY: another move of the bucket is under way; a move of the
 * same kind only learns to hurry, if this request does. ERR_EXISTS: the split's boundary is a
 * boundary already. ERR_NOT_FOUND: the merge's boundary is none. ERR_INVALID: the boundary is empty
 * or too long. ERR_CONFLICT: the bucket is being removed. */
int mover_begin(struct mover *m, struct sharded *s, const struct move_request *r,
                struct err *err) MUST_CHECK;
/* Ends the bucket's move behind the window that is being handed over. What was moved stays where it
 * is. ERR_NOT_FOUND: there is no move. */
int mover_cancel(struct mover *m, struct sharded *s, struct err *err) MUST_CHECK;
/* Waits until the bucket has no move. ERR_TIMEOUT: at the deadline (clock_mono_ns()) it has one. */
int mover_wait(struct mover *m, struct sharded *s, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;

enum move_phase {
    MOVE_NONE,     /* no move is under way */
    MOVE_LOOKING,  /* counts keys, and looks for the boundary */
    MOVE_MOVING,   /* hands windows over */
    MOVE_CLEANING, /* removes shards without segments, or the map bucket */
};

/* Returns "none", "looking", ... */
const char *move_phase_text(enum move_phase p);
const char *move_kind_text(enum shard_move_kind k); /* "split", "merge", "move", "disable" */

struct move_progress {
    enum move_phase phase;
    enum shard_move_kind kind;
    bool hurry;
    uint32_t from, to;          /* numbers of places; the same while the phase is MOVE_LOOKING */
    struct shard_window window; /* what is moved; in the arena */
    int64_t started_ms;         /* when this process began the move or took it over */
    uint64_t keys_moved, keys;  /* since started_ms; `keys` 0: not counted yet */
    uint64_t keys_per_second;
    uint64_t seconds_left; /* UINT64_MAX: not known */
    struct str waits;      /* why the move waits, a sentence in the arena; empty: it does not */
    /* Why the last move of the bucket in this process failed or paused, a sentence in the arena;
     * empty: there was no error. It stays after the move has ended, until the next one begins. */
    struct str error;
    int64_t error_ms;
};

/* Also for a bucket that never had a move. */
void mover_progress(struct mover *m, struct sharded *s, struct arena *a, struct move_progress *out);

/* --- DeleteBucket --- */

/* Removes the bucket with all its shards, with the rights of `user`. ERR_CONFLICT: it is not empty,
 * or another removal is under way. ERR_BUSY: requests are under way that did not end soon. Other
 * errors are those of remove_bucket(). After an error the bucket is as it was. A move that is under
 * way ends. plain() is not called. gone() is called when the shards and the map bucket are removed:
 * before the call returns, or later by the mover's thread if that fails at first. */
int mover_remove(struct mover *m, struct sharded *s, struct str user, struct err *err) MUST_CHECK;

/* Removes the maps, the oldest first, and then the map bucket; for a bucket that is not sharded any
 * more, or whose enabling failed. A bucket that is not there is fine. */
int shard_remove_log(struct storage *home, struct bucket *log, struct err *err) MUST_CHECK;

/* --- numbers --- */

struct mover_stats {
    uint64_t moves;      /* moves that ended */
    uint64_t hand_overs; /* windows that were handed over */
    uint64_t keys;       /* keys that were moved */
    uint64_t reopened;   /* windows that were opened again because requests did not end */
    uint64_t failures;   /* errors that made a move pause or end */
    uint64_t longest_closed_ms;
};
void mover_stats(struct mover *m, struct mover_stats *out);

#endif
