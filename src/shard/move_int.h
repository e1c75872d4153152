/* Declarations that the files of the mover share.
 *
 * Everything that makes a map runs under s->changes, from reading the newest map to publishing the
 * next one. A window is handed over under it as a whole, so nobody else sees a window that this
 * process has closed and does not know about. */
#ifndef SHARD_MOVE_INT_H
#define SHARD_MOVE_INT_H

#include "os/loop.h"
#include "shard/move.h"
#include "shard/step.h"

enum {
    MOVE_HURRY = 4,       /* windows of a move at full speed have so many times more keys */
    MOVE_KEYS = 1000,     /* most keys of a window */
    MOVE_DRAIN_MS = 300,  /* how long a window stays closed while requests end */
    MOVE_AGE_MS = 100,    /* requests that are older are not waited for: the window ends below */
    MOVE_TRIES = 10,      /* windows that may be opened again before the move rests */
    MOVE_REST_MS = 10000, /* how long a move rests after these tries, and after an error */
    MOVE_RESTS = 3,       /* rests after which a split that has got no further ends */
    MOVE_PAUSE_MAX_MS = 2000,
    MOVE_SAMPLE = 4096, /* keys among which the median is looked for */
    MOVE_OPEN_UPLOADS = 1000,
};

/* What the mover knows of a bucket. Guarded by mover.lock; the thread that has set `at_work` alone
 * changes the members of the second part. */
struct move {
    struct list node;
    struct sharded *bucket; /* a reference */
    enum move_phase phase;
    enum shard_move_kind kind;
    bool hurry;
    bool at_work;    /* a thread works on the move */
    bool forgotten;  /* the last user drops this */
    bool removed;    /* the bucket was removed, and only the cleaning is left */
    unsigned users;  /* threads that use this */
    uint64_t due_ns; /* clock_mono_ns(): no work before */
    uint64_t started_ns;
    int64_t started_ms, error_ms;
    uint64_t keys_moved, keys;
    bool counted;
    char waits[256];
    struct err error; /* of the last failure; code 0: none */

    size_t limit;   /* keys of the next window */
    unsigned tries; /* windows that could not be handed over since the last one that was */
    unsigned rests; /* how often the move has rested after such tries */
    /* The move has ended before it had moved everything, at this time (clock_mono_ms()), and the
     * error says why; 0: it has not. */
    uint64_t gave_up_ms;
};

struct mover {
    struct mover_options o;
    struct mutex lock;   /* class "shard.mover" */
    struct cond changed; /* a move has ended, or its thread works no more */
    struct list moves;
    size_t window_keys; /* MOVE_KEYS; tests want smaller windows */
    struct mover_stats stats;
    struct loop loop;
};

/* --- work; under no lock --- */

/* Does the next piece of work of a move: looks for the boundary, counts, hands one window over, or
 * ends the move. 0: there is more to do. ERR_END: the move has ended. ERR_AGAIN: the move has to
 * wait, and `err` says why; the next try is due at r->due_ns. */
int move_turn(struct mover *m, struct move *r, struct err *err) MUST_CHECK;
/* Does a turn of the move, and keeps its outcome in `r`. */
void move_work(struct mover *m, struct move *r);

/* --- maps; under s->changes --- */

/* Opens the shard with this number. */
int move_open_place(struct sharded *s, const struct shard_map *m, uint32_t number,
                    struct bucket **out, struct err *err) MUST_CHECK;
/* Publishes the draft as one step, and releases it. */
int move_publish(struct sharded *s, struct shard_map *draft, const char *step,
                 struct err *err) MUST_CHECK;
/* Opens what the newest map has closed. Rows of a window that was being moved go back first. */
int move_repair(struct sharded *s, struct err *err) MUST_CHECK;
/* Returns a map in which nothing is closed, as a reference: repairs the newest one if need be.
 * ERR_CONFLICT: the bucket is being removed. ERR_NO_BUCKET: it is plain. */
int move_open_map(struct sharded *s, struct shard_map **out, struct err *err) MUST_CHECK;

/* --- the parts of a move --- */

/* Notes the move in the map: makes the shard of a split, or chooses the direction of a merge.
 * Called under s->changes. ERR_END: there is nothing to move (SHARD_DISABLE). */
int move_note_split(struct sharded *s, struct str at, struct err *err) MUST_CHECK;
int move_note_merge(struct sharded *s, struct str at, struct err *err) MUST_CHECK;
int move_note_disable(struct sharded *s, struct err *err) MUST_CHECK;
/* Looks for the best boundary of a split. *keys is how many keys will move. ERR_NOT_FOUND: the
 * bucket has too few keys. */
int move_find_median(struct sharded *s, struct arena *a, struct str *at, uint64_t *keys,
                     struct err *err) MUST_CHECK;
/* Counts the keys that the noted move has yet to move. */
int move_count(struct sharded *s, uint64_t *keys, struct err *err) MUST_CHECK;

/* One window. */
struct hand_over {
    size_t limit;       /* in: most keys */
    uint64_t keys;      /* out: keys that were moved */
    uint64_t closed_ms; /* out: how long the window was closed */
    bool reopened;      /* out: requests did not end in time */
    bool cleaned;       /* out: instead, garbage was removed where the window will lie */
    bool stuck;         /* out: with ERR_TOO_LARGE, the next key can never be moved */
};
/* Hands the next window of the noted move over. Called under s->changes. ERR_END: all of it is
 * where it belongs. ERR_AGAIN: requests are in the way. */
int hand_over_next(struct sharded *s, struct hand_over *h, struct err *err) MUST_CHECK;

/* --- garbage (H10); under s->changes --- */

/* Removes rows that the place has in the window, of which no segment of the place overlaps any
 * part: some thousand of them, and *more says whether there are others. `m` is the newest map. */
int move_remove_garbage(struct sharded *s, const struct shard_map *m, uint32_t number,
                        const struct shard_window *w, bool *more, struct err *err) MUST_CHECK;
/* Removes a shard that the map does not have, with all its rows. A shard that is not there is
 * fine. */
int move_remove_shard(struct sharded *s, const struct shard_map *m, struct str name,
                      struct err *err) MUST_CHECK;

/* Ends the noted move in the map, with the shards that have no segments any more; these are then
 * removed. With `plain`, the bucket becomes plain if it has all keys itself. *became_plain says
 * whether it did. Takes s->changes. */
int move_end(struct mover *m, struct sharded *s, bool plain, bool *became_plain,
             struct err *err) MUST_CHECK;
/* Removes the shards that have the bucket's mark and are in no map: those that a killed mover has
 * left. Only empty ones are removed. */
int move_tidy(struct sharded *s, const struct shard_map *m, struct err *err) MUST_CHECK;
/* Removes all that is left of the sharding of a bucket that is plain or removed. */
int move_clean_up(struct sharded *s, struct err *err) MUST_CHECK;

/* --- the mover's book --- */

/* Returns what the mover knows of a bucket, under mover.lock; NULL: nothing. */
struct move *move_find(struct mover *m, const struct sharded *s);
/* Adds what is not there. */
struct move *move_of(struct mover *m, struct sharded *s);
/* Notes the move that the newest map has, if it is not at work already. */
void move_take_over(struct mover *m, struct sharded *s);
/* Whether the last move of the bucket gave up within this time. If so, `why` says why. */
bool move_gave_up(struct mover *m, struct sharded *s, uint64_t within_ms, char *why, size_t size);
/* Makes the mover's thread remove what is left of a bucket that was removed, since that has failed
 * (`why`), and call gone() then. */
void move_clean_later(struct mover *m, struct sharded *s, const struct err *why);
/* Says that nothing of the bucket is at work any more, and waits for the thread to leave it. */
void move_forget(struct mover *m, struct sharded *s);

#endif
