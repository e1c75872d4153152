/* The objects of one pack: finds them by their ids, and reads them.
 *
 * packed_open() writes a pack into a scratch file while pack.h checks it, and makes a table of its
 * entries with the id of every object. It takes no id from the pack: each id is computed as the
 * hash of the object's data. An object that is stored as a delta is built from its base once, so
 * that its id can be computed.
 *
 * The pack may be hostile, so everything has a limit: the bytes of the file, the entries, the
 * length of a chain of deltas, the size of an object that is a delta, and the bytes that may be
 * built from deltas in all. Memory is 44 bytes for each entry, and a cache of at most PACKED_CACHE
 * bytes. Objects of more than 1 MiB lie in scratch files (os/scratch.h) when they are read, of
 * which a few MiB are in memory at a time. A struct packed belongs to one thread. */
#ifndef ARCHIVE_OBJECT_H
#define ARCHIVE_OBJECT_H

#include "archive/pack.h"
#include "archive/refs.h"
#include "os/stream.h"

#include <stdatomic.h>

enum {
    PACKED_CHAIN_MAX = 4096, /* most deltas between an object and a base that is not a delta */
    PACKED_CACHE_MIN = 1024 * 1024,        /* bytes of the cache that are always there */
    PACKED_CACHE = 8 * 1024 * 1024,        /* most bytes of the cache */
    PACKED_ENTRIES_MAX = 1000 * 1000,      /* most entries: files and folders that differ */
    PACKED_REF_DELTAS_MAX = 250 * 1000,    /* most deltas that name their base by id */
    PACKED_DELTA_MAX = 1024 * 1024 * 1024, /* most bytes of an object that is stored as a delta */
};

struct packed;

struct packed_options {
    bool is_sha256;
    const char *folder;          /* an existing folder for scratch files; borrowed */
    struct pack_limits limits;   /* limits.pack is also the limit of the scratch file */
    uint64_t work_max;           /* most bytes that may be inflated and built from deltas in all */
    uint32_t entries_max;        /* 0: PACKED_ENTRIES_MAX */
    const _Atomic(bool) *cancel; /* true: calls end with ERR_CANCELED; may be NULL */
    struct large_hold *hold;     /* pays for table and cache; borrowed; may be NULL */
};

/* Reads the pack to its end. ERR_PARSE: the pack is damaged, or it lacks the base of a delta.
 * ERR_TOO_LARGE: the pack is past a limit. Errors of the reader are returned unchanged. */
int packed_open(struct packed **out, struct reader *pack, const struct packed_options *o,
                struct err *err) MUST_CHECK;
void packed_close(struct packed *p); /* NULL is fine */

/* An object in the table of the pack. */
struct packed_object {
    uint32_t index;
    enum pack_type type; /* commit, tree, blob or tag */
    uint64_t size;       /* bytes */
    uint32_t crc;        /* CRC-32 of the data */
    /* The object is not a delta: the pack has its data as one zlib stream. */
    bool is_whole;
    uint64_t zlib_at, zlib_len; /* if is_whole: offset and length of that stream in packed_fd() */
};

/* Finds an object. ERR_NOT_FOUND: the pack does not have it. */
int packed_find(struct packed_object *out, const struct packed *p,
                const unsigned char id[GIT_ID_MAX], struct err *err) MUST_CHECK;
/* Reads an object. *data is borrowed until the next call. ERR_TOO_LARGE: the object has more than
 * `max` bytes, or reading it passes a limit of the pack (PACKED_DELTA_MAX, struct packed_options).
 * */
int packed_read(struct packed *p, const struct packed_object *object, uint64_t max,
                struct str *data, struct err *err) MUST_CHECK;

/* Lets the last data that were read leave the memory, as far as they lie in a scratch file. They
 * can still be used. A caller that goes through large data calls this every SCRATCH_STEP bytes. */
void packed_drop(struct packed *p);

int packed_fd(const struct packed *p); /* the scratch file with the pack; borrowed */

struct packed_counts {
    uint32_t entries, deltas;
    uint32_t doubles; /* how many entries repeat an object that the pack has already */
};
void packed_count(const struct packed *p, struct packed_counts *out);

#endif
