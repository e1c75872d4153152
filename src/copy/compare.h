/* Comparing buckets: a merge of their listings, as a stream (docs/diff.md).
 *
 * Two or more buckets, on whatever storages, are listed page by page, and what they have under each
 * key is held side by side: names, sizes, ETags. A difference is told as soon as it is seen, keys
 * in byte order. Memory is a page of each side, and the versions of one key, whatever the buckets
 * hold.
 *
 * ETags that differ say that bytes differ only when both are MD5s. Else (parts, keys of a KMS) the
 * checksums of the whole decide when both have one of the same kind, else the bytes: they are read.
 *
 * Buckets may change meanwhile: what is told was so when its page was listed, and nothing may be
 * done by that word alone. Calls block; one thread for each. */
#ifndef COPY_COMPARE_H
#define COPY_COMPARE_H

#include "object/bucket.h"

struct keyring;

enum { COMPARE_SIDES_MAX = 8, COMPARE_STEP = 1000 /* keys */ };

enum difference_kind {
    DIFFERENCE_MISSING, /* not on every side */
    DIFFERENCE_MARKER,  /* here a delete marker, there bytes */
    DIFFERENCE_SIZE,
    DIFFERENCE_ETAG,    /* and so the bytes */
    DIFFERENCE_CONTENT, /* the bytes, as they were read */
    DIFFERENCE_UNKNOWN, /* cannot be said: `why` */
    DIFFERENCE_KINDS
};
const char *difference_name(enum difference_kind kind); /* "missing", "marker", "size", … */

struct difference_side {
    bool found; /* else nothing of the rest */
    bool is_marker;
    uint64_t size;
    struct str etag, version;
    struct str digest; /* SHA-256 of the bytes in hex, when they were read */
};

/* Lives until tell() returns. */
struct difference {
    enum difference_kind kind;
    struct str key;
    bool versioned; /* the buckets are compared by versions, */
    uint64_t index; /* and this is the index-th, counted from the oldest, which is 0 */
    const struct difference_side *sides; /* in the order of the buckets */
    const char *why;
};

struct compare_options {
    struct bucket *const *buckets;
    size_t count; /* 2 to COMPARE_SIDES_MAX */
    bool ignore_sizes, ignore_etags;
    bool contents; /* read all bytes; ETags do not count then */
    bool versions; /* all versions and markers, not the current ones alone */
    struct str prefix;
    struct str after;     /* begin behind this key; empty: at the first */
    struct keyring *keys; /* of sealed objects; NULL: those cannot be read */
    int (*tell)(void *ctx, const struct difference *d, struct err *err);
    /* After each COMPARE_STEP keys, or when due() says so, and at the end (an empty `after`):
     * everything to `after` has been told, and a later call may begin there. `keys` of them since
     * the last time. May be NULL.
     */
    int (*reached)(void *ctx, struct str after, uint64_t keys, struct err *err);
    /* After each key: whether reached() is to be told now. May be NULL. */
    bool (*due)(void *ctx);
    /* Before each request to a side (no bytes), and after every few MiB read from it. May be NULL.
     */
    int (*watch)(void *ctx, size_t side, uint64_t bytes, struct err *err);
    void *ctx; /* of the four; an error of one ends the comparison with it */
};

struct compare_result {
    uint64_t keys;        /* looked at */
    uint64_t differences; /* told */
    uint64_t bytes;       /* read to settle what listings could not */
};

/* Errors are those of the buckets (ERR_NO_BUCKET: one is not there), and ERR_PEER: a side lists in
 * another order than that of bytes. `out` is filled also then. */
int compare_buckets(struct compare_result *out, const struct compare_options *o,
                    struct err *err) MUST_CHECK;

/* --- for one object, as compare_buckets() settles it --- */

/* SHA-256 of the bytes of the version that `info` names, in hex, in the arena. ERR_CONFLICT: it is
 * no longer what `info` says. ERR_UNSUPPORTED: sealed with a key that is not here. */
int compare_digest(struct str *out, struct arena *a, const struct compare_options *o, size_t side,
                   const struct object_info *info, struct err *err) MUST_CHECK;

#endif
