/* The one object interface: what a place that holds objects can do.
 *
 * A storage holds buckets, a bucket holds objects. Implementers: local (files and an index), remote
 * (any S3 endpoint); later shard and lake (over others) and the change tap (around another).
 * Callers (the gateway, copy tasks, the archive, commits) never know which one they hold.
 *
 * Bodies flow through readers: put pulls one, get gives one. Everything that a call returns lives
 * in the arena it was given, or until the body it returned is closed. Calls may block unless their
 * comment says otherwise; any thread; storages and buckets are shared and reference counted.
 *
 * Errors: ERR_NOT_FOUND (the key, version or upload), ERR_NO_BUCKET, ERR_PRECONDITION,
 * ERR_NOT_MODIFIED, ERR_RANGE, ERR_EXISTS, ERR_CONFLICT, ERR_DENIED (locked), ERR_INVALID,
 * ERR_TOO_LARGE, ERR_NO_SPACE, ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_UNSUPPORTED. An error of a peer is
 * never ERR_NOT_FOUND. A call that fails has changed nothing. */
#ifndef OBJECT_BUCKET_H
#define OBJECT_BUCKET_H

#include "base/arena.h"
#include "base/err.h"
#include "http/wire.h"
#include "object/change.h"
#include "object/digest.h"
#include "object/sealed.h"
#include "os/stream.h"

#include <stdatomic.h>

enum { OBJECT_KEY_MAX = 1024, OBJECT_MAX_PARTS = 10000, OBJECT_LIST_MAX = 1000 };

/* --- what is known about an object --- */

enum checksum_type { CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, CHECKSUM_COMPOSITE };

struct object_checksum {
    enum checksum_type type;
    enum digest_kind kind;
    struct str value; /* base64; composite: "<base64>-<parts>" */
};

/* Kept with each version beside its bytes. Empty strings were not given. */
struct object_meta {
    struct http_header
        *headers; /* Content-Type, Cache-Control, Content-Disposition, -Encoding, -Language,
                     Expires, x-amz-meta-*, x-amz-website-redirect-location */
    size_t header_count;
    struct str tags;          /* "k=v&k2=v2", URL-encoded */
    struct str acl;           /* in the storage's own form: local keeps any text; remote takes
                                 <AccessControlPolicy>, else ERR_UNSUPPORTED, and tells it by
                                 get_acl() alone. A caller that carries an ACL to another storage
                                 translates it (meta/acl.h has both forms) */
    struct str owner;         /* user id; of remote: only in listings, the peer's id */
    struct str storage_class; /* empty: STANDARD */
    struct str encryption;    /* opaque here; not empty: the bytes are sealed (sealed.h) */
    struct object_checksum checksum;
    int64_t retain_until_ms; /* 0: no retention */
    bool retain_compliance;  /* else governance */
    bool legal_hold;
};

struct object_info {
    struct str key;
    struct str version; /* "null" where versions were never kept */
    bool is_latest;     /* head and get of a version that was named: only where local */
    bool is_marker;     /* a delete marker: no bytes */
    uint64_t size;
    int64_t modified_ms;
    struct str etag;     /* without quotes */
    uint32_t part_count; /* 0: not made of parts */
    bool is_private; /* only its owner is granted anything; false where nobody said so unasked */
    struct object_meta meta;
};

/* As in the headers: a list of quoted etags or "*"; empty: no condition. Times: 0 is none. */
struct object_conditions {
    struct str if_match, if_none_match;
    int64_t if_modified_since_ms, if_unmodified_since_ms;
    /* Of a removal alone: */
    int64_t if_modified_at_ms; /* to the second */
    bool has_if_size;
    uint64_t if_size;
};

/* A question asked inside a change's commit, with the version as it is at that moment (whole meta):
 * an error refuses the change. For callers that decided on an older look. May be asked more than
 * once; must not wait and must not call the storage. fn NULL: no question. */
struct object_guard {
    int (*fn)(void *ctx, const struct object_info *info, struct err *err);
    void *ctx;
};

enum range_kind { RANGE_ALL, RANGE_FROM_TO, RANGE_SUFFIX, RANGE_PART };

struct object_range {
    enum range_kind kind;
    uint64_t first; /* FROM_TO: first byte; SUFFIX: how many at the end; PART: part number from 1 */
    uint64_t last;  /* FROM_TO: inclusive; UINT64_MAX: to the end */
};

/* --- what a change leaves behind --- */

/* What a change did, as known inside its commit. Strings live as long as the call. */
struct change_fact {
    unsigned changes;   /* a set of enum thing_kind */
    struct str version; /* empty where versions were never kept */
    struct str etag;
    uint64_t size;
    uint32_t storage;  /* whose sequence it is; never 0 */
    uint64_t sequence; /* later changes of the same storage have higher ones; microseconds */
    int64_t time_ms;
};

/* Keeps a row of the row log with this prefix (db/row_log.h) in the commit of the change. */
struct outbox {
    void (*put)(struct outbox *o, struct str prefix, struct str place, struct str value);
};

/* Told inside the commit what the change did, and not at all when it did nothing (a key to remove
 * that is not there). Runs on any thread while the caller waits, maybe again when the commit is
 * tried again; must be short and must not wait. Storages without a commit of their own (remote)
 * tell nothing. */
struct change_note {
    void (*tell)(void *ctx, const struct change_fact *fact, struct outbox *out);
    void *ctx;
};

/* --- arguments and results --- */

/* How to seal bytes. */
struct put_seal {
    struct sealed_key key;
    bool hide_md5; /* the ETag tells nothing of the body, and can be seen not to be an MD5 */
};

struct put_options {
    struct object_meta meta;
    struct object_conditions conditions; /* against what is current at the moment of the commit */
    /* Called after the body has ended and before anything is visible: the last chance to refuse
     * (payload hash, Content-MD5, trailer checksum) and to fill meta.checksum. May be NULL. */
    int (*verify)(void *ctx, struct object_meta *meta, struct err *err);
    void *ctx;
    struct str etag; /* not empty: this instead of the MD5 of the plain bytes; not on remote */
    /* Not NULL: MD5_LEN bytes that get the MD5 of the plain bytes before verify is called, so that
     * nobody hashes them again. Not with an etag, not on remote. */
    unsigned char *md5;
    /* Asked before the body is read when `meta`, of these options or of the upload that gets the
     * part, has an encryption. With that, and without this, a put is ERR_INVALID. The storage wipes
     * what it was given. */
    int (*seal)(void *ctx, const struct object_meta *meta, struct put_seal *out, struct err *err);
    void *seal_ctx;
    const struct change_note *note; /* NULL: none */
};

struct put_result {
    struct str version; /* empty where versions are not kept; suspended: "null" or empty */
    struct str etag;
    int64_t modified_ms; /* 0: not told (remote) */
    uint64_t size;
};

struct get_result {
    struct object_info info;
    struct reader *body; /* of the range; the caller closes it; NULL after head */
    uint64_t first, len; /* what body holds of the info.size bytes */
    bool partial;        /* a range was asked for */
    /* Of RANGE_PART, what the part of an object of parts came with; not on remote. */
    struct object_checksum part_checksum;
    /* Set when the bytes are sealed: before this was called with their key none can be read. Opens
     * the first record that is needed. ERR_CORRUPT: the key is another, or the bytes are damaged.
     */
    int (*unlock)(struct reader *body, const struct sealed_key *key, struct err *err);
    bool at_hand; /* sealed and in memory: unlocking and reading will not wait */
};

struct remove_options {
    struct str version; /* empty: the current one; where versions are kept that makes a marker */
    struct object_conditions conditions;
    bool bypass_governance;
    const struct change_note *note; /* NULL: none */
    struct object_guard guard;      /* local alone; with one, what is not there is ERR_NOT_FOUND */
};

struct remove_result {
    struct str version; /* removed, or of the marker that was made */
    bool is_marker;     /* a marker was made, or what was removed was one */
};

/* Keys in byte order; everything under a common prefix is one entry. Cost follows the entries
 * returned, never the keys skipped. */
struct list_options {
    struct str prefix, delimiter;
    struct str after; /* keys behind this one, and the common prefixes that hold them; not the
                         common prefix that is exactly this */
    struct str after_version; /* versions: within `after`, those behind this one */
    size_t limit;             /* at most OBJECT_LIST_MAX */
    bool tags;                /* local: meta.tags of entries too */
};

struct list_entry {
    bool is_prefix;
    struct object_info info; /* of a prefix: key alone. meta: only owner, storage_class, checksum */
};

struct list_result {
    struct list_entry *entries;
    size_t count;
    bool more;
    struct str next, next_version; /* the next page's after and after_version */
};

struct upload_part {
    uint32_t number;
    uint64_t size;
    int64_t modified_ms;
    struct str etag;
    struct object_checksum checksum;
};

struct upload_info {
    struct str key, id;
    struct str initiator; /* as the storage calls who began it; empty: meta.owner */
    int64_t started_ms;
    struct object_meta meta;
};

struct upload_list {
    struct upload_info *uploads; /* by key, then id */
    struct str *prefixes;
    size_t count, prefix_count;
    bool more;
    struct str next_key, next_id;
};

struct part_list {
    struct upload_info upload;
    struct upload_part *parts;
    size_t count;
    bool more;
};

/* A change of what is kept beside a version's bytes; only what `set` names is changed. */
enum meta_set {
    META_TAGS = 1,
    META_ACL = 2,
    META_RETENTION = 4,
    META_LEGAL_HOLD = 8,
    META_CLASS = 16, /* local alone */
};

struct meta_options {
    bool bypass_governance;         /* allows shortening governance retention */
    const struct change_note *note; /* NULL: none */
    struct object_guard guard;      /* local alone */
};

struct bucket_info {
    struct str name, owner;
    int64_t created_ms;
    enum { VERSIONS_NEVER, VERSIONS_ON, VERSIONS_SUSPENDED } versions;
    bool object_lock;
    bool notifies; /* it has a document "notification" */
};

/* What a bucket holds: versions as clients put them, before any sealing. Markers, and parts of
 * uploads that are not finished, count for nothing. */
struct bucket_usage {
    uint64_t objects, bytes;          /* that are current */
    uint64_t old_versions, old_bytes; /* that are not */
};

/* --- the vtables --- */

struct bucket {
    const struct bucket_ops *ops;
    struct str name;         /* lives as long as the bucket */
    struct storage *storage; /* that holds it; NULL: the bucket lies over several, or over none */
    /* Only where storage is NULL: */
    struct storage *home; /* the storage that it is named after (object/overlay.h, route/space.h) */
    unsigned can;         /* enum storage_capability */
};

struct bucket_ops {
    /* The current state; never stale. Does not block on local. */
    int (*info)(struct bucket *b, struct arena *a, struct bucket_info *out, struct err *err);
    /* Exact, at the cost of one row. Does not block. NULL where it is not known (remote). */
    int (*usage)(struct bucket *b, struct bucket_usage *out, struct err *err);

    /* out->body stays NULL. An empty version: the current one; a marker, current or named by its
     * version, is ERR_NOT_FOUND with out->info filled, and so is an object whose conditions do not
     * hold (ERR_PRECONDITION, ERR_NOT_MODIFIED). Conditions as RFC 9110 section 13.2.2. Local: does
     * not block. */
    int (*head)(struct bucket *b, struct arena *a, struct str key, struct str version,
                const struct object_conditions *c, struct get_result *out, struct err *err);
    /* Local: does not block by itself; the body may be file ranges (reader_as_file). */
    int (*get)(struct bucket *b, struct arena *a, struct str key, struct str version,
               const struct object_conditions *c, const struct object_range *range,
               struct get_result *out, struct err *err);
    /* `size` UINT64_MAX: not known. */
    int (*put)(struct bucket *b, struct arena *a, struct str key, struct reader *body,
               uint64_t size, const struct put_options *o, struct put_result *out, struct err *err);
    /* Bytes of a version of a bucket on the same storage, without moving them where possible;
     * ERR_UNSUPPORTED: read and put instead. Sealed bytes stay sealed: o's meta must have an
     * encryption exactly when the source's has one (else ERR_UNSUPPORTED). ERR_CONFLICT: the
     * source's ETag or encryption is no longer that of `source`. */
    int (*copy)(struct bucket *b, struct arena *a, struct str key, struct bucket *from,
                const struct object_info *source, const struct put_options *o,
                struct put_result *out, struct err *err);
    /* A missing key is success, as in S3, also under conditions: then nothing is made. A delete
     * marker that is current has no ETag, no bytes, and the time at which it was made. */
    int (*remove)(struct bucket *b, struct arena *a, struct str key, const struct remove_options *o,
                  struct remove_result *out, struct err *err);
    int (*list)(struct bucket *b, struct arena *a, const struct list_options *o,
                struct list_result *out, struct err *err);
    int (*list_versions)(struct bucket *b, struct arena *a, const struct list_options *o,
                         struct list_result *out, struct err *err);
    /* Empty version: the current. `o` may be NULL. Remote: one request for each thing that is set,
     * so a failure may leave some of them set. */
    int (*set_meta)(struct bucket *b, struct arena *a, struct str key, struct str version,
                    enum meta_set set, const struct object_meta *meta, const struct meta_options *o,
                    struct err *err);

    /* The ACL of the current version, in the form of meta.acl. ERR_UNSUPPORTED, ERR_DENIED: the
     * storage does not tell it. NULL where head() tells it (STORAGE_KEEPS_META). */
    int (*get_acl)(struct bucket *b, struct arena *a, struct str key, struct str *out,
                   struct err *err);

    int (*upload_begin)(struct bucket *b, struct arena *a, struct str key,
                        const struct object_meta *meta, struct str *id, struct err *err);
    int (*upload_part)(struct bucket *b, struct arena *a, const struct upload_info *upload,
                       uint32_t number, struct reader *body, uint64_t size,
                       const struct put_options *o, struct upload_part *out, struct err *err);
    /* A part that is a range of an existing version, without moving bytes where possible.
     * ERR_UNSUPPORTED: read and upload instead; so when source or upload are sealed. Local: a type
     * in out->checksum asks for a checksum of that kind, whose value is there when it is known and
     * else computed. */
    int (*upload_part_copy)(struct bucket *b, struct arena *a, const struct upload_info *upload,
                            uint32_t number, struct bucket *from, const struct object_info *source,
                            const struct object_range *range, struct upload_part *out,
                            struct err *err);
    /* `parts` in the client's order with the etags (and checksums) that it names: ERR_INVALID with
     * the text InvalidPart, InvalidPartOrder or EntityTooSmall. The object gets the meta that the
     * upload began with; of o's only a checksum counts. Completing the same upload with the same
     * parts again answers the same. */
    int (*upload_finish)(struct bucket *b, struct arena *a, const struct upload_info *upload,
                         const struct upload_part *parts, size_t count, const struct put_options *o,
                         struct put_result *out, struct err *err);
    int (*upload_abort)(struct bucket *b, const struct upload_info *upload, struct err *err);
    /* parts behind number `after` */
    int (*list_parts)(struct bucket *b, struct arena *a, const struct upload_info *upload,
                      uint32_t after, size_t limit, struct part_list *out, struct err *err);
    /* The parts that a version was made of, behind number `after`: numbers, sizes, checksums. A
     * version that was put whole has none. Remote: no checksums, none at all where the peer tells
     * no sizes, and up to one request for each part; ask for all at once. ERR_NOT_FOUND: the
     * version is gone, or has another ETag. NULL: not known. */
    int (*object_parts)(struct bucket *b, struct arena *a, const struct object_info *object,
                        uint32_t after, size_t limit, struct part_list *out, struct err *err);
    int (*list_uploads)(struct bucket *b, struct arena *a, const struct list_options *o,
                        struct upload_list *out, struct err *err);

    /* The bucket's own documents, by S3's name of the sub-resource ("policy", "cors", "lifecycle",
     * "tagging", "acl", ...), opaque here: local keeps what it is given, remote speaks S3's forms.
     * ERR_NOT_FOUND: none. An empty document removes it. */
    int (*get_document)(struct bucket *b, struct arena *a, const char *name, struct str *out,
                        struct err *err);
    int (*set_document)(struct bucket *b, const char *name, struct str document, struct err *err);
    /* Off: suspended, also where versions were never kept. */
    int (*set_versions)(struct bucket *b, bool on, struct err *err);
    /* For good, on a bucket that has none. ERR_CONFLICT: its versions are not on. NULL: cannot. */
    int (*set_object_lock)(struct bucket *b, struct err *err);

    struct bucket *(*ref)(struct bucket *b);
    void (*unref)(struct bucket *b);
};

struct overlay; /* object/overlay.h */

struct storage {
    const struct storage_ops *ops;
    struct str name;
    bool takes_trailers; /* bodies framed as STREAMING-UNSIGNED-PAYLOAD-TRAILER; set when opened */
    /* What replication may ask of it, all workers together; 0: no limit (route/remotes.h). */
    _Atomic(uint64_t) requests_per_minute, bytes_per_second;
    /* Learned by replication: of a write's If-Match it takes no ETag in quotes (Ceph before 18). */
    _Atomic(bool) bare_etags;
    /* Gives the buckets of this storage that lie over several (object/overlay.h); NULL: none do.
     * Set by route/. */
    _Atomic(struct overlay *) overlay;
};

struct exchange; /* http/upstream.h */

struct forward_request {
    struct str user;                   /* whose credentials sign; empty: it is sent unsigned */
    struct str method;                 /* as it is to be sent */
    struct str signed_as;              /* the method in the signature; empty: that one */
    struct str path;                   /* by url_encode(), with the bucket: "/bucket/key" */
    struct str query;                  /* percent-encoded, without what signed it; may be empty */
    const struct http_header *headers; /* to send; not Host, Authorization, X-Amz-Date,
                                          X-Amz-Content-Sha256, nor those of the framing */
    size_t header_count;
    struct reader *body;  /* NULL: none */
    uint64_t body_len;    /* UINT64_MAX: chunked */
    struct str sha256;    /* hex of the body, when it is known */
    bool expect_continue; /* as in struct upstream_request */
    bool idempotent;
    bool now; /* as upstream_send_now(): ERR_AGAIN, or the answer has yet to be polled for */
    int (*may)(void *ctx, struct err *err); /* as in struct upstream_request */
    void *may_ctx;
    struct arena *arena; /* for what is made on the way; NULL: one of its own */
};

/* What a storage promises beyond the calls of its vtable. A caller asks for the promise that it
 * needs, never for the kind of the storage. */
enum storage_capability {
    /* ops->forward() passes a client's request on as it is. The storage itself then decides who may
     * do what and carries out its buckets' documents (lifecycle, logging, ...). */
    STORAGE_FORWARDS = 1,
    /* Opening a bucket, its info, heads and listings wait for no peer and cost next to nothing. */
    STORAGE_AT_HAND = 2,
    /* The storage has commits of its own: it calls a change_note inside the commit of the change
     * and keeps the rows of the outbox there. Without this, only an intent that was recorded before
     * the change makes sure that the change becomes known. */
    STORAGE_TELLS_CHANGES = 4,
    /* Others may change objects past this program, and the storage can be set up to notify it. */
    STORAGE_NOTIFIES = 8,
    /* Each user has credentials of their own there; a user without them sees no bucket. */
    STORAGE_CREDENTIALS = 16,
    /* All of struct object_meta comes back as it was given, whatever its form: owner, ACL (none:
     * private), encryption. So the storage can keep bytes that this program seals. */
    STORAGE_KEEPS_META = 32,
    /* The storage is a folder that belongs to this process alone: object/local/local.h takes it. */
    STORAGE_FOLDER = 64,
    /* The version "null" can be named also in a bucket that never kept versions. */
    STORAGE_NULL_VERSION = 128,
};

/* Where a call has a `user`: the id of the user whose credentials are used by storages that have
 * several (remote; empty: none, requests go unsigned); local has none and ignores it.
 * create_bucket() takes info->owner as that user, list_buckets() its owner. */

struct storage_ops {
    const char *kind; /* "local", "remote": for people to read; programs ask storage_can() */
    unsigned can;     /* enum storage_capability */
    /* ERR_EXISTS: the error's text is the owner. Whether S3 allows the name is the caller's to
     * check. With object_lock versions are on. */
    int (*create_bucket)(struct storage *s, const struct bucket_info *info, struct err *err);
    /* ERR_CONFLICT: not empty; local: of objects and uploads, remote: as the peer sees it. */
    int (*remove_bucket)(struct storage *s, struct str user, struct str name, struct err *err);
    /* A reference; ERR_NO_BUCKET. Local: does not block. */
    int (*open_bucket)(struct bucket **out, struct storage *s, struct str user, struct str name,
                       struct err *err);
    /* Of one owner, or of all when it is empty; by name, behind `after`. */
    int (*list_buckets)(struct storage *s, struct arena *a, struct str owner, struct str after,
                        size_t limit, struct bucket_info **out, size_t *count, struct err *err);
    /* The raw pass-through: sends the request, signed anew, and answers with whatever the peer
     * says. NULL without STORAGE_FORWARDS. Any status is success; the caller reads
     * exchange_head() and exchange_body() of http/upstream.h and calls exchange_close().
     * ERR_DENIED: the user has no credentials there. ERR_UNAVAILABLE, ERR_BUSY: down, at once; the
     * others of upstream_send(). */
    int (*forward)(struct storage *s, const struct forward_request *r, struct exchange **out,
                   struct err *err);
    int (*check)(struct storage *s, struct err *err); /* is it there and writable? */
    /* A number for the state of a bucket's info and documents: when it is the same before and after
     * they were read, they were not changed in between, and they are still what was read as long as
     * it stays the same. Also of a bucket that is not there. 0: a change is under way, or the
     * storage cannot say. NULL: it never can. Does not block. */
    uint64_t (*generation)(struct storage *s, struct str bucket);
    /* Before a close, from any thread: calls that wait for the peer, and later ones, fail within a
     * moment. NULL: none waits for one. */
    void (*abort)(struct storage *s);
    void (*close)(struct storage *s);
};

/* A storage that is not there (NULL) can do nothing. */
static inline bool storage_can(const struct storage *s, enum storage_capability what)
{
    return s && (s->ops->can & what);
}

/* What the bucket's storage can; of a bucket over several: what all of them can. */
static inline bool bucket_can(const struct bucket *b, enum storage_capability what)
{
    return b->storage ? storage_can(b->storage, what) : b->can & what;
}

/* The storage to name when the bucket's place has to be told: the one that it is on, else its home
 * (object/overlay.h) or its space's. */
static inline struct storage *bucket_home(const struct bucket *b)
{
    return b->storage ? b->storage : b->home;
}

#endif
