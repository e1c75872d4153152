/* Moving keys between the shards of a bucket: splits, merges, the way back to a plain bucket, and
 * DeleteBucket (docs/sharding.md, "Moving").
 *
 * A *move* hands a part of the key space over to another shard, one window of keys after another.
 * The map is complete after each window, so a move may end, be cancelled or be killed at any
 * moment. The map also has the move itself (`move`), so a process that starts later can continue
 * it.
 *
 *     mover_begin ──► make the shard, note the move in the map
 *                 ──► for each window: close ──► drain ──► move the rows ──► commit (opens it)
 *                 ──► remove shards without segments, note the end in the map
 *
 * A process has one mover, with one thread that works for all its buckets. At most one move of a
 * bucket is under way. A move works for at most an eighth of the time, unless somebody asked for it
 * with `hurry`.
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
    /* Whether keys of the bucket must not move for now, because the bucket is being switched to
     * another storage. Asked before a move begins and before each of its turns. NULL: never. */
    bool (*rests)(void *ctx, const struct sharded *s);
    /* Called when all objects are in the bucket itself. From now on requests for its name must go
     * to the plain bucket. The bucket cannot be sharded again until gone() is called. Must not
     * wait, and must not call the mover. */
    void (*plain)(void *ctx, struct sharded *s);
    /* Called when everything that sharding had made is removed: the shards, the map bucket and,
     * after DeleteBucket, the bucket itself. Must not wait, and must not call the mover. */
    void (*gone)(void *ctx, struct sharded *s);
    void *ctx;
};

/* Makes a mover whose thread does not run yet. */
struct mover *mover_new(const struct mover_options *o);
/* Starts the thread. Moves that recovery has found are continued, and new moves are carried out. */
int mover_start(struct mover *m, struct err *err) MUST_CHECK;
/* Ends the thread. Moves stay in their maps, and continue at the next start. */
void mover_stop(struct mover *m);
void mover_free(struct mover *m); /* NULL is fine; the thread must not run */

/* --- recovery --- */

/* Repairs a bucket whose process may have been killed at any step, so that it can serve. A start
 * calls this for each bucket whose log it finds; `weir shard rebuild` calls it again for a bucket
 * that could not be repaired.
 * - Rows of a window that was being moved go back, and the window is opened. If other rows are in
 *   their way, the window stays closed, and the mover tries again; this is not an error.
 * - The removal of the bucket continues if the bucket is empty; otherwise the removal is undone.
 * - Empty shards that the map does not name are removed.
 * - A move in the map is recorded, and mover_start() continues it.
 *
 * *serves says whether the bucket is still sharded. If it is not, its shards and maps were removed,
 * or a failure to remove them was logged; plain() and gone() were not called; and the name belongs
 * to a plain bucket or to no bucket. After an error the bucket is not repaired: the caller may
 * serve its keys outside of the closed window. */
int mover_recover(struct mover *m, struct sharded *s, bool *serves, struct err *err) MUST_CHECK;

/* --- moves --- */

struct move_request {
    enum shard_move_kind kind; /* SHARD_SPLIT, SHARD_MERGE or SHARD_DISABLE */
    /* Split: the new boundary; the keys above it, up to the end of their segment, go to a new
     * shard. Empty: the median of the segment with the most keys. Merge: the boundary to remove.
     * Empty: the boundary between the two neighbours that have the fewest keys. Disable: not
     * used. */
    struct str at;
    bool hurry; /* work without pauses */
};

/* Begins a move. Returns when the move is in the map or, if a boundary must be found first, when
 * the mover's thread has the task. ERR_BUSY: the bucket is being switched, or has another move
 * already. If that other move is of the same kind, and this request has `hurry`, the other move
 * hurries from now on. ERR_EXISTS: the boundary of the split exists already. ERR_NOT_FOUND: there
 * is no such boundary to merge at. ERR_INVALID: the boundary is empty or too long. ERR_CONFLICT:
 * the bucket is being removed. */
int mover_begin(struct mover *m, struct sharded *s, const struct move_request *r,
                struct err *err) MUST_CHECK;
/* Ends the bucket's move after the window that is being handed over. Keys that were moved stay
 * where they are. ERR_NOT_FOUND: there is no move. */
int mover_cancel(struct mover *m, struct sharded *s, struct err *err) MUST_CHECK;
/* Whether the mover is at work on the bucket at this moment. Who makes rests() true first, and then
 * finds this false, knows that no key moves until rests() is false. */
bool mover_works(struct mover *m, struct sharded *s);
/* Waits until the bucket has no move. ERR_TIMEOUT: it still has one at the deadline
 * (clock_mono_ns()). */
int mover_wait(struct mover *m, struct sharded *s, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;

enum move_phase {
    MOVE_NONE,     /* no move is under way */
    MOVE_LOOKING,  /* counts keys to find the boundary of a split */
    MOVE_MOVING,   /* hands windows over */
    MOVE_CLEANING, /* removes shards without segments, or the map bucket */
};

/* Returns "none", "looking", ... */
const char *move_phase_text(enum move_phase p);
const char *move_kind_text(enum shard_move_kind k); /* "split", "merge", "move", "disable" */

/* A move that has ended. */
struct move_last {
    enum shard_move_kind kind;
    bool whole; /* it has moved all its keys; false: it was cancelled, or it gave up */
    uint64_t keys_moved, seconds; /* keys that this process moved, and how long it worked on them */
    int64_t ended_ms;
};

struct move_progress {
    enum move_phase phase;
    enum shard_move_kind kind;
    bool hurry;
    uint32_t from, to; /* numbers of places; both are the same while the phase is MOVE_LOOKING */
    struct shard_window window; /* the keys that the move hands over; in the arena */
    int64_t started_ms;         /* when this process began the move or took it over */
    uint64_t keys_moved, keys;  /* keys moved since started_ms, and keys to move in all; `keys`
                                   0: not counted yet */
    uint64_t keys_per_second;
    uint64_t seconds_left; /* UINT64_MAX: not known */
    struct str waits;      /* why the move is waiting: a sentence in the arena; empty: it is not */
    /* Why the last move of the bucket in this process failed or paused: a sentence in the arena;
     * empty: there was no error. The text stays after the move has ended, until the next move
     * begins. */
    struct str error;
    int64_t error_ms;
    struct move_last last; /* the last move that ended in this process; ended_ms 0: none did */
};

/* Fills *out, also for a bucket that never had a move. */
void mover_progress(struct mover *m, struct sharded *s, struct arena *a, struct move_progress *out);

/* --- DeleteBucket --- */

/* Removes the bucket with all its shards. The caller has checked that the user may delete the
 * bucket; `user` is not used. A move of the bucket ends. plain() is not called. gone() is called
 * once the shards and the map bucket are removed: before this call returns or, if removing them
 * fails at first, later by the mover's thread. After an error the bucket is as it was, unless
 * undoing the removal has failed too; then it stays closed, and `err` says why. ERR_CONFLICT: the
 * bucket is not empty, or another removal is under way. ERR_BUSY: requests under way did not end
 * soon. Other errors are those of remove_bucket(). */
int mover_remove(struct mover *m, struct sharded *s, struct str user, struct err *err) MUST_CHECK;

/* Removes all maps, the oldest first, and then the map bucket. Called for a bucket that is not
 * sharded any more, or whose enabling failed. It is no error if the map bucket does not exist. */
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
