/* Checks a git pack while its bytes pass (gitformat-pack). Nothing of the pack is kept in memory.
 *
 * A pack has a header with a count, that many entries, and a trailer, which is the hash of all
 * bytes before it. An entry has a type, the size of its data, for deltas the place of the base, and
 * a zlib stream. An entry has no length, so only inflating it tells where the next one begins.
 *
 * The walk checks: the header; the type of every entry; that its data have the declared size and
 * checksum; that the base of a delta by offset is an earlier entry; that the entries end where the
 * trailer begins; the trailer. Without the walk only header and trailer are checked. The ids of
 * objects, the bases of deltas by id and connectivity are not checked here; an audit (audit.h)
 * checks them.
 *
 * A pack_check belongs to one thread. It takes about 16.2 MiB with the walk, however large the pack
 * is. */
#ifndef ARCHIVE_PACK_H
#define ARCHIVE_PACK_H

#include "base/err.h"
#include "base/str.h"

enum { PACK_HEADER_LEN = 12, PACK_HASH_MAX = 32 };

enum pack_type {
    PACK_COMMIT = 1,
    PACK_TREE,
    PACK_BLOB,
    PACK_TAG,
    PACK_OFS_DELTA = 6,
    PACK_REF_DELTA,
    PACK_TYPES
};

struct pack_limits {
    uint64_t pack;   /* bytes of the whole pack */
    uint64_t object; /* bytes of one object, inflated */
    /* Bytes of all entries, inflated; above this the limit `inflated_times` applies. */
    uint64_t inflated;
    uint64_t inflated_times; /* ratio of inflated bytes to bytes of the pack so far */
};

/* The entry that the walk has reached. */
struct pack_seen {
    uint64_t at;      /* offset of the entry */
    uint64_t data_at; /* offset of its zlib stream */
    enum pack_type type;
    uint64_t size;                /* bytes of its data, inflated */
    uint64_t base_at;             /* PACK_OFS_DELTA: offset of the base */
    const unsigned char *base_id; /* PACK_REF_DELTA: id of the base; borrowed for the call */
};

/* Functions that are called for every entry. A return value other than 0 ends the check with that
 * code. */
struct pack_watch {
    /* Gets the next bytes of the entry's data, inflated. Not called for entries without data. */
    int (*data)(void *ctx, const struct pack_seen *e, struct str bytes, struct err *err);
    /* Called when the entry has ended well; `end` is the offset behind it. */
    int (*entry)(void *ctx, const struct pack_seen *e, uint64_t end, struct err *err);
    void *ctx;
};

struct pack_options {
    bool is_sha256;
    bool walk;
    struct pack_limits limits;
    const struct pack_watch *watch; /* needs the walk; borrowed; may be NULL */
};

/* Facts about a pack that has ended well. */
struct pack_result {
    uint32_t objects;
    uint64_t bytes; /* with header and trailer */
    unsigned char trailer[PACK_HASH_MAX];
    size_t trailer_len;
    uint64_t by_type[PACK_TYPES]; /* entries of each type; all 0 without the walk */
    uint64_t inflated;            /* bytes */
};

struct pack_check;

struct pack_check *pack_check_new(const struct pack_options *o);
void pack_check_free(struct pack_check *p); /* NULL is fine */

/* Checks the next bytes. ERR_PARSE: they do not belong to a pack. ERR_TOO_LARGE: the pack is past a
 * limit. After an error no further call may be made but pack_check_free(). */
int pack_check_add(struct pack_check *p, struct str bytes, struct err *err) MUST_CHECK;

/* Call this at the end of the pack. ERR_PARSE: the pack is cut off, bytes follow it, or the trailer
 * is not the hash of the pack. The check never returns ERR_CLOSED, which is the code of a
 * connection that broke while the pack was read. */
int pack_check_end(struct pack_check *p, struct pack_result *out, struct err *err) MUST_CHECK;

#endif
