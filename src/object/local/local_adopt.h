/* Shards of one bucket in one folder. The rows of an object can move from one shard to another; the
 * object's bytes are not copied (docs/local-storage.md, "Shards"; docs/sharding.md, "Moving").
 *
 * A shard is a bucket that was made for a *logical* bucket, the bucket that clients see, on the
 * same storage. To taps, change notes and access logs the objects of a shard are objects of the
 * logical bucket: `bucket` and `owner` in struct tapped are those of the logical bucket. Ids of
 * versions are computed with the logical bucket, so that an id stays valid when a version moves to
 * another shard. Making or removing a shard is not reported to taps.
 *
 * Any thread may call these functions. All buckets in a call must be on one local storage. */
#ifndef OBJECT_LOCAL_LOCAL_ADOPT_H
#define OBJECT_LOCAL_LOCAL_ADOPT_H

#include "object/local/local.h"

enum {
    LOCAL_ADOPT_MAX = 1000,                   /* most keys that one call moves or removes */
    LOCAL_ADOPT_KEY_BYTES = 48 * 1024 * 1024, /* a key whose rows have at most this many bytes
                                                 can always be moved */
};

/* Sets *out to the id of the logical bucket if `b` is a shard, else to the bucket's own id. The id
 * is above 0. No other bucket of the storage ever gets it, not even a later one with the same name.
 * ERR_INVALID: the bucket is not in a folder. */
int local_bucket_id(struct bucket *b, uint64_t *out, struct err *err) MUST_CHECK;

/* Makes a bucket with this name as a shard of the logical bucket, with the logical bucket's owner,
 * versions and object lock. If `logical` is itself a shard, the new shard gets the state of that
 * shard and the same logical bucket. ERR_EXISTS: the name is taken. Once the storage has a map
 * bucket or a shard (object/part_names.h), an older weir cannot open the storage any more. */
int local_make_shard(struct bucket *logical, struct str name, struct err *err) MUST_CHECK;
/* Removes the shard. ERR_CONFLICT: it is not empty. ERR_INVALID: the bucket is not a shard. */
int local_remove_shard(struct storage *s, struct str name, struct err *err) MUST_CHECK;

/* Removes the bucket that `b` is a reference to, and releases the reference. A later bucket that
 * has the name by now is not touched. ERR_NO_BUCKET: the bucket was removed already. ERR_CONFLICT:
 * it is not empty. */
int local_remove_opened(struct bucket *b, struct err *err) MUST_CHECK;

/* Moves keys from one bucket to another, in one change of the database: all rows of the keys
 * (current and old versions, markers, open and finished uploads) and their counts. The keys are
 * those above `after`, up to and including `upto` (empty: no upper end); below they are called the
 * *window*. Both buckets are the logical bucket or shards of it (else ERR_INVALID).
 *
 * At most `limit` keys are moved, and fewer if their rows are large. *last is the last key that was
 * moved, in the arena; *more says whether further keys follow it in the window. If the source has
 * no keys in the window, nothing is done, *last is empty and *more is false.
 *
 * Times, ids of versions, ETags, bytes and locks stay as they are. Taps are not told. If the source
 * keeps versions or has object lock, these are turned on in the target too, so that no row loses
 * its versions or its lock.
 *
 * After a crash either all of these rows are moved, or none. The move is durable once a later
 * change of the storage is durable. A mover needs no sync here, because the map that it writes next
 * is such a change. A caller that does not know whether a move took effect calls this function with
 * the two buckets exchanged until *more is false: then all rows of the window are back.
 *
 * ERR_CONFLICT: the target has a row of a key between the first and the last key that would be
 * moved; nothing was moved. To find other rows of the target in the window, call
 * local_sample_keys() before. ERR_TOO_LARGE: the rows of one key are more than the database takes
 * in one change (64 MiB).
 *
 * Meanwhile no call for a key of the window may run in one of the buckets; the caller ensures this.
 * Even if such a call does run:
 *   - A read through the old bucket finds the key as it was, or does not find it.
 *   - A body that is being read stays readable to its end.
 *   - A part of an upload that was answered stays a part of that upload, in whichever bucket the
 *     upload is then, because parts do not name the bucket. A call for a moved upload through the
 *     old bucket (part, finish, abort) fails with ERR_NOT_FOUND and has changed nothing.
 *   - A put or a removal through the old bucket makes a row there that the new owner does not see.
 *
 * Calls for keys outside the window are not disturbed; neither are listings, the collector, holds
 * and the scrub. */
int local_adopt(struct bucket *to, struct bucket *from, struct str after, struct str upto,
                size_t limit, struct arena *a, struct str *last, bool *more,
                struct err *err) MUST_CHECK;

/* Counts the keys above `after`, up to and including `upto`, that have rows of any kind, and takes
 * a sample of them. *count is exact. *sample has every n-th key, at most `samples` keys, in the
 * arena; n is the smallest power of two for which they fit, and (*sample)[i] is key number (i + 1)
 * * n, where the first key has number 1. All rows are read as of one moment, at some millions a
 * second. */
int local_sample_keys(struct bucket *b, struct str after, struct str upto, size_t samples,
                      struct arena *a, uint64_t *count, struct str **sample, size_t *sample_count,
                      struct err *err) MUST_CHECK;

/* Finds the first key above `after`, up to and including `upto`, that is too large to move: moving
 * its rows would write more than `most` bytes. *large is that key, in the arena; empty: there is
 * none. *before is the last key before *large that is in the window and has rows; empty: there is
 * none. At most `most` bytes of each key are read. */
int local_find_large(struct bucket *b, struct str after, struct str upto, size_t most,
                     struct arena *a, struct str *large, struct str *before,
                     struct err *err) MUST_CHECK;

/* Removes the rows of the keys above `after`, up to and including `upto`: versions, markers, and
 * uploads with their parts. The bucket's counts are corrected, and the collector removes the files.
 * Taps are not told. Object lock does not protect the rows: the caller must know that they are
 * garbage, which no client has seen and whose keys belong to another shard. Results of finished
 * uploads stay until they expire, because they name no key.
 *
 * One change removes at most `limit` keys and some thousands of rows, so of a key with very many
 * versions it may remove only a part. *more says whether rows are left; the caller then calls
 * again. *removed grows by the number of versions and markers that were removed. For a window
 * without rows the call costs one look-up, and no change. */
/* NOLINTNEXTLINE(readability-function-size): a call is one window of one bucket */
int local_remove_rows(struct bucket *b, struct str after, struct str upto, size_t limit, bool *more,
                      uint64_t *removed, struct err *err) MUST_CHECK;

/* Sums the usage of several buckets of one storage as of one moment. */
int local_usage_of(struct bucket *const *buckets, size_t count, struct bucket_usage *out,
                   struct err *err) MUST_CHECK;

#endif
