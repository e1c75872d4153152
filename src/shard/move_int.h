/* Declarations that the files of the mover share.
 *
 * Everything that makes a map runs under s->changes, from reading the newest map to publishing the
 * next one. A window is handed over while s->changes is held, from closing to opening. So a thread
 * that gets the lock and finds a closed window knows that an earlier attempt has left it closed. */
#ifndef SHARD_MOVE_INT_H
#define SHARD_MOVE_INT_H

#include "os/loop.h"
#include "shard/move.h"
#include "shard/step.h"

enum {
    MOVE_HURRY = 4,       /* a move at full speed has windows of this many times as many keys */
    MOVE_KEYS = 1000,     /* most keys of a window */
    MOVE_DRAIN_MS = 300,  /* longest time that a closed window waits for its requests to end */
    MOVE_AGE_MS = 100,    /* requests older than this are not waited for: the window ends below
                             their keys; the pause after the first failed hand-over is twice
                             this, or longer */
    MOVE_TRIES = 10,      /* tries to hand a window over before the move rests */
    MOVE_REST_MS = 10000, /* how long a move rests after these tries, and after an error */
    MOVE_RESTS = 3,       /* after this many rests without progress a split ends */
    MOVE_PAUSE_MAX_MS = 2000,
    MOVE_SAMPLE = 4096, /* size of the sample in which the median is found */
    MOVE_OPEN_UPLOADS = 1000,
};

/* The mover's record of a bucket. Guarded by mover.lock. The members of the second part are changed
 * only by the thread that has set `at_work`. */
struct move {
    struct list node;
    struct sharded *bucket; /* a reference */
    enum move_phase phase;
    enum shard_move_kind kind;
    bool hurry;
    bool at_work;    /* a thread works on the move */
    bool forgotten;  /* the record is dropped when its last user ends */
    bool removed;    /* the bucket was removed, and only its shards and maps are left to remove */
    unsigned users;  /* number of threads that use this record */
    uint64_t due_ns; /* clock_mono_ns() time at which the next turn may begin */
    uint64_t started_ns;
    int64_t started_ms, error_ms;
    uint64_t keys_moved, keys;
    bool counted;
    char waits[256];
    struct err error; /* the last failure; code 0: none */

    size_t limit;          /* most keys of the next window */
    unsigned tries;        /* tries that failed since a window was last handed over */
    unsigned rests;        /* how often the move has rested since a window was last handed over */
    struct move_last last; /* the last move that has ended; ended_ms 0: none has */
    /* clock_mono_ms() time at which the move ended although keys were left to move; `error` says
     * why. 0: it did not end in this way. */
    uint64_t gave_up_ms;
};

struct mover {
    struct mover_options o;
    struct mutex lock;   /* class "shard.mover" */
    struct cond changed; /* signalled when a thread has ended a move or its work on one */
    struct list moves;
    size_t window_keys; /* MOVE_KEYS; tests want smaller windows */
    struct mover_stats stats;
    struct loop loop;
};

/* --- work; under no lock --- */

/* Does the next piece of work of a move: finds the boundary, counts keys, hands one window over, or
 * ends the move. 0: there is more to do. ERR_END: the move has ended. ERR_AGAIN: the move has to
 * wait; `err` says why. */
int move_turn(struct mover *m, struct move *r, struct err *err) MUST_CHECK;
/* Does one turn of the move, and stores in `r` its outcome and when the next turn is due. */
void move_work(struct mover *m, struct move *r);

/* --- maps; under s->changes --- */

/* Opens the shard with this number. */
int move_open_place(struct sharded *s, const struct shard_map *m, uint32_t number,
                    struct bucket **out, struct err *err) MUST_CHECK;
/* Publishes the draft in the step with this name (step.h), and releases the draft. */
int move_publish(struct sharded *s, struct shard_map *draft, const char *step,
                 struct err *err) MUST_CHECK;
/* Opens whatever the newest map has closed. Rows of a window that was being moved first go back to
 * the owner of the window, and shards whose state was being changed first get one state. */
int move_repair(struct sharded *s, struct err *err) MUST_CHECK;
/* Returns a reference to a newest map in which nothing is closed; repairs the map if necessary.
 * ERR_CONFLICT: the bucket is being removed. ERR_NO_BUCKET: the bucket is plain. */
int move_open_map(struct sharded *s, struct shard_map **out, struct err *err) MUST_CHECK;

/* --- the parts of a move --- */

/* These functions write a new move into the map. A split also makes the new shard, and a merge
 * chooses which of the two shards gets the keys. The caller holds s->changes. ERR_END: there is
 * nothing to move (only for SHARD_DISABLE). */
int move_note_split(struct sharded *s, struct str at, struct err *err) MUST_CHECK;
int move_note_merge(struct sharded *s, struct str at, struct err *err) MUST_CHECK;
int move_note_disable(struct sharded *s, struct err *err) MUST_CHECK;
/* Counts the keys of a segment, and takes a sample of at most `samples` keys. */
int move_sample(struct sharded *s, const struct shard_map *m, size_t segment, size_t samples,
                struct arena *a, struct place_sample *out, struct err *err) MUST_CHECK;
/* Estimates from a sample how many of the keys are above `at`. */
uint64_t sample_above(const struct place_sample *x, struct str at);
/* Chooses where a split should cut: *at is the best boundary (shard/plan.h) for the segment with
 * the most keys. *keys is about the number of keys that will move, estimated from a sample.
 * ERR_NOT_FOUND: no segment has enough keys to split. */
int move_find_median(struct sharded *s, struct arena *a, struct str *at, uint64_t *keys,
                     struct err *err) MUST_CHECK;
/* Counts the keys that the move in the map still has to move. */
int move_count(struct sharded *s, uint64_t *keys, struct err *err) MUST_CHECK;

/* One call of hand_over_next(): its arguments ("in") and results ("out"). */
struct hand_over {
    size_t limit;       /* in: most keys of the window */
    uint64_t keys;      /* out: keys that were moved */
    uint64_t closed_ms; /* out: how long the window was closed */
    bool reopened;      /* out: requests did not end in time */
    bool cleaned;       /* out: garbage was removed instead, where the window will be */
    bool stuck;         /* out: with ERR_TOO_LARGE, the next key can never be moved */
};
/* Hands over the next window of the move in the map. Called under s->changes. ERR_END: all keys of
 * the move are where they belong. ERR_AGAIN: requests prevent the hand-over at the moment. */
int hand_over_next(struct sharded *s, struct hand_over *h, struct err *err) MUST_CHECK;

/* --- garbage (H10); under s->changes --- */

/* What move_remove_garbage() did. */
struct garbage_removed {
    uint64_t versions; /* grows by the versions and markers that were removed */
    bool more;         /* rows are left in the window */
};
/* Removes rows that the place has in the window, some thousands in one call. No segment of the
 * place may overlap the window. `m` is the newest map, and nothing is closed in it. */
int move_remove_garbage(struct sharded *s, const struct shard_map *m, uint32_t number,
                        const struct shard_window *w, struct garbage_removed *out,
                        struct err *err) MUST_CHECK;
/* Removes a shard that is not in the map, with all its rows. It is no error if the shard does not
 * exist. */
int move_remove_shard(struct sharded *s, const struct shard_map *m, struct str name,
                      struct err *err) MUST_CHECK;

/* Ends the move in the map. Shards that have no segments any more leave the map and are then
 * removed. With `plain`, a bucket that has all its keys itself becomes plain; *became_plain says
 * whether it did. Takes s->changes. */
int move_end(struct mover *m, struct sharded *s, bool plain, bool *became_plain,
             struct err *err) MUST_CHECK;
/* Removes the empty shards that have the bucket's mark and are not in the map. A mover that was
 * killed leaves such shards. */
int move_tidy(struct sharded *s, const struct shard_map *m, struct err *err) MUST_CHECK;
/* Removes everything that sharding made for a bucket that is now plain or removed. */
int move_clean_up(struct sharded *s, struct err *err) MUST_CHECK;

/* --- the mover's records of buckets --- */

/* Returns the record of the bucket, under mover.lock. NULL: there is none. */
struct move *move_find(struct mover *m, const struct sharded *s);
/* Like move_find(), but adds a record if there is none. */
struct move *move_of(struct mover *m, struct sharded *s);
/* Makes the mover continue the move that the newest map has, unless the mover has it already. */
void move_take_over(struct mover *m, struct sharded *s);
/* Whether the last move of the bucket gave up at most `within_ms` ago. If so, `why` gets the
 * reason. */
bool move_gave_up(struct mover *m, struct sharded *s, uint64_t within_ms, char *why, size_t size);
/* Gives the mover's thread the task to remove what is left of a removed bucket and then to call
 * gone(). Called when removing it has failed with the error `why`. */
void move_clean_later(struct mover *m, struct sharded *s, const struct err *why);
/* Ends the mover's work on the bucket, and waits until its thread has left the bucket. */
void move_forget(struct mover *m, struct sharded *s);

#endif
