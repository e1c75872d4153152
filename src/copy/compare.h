/* Compares buckets by merging their listings as a stream (docs/diff.md).
 *
 * Two or more buckets (the *sides*), on any storages, are listed page by page, and the entries of
 * each key are compared: names, sizes, ETags. Each difference is reported as soon as it is seen, in
 * byte order of the keys. Memory holds a page of each side and the versions of one key, however
 * large the buckets are.
 *
 * Different ETags prove different bytes only when both are MD5s. Other ETags, those of objects that
 * were made of parts or encrypted with a KMS key, prove nothing. Then the checksums of the whole
 * objects are compared, if both objects have a checksum of the same kind. If not, the bytes are
 * read.
 *
 * The buckets may change meanwhile. A difference was true when its page was listed, so a repair
 * must first compare the objects again. Calls block; a comparison is used by one thread. */
#ifndef COPY_COMPARE_H
#define COPY_COMPARE_H

#include "object/bucket.h"

struct keyring;

enum { COMPARE_SIDES_MAX = 8, COMPARE_STEP = 1000 /* keys between two calls of reached() */ };

enum difference_kind {
    DIFFERENCE_MISSING, /* some sides do not have the key */
    DIFFERENCE_MARKER,  /* a delete marker on one side, bytes on another */
    DIFFERENCE_SIZE,
    DIFFERENCE_ETAG,    /* the ETags differ, which proves that the bytes differ */
    DIFFERENCE_CONTENT, /* the bytes were read, and differ */
    DIFFERENCE_UNKNOWN, /* it is not known whether the bytes differ; `why` says why */
    DIFFERENCE_KINDS
};
const char *difference_name(enum difference_kind kind); /* "missing", "marker", "size", … */

struct difference_side {
    bool found; /* false: the side does not have the key, and the other members are empty */
    bool is_marker;
    uint64_t size;
    struct str etag, version;
    struct str digest; /* SHA-256 of the bytes in hex; empty: the bytes were not read */
};

/* A difference between the sides. It lives until tell() returns. */
struct difference {
    enum difference_kind kind;
    struct str key;
    bool versioned;                      /* all versions are compared */
    uint64_t index;                      /* if versioned: number of the version; 0 is the oldest */
    const struct difference_side *sides; /* in the order of the buckets */
    const char *why;
};

struct compare_options {
    struct bucket *const *buckets;
    size_t count; /* 2 to COMPARE_SIDES_MAX */
    bool ignore_sizes, ignore_etags;
    bool contents; /* read and compare all bytes, whatever the ETags are */
    bool versions; /* compare all versions and markers, not only the current ones */
    struct str prefix;
    struct str after;     /* begin after this key; empty: at the first key */
    struct keyring *keys; /* opens sealed objects; NULL: sealed objects cannot be read */
    int (*tell)(void *ctx, const struct difference *d, struct err *err);
    /* Says how far the comparison has come. Called after each COMPARE_STEP keys, when due() returns
     * true, and at the end, when `after` is empty. All keys up to `after` have been compared, and a
     * later comparison may begin there. `keys` is the number of keys compared since the previous
     * call. May be NULL. */
    int (*reached)(void *ctx, struct str after, uint64_t keys, struct err *err);
    /* Called after each key; returns whether to call reached() now. May be NULL. */
    bool (*due)(void *ctx);
    /* Called before each request to a side, with `bytes` 0, and after every few MiB that were read
     * from the side. May be NULL. */
    int (*watch)(void *ctx, size_t side, uint64_t bytes, struct err *err);
    /* Passed to the callbacks. When a callback returns an error, the comparison ends and returns
     * that error. */
    void *ctx;
};

struct compare_result {
    uint64_t keys;        /* number of keys that were compared */
    uint64_t differences; /* number of calls of tell() */
    uint64_t bytes;       /* bytes that were read where listings could not decide */
};

/* Compares the buckets. Errors are those of the buckets (ERR_NO_BUCKET: one of them does not
 * exist), and ERR_PEER: a side does not list in byte order. `out` is filled also after an error. */
int compare_buckets(struct compare_result *out, const struct compare_options *o,
                    struct err *err) MUST_CHECK;

/* --- one object --- */

/* Computes the SHA-256 of the bytes of the version that `info` names. *out is in hex, in the arena.
 * ERR_CONFLICT: the version has changed. ERR_UNSUPPORTED: the version is sealed with a key that
 * o->keys does not have. */
int compare_digest(struct str *out, struct arena *a, const struct compare_options *o, size_t side,
                   const struct object_info *info, struct err *err) MUST_CHECK;

#endif
