/* Declarations that object.c, object_cache.c and object_solve.c share. To *solve* a delta means to
 * build its object, and so to learn the object's id. */
#ifndef ARCHIVE_OBJECT_INT_H
#define ARCHIVE_OBJECT_INT_H

#include "archive/object.h"
#include "base/vec.h"
#include "os/scratch.h"

enum {
    /* Bytes of an id in the table: its beginning. Finding two objects with the same beginning takes
     * no less work than finding two objects with the same SHA-1. */
    ENTRY_ID_LEN = 16,
    ENTRY_NO_BASE = UINT32_MAX,
    CACHE_BUCKETS = 1 << 12,
    INFLATE_IN = 64 * 1024, /* bytes that are read from the scratch file at once */
};

#define ENTRY_SIZE_MAX ((UINT64_C(1) << 48) - 1)

/* One entry of the pack. Entries are in the order of the pack, so the next one begins where this
 * one ends. */
struct entry {
    uint64_t at : 48;
    uint64_t head : 6;   /* bytes before the zlib stream */
    uint64_t stored : 3; /* how the entry is stored in the pack: an enum pack_type */
    uint64_t type : 3;   /* type of the object; 0: not solved yet */
    uint64_t size : 48;  /* bytes of the entry's data; for a solved delta, bytes of the object */
    uint64_t depth : 13; /* at most PACKED_CHAIN_MAX */
    uint32_t crc;        /* CRC-32 of the object's data; set when the entry is solved */
    uint32_t base;       /* index of the base of a delta; ENTRY_NO_BASE: none, or not known yet */
    /* The id of the object. In a delta by id that is not solved yet, the id of its base. */
    unsigned char id[ENTRY_ID_LEN];
};

_Static_assert(sizeof(struct entry) == 40, "docs/archive.md names this size");

/* Data of an object in memory. */
struct cached {
    struct scratch_mem mem;
    uint32_t index;
    struct cached *newer, *older; /* neighbours in the order of the last use */
    struct cached *next;          /* the next item in the same bucket of the hash table */
};

struct packed {
    struct packed_options o;
    int fd;
    uint64_t end; /* offset at which the last entry ends */
    VEC(struct entry) entries;
    uint32_t *by_id; /* indexes of solved entries, sorted by id */
    size_t by_id_len;
    uint32_t deltas, ref_deltas, doubles;
    uint64_t work; /* bytes that were inflated and built from deltas so far */

    struct cached *buckets[CACHE_BUCKETS];
    struct cached *newest, *oldest;
    size_t cached_bytes, cache_max;
    size_t table_reached, data_reached; /* bytes that o.hold has paid for */
    uint32_t *chain;                    /* PACKED_CHAIN_MAX indexes, for packed_data() */
    struct inflate_state *inflate;
    unsigned char *in; /* INFLATE_IN bytes */
};

/* object_cache.c: returns the data of an entry's object, and builds them if necessary. The member
 * `base` must be set in the entry and in all entries of its chain. *data is borrowed until the next
 * call. */
int packed_data(struct packed *p, uint32_t index, struct str *data, struct err *err) MUST_CHECK;
void packed_cache_release(struct packed *p);

/* object_solve.c: finds the base of every delta, and computes type, size, id and checksum. */
int packed_solve(struct packed *p, struct err *err) MUST_CHECK;
/* The prefix that is hashed before an object's data, such as "blob 12" and a NUL. Returns its
 * length. */
size_t packed_head(char out[32], enum pack_type type, uint64_t size);

static inline int packed_canceled(const struct packed *p, struct err *err)
{
    return p->o.cancel && atomic_load(p->o.cancel) ? err_code(err, ERR_CANCELED) : 0;
}

/* The offset in the file at which the entry ends. */
static inline uint64_t entry_end(const struct packed *p, uint32_t index)
{
    return index + 1 < p->entries.len ? p->entries.items[index + 1].at : p->end;
}

#endif
