/* The header of a bundle (gitformat-bundle): the list of refs before the pack.
 *
 * Besides the refs of the last sync, a bundle of weir has *points*: lines of history. A sync that
 * finds a ref changed or deleted adds `refs/weir/<unix seconds>/was/<name>` with the former tip. A
 * sync that finds a new ref adds `refs/weir/<unix seconds>/new/<name>` with its first tip. `<name>`
 * is the ref without `refs/`. So every saved object stays reachable, and the refs of any past sync
 * can be computed (docs/archive.md, B3 and B4). */
#ifndef ARCHIVE_HEADER_H
#define ARCHIVE_HEADER_H

#include "archive/refs.h"
#include "os/stream.h"

enum {
    HEADER_POINTS_MAX = 200 * 1000,
    HEADER_BYTES_MAX = 28 * 1024 * 1024, /* most memory for all refs and points of a header */
    HEADER_LINE_MAX = 2 * GIT_ID_MAX + 1 + GIT_REF_NAME_MAX + 64, /* 64: the beginning of a point */
};

struct header_point {
    int64_t at_s; /* when the sync began, seconds since 1970 */
    bool is_new;  /* the point is a `new` point; false: a `was` point */
    struct git_ref ref;
};

struct bundle_header {
    struct git_refs refs;
    VEC(struct header_point) points; /* in the order of their times */
    uint64_t pack_at;                /* size of the header; known after reading */
    size_t bytes;     /* memory of the refs and points; known after bundle_header_follow() */
    int64_t points_s; /* the time of the points that bundle_header_follow() has added */
};

/* The time of the points that a sync adds, in seconds since 1970. */
struct header_time {
    int64_t now_s; /* when the sync began */
    /* If this sync has written the bundle before: points_s of that write, so that the new points
     * get the same time. 0: this is the first write, or the server's refs were read again since
     * then. */
    int64_t same_sync_s;
};

void bundle_header_init(struct bundle_header *h, bool is_sha256);
void bundle_header_release(struct bundle_header *h);

/* Writes the header, with the empty line that ends it. `refs` are sorted. HEAD comes first. The
 * branch that HEAD names comes after the other branches, because git assumes that HEAD names the
 * last branch with HEAD's id. */
void bundle_header_write(struct buf *out, const struct bundle_header *h);

/* A reader of a header's text, which is made line by line, because the text of a header with many
 * refs is larger than the header in memory. The text can be read again from its beginning. */
struct header_text {
    struct reader reader;
    const struct bundle_header *header; /* borrowed */
    struct str tail;                    /* bytes that follow the text; borrowed */
    const struct git_ref *last; /* the branch that comes after the other branches, or NULL */
    size_t step;                /* number of the next step: a ref, a point, or the end */
    bool was_head;              /* the ref before was a branch */
    struct buf line;
    size_t taken; /* bytes of `line` that were read */
};
void header_text_init(struct header_text *t, const struct bundle_header *h, struct str tail);
void header_text_rewind(struct header_text *t);
void header_text_release(struct header_text *t); /* {0} is fine */

/* Reads a header; `h` must be empty. HEAD is assumed to name the last branch of the header, if that
 * branch has HEAD's id. After a success, the next byte of the reader is the first byte of the pack.
 * The function reads byte by byte, so the reader should have a buffer. ERR_CORRUPT: the bytes are
 * not a header that weir writes. ERR_TOO_LARGE: the header has too many lines. */
int bundle_header_read(struct bundle_header *h, struct reader *from, struct err *err) MUST_CHECK;

/* Fills `next` with the refs that a sync has found, with the points of `old`, and with the points
 * that this sync adds. Names and ids are borrowed from `old` and `found`, which must outlive
 * `next`. New points are later than the points of other syncs in `old`, even if the
 * clock has not advanced or was set back. If the refs are the same as those of `old`, the sync adds
 * no point. `old` is NULL for the first sync. ERR_UNSUPPORTED: there are too many points, or their
 * names and those of the refs take more than HEADER_BYTES_MAX bytes; the caller keeps the bundle
 * aside and makes a fresh one. */
int bundle_header_follow(struct bundle_header *next, const struct bundle_header *old,
                         const struct git_refs *found, const struct header_time *t,
                         struct err *err) MUST_CHECK;

/* Computes the refs that the sync at `at_s`, or the last sync before it, found. `out` is
 * initialised; its names and ids are borrowed from `h`. HEAD becomes the newest HEAD, if its branch
 * existed at that time. A header does not tell when its first sync was: for a time before that
 * sync, the refs are those of the first sync (bundle_meta.first_s). */
void bundle_header_at(struct git_refs *out, const struct bundle_header *h, int64_t at_s);

#endif
