/* Bundles in a storage: how one is read, stored, and appended to (docs/archive.md, "Bundles").
 *
 * The bundle of a repository is one object: a header with the refs and their history (header.h),
 * and behind it one pack. It is written while the pack comes from the git server: there is no file
 * and no clone, and memory is bounded. Nothing is visible before every check has passed, and an
 * error leaves the stored bundle as it was.
 *
 *     bundle_open() ──► bundle_wants() ──► (the fetch) ──► bundle_append()
 *          │                                                   ▲ pack NULL: only the refs changed
 *          └─ ERR_NOT_FOUND ─► bundle_wants() ──► (the fetch) ──► bundle_put_full()
 *
 * The object is read and written through a struct bucket: for an account that of its shelf
 * (shelf_bucket.h), which routes, seals and announces; for tests any bucket.
 *
 * Errors of all calls: those of the object interface, and those that each call names. The calls
 * wait. A job and a bundle_old belong to one thread. */
#ifndef ARCHIVE_BUNDLE_H
#define ARCHIVE_BUNDLE_H

#include "archive/advert.h"
#include "archive/header.h"
#include "archive/pack.h"
#include "object/bucket.h"

enum {
    BUNDLE_HAVES_MAX = 20 * 1000,  /* ids that a request for an append names */
    BUNDLE_WANTS_MAX = 100 * 1000, /* ids that one request asks for */
    BUNDLE_META_MAX = 2048,        /* bytes of all metadata of a bundle */
    BUNDLE_SOURCE_MAX = 31,        /* bytes of a source id */
    BUNDLE_HEADERS_MAX = 16,       /* headers that the metadata become */
};

/* Whether a pack has deltas that name their base by id. Such a pack cannot be appended to (B8). */
enum bundle_ref_deltas {
    REF_DELTAS_UNKNOWN, /* its entries were not walked over, or its metadata were sent before */
    REF_DELTAS_NONE,
    REF_DELTAS_SOME,
};

/* The metadata of a stored bundle: hints that save a read, never the truth (docs/archive.md, B1).
 * An empty text and a 0: not known. */
struct bundle_meta {
    char source_id[BUNDLE_SOURCE_MAX + 1]; /* the forge's id of the repository */
    char format[8];                        /* "sha1" or "sha256" */
    char head[2 * GIT_ID_MAX + 1];         /* the id that HEAD leads to */
    uint64_t pack_offset;                  /* bytes before the pack */
    uint32_t objects;                      /* entries of the pack */
    char pack_sum[2 * PACK_HASH_MAX + 1];  /* trailer; known only where the storage takes it last */
    char refs_digest[GIT_DIGEST_LEN + 1];  /* git_refs_digest() of the refs */
    char header_sum[GIT_DIGEST_LEN + 1];   /* SHA-256 of the header's bytes */
    unsigned appends;                      /* how many packs were appended to the first one */
    uint64_t fence;                        /* of the worker that wrote it */
    int64_t mtime_ms; /* when the sync that wrote it began; rclone shows it as the time */
    enum bundle_ref_deltas ref_deltas;
};

/* Reads the metadata of an object. A value that cannot be read is left empty. ERR_NOT_FOUND: the
 * object has none of a bundle. Nothing waits. */
int bundle_meta_read(struct bundle_meta *out, const struct object_info *info) MUST_CHECK;
/* Writes the metadata as headers x-amz-meta-*, with a Content-Type. The values are in the arena.
 * Returns how many headers there are. */
size_t bundle_meta_headers(struct http_header out[BUNDLE_HEADERS_MAX], struct arena *a,
                           const struct bundle_meta *m);

/* Sizes, in bytes. Tests make them small. */
struct bundle_sizes {
    uint64_t small; /* a stored bundle up to this size is rewritten by one put */
    uint64_t lead; /* old bytes that are sent again behind a new header; the least size of a part */
    uint64_t part; /* a part that must be gathered because its storage wants to know its size */
    uint64_t copy; /* the most bytes that one part copy takes over */
};
extern const struct bundle_sizes bundle_sizes_usual;

/* Everything about one write of one bundle. The strings are borrowed. */
struct bundle_job {
    struct bucket *bucket;
    struct arena *arena; /* of results */
    struct str key;
    int64_t now_s;             /* when the sync began; it becomes the time of history lines */
    struct pack_options check; /* how a new pack is checked; its kind of ids follows the refs */
    struct str source_id;      /* letters, digits and -._ */
    uint64_t fence;
    const struct bundle_sizes *sizes; /* NULL: bundle_sizes_usual */
};

/* A stored bundle, as far as its header. */
struct bundle_old {
    struct object_info info; /* in the job's arena */
    struct bundle_meta meta;
    bool has_meta;
    struct bundle_header header;
    uint32_t objects;
    char refs_digest[GIT_DIGEST_LEN + 1]; /* of the refs in the header */
};

/* Reads the header of the stored bundle, by ranges. ERR_NOT_FOUND: there is none. ERR_CORRUPT: the
 * object is not a bundle, or its header is not the one that was written. */
int bundle_open(struct bundle_old *out, const struct bundle_job *job, struct err *err) MUST_CHECK;
void bundle_old_release(struct bundle_old *old); /* {0} is fine */

/* What to ask the server for. A repository may have more new tips than one request can name. Then
 * `refs` is that part of the refs which this fetch completes, `more` is set, and after the write
 * the caller opens the bundle and asks again. */
struct bundle_wants {
    struct git_fetch fetch;      /* no want: the pack that is there has everything */
    const struct git_refs *refs; /* the refs to write with the answer */
    bool more;
    struct git_refs some; /* what `refs` points to if not all are completed */
    unsigned char *ids;
};

/* Wants are the distinct tips, with HEAD's, that no line of the old header has; haves are the tips
 * of the header: first the former tips of refs that changed, then heads, tags and the others.
 * `old` is NULL for a first fetch. `refs` are sorted, borrowed, and must outlive `out`. `max` is
 * the most wants of one request, usually BUNDLE_WANTS_MAX. */
void bundle_wants_init(struct bundle_wants *out, const struct bundle_old *old,
                       const struct git_refs *refs, size_t max);
void bundle_wants_release(struct bundle_wants *w);

struct bundle_result {
    struct put_result put;
    struct bundle_meta meta; /* as far as it was known when the storage took it, and pack_sum */
    uint64_t pack_bytes;     /* of the new pack, as the server sent it */
    uint32_t pack_objects;
    uint64_t sent;   /* bytes that the storage had to write */
    uint64_t copied; /* bytes that it took from the old bundle by part copies */
};

/* Stores a bundle of these sorted refs while its pack flows. `pack` NULL: the repository is empty.
 * `replaces` is the ETag of the bundle that is replaced; empty: there must be none.
 * ERR_PRECONDITION: another writer was here. ERR_PARSE, ERR_CLOSED, ERR_TOO_LARGE: see pack.h; and
 * errors of the pack's reader. */
int bundle_put_full(const struct bundle_job *job, const struct git_refs *refs, struct reader *pack,
                    struct str replaces, struct bundle_result *out, struct err *err) MUST_CHECK;

/* Adds the objects of a pack, and the history of the refs, to a stored bundle. `pack` NULL: all
 * objects are there, and only the header changes. All old bytes are read once and compared with the
 * old trailer. ERR_CORRUPT: they do not match it. ERR_UNSUPPORTED: the old or the new pack has
 * deltas by id (B8). ERR_CONFLICT: the bundle has the other kind of ids. ERR_BUSY: the bundle was
 * written under a later fence. ERR_TOO_LARGE: it has too many lines of history (header.h), or the
 * pack is past a limit. Other errors as for bundle_put_full(). */
int bundle_append(const struct bundle_job *job, const struct bundle_old *old,
                  const struct git_refs *refs, struct reader *pack, struct bundle_result *out,
                  struct err *err) MUST_CHECK;

#endif
