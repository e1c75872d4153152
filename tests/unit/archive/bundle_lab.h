/* A bundle in a local storage, and what it should be. */
#ifndef TESTS_UNIT_ARCHIVE_BUNDLE_LAB_H
#define TESTS_UNIT_ARCHIVE_BUNDLE_LAB_H

#include "archive/bundle.h"
#include "unit/archive/watched_bucket.h"
#include "unit/object/local_lab.h"

struct bundle_lab {
    struct local_lab store;
    struct bucket *box;
    struct watched_bucket watched;
    struct arena arena;
    struct bundle_job job;
    bool is_sha256;
    uint32_t objects;
    struct buf entries; /* of all packs that were stored */
    unsigned seed;
};

/* Parts of 1,000 bytes. `any_length`: see watched_bucket.h. */
void bundle_lab_open(struct bundle_lab *l, bool is_sha256, bool any_length);
void bundle_lab_close(struct bundle_lab *l);

/* Appends a pack of `count` entries to `pack`. Deltas are by offset, or, with `ref_deltas`, also by
 * id. The entries are remembered as those of the next bundle_lab_expect(). */
void bundle_lab_pack(struct bundle_lab *l, struct buf *pack, uint32_t count, bool ref_deltas);

/* Refs with `count` branches whose ids begin with `first`, `first` + 1, …; HEAD is the first. */
void bundle_lab_refs(struct git_refs *r, bool is_sha256, unsigned char first, size_t count);

/* Stores a first pack of `count` entries, or appends one. */
int bundle_lab_put(struct bundle_lab *l, const struct git_refs *refs, uint32_t count,
                   struct bundle_result *out, struct err *err);
int bundle_lab_append(struct bundle_lab *l, const struct git_refs *refs, uint32_t count,
                      struct bundle_result *out, struct err *err);

/* The stored bundle has a header that reads, all entries in their order, the right count and
 * trailer, and metadata that fit; no upload is left, and the storage is whole. */
void bundle_lab_expect(struct bundle_lab *l);
/* Reads the whole object. */
void bundle_lab_read(struct bundle_lab *l, struct buf *out);
/* There is no unfinished upload. */
void bundle_lab_expect_no_upload(struct bundle_lab *l);

#endif
