/* Shards of one bucket in one folder: rows of objects that change their bucket without being copied
 * (docs/local-storage.md, "Shards"; docs/sharding.md, "Adopting").
 *
 * A shard is a bucket that was made for a *logical* bucket of the same storage. To taps, change
 * notes and access logs its objects are objects of the logical bucket: `bucket` and `owner` in
 * struct tapped are those of the logical bucket. Ids of versions are computed with the logical
 * bucket, so that an id stays valid when a version changes its shard. A shard that is made or
 * removed tells no tap.
 *
 * Any thread may call these functions. All buckets are of one local storage. */
#ifndef OBJECT_LOCAL_LOCAL_ADOPT_H
#define OBJECT_LOCAL_LOCAL_ADOPT_H

#include "object/local/local.h"

enum {
    LOCAL_ADOPT_MAX = 1000,                   /* keys that one call moves, or removes */
    LOCAL_ADOPT_KEY_BYTES = 48 * 1024 * 1024, /* keys whose rows have up to this number of bytes
                                                 can surely be moved */
};

/* Says which bucket the rows of `b` belong to: the id of the logical bucket if `b` is a shard, else
 * the bucket's own id. It is above 0, and no other bucket of the storage ever gets it, also not one
 * with the same name. ERR_INVALID: the bucket is not in a folder. */
int local_bucket_id(struct bucket *b, uint64_t *out, struct err *err) MUST_CHECK;

/* Makes a bucket with this name as a shard of the logical bucket, whose owner, versions and object
 * lock it gets. `logical` may itself be a shard: then the new shard gets the state of that shard,
 * and shares its logical bucket. ERR_EXISTS: the name is taken. From the first map bucket or
 * shard on (object/part_names.h), an older weir does not open the storage. */
int local_make_shard(struct bucket *logical, struct str name, struct err *err) MUST_CHECK;
/* Removes the shard. ERR_CONFLICT: it is not empty. ERR_INVALID: the bucket is not a shard. */
int local_remove_shard(struct storage *s, struct str name, struct err *err) MUST_CHECK;

/* Removes the bucket as it was opened, and releases the reference: another bucket that has got its
 * name since stays. ERR_NO_BUCKET: the bucket was removed before. ERR_CONFLICT: it is not empty. */
int local_remove_opened(struct bucket *b, struct err *err) MUST_CHECK;

/* Moves all rows (current and old versions, markers, open and finished uploads) of the keys above
 * `after`, up to and including `upto` (empty: no upper end), from one bucket to another one, in one
 * change, with their counts. So after a crash either all of these rows are moved, or none. They are
 * surely moved once a later change of the storage is durable: a mover writes the map that gives the
 * window away next, and needs no sync in between.
 * At most `limit` keys are moved, and fewer if their rows are many bytes; *last is the last key
 * that was moved, in the arena, and *more says whether there are others behind it. If the source
 * has no keys in the window, nothing is done, *last is empty and *more is false. So calls
 * for the window the other way round, until there are no more keys, undo calls of which nobody
 * knows how many were done. Both buckets are the logical bucket or shards of it (else ERR_INVALID).
 * Nothing is told to taps. Times, ids of versions, ETags, bytes and locks stay as they are. A
 * target that never kept versions, or has no object lock, takes these over from the source, so that
 * no row loses them.
 *
 * ERR_CONFLICT: the target has a row of a key between the first and the last key that would be
 * moved; nothing was moved. A caller to whom other rows of the target matter looks for them before,
 * with local_sample_keys().
 * ERR_TOO_LARGE: the rows of one key are more than the database takes in one change (64 MiB).
 *
 * The caller keeps the window closed: no call that names a key of it runs meanwhile in one of the
 * buckets. What holds even if one does:
 *   - A read through the old bucket finds the key as it was, or does not find it.
 *   - A body that is being read stays readable to its end.
 *   - A part of an upload that was answered stays a part of that upload, in whichever bucket it is
 *     then: parts do not name the bucket. A call for a moved upload through the old bucket (part,
 *     finish, abort) fails with ERR_NOT_FOUND and has changed nothing.
 *   - A put or a removal through the old bucket makes a row there that the new owner does not see.
 * Calls for keys outside the window are not disturbed, nor are listings, the collector, holds and
 * the scrub. */
int local_adopt(struct bucket *to, struct bucket *from, struct str after, struct str upto,
                size_t limit, struct arena *a, struct str *last, bool *more,
                struct err *err) MUST_CHECK;

/* Counts the keys above `after`, up to `upto`, that have rows of any kind, exactly, and keeps every
 * so many of them: *sample has at most `samples` keys at even distances, in the arena. The distance
 * is the smallest power of two for which they are not too many; (*sample)[i] is the key with the
 * number (i + 1) * distance, where the first key has number 1. All is as of one moment. The call
 * reads every row of the window, at some million rows a second. */
int local_sample_keys(struct bucket *b, struct str after, struct str upto, size_t samples,
                      struct arena *a, uint64_t *count, struct str **sample, size_t *sample_count,
                      struct err *err) MUST_CHECK;

/* Finds the first key above `after`, up to `upto`, whose rows would write more than `most` bytes if
 * they were moved. *large is that key, in the arena; empty: there is none. *before is the last key
 * of the window below it that has rows; empty: there is none. Of each key, no more than `most`
 * bytes are read. */
int local_find_large(struct bucket *b, struct str after, struct str upto, size_t most,
                     struct arena *a, struct str *large, struct str *before,
                     struct err *err) MUST_CHECK;

/* Removes the rows of the keys above `after`, up to `upto`: versions, markers, and uploads with
 * their parts. The counts follow, the files go to the collector, and no tap is told. Object lock
 * does not protect the rows: they are garbage that no client has seen, of keys that belong to
 * another shard, and the caller answers for that. The result of a finished upload names no key; it
 * goes when it expires.
 * One change removes at most `limit` keys, and at most some thousand rows, so of a key with very
 * many versions it may remove a part. *more says whether there are others; the caller then repeats
 * the call. A window without rows costs a look, and no change. */
int local_remove_rows(struct bucket *b, struct str after, struct str upto, size_t limit, bool *more,
                      struct err *err) MUST_CHECK;

/* Sums the usage of several buckets of one storage as of one moment. */
int local_usage_of(struct bucket *const *buckets, size_t count, struct bucket_usage *out,
                   struct err *err) MUST_CHECK;

#endif
