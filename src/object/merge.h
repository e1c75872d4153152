/* One listing of the keys, versions or uploads of several buckets, as if they were one bucket.
 *
 * The same key may be in several of the buckets. Then the caller decides which of them it is listed
 * from. Nothing is written; any thread. Errors are those of the buckets and of the caller. */
#ifndef OBJECT_MERGE_H
#define OBJECT_MERGE_H

#include "object/bucket.h"

enum { MERGE_FIRST = -1 };

struct merge_key {
    struct str key;
    int from; /* index of the bucket that the key is listed from; if that bucket does not have the
                 key, it is not listed. MERGE_FIRST: the first bucket that has the key */
};

struct merge {
    struct bucket *const *buckets; /* borrowed */
    size_t count;                  /* at least 1 */
    /* Sets `from` of all `keys`, as it is at one moment. Called for the keys that not all buckets
     * have alike. Objects may be on their way between the buckets, but only towards lower indexes:
     * the pages are then read again after the choice. NULL: MERGE_FIRST for all, and no key moves.
     */
    int (*choose)(void *ctx, struct arena *a, struct merge_key *keys, size_t count,
                  struct err *err);
    void *ctx;
    size_t page; /* entries that a bucket is asked for at once; 0: as many as fit */
};

/* Lists keys or versions, as list() and list_versions() of struct bucket_ops do. Common prefixes
 * are exact too. */
int merge_list(const struct merge *m, struct arena *a, const struct list_options *o, bool versions,
               struct list_result *out, struct err *err) MUST_CHECK;
/* Lists the uploads of all buckets by key and id, as list_uploads() of struct bucket_ops does.
 * choose() is not called. */
int merge_uploads(const struct merge *m, struct arena *a, const struct list_options *o,
                  struct upload_list *out, struct err *err) MUST_CHECK;

#endif
