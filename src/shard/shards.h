/* The table of the sharded buckets of this process, by home and name, and the overlay
 * (object/overlay.h) through which all other code opens them.
 *
 *     start ── discover_storage() ──┐
 *     weir shard enable ────────────┼─► an entry ─► has(): a look-up in memory, for every request
 *     disable, DeleteBucket ────────┘              open(): the logical bucket, or why not
 *
 * An entry is found without a lock. Entries stay until the table is closed, even after their bucket
 * has become plain.
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
    struct str house;      /* the mark of this installation of weir (shard_map.house); copied */
    /* Repairs a bucket that a start has found, so that it can serve, as mover_recover() does. NULL:
     * such buckets are served without a repair. */
    int (*recover)(void *ctx, struct sharded *x, bool *serves, struct err *err);
    /* Removes the logical bucket with its shards (DeleteBucket), as mover_remove() does. When
     * everything is removed, the caller of shards_new() calls shards_gone(). NULL: sharded buckets
     * cannot be removed. */
    int (*remove)(void *ctx, struct sharded *x, struct str user, struct err *err);
    void *ctx;
    const struct log *log;
};

enum shards_state {
    SHARDS_PLAIN,  /* the bucket is not sharded */
    SHARDS_SEALED, /* it is being sharded, which takes a moment; requests fail with ERR_BUSY */
    SHARDS_SERVED,
    SHARDS_BROKEN, /* its map cannot be used; requests fail with an error that says why */
    /* A thread reads the log of a bucket that was broken, and recovers the bucket. Requests fail
     * with the same error as before. */
    SHARDS_RECOVERING,
    SHARDS_REMOVED, /* the bucket is removed, but not yet all of its shards */
    /* The bucket is plain, but cannot be sharded at the moment: it is about to be sharded, or it
     * was sharded and some of its shards are left. */
    SHARDS_CLAIMED,
};

/* Makes an empty table. The caller passes its overlay to the routes. */
struct shards *shards_new(const struct shards_options *o);
void shards_free(struct shards *s); /* the routes must not use the overlay any more */
struct overlay *shards_overlay(struct shards *s);
const struct shards_options *shards_settings(const struct shards *s);

/* Returns a reference to the sharded bucket; NULL: the bucket is not served as a sharded one. */
struct sharded *shards_find(struct shards *s, const struct storage *home, struct str name);
/* Returns the state of a name. *why gets the error that says what is wrong with the bucket. In the
 * state SHARDS_BROKEN it always has a code; in other states its code may be 0. */
enum shards_state shards_state(struct shards *s, const struct storage *home, struct str name,
                               struct err *why);

/* Claims the name of a plain bucket that is to be sharded: other threads then leave it alone.
 * Returns false if the bucket is not SHARDS_PLAIN. *before is what was wrong with the bucket
 * before. */
bool shards_claim(struct shards *s, struct storage *home, struct str name, struct err *before);
/* Claims a name whose log is to be read: a plain bucket becomes SHARDS_CLAIMED, a broken bucket
 * becomes SHARDS_RECOVERING. Returns false in every other state: the bucket is served, or another
 * thread is changing it. *before is what was wrong with the bucket before. */
bool shards_recover(struct shards *s, struct storage *home, struct str name, struct err *before);

/* Set the state of a name. Only the thread that has claimed the name calls these. */
void shards_seal(struct shards *s, struct storage *home, struct str name);
/* Serves the bucket as `x`; the table takes a reference of its own. `why` says what is wrong with
 * the bucket; NULL: nothing. */
void shards_serve(struct shards *s, struct sharded *x, const struct err *why);
void shards_break(struct shards *s, struct storage *home, struct str name, const struct err *why);
/* Makes the bucket plain. `why` says what is wrong with the bucket; NULL: nothing. */
void shards_forget(struct shards *s, struct storage *home, struct str name, const struct err *why);

/* These three do nothing if the table has another sharded bucket under the name by now. */
/* The bucket has become plain again (mover_options.plain). */
void shards_plain(struct shards *s, struct sharded *x);
/* Everything that sharding made for the bucket is removed (mover_options.gone). */
void shards_gone(struct shards *s, struct sharded *x);
/* Sets what is wrong with a bucket that is served. NULL: nothing is wrong any more. */
void shards_note(struct shards *s, struct sharded *x, const struct err *why);

/* A sharded bucket of the table. */
struct shards_item {
    struct storage *home;
    struct str name;         /* valid as long as the table */
    struct sharded *sharded; /* a reference; NULL: the bucket is broken or plain */
    bool plain;              /* the bucket is plain, but something is wrong with it (`why`) */
    struct err why;          /* what is wrong with the bucket; code 0: nothing */
};
/* Lists the buckets that are served or broken, and the plain buckets with which something is wrong,
 * sorted by name and home. Returns their number. The caller frees the array with
 * shards_list_free(). */
size_t shards_list(struct shards *s, struct shards_item **out);
void shards_list_free(struct shards_item *list, size_t count);

#endif
