/* Packs for tests. */
#ifndef TESTS_UNIT_ARCHIVE_PACKS_H
#define TESTS_UNIT_ARCHIVE_PACKS_H

#include "archive/pack.h"
#include "base/buf.h"

/* Appends the header of a pack. */
void pack_begin(struct buf *pack, uint32_t count);
/* Appends an entry; returns its offset from `begin`, where the pack begins in the buf. `base` is
 * the offset of the base of a PACK_OFS_DELTA; the id of the base of a PACK_REF_DELTA is zeros. */
uint64_t pack_entry(struct buf *pack, size_t begin, enum pack_type type, struct str data,
                    uint64_t base, bool is_sha256);
/* Appends the hash of the pack. */
void pack_finish(struct buf *pack, size_t begin, bool is_sha256);
/* A pack of `count` entries of all types, with data of many sizes. */
void pack_make(struct buf *pack, uint32_t count, bool is_sha256, unsigned seed);

extern const struct pack_limits pack_test_limits;

/* Checks a whole pack that comes in pieces of `step` bytes. */
int pack_check_all(struct str pack, size_t step, const struct pack_options *o,
                   struct pack_result *out, struct err *err);

#endif
