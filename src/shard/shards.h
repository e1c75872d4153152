/* The sharded buckets of this process, by home and name, and the overlay (object/overlay.h) that
 * gives them to everybody else.
 *
 *     start ── discover_storage() ──┐
 *     weir shard enable ────────────┼─► an entry ─► has(): a look-up in memory, for every request
 *     disable, DeleteBucket ────────┘              open(): the logical bucket, or why not
 *
 * An entry is found without a lock. Entries are kept until the table is closed, also when their
 * bucket is plain again.
 *
 * Any thread may call these functions. */
#ifndef SHARD_SHARDS_H
#define SHARD_SHARDS_H

#include "base/log.h"
#include "object/overlay.h"
#include "shard/sharded.h"

struct shards;

struct shards_options {
    struct routes *routes; /* borrowed */
    struct str house;      /* says which installation of weir this is; copied */
    /* Brings a bucket that a start finds to a state in which it can serve, as mover_recover() does.
     * NULL: such buckets are served as their maps are. */
    int (*recover)(void *ctx, struct sharded *x, bool *serves, struct err *err);
    /* Removes the logical bucket with its shards (DeleteBucket), as mover_remove() does. The
     * caller of shards_new() calls shards_gone() when nothing is left. NULL: sharded buckets cannot
     * be removed. */
    int (*remove)(void *ctx, struct sharded *x, struct str user, struct err *err);
    void *ctx;
    const struct log *log;
};

enum shards_state {
    SHARDS_PLAIN,  /* the bucket is not sharded */
    SHARDS_SEALED, /* it is being sharded, which takes a moment; requests are ERR_BUSY */
    SHARDS_SERVED,
    SHARDS_BROKEN, /* its map cannot be used; requests get the error that says why */
    /* A thread reads the log of a bucket that was broken, and recovers the bucket; requests get the
     * error as before. */
    SHARDS_RECOVERING,
    SHARDS_REMOVED, /* the bucket is removed, and some of its shards are left */
    /* The bucket is plain, and cannot be sharded at the moment: it is about to be, or was, and some
     * of its shards are left. */
    SHARDS_CLAIMED,
};

/* Opens an empty table. The caller gives the overlay to the routes. */
struct shards *shards_new(const struct shards_options *o);
void shards_free(struct shards *s); /* the routes must not have the overlay any more */
struct overlay *shards_overlay(struct shards *s);
const struct shards_options *shards_settings(const struct shards *s);

/* Returns a reference to the sharded bucket; NULL: the bucket is not served as a sharded one. */
struct sharded *shards_find(struct shards *s, const struct storage *home, struct str name);
/* Returns the state of a name. Sets *why to what is wrong with the bucket: always if it is
 * SHARDS_BROKEN; in other states its code may be 0. */
enum shards_state shards_state(struct shards *s, const struct storage *home, struct str name,
                               struct err *why);

/* Claims a plain bucket that is to be sharded. Returns false if the bucket is not SHARDS_PLAIN.
 * *before is what was wrong with the bucket. */
bool shards_claim(struct shards *s, struct storage *home, struct str name, struct err *before);
/* Claims a name whose log is to be read: a plain bucket becomes SHARDS_CLAIMED, a broken one
 * SHARDS_RECOVERING. Returns false in every other state: then another thread is at work with the
 * bucket, or it is served. *before is what was wrong with the bucket. */
bool shards_recover(struct shards *s, struct storage *home, struct str name, struct err *before);

/* Set the state of a name. Only the thread that has claimed the name calls these. */
void shards_seal(struct shards *s, struct storage *home, struct str name);
/* `x` gets another reference. `why` says what is wrong with the bucket; NULL: nothing. */
void shards_serve(struct shards *s, struct sharded *x, const struct err *why);
void shards_break(struct shards *s, struct storage *home, struct str name, const struct err *why);
/* Makes the bucket plain. `why` says what is wrong with it; NULL: nothing. */
void shards_forget(struct shards *s, struct storage *home, struct str name, const struct err *why);

/* These three do nothing if the table has another sharded bucket of the name by now. */
/* The bucket is plain again (mover_options.plain). */
void shards_plain(struct shards *s, struct sharded *x);
/* Nothing is left of the bucket's sharding (mover_options.gone). */
void shards_gone(struct shards *s, struct sharded *x);
/* Says what is wrong with a bucket that is served. NULL: nothing any more. */
void shards_note(struct shards *s, struct sharded *x, const struct err *why);

/* A sharded bucket of the table. */
struct shards_item {
    struct storage *home;
    struct str name;         /* lives as long as the table */
    struct sharded *sharded; /* a reference; NULL: the bucket is broken or plain */
    bool plain;              /* the bucket is plain, and `why` is set */
    struct err why;          /* what is wrong with the bucket; code 0: nothing */
};
/* Lists the buckets that are served or broken, and plain ones with which something is wrong, sorted
 * by name and home; returns how many. The caller frees the array with shards_list_free(). */
size_t shards_list(struct shards *s, struct shards_item **out);
void shards_list_free(struct shards_item *list, size_t count);

#endif
