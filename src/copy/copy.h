/* Bringing one object from one bucket to another, on whatever storages they are.
 *
 * Source and destination are compared first (C6), so a copy may be asked for at any time and any
 * number of times. The source is read with If-Match on what was compared (C4), the destination
 * written on the condition that it is still what was seen (C3); a destination that knows no
 * conditions is written without. Only a definite answer counts as "absent" (C5).
 *
 * What was put whole is put whole, what was made of parts is made of parts of the same sizes, so
 * that the ETag is the same on both sides. Parts of a large object go several at a time, and those
 * that are there from an earlier try are not sent again.
 *
 * Calls block; one thread for each. What a call returns lives in its arena. Errors are those of
 * object/bucket.h, and
 *   ERR_CONFLICT     source or destination changed meanwhile: to be begun again
 *   ERR_UNSUPPORTED  the bytes are sealed with a key that is not ours (SSE-C) */
#ifndef COPY_COPY_H
#define COPY_COPY_H

#include "base/log.h"
#include "object/bucket.h"

struct keyring;

/* Where the upload that carries a large object is remembered from one try to the next. Only one
 * that is remembered is gone on with: another one of the same key may be a client's. */
struct copy_memory {
    int (*get)(void *ctx, struct arena *a, struct str *out, struct err *err); /* empty: nothing */
    int (*set)(void *ctx, struct str value, struct err *err);                 /* empty: forget */
    void *ctx;
};

struct copy_options {
    /* Asked before anything is written, before each part, and every few MiB of bodies, from several
     * threads at once: `bytes` have been read since. An error ends the copy with it. NULL: nobody
     * asks. */
    int (*watch)(void *ctx, uint64_t bytes, struct err *err);
    void *ctx;
    struct copy_memory memory; /* get NULL: none */
    struct keyring *keys;      /* of sealed objects; NULL: those are ERR_UNSUPPORTED */
    const struct log *log;     /* NULL: silent */
    uint64_t whole_max;     /* what was put whole goes as parts past this; 0: 5 GiB, S3's limit */
    uint64_t part_size;     /* of those; 0: 64 MiB */
    uint64_t parallel_from; /* objects of parts go several parts at a time from here; 0: 64 MiB */
    size_t parallel;        /* 0: 4 */
};

struct copy {
    struct bucket *from, *to;
    struct str key;
    struct str version; /* of the source; empty: the current one */
    struct str user;    /* who owns it at the destination */
    /* A listing of the destination did not have it: it is put on the condition that this is so
     * still, without a look at it; what turns out to be there is compared. */
    bool absent;
    const struct copy_options *o;
};

enum copy_outcome {
    COPY_ABSENT,  /* nothing at the source; the destination was not touched */
    COPY_SAME,    /* nothing to do */
    COPY_MADE,    /* written */
    COPY_REMOVED, /* taken away at the destination */
};

struct copy_result {
    enum copy_outcome outcome;
    struct object_info source; /* but for COPY_ABSENT and COPY_REMOVED */
    bool other_tags;           /* of COPY_SAME: the tags are not the same */
    uint64_t bytes;            /* of bodies that were moved */
};

/* The object with headers, metadata, tags, storage class and retention; not its ACL. Where the
 * destination refuses storage class or retention it goes without, and that is logged. */
int copy_object(struct copy_result *out, struct arena *a, const struct copy *c,
                struct err *err) MUST_CHECK;
/* As copy_object(), also when both are the same already: where each put is a version. */
int copy_anew(struct copy_result *out, struct arena *a, const struct copy *c,
              struct err *err) MUST_CHECK;

/* Takes the object away at the destination if the source says definitely that it has none
 * (COPY_REMOVED, or COPY_ABSENT when there was none); COPY_SAME: the source has one.
 * ERR_NO_BUCKET: the source's bucket is gone, which is not for one object to decide. */
int copy_removal(struct copy_result *out, struct arena *a, const struct copy *c,
                 struct err *err) MUST_CHECK;

/* Tags of the current version. ERR_NOT_FOUND: one of both sides has none. A side that knows no tags
 * is a success, and logged. */
int copy_tags(struct arena *a, const struct copy *c, struct err *err) MUST_CHECK;

/* Retention and legal hold of the current version, as copy_tags(). A retention is not shortened. */
int copy_retention(struct arena *a, const struct copy *c, struct err *err) MUST_CHECK;

/* The access control list of the current version; the owner's grants become those of the
 * destination's owner. `fresh`: it was just put, so its list is private; a source that is known to
 * be (object_info.is_private) need not be asked for then. Grants to users that the destination does
 * not know, and sides without lists, are left out and logged. */
int copy_acl(struct arena *a, const struct copy *c, bool fresh, struct err *err) MUST_CHECK;

/* Every version and marker of the key, oldest first, until both sides have the same ones in the
 * same order; for buckets that both keep versions. What the destination has beyond that is removed
 * afterwards. The key absent on both sides is COPY_ABSENT. */
int copy_versions(struct copy_result *out, struct arena *a, const struct copy *c,
                  struct err *err) MUST_CHECK;

/* --- buckets --- */

struct copy_bucket {
    struct bucket *from, *to;
    const struct log *log;
};
int copy_bucket_tags(struct arena *a, const struct copy_bucket *c, struct err *err) MUST_CHECK;
int copy_bucket_acl(struct arena *a, const struct copy_bucket *c, struct err *err) MUST_CHECK;
/* Versioning, lifecycle, policy, CORS and the like. What the destination refuses is logged. */
int copy_bucket_settings(struct arena *a, const struct copy_bucket *c, struct err *err) MUST_CHECK;

#endif
