/* One listing of the keys, versions or uploads of several buckets, as if they were one bucket.
 *
 * The same key may be in several of the buckets. Then the caller decides from which bucket the key
 * is listed. Nothing is written. Any thread may call. Errors are those of the buckets and of the
 * caller. */
#ifndef OBJECT_MERGE_H
#define OBJECT_MERGE_H

#include "object/bucket.h"

enum { MERGE_FIRST = -1 };

struct merge_key {
    struct str key;
    /* Index of the bucket that the key is listed from. If that bucket does not have the key, the
     * key is not listed. MERGE_FIRST: the first bucket that has the key. */
    int from;
};

struct merge {
    struct bucket *const *buckets; /* borrowed */
    size_t count;                  /* at least 1 */
    /* Sets `from` of all `keys`, by their state at one moment. Called for the keys whose entries
     * differ between the buckets. Objects may move between the buckets meanwhile, but only to lower
     * indexes, so the pages are read again after the choice. NULL: MERGE_FIRST for all keys, and
     * objects never move. */
    int (*choose)(void *ctx, struct arena *a, struct merge_key *keys, size_t count,
                  struct err *err);
    void *ctx;
    size_t page; /* entries that a bucket is asked for at once; 0: as many as fit */
};

/* Lists keys or versions, as list() and list_versions() of struct bucket_ops do. A common prefix is
 * listed only if a key under it would be listed. */
int merge_list(const struct merge *m, struct arena *a, const struct list_options *o, bool versions,
               struct list_result *out, struct err *err) MUST_CHECK;
/* Lists the uploads of all buckets by key and id, as list_uploads() of struct bucket_ops does.
 * choose() is not called. */
int merge_uploads(const struct merge *m, struct arena *a, const struct list_options *o,
                  struct upload_list *out, struct err *err) MUST_CHECK;

#endif
