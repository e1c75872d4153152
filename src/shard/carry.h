/* Carries a window of keys from one shard to another by copies, while several processes serve the
 * bucket (docs/sharding.md, H8 to H11).
 *
 *     carry_begin   a new shard, or one that is clean in the window      map: the shard, the move
 *     carry_window  copy what differs, while clients work
 *                   close the window                                     map: closed, copy
 *                   every process holds this map (agree.h)
 *                   copy what still differs
 *                   give the window away, and open it                    map: the new owner
 *     carry_clean   every process holds this map, and a grace has passed
 *                   remove what the old owner has in the window          map: clean, no move
 *
 * A storage may carry a request out long after its sender has died. So a window is never given to a
 * shard into which a request of unknown outcome may still land (H9): from carry_begin() on, the map
 * calls the target unclean in the window, and only the run that made it so goes on with it. A mover
 * that starts anew, or that was not told what became of a request, takes another target.
 *
 * The same holds for what the old owner is left with. The map calls it unclean there when the
 * window was given away, and only the run that has the move in the map may clean it and say so. If
 * that run dies, the old owner never gets this window again, because a removal of that run may
 * still land.
 *
 * What a storage does is behind struct carry_ops. One thread uses a struct carry. */
#ifndef SHARD_CARRY_H
#define SHARD_CARRY_H

#include "shard/agree.h"

enum {
    CARRY_HOLD_MS = 500, /* how long a window stays closed for processes that do not hold it yet */
    CARRY_SETTLE_MS = 15000, /* how long maps that close nothing wait for all processes */
    CARRY_GRACE_MS = 60000,  /* for bodies that are read from the old owner while it is cleaned */
    CARRY_ROUNDS = 2,        /* copies while clients work */
};

/* In all calls ERR_TIMEOUT says that the outcome of a request is not known: it may still be carried
 * out. After any other error no request is under way. */
struct carry_ops {
    /* Makes an empty bucket for shard `number`. Its name and storage are in the arena. */
    int (*make)(void *ctx, uint32_t number, struct arena *a, struct str *storage,
                struct str *bucket, struct err *err);
    /* Makes shard `to` have in the window exactly what shard `from` has. */
    int (*copy)(void *ctx, uint32_t to, uint32_t from, const struct shard_window *w,
                struct err *err);
    /* Removes everything that the shard has in the window. */
    int (*clean)(void *ctx, uint32_t shard, const struct shard_window *w, struct err *err);
};

struct carry {
    struct sharded *bucket; /* borrowed, as are the next three members */
    struct agree *agree;
    const struct carry_ops *ops;
    void *ctx;
    uint64_t grace_ms; /* CARRY_GRACE_MS; shorter in tests */
    /* The move of this run, as the map has it; empty: this run has not begun one, or must not go on
     * with its target. */
    char move[SHARD_BY_LEN + 1];
};

void carry_init(struct carry *c, struct sharded *s, struct agree *agree,
                const struct carry_ops *ops, void *ctx);

/* Begins to carry the window, which one shard owns, to another shard: to shard `to` if it may be
 * given the window, else to a new one. A move of another run ends. Waits until every process holds
 * the map. ERR_INVALID: the window is not on one shard. */
int carry_begin(struct carry *c, const struct shard_window *w, uint32_t to,
                struct err *err) MUST_CHECK;
/* Hands over the window of the move. ERR_BUSY: a process did not hold the closed map in time, and
 * the window was opened again; another try is fine. ERR_CONFLICT: somebody else has changed the
 * map, or this run has no move. ERR_TIMEOUT: the outcome of a request is not known, and
 * carry_begin() has to choose another target. */
int carry_window(struct carry *c, struct err *err) MUST_CHECK;
/* Removes what the old owner has in the window that carry_window() gave away, and ends the move.
 * Errors are those of carry_window(). */
int carry_clean(struct carry *c, struct err *err) MUST_CHECK;

#endif
