/* What sharding does with the buckets of shards beyond the object interface (object/bucket.h): it
 * makes and removes them, counts their keys, and gives keys from one shard to another. How this is
 * done depends on the kind of the storage, so each kind has one table of these calls
 * (docs/sharding.md, "What a storage does for sharding"). All other files of src/shard/ reach a
 * storage by the object interface and by these tables only.
 *
 *     folder   place_local.c: rows of the database change their bucket (object/local/local_adopt.h)
 *
 * A bucket of one storage is passed only to the calls of that storage's table, and both buckets of
 * give() and take_back() are on one storage. Any thread may call. Errors are those of
 * object/bucket.h; those that a caller must tell apart are named below. */
#ifndef SHARD_PLACE_H
#define SHARD_PLACE_H

#include "object/bucket.h"
#include "shard/map.h"

/* What sample() has found in a window. */
struct place_sample {
    uint64_t count;   /* number of keys in the window: exact */
    struct str *keys; /* evenly spaced keys of the window, ascending; in the arena */
    size_t key_count;
};

/* A key that give() can never take, as find_large() has found it. */
struct place_large {
    struct str key;    /* empty: there is no such key in the window */
    struct str before; /* the last key of the window before `key`; empty: there is none */
    size_t most;       /* the number of bytes that a key may have */
};

struct place_ops {
    /* How the map closes a window with keys while give() works. */
    enum shard_closed closed;

    /* --- buckets --- */

    /* Sets *out to a number above 0 by which the bucket is recognized. A shard has the number of
     * its logical bucket. No other bucket ever gets the number, not even a later one with the same
     * name. */
    int (*id)(struct bucket *b, uint64_t *out, struct err *err);
    /* Ends all calls through references to the bucket that were opened before this moment: each
     * fails with ERR_BUSY and changes nothing any more. */
    void (*fence)(struct storage *home, struct str name);
    /* Make and remove a map bucket; replication does not see it. ERR_EXISTS: the name is taken.
     * ERR_NO_BUCKET: it is gone already. */
    int (*make_log)(struct storage *home, const struct bucket_info *info, struct err *err);
    int (*remove_log)(struct storage *home, struct str name, struct err *err);
    /* Makes the bucket of a shard with the owner, versions and object lock of the logical bucket.
     * ERR_EXISTS: the name is taken. */
    int (*make_shard)(struct bucket *logical, struct str name, struct err *err);
    /* Removes the bucket of a shard. ERR_CONFLICT: it is not empty. ERR_NO_BUCKET: it is gone
     * already. ERR_INVALID: the bucket is not a shard. */
    int (*remove_shard)(struct storage *home, struct str name, struct err *err);
    /* Removes the bucket that `b` is a reference to, and never a later one of its name. Releases
     * the reference. ERR_CONFLICT: the bucket is not empty. ERR_NO_BUCKET: it is gone already. */
    int (*remove_home)(struct bucket *b, struct err *err);
    /* Sums the usage of several buckets as of one moment, so that an object that moves between them
     * is counted once. */
    int (*usage)(struct bucket *const *buckets, size_t count, struct bucket_usage *out,
                 struct err *err);

    /* --- keys of a window --- */

    /* Counts the keys that have an object, a version, a marker or an upload in the window, and
     * takes a sample of at most `samples` of them. */
    int (*sample)(struct bucket *b, const struct shard_window *w, size_t samples, struct arena *a,
                  struct place_sample *out, struct err *err);
    /* Finds the first key of the window that give() cannot take. */
    int (*find_large)(struct bucket *b, const struct shard_window *w, struct arena *a,
                      struct place_large *out, struct err *err);
    /* Gives what `from` has in the window to `to`: afterwards `to` has every object, version,
     * marker and upload of the window exactly as `from` had it. It is no error if an earlier call
     * has done a part of this. Meanwhile no request is in the window, and `to` has nothing in it
     * but what earlier calls gave it. ERR_CONFLICT: it has; no key was lost. */
    int (*give)(struct bucket *to, struct bucket *from, const struct shard_window *w,
                struct err *err);
    /* Undoes give(), also one that was interrupted: afterwards `from` has everything in the window
     * again. Called before the window is opened without being handed over. */
    int (*take_back)(struct bucket *to, struct bucket *from, const struct shard_window *w,
                     struct err *err);
    /* Removes garbage: whatever the bucket has in the window, also under object lock. Replication
     * does not see it. One call removes some thousands of versions; *more says whether anything is
     * left. *removed grows by the number of versions and markers. */
    int (*remove_keys)(struct bucket *b, const struct shard_window *w, bool *more,
                       uint64_t *removed, struct err *err);
};

extern const struct place_ops place_local_ops;

/* Returns the table for the buckets of a storage. NULL: buckets there cannot be sharded. */
const struct place_ops *place_of(const struct storage *s);
/* Calls id() of the bucket's storage. ERR_UNSUPPORTED: buckets there cannot be sharded. */
int place_id(struct bucket *b, uint64_t *out, struct err *err) MUST_CHECK;
/* Hides the changes that are made through this reference from replication, notifications and access
 * logs. Called before other threads have the reference. Also takes a sharded bucket. */
void place_hide(struct bucket *b);

#endif
