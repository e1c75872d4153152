/* Bundles in a storage: reading them, storing them, and appending to them (docs/archive.md,
 * "Bundles").
 *
 * The bundle of a repository is one object: a header with the refs and their history (header.h),
 * followed by one pack. weir writes the bundle while it receives the pack from the git server,
 * without a file or a clone, and with bounded memory. A new bundle becomes visible only after every
 * check has passed. An error leaves the stored bundle as it was.
 *
 *     bundle_open() ──► bundle_wants() ──► (the fetch) ──► bundle_append()
 *          │                                                   ▲ pack NULL: only the refs changed
 *          └─ ERR_NOT_FOUND ─► bundle_wants() ──► (the fetch) ──► bundle_put_full()
 *
 * The object is read and written through a struct bucket. For an account this is the bucket of its
 * shelf (shelf_bucket.h), which finds the satellite, encrypts, and announces changes to
 * replication; tests use any bucket.
 *
 * All calls can return the errors of the object interface, beside those that each call names. The
 * calls block. A job and a bundle_old belong to one thread. */
#ifndef ARCHIVE_BUNDLE_H
#define ARCHIVE_BUNDLE_H

#include "archive/advert.h"
#include "archive/header.h"
#include "archive/pack.h"
#include "object/bucket.h"

enum {
    /* Most ids of commits that weir has already ("haves") in the request for an append. */
    BUNDLE_HAVES_MAX = 20 * 1000,
    BUNDLE_WANTS_MAX = 100 * 1000, /* most ids that one request asks for ("wants") */
    BUNDLE_META_MAX = 2048,        /* most bytes of all metadata of a bundle */
    BUNDLE_SOURCE_MAX = 31,        /* bytes of a source id */
    BUNDLE_HEADERS_MAX = 16,       /* most headers that carry the metadata */
};

/* Whether a pack has deltas that name their base by id. Such a pack cannot be appended to (B8). */
enum bundle_ref_deltas {
    /* The pack's entries were not checked, or the metadata were written before the check ended. */
    REF_DELTAS_UNKNOWN,
    REF_DELTAS_NONE,
    REF_DELTAS_SOME,
};

/* The metadata of a stored bundle: hints that save a read; the bundle itself decides
 * (docs/archive.md, B1). An empty text or a 0 means that the value is not known. */
struct bundle_meta {
    char source_id[BUNDLE_SOURCE_MAX + 1]; /* the forge's id of the repository */
    char format[8];                        /* "sha1" or "sha256" */
    char head[2 * GIT_ID_MAX + 1];         /* the id that HEAD leads to */
    uint64_t pack_offset;                  /* size of the bundle's header; the pack begins there */
    uint32_t objects;                      /* entries of the pack */
    /* The pack's trailer; known only if the storage accepts the metadata after the body. */
    char pack_sum[2 * PACK_HASH_MAX + 1];
    char refs_digest[GIT_DIGEST_LEN + 1]; /* git_refs_digest() of the refs */
    char header_sum[GIT_DIGEST_LEN + 1];  /* SHA-256 of the header's bytes */
    unsigned appends;                     /* how many packs were appended to the first pack */
    uint64_t fence;                       /* fence of the worker that wrote the bundle */
    int64_t mtime_ms; /* the start of the sync that wrote the bundle; rclone shows this time */
    /* The start of the sync that stored the first pack, in seconds since 1970. The header tells the
     * refs of this time and later. 0: not known, because an earlier version of weir wrote the
     * bundle. */
    int64_t first_s;
    enum bundle_ref_deltas ref_deltas;
};

/* Reads the metadata of an object. A value that cannot be read is left empty. ERR_NOT_FOUND: the
 * object has no metadata of a bundle. Does not block. */
int bundle_meta_read(struct bundle_meta *out, const struct object_info *info) MUST_CHECK;
/* Writes the metadata as headers x-amz-meta-*, with a Content-Type. The values are in the arena.
 * Returns how many headers there are. */
size_t bundle_meta_headers(struct http_header out[BUNDLE_HEADERS_MAX], struct arena *a,
                           const struct bundle_meta *m);

/* Sizes in bytes. Tests use small ones. */
struct bundle_sizes {
    uint64_t small; /* a stored bundle up to this size is rewritten by one put */
    /* Least size of a part. As many bytes of old entries are sent again after a new header. */
    uint64_t lead;
    /* Size of the parts that are collected in memory. Storages that must know the length of a part
     * before its first byte need such parts. */
    uint64_t part;
    uint64_t copy; /* most bytes that the storage copies as one part */
};
extern const struct bundle_sizes bundle_sizes_usual;

/* One write of one bundle. The strings are borrowed. */
struct bundle_job {
    struct bucket *bucket;
    struct arena *arena; /* memory of the results */
    struct str key;
    int64_t now_s;    /* when the sync began; the added history lines get this time */
    int64_t points_s; /* see header_time.same_sync_s */
    /* How a new pack is checked; the kind of ids is taken from the refs. */
    struct pack_options check;
    struct str source_id; /* the forge's number of the repository: letters, digits and -._ */
    uint64_t fence;
    const struct bundle_sizes *sizes; /* NULL: bundle_sizes_usual */
    struct large_hold *hold;          /* pays for lists and buffers; NULL: nothing is counted */
    const char *scratch; /* folder for parts that the memory has no room for; NULL: memory only */
};

/* A stored bundle whose header has been read. */
struct bundle_old {
    struct object_info info; /* in the job's arena */
    struct bundle_meta meta;
    bool has_meta;
    struct bundle_header header;
    uint32_t objects;
    char refs_digest[GIT_DIGEST_LEN + 1]; /* digest of the refs in the header */
};

/* Reads the header of the stored bundle by range requests. ERR_NOT_FOUND: there is no bundle.
 * ERR_CORRUPT: the object is not a bundle, or its header has changed since it was written. */
int bundle_open(struct bundle_old *out, const struct bundle_job *job, struct err *err) MUST_CHECK;
void bundle_old_release(struct bundle_old *old); /* {0} is fine */

/* The request for the server, computed from the refs and the stored bundle. If a repository has
 * more new tips than one request can name, `more` is set, and `refs` has only the refs that this
 * fetch completes. After the write the caller opens the bundle and makes the next request. */
struct bundle_wants {
    struct git_fetch fetch;      /* if it has no wants, the stored pack has every object */
    const struct git_refs *refs; /* the refs to write into the new header */
    bool more;
    struct git_refs some; /* `refs` if only a part is completed; it borrows names and ids */
    unsigned char *ids;
};

/* The wants are the different tips of the refs, and of HEAD, that no line of the old header has.
 * The haves are the tips in the header: first the former tips of refs that changed, then heads,
 * tags and the others. `old` is NULL for a first fetch. `refs` are sorted. `old` and `refs` are
 * borrowed, and must outlive `out`. `max` is the most wants of one request, usually
 * BUNDLE_WANTS_MAX. */
void bundle_wants_init(struct bundle_wants *out, const struct bundle_old *old,
                       const struct git_refs *refs, size_t max);
void bundle_wants_release(struct bundle_wants *w);

struct bundle_result {
    struct put_result put;
    struct bundle_meta meta; /* the metadata that the storage has stored, and pack_sum */
    uint64_t pack_bytes;     /* size of the new pack as the server sent it */
    uint32_t pack_objects;
    int64_t
        points_s;    /* the time of the history lines that were added; 0: a first bundle has none */
    uint64_t sent;   /* bytes that the storage had to write */
    uint64_t copied; /* bytes that the storage copied from the old bundle by part copies */
};

/* Stores a bundle with these refs, which are sorted, while its pack is received. If `pack` is NULL,
 * the repository is empty. `replaces` is the ETag of the bundle to replace; if it is empty, no
 * bundle may exist yet. ERR_PRECONDITION: another writer has stored or replaced the bundle.
 * ERR_PARSE, ERR_TOO_LARGE: see pack.h. Errors of the pack's reader are returned as they are. */
int bundle_put_full(const struct bundle_job *job, const struct git_refs *refs, struct reader *pack,
                    struct str replaces, struct bundle_result *out, struct err *err) MUST_CHECK;

/* Adds the objects of a pack, and the history of the refs, to a stored bundle. If `pack` is NULL,
 * the bundle has all objects already, and only the header changes. All old bytes are read once and
 * compared with the old trailer. ERR_CORRUPT: the bytes do not match the trailer. ERR_UNSUPPORTED:
 * the old or the new pack has deltas by id (B8), or the bundle has no room for more lines of
 * history (header.h). ERR_CONFLICT: the bundle has the other kind of ids. ERR_BUSY: the bundle was
 * written under a later fence. ERR_TOO_LARGE: the pack is past a limit. Other errors as for
 * bundle_put_full(). */
int bundle_append(const struct bundle_job *job, const struct bundle_old *old,
                  const struct git_refs *refs, struct reader *pack, struct bundle_result *out,
                  struct err *err) MUST_CHECK;

#endif
