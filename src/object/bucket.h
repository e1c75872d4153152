/* The object interface: the calls by which all parts of weir use storages, buckets and objects.
 *
 * A storage holds buckets, and a bucket holds objects. There are two kinds of storage: local (files
 * and an index, object/local/) and remote (any S3 endpoint, object/remote/). The objects of one
 * bucket may also be spread over several buckets (object/overlay.h), and some buckets are on no
 * storage, such as the repositories of the lake (route/space.h). Callers do not know the kind;
 * where it matters they ask whether the storage or bucket has a capability (storage_can(),
 * bucket_can()).
 *
 * Comments below say "local" and "remote" where the two kinds differ.
 *
 * Bodies flow through readers: put() reads one, get() returns one. Everything that a call returns
 * lives in the arena that the call was given; a body lives until it is closed. Calls may block
 * unless their comment says otherwise. Any thread may call. Storages and buckets are shared;
 * buckets are reference counted.
 *
 * Errors: ERR_NOT_FOUND (the key, version or upload), ERR_NO_BUCKET, ERR_PRECONDITION,
 * ERR_NOT_MODIFIED, ERR_RANGE, ERR_EXISTS, ERR_CONFLICT, ERR_DENIED (locked), ERR_INVALID,
 * ERR_TOO_LARGE, ERR_NO_SPACE, ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_UNSUPPORTED, ERR_GONE (the object
 * is listed, but its bytes are lost or were collected). A failure of a peer is never reported as
 * ERR_NOT_FOUND. A call that fails has changed nothing. */
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

/* The data that is kept with each version beside its bytes. An empty string: no value was given. */
struct object_meta {
    /* Content-Type, Cache-Control, Content-Disposition, Content-Encoding, Content-Language,
     * Expires, x-amz-meta-*, x-amz-website-redirect-location. */
    struct http_header *headers;
    size_t header_count;
    struct str tags; /* "k=v&k2=v2", URL-encoded */
    /* The access list in the storage's own form. Local keeps any text. Remote accepts only
     * <AccessControlPolicy> (else ERR_UNSUPPORTED) and returns it only from get_acl(). A caller
     * that carries an ACL to another storage translates it (meta/acl.h has both forms). */
    struct str acl;
    struct str owner; /* user id. Remote: set only in listings, and then it is the peer's id */
    struct str storage_class; /* empty: STANDARD */
    /* Says how the bytes are sealed, that is, encrypted (sealed.h): the text of an envelope
     * (meta/envelope.h), which storages do not interpret. Empty: the bytes are not sealed. */
    struct str encryption;
    struct object_checksum checksum;
    int64_t retain_until_ms; /* ms since 1970; 0: no retention */
    bool retain_compliance;  /* true: compliance mode; false: governance */
    bool legal_hold;
};

struct object_info {
    struct str key;
    struct str version; /* "null" if the bucket never kept versions */
    bool is_latest;     /* remote: false (not known) after head() or get() of a named version */
    bool is_marker;     /* the version is a delete marker, which has no bytes */
    uint64_t size;
    int64_t modified_ms;
    struct str etag;     /* without quotes */
    uint32_t part_count; /* 0: the object was not made of parts */
    bool is_private;     /* the ACL grants access only to the owner; false also where not known */
    struct object_meta meta;
};

/* Conditions of a request. ETags are written as in the HTTP headers: a list of quoted ETags, or
 * "*". An empty string or a time of 0 means no condition. */
struct object_conditions {
    struct str if_match, if_none_match;
    int64_t if_modified_since_ms, if_unmodified_since_ms;
    /* The conditions below apply only to removals. */
    int64_t if_modified_at_ms; /* when the version was modified; compared in whole seconds */
    bool has_if_size;
    uint64_t if_size;
};

/* A last check inside the commit of a change, for callers whose decision depends on an earlier
 * state of the object. fn() gets the version, with its whole meta, as it is at that moment. If fn()
 * returns an error, the change is refused. fn() may run more than once. It must not wait and must
 * not call the storage. fn NULL: no check. */
struct object_guard {
    int (*fn)(void *ctx, const struct object_info *info, struct err *err);
    void *ctx;
};

enum range_kind { RANGE_ALL, RANGE_FROM_TO, RANGE_SUFFIX, RANGE_PART };

struct object_range {
    enum range_kind kind;
    uint64_t first; /* FROM_TO: offset of the first byte; SUFFIX: bytes at the end; PART: number of
                       the part, from 1 */
    uint64_t last;  /* FROM_TO: offset of the last byte; UINT64_MAX: to the end */
};

/* --- reporting what a change did --- */

/* The facts about a change, as they are known inside its commit. The strings are valid during the
 * call of tell(). */
struct change_fact {
    unsigned changes;   /* bits of enum thing_kind */
    struct str version; /* empty if the bucket never kept versions */
    struct str etag;
    uint64_t size;
    uint32_t storage;  /* number of the storage that gave the sequence; never 0 */
    uint64_t sequence; /* a time in microseconds; higher for later changes of the storage */
    int64_t time_ms;
};

/* A change note (below) gets an outbox. It calls put() to add a row to the commit of the change.
 * `prefix` names the row log to which the row is added (db/row_log.h). */
struct outbox {
    void (*put)(struct outbox *o, struct str prefix, struct str place, struct str value);
};

/* A callback that is told, inside the commit, what the change did. It is not called when the change
 * did nothing, such as removing a key that does not exist. It runs on any thread while the caller
 * of the change waits, and again when the commit is tried again. It must be short and must not
 * wait. Storages without STORAGE_TELLS_CHANGES never call it. */
struct change_note {
    void (*tell)(void *ctx, const struct change_fact *fact, struct outbox *out);
    void *ctx;
};

/* --- arguments and results of calls --- */

/* The key with which a body is sealed, and how its ETag is made. */
struct put_seal {
    struct sealed_key key;
    bool hide_md5; /* the ETag must reveal nothing about the body; it does not look like an MD5 */
};

struct put_options {
    struct object_meta meta;
    struct object_conditions conditions; /* judged on the version that is current at the commit */
    /* Called after the body has ended and before anything is visible: the last chance to refuse the
     * put (payload hash, Content-MD5, trailer checksum) and to fill meta.checksum. With
     * STORAGE_ANY_LENGTH it may also change meta.headers; other storages have sent the headers
     * before. May be NULL. */
    int (*verify)(void *ctx, struct object_meta *meta, struct err *err);
    void *ctx;
    struct str etag; /* local: the ETag to keep; empty: the MD5 of the plain bytes */
    /* Local: a place of MD5_LEN bytes for the MD5 of the plain bytes, filled before verify() is
     * called, so that the caller need not hash them again. Must be NULL if `etag` is set. */
    unsigned char *md5;
    /* If `meta` has an encryption, this function is called before the body is read, to get the key.
     * `meta` is the meta of these options or, for a part, the meta of its upload. If `meta` has an
     * encryption and `seal` is NULL, the put fails with ERR_INVALID. The storage overwrites the key
     * after use. */
    int (*seal)(void *ctx, const struct object_meta *meta, struct put_seal *out, struct err *err);
    void *seal_ctx;
    /* Called inside the commit of the change. NULL: no function is called. */
    const struct change_note *note;
};

struct put_result {
    /* Empty: the bucket keeps no versions; while versions are suspended, it is "null" or empty. */
    struct str version;
    struct str etag;
    int64_t modified_ms; /* 0: not known (remote) */
    uint64_t size;
};

/* One of several bodies that are put in one call. */
struct object_put {
    struct str key, bytes;
    struct put_options o;
    struct put_result result; /* set by the call */
};

struct get_result {
    struct object_info info;
    struct reader *body; /* the bytes of the range; the caller closes it; NULL after head() */
    uint64_t first, len; /* offset and length of the body in the object, in bytes */
    bool partial;        /* the caller asked for a range */
    /* Local, RANGE_PART: the checksum with which the part was uploaded. */
    struct object_checksum part_checksum;
    /* Not NULL: the bytes are sealed, and the body can be read only after unlock() was called with
     * their key. ERR_CORRUPT: the key is wrong, or the bytes are damaged. */
    int (*unlock)(struct reader *body, const struct sealed_key *key, struct err *err);
    bool at_hand; /* the sealed bytes are in memory, so unlock() and reading never wait */
};

struct remove_options {
    /* Empty: the current version is removed or, where versions are kept, a marker is added. */
    struct str version;
    struct object_conditions conditions;
    bool bypass_governance;
    const struct change_note *note; /* as in put_options */
    struct object_guard guard;      /* only local; if set, a missing key is ERR_NOT_FOUND */
};

struct remove_result {
    struct str version; /* the version that was removed, or the marker that was made */
    bool is_marker;     /* `version` is a marker */
};

/* Listings are in byte order of the keys; all keys under a common prefix are one entry. The cost of
 * a listing grows with the entries that it returns, not with the keys that it skips. */
struct list_options {
    struct str prefix, delimiter;
    /* The listing begins after this key. A common prefix is listed if it has keys after `after`,
     * unless `after` is the prefix itself. */
    struct str after;
    struct str after_version; /* list_versions() begins after this version of `after` */
    size_t limit;             /* most entries to return; at most OBJECT_LIST_MAX */
    bool tags;                /* local: fill meta.tags of the entries too */
};

struct list_entry {
    bool is_prefix;
    /* In info.meta only owner, storage_class and checksum are set. A common prefix has only its
     * key. */
    struct object_info info;
};

struct list_result {
    struct list_entry *entries;
    size_t count;
    bool more;
    struct str next, next_version; /* `after` and `after_version` of the next page */
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
    /* The user who began the upload, as the storage names them; empty: the user is meta.owner. */
    struct str initiator;
    int64_t started_ms;
    struct object_meta meta;
};

struct upload_list {
    struct upload_info *uploads; /* sorted by key, then by id */
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

/* Flags that say which fields of a version's meta set_meta() changes. */
enum meta_set {
    META_TAGS = 1,
    META_ACL = 2,
    META_RETENTION = 4,
    META_LEGAL_HOLD = 8,
    META_CLASS = 16, /* only local */
};

struct meta_options {
    bool bypass_governance;         /* allows shortening governance retention */
    const struct change_note *note; /* as in put_options */
    struct object_guard guard;      /* only local */
};

struct bucket_info {
    struct str name, owner;
    int64_t created_ms;
    enum { VERSIONS_NEVER, VERSIONS_ON, VERSIONS_SUSPENDED } versions;
    bool object_lock;
    bool notifies; /* the bucket has a "notification" document */
};

/* How much a bucket holds. Bytes are counted as clients put them, before any sealing. Markers and
 * the parts of unfinished uploads are not counted. */
struct bucket_usage {
    uint64_t objects, bytes;          /* number and size of current versions */
    uint64_t old_versions, old_bytes; /* number and size of versions that are not current */
};

/* --- the vtables: what a bucket and a storage can do --- */

struct bucket {
    const struct bucket_ops *ops;
    struct str name; /* lives as long as the bucket */
    /* The storage that holds the bucket. NULL: the bucket is cut into parts (object/overlay.h), or
     * is on no storage (route/space.h). */
    struct storage *storage;
    /* Set only where `storage` is NULL: the storage to use where a storage must be named for the
     * bucket (object/overlay.h, route/space.h). */
    struct storage *home;
    unsigned can; /* set only where `storage` is NULL: bits of enum storage_capability */
};

struct bucket_ops {
    /* Fills *out with the bucket's current state, never with a stale state. Local: does not
     * block. */
    int (*info)(struct bucket *b, struct arena *a, struct bucket_info *out, struct err *err);
    /* Fills *out with the bucket's exact usage, by reading one row. Does not block. NULL: the
     * bucket's usage is not known: the bucket is remote, or a repository of the lake. */
    int (*usage)(struct bucket *b, struct bucket_usage *out, struct err *err);

    /* Fills out->info with what is known about a version; out->body stays NULL. An empty `version`
     * means the current one. A marker, current or named by its version, is ERR_NOT_FOUND.
     * Conditions (`c`, may be NULL) are judged as in RFC 9110 section 13.2.2: ERR_PRECONDITION,
     * ERR_NOT_MODIFIED. In these three error cases out->info is filled too. Local: does not
     * block. */
    int (*head)(struct bucket *b, struct arena *a, struct str key, struct str version,
                const struct object_conditions *c, struct get_result *out, struct err *err);
    /* Does what head() does, and opens the body of the range (NULL: of the whole object). Local:
     * the call itself does not block; the body may be ranges of files (reader_as_file()). */
    int (*get)(struct bucket *b, struct arena *a, struct str key, struct str version,
               const struct object_conditions *c, const struct object_range *range,
               struct get_result *out, struct err *err);
    /* Like head() and get(), but they never wait. ERR_AGAIN: finding the answer would have to wait;
     * the caller calls head() or get() on a thread that may wait. NULL: the bucket has no such
     * calls. Buckets with STORAGE_AT_HAND need none, because their head() and get() do not wait. */
    int (*head_now)(struct bucket *b, struct arena *a, struct str key, struct str version,
                    const struct object_conditions *c, struct get_result *out, struct err *err);
    int (*get_now)(struct bucket *b, struct arena *a, struct str key, struct str version,
                   const struct object_conditions *c, const struct object_range *range,
                   struct get_result *out, struct err *err);
    /* Stores the body under the key. `size` UINT64_MAX: not known. */
    int (*put)(struct bucket *b, struct arena *a, struct str key, struct reader *body,
               uint64_t size, const struct put_options *o, struct put_result *out, struct err *err);
    /* Stores several small bodies as put() does, with fewer syncs. Either all are stored or, after
     * an error, none. The keys must differ. NULL: the bucket cannot do this, and the caller puts
     * the bodies one by one. */
    int (*put_all)(struct bucket *b, struct arena *a, struct object_put *puts, size_t count,
                   struct err *err);
    /* Stores the bytes of a version from a bucket on the same storage under this key, without
     * moving them where possible. ERR_UNSUPPORTED: the caller has to read and put. Sealed bytes
     * stay sealed: o's meta must have an encryption exactly when the source's meta has one (else
     * ERR_UNSUPPORTED). ERR_CONFLICT: the source no longer has the ETag or the encryption of
     * `source`. */
    int (*copy)(struct bucket *b, struct arena *a, struct str key, struct bucket *from,
                const struct object_info *source, const struct put_options *o,
                struct put_result *out, struct err *err);
    /* Removes a version, or makes a delete marker. Removing a missing key succeeds, as in S3; a
     * removal with conditions makes no marker for a missing key. Conditions judge a current delete
     * marker like an object without ETag and bytes that was modified when the marker was made. */
    int (*remove)(struct bucket *b, struct arena *a, struct str key, const struct remove_options *o,
                  struct remove_result *out, struct err *err);
    int (*list)(struct bucket *b, struct arena *a, const struct list_options *o,
                struct list_result *out, struct err *err);
    int (*list_versions)(struct bucket *b, struct arena *a, const struct list_options *o,
                         struct list_result *out, struct err *err);
    /* Changes the fields of a version's meta that `set` names. An empty `version` means the current
     * one. `o` may be NULL. Remote: one request for each field, so a failure may leave some of them
     * changed. */
    int (*set_meta)(struct bucket *b, struct arena *a, struct str key, struct str version,
                    enum meta_set set, const struct object_meta *meta, const struct meta_options *o,
                    struct err *err);

    /* Sets *out to the ACL of the current version, in the form of meta.acl. ERR_UNSUPPORTED,
     * ERR_DENIED: the storage does not reveal the ACL. NULL for storages whose head() fills
     * meta.acl (STORAGE_KEEPS_META). */
    int (*get_acl)(struct bucket *b, struct arena *a, struct str key, struct str *out,
                   struct err *err);

    int (*upload_begin)(struct bucket *b, struct arena *a, struct str key,
                        const struct object_meta *meta, struct str *id, struct err *err);
    int (*upload_part)(struct bucket *b, struct arena *a, const struct upload_info *upload,
                       uint32_t number, struct reader *body, uint64_t size,
                       const struct put_options *o, struct upload_part *out, struct err *err);
    /* Makes a part from a range of an existing version, without moving bytes where possible.
     * ERR_UNSUPPORTED: the caller has to read and upload; this is always so when the source or the
     * upload is sealed. Local: a type in out->checksum asks for a checksum of that kind; its value
     * is computed where it is not known. A caller that knows the MD5 of the range may give it in
     * hex as out->etag, else out->etag is empty. With the MD5, a local storage that shares the
     * bytes need not read them. Text that is not an MD5 is ERR_INVALID. Remote: the MD5 is not
     * used. */
    int (*upload_part_copy)(struct bucket *b, struct arena *a, const struct upload_info *upload,
                            uint32_t number, struct bucket *from, const struct object_info *source,
                            const struct object_range *range, struct upload_part *out,
                            struct err *err);
    /* Makes the object from its parts. `parts` are in the client's order, with the ETags and
     * checksums that the client names. ERR_INVALID has the text InvalidPart, InvalidPartOrder or
     * EntityTooSmall. The object gets the meta that the upload began with; of o's meta only the
     * checksum is used. Finishing an upload again with the same parts gives the same answer. */
    int (*upload_finish)(struct bucket *b, struct arena *a, const struct upload_info *upload,
                         const struct upload_part *parts, size_t count, const struct put_options *o,
                         struct put_result *out, struct err *err);
    int (*upload_abort)(struct bucket *b, const struct upload_info *upload, struct err *err);
    /* Lists the upload's parts whose numbers are above `after`. */
    int (*list_parts)(struct bucket *b, struct arena *a, const struct upload_info *upload,
                      uint32_t after, size_t limit, struct part_list *out, struct err *err);
    /* Lists the number, size and checksum of each part that the version was made of and whose
     * number is above `after`. A version that was put whole has no parts. Remote: parts have no
     * checksums, and no parts are listed where the peer reports no sizes. The call may take one
     * request for each part, so callers ask for all parts at once. ERR_NOT_FOUND: the version no
     * longer exists, or has another ETag. NULL: the storage does not know the parts. */
    int (*object_parts)(struct bucket *b, struct arena *a, const struct object_info *object,
                        uint32_t after, size_t limit, struct part_list *out, struct err *err);
    int (*list_uploads)(struct bucket *b, struct arena *a, const struct list_options *o,
                        struct upload_list *out, struct err *err);

    /* Get and set the bucket's own documents, by S3's name of the sub-resource ("policy", "cors",
     * "lifecycle", "tagging", "acl", ...). Storages do not interpret them: local keeps any text,
     * remote accepts and returns S3's XML or JSON. ERR_NOT_FOUND: there is no such document.
     * Setting an empty document removes it. */
    int (*get_document)(struct bucket *b, struct arena *a, const char *name, struct str *out,
                        struct err *err);
    int (*set_document)(struct bucket *b, const char *name, struct str document, struct err *err);
    /* Turns the keeping of versions on, so that replaced and removed objects stay, or suspends it
     * (`on` is false). A bucket that never kept versions can be suspended too. */
    int (*set_versions)(struct bucket *b, bool on, struct err *err);
    /* Turns object lock on, for good. ERR_CONFLICT: versions are not on. NULL: the storage has no
     * object lock. */
    int (*set_object_lock)(struct bucket *b, struct err *err);

    /* Calls fn() with that one of the bucket's parts (object/overlay.h) that has the key; the key
     * stays in that part until fn() returns. copy() of a local storage uses this to find a source
     * that is on its own storage. NULL: the bucket has no parts. */
    int (*lend)(struct bucket *b, struct str key,
                int (*fn)(void *ctx, struct bucket *part, struct err *err), void *ctx,
                struct err *err);
    /* Hides the changes that are made through this reference from the storage's tap; callers use
     * local_untap() (object/local/local.h). A bucket with parts does this with each part. NULL: the
     * storage has no tap. */
    void (*untap)(struct bucket *b);
    struct bucket *(*ref)(struct bucket *b);
    void (*unref)(struct bucket *b);
};

struct overlay; /* object/overlay.h */

struct storage {
    const struct storage_ops *ops;
    struct str name;
    /* Set at open: the storage accepts request bodies in the framing
     * STREAMING-UNSIGNED-PAYLOAD-TRAILER. */
    bool takes_trailers;
    /* Limits for all replication workers together (route/remotes.h); 0: no limit. */
    _Atomic(uint64_t) requests_per_minute, bytes_per_second;
    /* Set when a copy has found that the peer wants the ETag in a write's If-Match without quotes
     * (Ceph before 18). */
    _Atomic(bool) bare_etags;
    /* Opens those buckets of this storage that are cut into parts (object/overlay.h). NULL: there
     * are none. Set by route/. */
    _Atomic(struct overlay *) overlay;
    /* The numbers for the state of the buckets' infos and documents (object/generation.h), also of
     * buckets that do not exist; borrowed. NULL: the storage cannot know when they change. Set at
     * open. */
    struct generations *generations;
};

struct exchange; /* http/upstream.h */

struct forward_request {
    struct str user;      /* the user whose credentials sign the request; empty: it is not signed */
    struct str method;    /* the method that is sent */
    struct str signed_as; /* the method in the signature; empty: `method` */
    struct str path;      /* encoded by url_encode(), with the bucket: "/bucket/key" */
    struct str query;     /* percent-encoded, without the client's signature */
    /* The headers to send, without Host, Authorization, X-Amz-Date, X-Amz-Content-Sha256 and
     * headers of the framing. */
    const struct http_header *headers;
    size_t header_count;
    struct reader *body;  /* NULL: the request has no body */
    uint64_t body_len;    /* bytes; UINT64_MAX: not known, sent chunked */
    struct str sha256;    /* SHA-256 of the body in hex; empty: not known */
    bool expect_continue; /* wait up to 1 s for 100-continue before the body is sent */
    bool idempotent;
    /* The request is sent by upstream_send_now(), which never waits: either it fails with
     * ERR_AGAIN, or the request is sent and the caller polls for the answer. */
    bool now;
    /* Called before anything is sent; an error ends the call. May be NULL (http/upstream.h). */
    int (*may)(void *ctx, struct err *err);
    void *may_ctx;
    struct arena *arena; /* scratch memory; NULL: the call makes an arena of its own */
};

/* What a storage may be able to do beyond the calls that every storage has. A caller asks for the
 * capability that it needs, never for the kind of the storage. */
enum storage_capability {
    /* ops->forward() passes a client's request on as it is. The storage itself then decides who may
     * do what, and applies the documents of its buckets (lifecycle, logging, ...). */
    STORAGE_FORWARDS = 1,
    /* Opening a bucket, reading its info, heads and listings need no peer and cost next to
     * nothing. */
    STORAGE_AT_HAND = 2,
    /* The storage has commits of its own: it calls a change_note inside the commit of the change
     * and keeps the rows of the outbox in that commit. On other storages, weir can miss a change
     * unless it has recorded an intent before the change (docs/replication.md). */
    STORAGE_TELLS_CHANGES = 4,
    /* Other programs may change objects without weir, and the storage can be set up to notify weir
     * of such changes. */
    STORAGE_NOTIFIES = 8,
    /* Each user has credentials of their own on the storage. A user without them sees no bucket. */
    STORAGE_CREDENTIALS = 16,
    /* All of struct object_meta comes back as it was given, whatever its form: owner, ACL (an
     * object without an ACL is private), encryption. So the storage can keep bytes that weir
     * seals. */
    STORAGE_KEEPS_META = 32,
    /* The storage is a folder that belongs to this process alone: the functions of
     * object/local/local.h accept it. */
    STORAGE_FOLDER = 64,
    /* The version "null" can be named also in a bucket that never kept versions. */
    STORAGE_NULL_VERSION = 128,
    /* put() and upload_part() stream a body of unknown length without gathering it in memory, and
     * put() keeps the meta, headers included, as verify() leaves it. */
    STORAGE_ANY_LENGTH = 256,
    /* The objects of the bucket lie in several buckets, its parts (object/overlay.h). Only a bucket
     * has this, never a storage. */
    STORAGE_PARTS = 512,
};

/* In these calls, `user` is the id of the user whose credentials are used on a storage with
 * STORAGE_CREDENTIALS (empty: requests are not signed). Other storages ignore `user`.
 * create_bucket() uses info->owner as that user, and list_buckets() uses `owner`. */

struct storage_ops {
    const char *kind; /* "local", "remote": for people to read; programs ask storage_can() */
    unsigned can;     /* bits of enum storage_capability */
    /* Makes the bucket that `info` describes. ERR_EXISTS: the bucket exists, and the error's text
     * is its owner. The caller checks whether S3 allows the name. If info->object_lock is true, the
     * bucket keeps versions too. */
    int (*create_bucket)(struct storage *s, const struct bucket_info *info, struct err *err);
    /* Removes the bucket. ERR_CONFLICT: it is not empty. Local: it has objects or uploads; remote:
     * the peer decides. */
    int (*remove_bucket)(struct storage *s, struct str user, struct str name, struct err *err);
    /* Opens the bucket: *out is a new reference. ERR_NO_BUCKET: there is no such bucket. Local:
     * does not block. */
    int (*open_bucket)(struct bucket **out, struct storage *s, struct str user, struct str name,
                       struct err *err);
    /* Lists the buckets of one owner (empty: of all owners) in the order of their names, beginning
     * after the name `after`. */
    int (*list_buckets)(struct storage *s, struct arena *a, struct str owner, struct str after,
                        size_t limit, struct bucket_info **out, size_t *count, struct err *err);
    /* Signs a client's request again, with the user's credentials on the peer, sends it to the
     * peer, and returns the peer's answer unchanged. NULL without STORAGE_FORWARDS. Any status is
     * success; the caller reads exchange_head() and exchange_body() of http/upstream.h and calls
     * exchange_close(). ERR_DENIED: the user has no credentials there. ERR_UNAVAILABLE, ERR_BUSY:
     * the peer is down; the call did not wait for it. Other errors are those of upstream_send(). */
    int (*forward)(struct storage *s, const struct forward_request *r, struct exchange **out,
                   struct err *err);
    /* Checks that the storage can be used. Local: its folder is there and can be written. Remote:
     * the peer answers, and accepts the credentials of a user. */
    int (*check)(struct storage *s, struct err *err);
    /* Ends the calls that wait for the peer: each fails within a moment, and all later calls fail
     * too. Called before close(), from any thread. NULL: no call waits for a peer. */
    void (*abort)(struct storage *s);
    void (*close)(struct storage *s);
};

/* Whether the storage has the capability. NULL (no storage) has none. */
static inline bool storage_can(const struct storage *s, enum storage_capability what)
{
    return s && (s->ops->can & what);
}

/* Whether the bucket's storage has the capability; for a bucket with parts: whether the storages of
 * all parts have it. */
static inline bool bucket_can(const struct bucket *b, enum storage_capability what)
{
    return b->storage ? storage_can(b->storage, what) : b->can & what;
}

/* Returns the storage to use where a storage must be named for the bucket: the storage that the
 * bucket is on, else its home (object/overlay.h), else the storage of its space (route/space.h). */
static inline struct storage *bucket_home(const struct bucket *b)
{
    return b->storage ? b->storage : b->home;
}

#endif
