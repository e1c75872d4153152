/* Checks a git pack while its bytes arrive (gitformat-pack), without keeping the pack in memory.
 *
 * A pack has a header with a count, that many entries, and a trailer, which is the hash of all
 * bytes before it. An entry has a type, the size of its inflated data, for deltas the offset or id
 * of the base, and a zlib stream. The pack does not say how long the zlib stream is. So only
 * inflating an entry tells where the next entry begins.
 *
 * pack_check reads the pack in one *walk* over all entries, which checks
 * - the header, and the type of every entry;
 * - that the data of every entry have the declared size and checksum;
 * - that the base of a delta by offset is an earlier entry;
 * - that the entries end where the trailer begins, and that the trailer is right.
 *
 * Without the walk (pack_options.walk) only the header and the trailer are checked. The ids of
 * objects, the bases of deltas by id, and connectivity are not checked here; an audit (audit.h)
 * checks them.
 *
 * A pack_check belongs to one thread. With the walk it takes about 0.2 MiB, and a filter of 64 KiB
 * to 8 MiB for the places where entries begin. The filter has 128 bits for each entry, or fewer if
 * the buffers of the process (large.h) have no room. */
#ifndef ARCHIVE_PACK_H
#define ARCHIVE_PACK_H

#include "archive/large.h"
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
    uint64_t pack;   /* most bytes of the whole pack */
    uint64_t object; /* most bytes of one object, inflated */
    /* Most bytes of all entries, inflated. For a large pack the limit `inflated_times` allows
     * more. */
    uint64_t inflated;
    uint64_t inflated_times; /* most inflated bytes for each byte of the pack */
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

/* Functions that are called for every entry. If one returns a value other than 0, the check ends
 * with that code. */
struct pack_watch {
    /* Called with the next bytes of the entry's data, inflated. Not called for entries without
     * data. */
    int (*data)(void *ctx, const struct pack_seen *e, struct str bytes, struct err *err);
    /* Called when the entry has passed its checks; `end` is the offset at which it ends. */
    int (*entry)(void *ctx, const struct pack_seen *e, uint64_t end, struct err *err);
    void *ctx;
};

struct pack_options {
    bool is_sha256;
    bool walk;
    struct pack_limits limits;
    const struct pack_watch *watch; /* needs the walk; borrowed; may be NULL */
    struct large_hold *hold;        /* pays for the filter; borrowed; may be NULL */
};

/* Facts about a pack that has passed the check. */
struct pack_result {
    uint32_t objects;
    uint64_t bytes; /* size of the pack, with header and trailer */
    unsigned char trailer[PACK_HASH_MAX];
    size_t trailer_len;
    uint64_t by_type[PACK_TYPES]; /* entries of each type; all 0 without the walk */
    uint64_t inflated;            /* bytes */
};

struct pack_check;

struct pack_check *pack_check_new(const struct pack_options *o);
void pack_check_free(struct pack_check *p); /* NULL is fine */

/* Checks the next bytes. ERR_PARSE: they do not belong to a pack. ERR_TOO_LARGE: the pack is past a
 * limit. After an error only pack_check_free() may be called. */
int pack_check_add(struct pack_check *p, struct str bytes, struct err *err) MUST_CHECK;

/* Ends the check; called after the last byte. ERR_PARSE: the pack is cut off, bytes follow it, or
 * the trailer is not the hash of the pack. The check never returns ERR_CLOSED, so that code always
 * means that the connection broke while the pack was read. */
int pack_check_end(struct pack_check *p, struct pack_result *out, struct err *err) MUST_CHECK;

#endif
