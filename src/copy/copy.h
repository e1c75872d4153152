/* Copies one object from one bucket to another, on any storages. The invariants cited here (C3 to
 * C6) are in docs/replication.md.
 *
 * Source and destination are compared first (C6), so a copy may be asked for at any time and any
 * number of times. The source is read with If-Match on the ETag that was compared (C4). The
 * destination is written on the condition that it has not changed since it was compared (C3); a
 * destination that does not support conditions is written without one. Only a definite answer of a
 * storage counts as "absent" (C5).
 *
 * An object that was put whole is put whole at the destination too. An object that was made of
 * parts is made of parts of the same sizes, so that both sides have the same ETag. Parts of a large
 * object are sent several at a time, and parts that an earlier try has sent are not sent again.
 *
 * Calls block. A copy is used by one thread at a time. Results live in the caller's arena. Errors
 * are those of object/bucket.h, and these two:
 *     ERR_CONFLICT     source or destination changed meanwhile; the caller begins again
 *     ERR_UNSUPPORTED  the bytes are sealed with a customer's key (SSE-C) */
#ifndef COPY_COPY_H
#define COPY_COPY_H

#include "base/log.h"
#include "object/bucket.h"

struct keyring;

/* Remembers, from one try to the next, the unfinished upload of a large object. Only a remembered
 * upload is continued, because another upload of the same key may be a client's. */
struct copy_memory {
    /* Gives the value that was remembered last. Empty: no value is remembered. */
    int (*get)(void *ctx, struct arena *a, struct str *out, struct err *err);
    /* Remembers a value. An empty value means that no upload is to be remembered. */
    int (*set)(void *ctx, struct str value, struct err *err);
    void *ctx;
};

struct copy_options {
    /* Called before anything is written, before each part, and every few MiB of a body, from
     * several threads at once. `bytes` is the number of bytes that were read since the previous
     * call. When the function returns an error, the copy ends and returns that error. May be
     * NULL. */
    int (*watch)(void *ctx, uint64_t bytes, struct err *err);
    void *ctx;
    struct copy_memory memory; /* memory.get NULL: uploads are not remembered */
    /* Opens sealed objects; NULL: copying a sealed object fails with ERR_UNSUPPORTED. */
    struct keyring *keys;
    const struct log *log;  /* NULL: nothing is logged */
    uint64_t whole_max;     /* objects of more bytes are copied in parts; 0: 5 GiB, S3's limit */
    uint64_t part_size;     /* size in bytes of the parts of such objects; 0: 64 MiB */
    uint64_t parallel_from; /* objects of this many bytes or more are sent several parts at a time;
                               0: 64 MiB */
    size_t parallel;        /* number of parts that are sent at a time; 0: 4 */
};

struct copy {
    struct bucket *from, *to;
    struct str key;
    struct str version; /* the version of the source to copy; empty: the current version */
    struct str user;    /* id of the user who owns the object at the destination */
    /* True if a listing of the destination did not have the key. Then the object is put at once, on
     * the condition that the key is still absent. If the destination has the key after all, both
     * sides are compared. */
    bool absent;
    const struct copy_options *o;
};

enum copy_outcome {
    COPY_ABSENT,  /* the source has no object; the destination was not touched */
    COPY_SAME,    /* both sides have the same object already */
    COPY_MADE,    /* the object was written to the destination */
    COPY_REMOVED, /* the object was removed from the destination */
};

struct copy_result {
    enum copy_outcome outcome;
    struct object_info source; /* the source's object; empty for COPY_ABSENT and COPY_REMOVED */
    bool other_tags;           /* COPY_SAME: the objects are the same, but their tags differ */
    uint64_t bytes;            /* bytes of bodies that were moved */
};

/* Copies the object with headers, metadata, tags, storage class and retention, without its ACL.
 * Where the destination refuses storage class or retention, the object is copied without them, and
 * that is logged. */
int copy_object(struct copy_result *out, struct arena *a, const struct copy *c,
                struct err *err) MUST_CHECK;
/* Like copy_object(), but copies also when both sides have the same object already. The function is
 * for buckets in which each put makes a version. */
int copy_anew(struct copy_result *out, struct arena *a, const struct copy *c,
              struct err *err) MUST_CHECK;

/* Removes the object from the destination if the source definitely does not have it. The outcome is
 * COPY_REMOVED, or COPY_ABSENT if the destination did not have the object either. COPY_SAME: the
 * source has the object, and nothing was done. ERR_NO_BUCKET: the source's bucket does not exist;
 * then nothing is removed. */
int copy_removal(struct copy_result *out, struct arena *a, const struct copy *c,
                 struct err *err) MUST_CHECK;

/* Copies the tags of the current version. ERR_NOT_FOUND: one of the sides does not have the object.
 * If the destination does not support tags, the call succeeds and logs that. */
int copy_tags(struct arena *a, const struct copy *c, struct err *err) MUST_CHECK;

/* Copies retention and legal hold, as copy_tags() copies tags. A retention is never shortened. */
int copy_retention(struct arena *a, const struct copy *c, struct err *err) MUST_CHECK;

/* Copies the access control list of the current version. Grants to the source's owner become grants
 * to the destination's owner. `fresh` true: the object was just put, so its list at the destination
 * is private and need not be read. Grants to users that the destination does not know are left out
 * and logged. If a side does not support such lists, nothing is copied, and that is logged. */
int copy_acl(struct arena *a, const struct copy *c, bool fresh, struct err *err) MUST_CHECK;

/* Copies every version and marker of the key, oldest first, until both sides have the same versions
 * and markers in the same order. Both buckets must keep versions. Versions that only the
 * destination has are removed afterwards. COPY_ABSENT: neither side has the key. */
int copy_versions(struct copy_result *out, struct arena *a, const struct copy *c,
                  struct err *err) MUST_CHECK;

/* --- buckets --- */

struct copy_bucket {
    struct bucket *from, *to;
    const struct log *log;
};
int copy_bucket_tags(struct arena *a, const struct copy_bucket *c, struct err *err) MUST_CHECK;
int copy_bucket_acl(struct arena *a, const struct copy_bucket *c, struct err *err) MUST_CHECK;
/* Copies versioning, lifecycle, policy, CORS and website. A setting that the destination refuses is
 * left out and logged. */
int copy_bucket_settings(struct arena *a, const struct copy_bucket *c, struct err *err) MUST_CHECK;

#endif
