/* Declarations that the files about bundles share. */
#ifndef ARCHIVE_BUNDLE_INT_H
#define ARCHIVE_BUNDLE_INT_H

#include "archive/bundle.h"

#include "base/vec.h"
#include "object/md5.h"

/* --- bundle_ranges.c --- */

/* A reader of a stored object, from some byte to its end. It asks for one range after another, each
 * larger than the last, on the condition that the object is still the same. So the reader may stop
 * early without having asked for everything, and may pause between ranges. */
struct bundle_ranges {
    struct reader reader;
    struct bucket *bucket;
    struct str key, etag; /* etag: as a condition, in quotes */
    uint64_t at, size;    /* the next byte to ask for; bytes of the object */
    uint64_t step;        /* bytes of the next range */
    struct arena arena;   /* of the range that is being read */
    struct reader *body;  /* of the last range; NULL: none was asked for */
    uint64_t left;        /* bytes of the last range that are not read yet */
};

/* Begins at the byte `at`. */
void bundle_ranges_init(struct bundle_ranges *r, const struct bundle_job *job,
                        const struct object_info *info, uint64_t at);
void bundle_ranges_release(struct bundle_ranges *r);
/* Opens a range of the object. ERR_UNSUPPORTED: its bytes are sealed, and the bucket does not
 * unseal them. */
int bundle_get(const struct bundle_job *job, struct arena *a, const struct object_conditions *c,
               const struct object_range *range, struct get_result *out,
               struct err *err) MUST_CHECK;

/* --- bundle_body.c --- */

/* One pack that flows by. Its entries are read here; its header and its trailer stay inside. */
struct bundle_pack {
    struct reader *from; /* borrowed */
    struct pack_check *check;
    bool is_old; /* what does not hold is ERR_CORRUPT */
    size_t hash_len;
    uint32_t objects;
    char *bytes; /* entries that are not read yet, then bytes that may be the trailer */
    size_t at, end;
    bool ended;
    struct pack_result result; /* set at the end */
};

/* Reads the header of the pack. */
int bundle_pack_open(struct bundle_pack *p, struct reader *from, const struct pack_options *o,
                     bool is_old, struct err *err) MUST_CHECK;
void bundle_pack_release(struct bundle_pack *p); /* {0} is fine */

/* The bytes of a new bundle, as one stream: header, pack header, old entries, new entries, trailer.
 * What does not hold is an error of a read, so the last bytes never come. */
struct bundle_body {
    struct reader reader;
    struct str head;               /* header and pack header, as far as not read */
    struct bundle_pack *old, *new; /* NULL: there is none */
    struct digests *sum; /* of the new pack; NULL: the trailer of the only pack is right */
    unsigned char trailer[PACK_HASH_MAX];
    size_t trailer_len, trailer_at; /* trailer_len 0: it is not known yet */
    bool is_sha256;
    uint64_t given; /* bytes so far */
};

/* `head` ends with the 12 bytes of the pack's header, and is borrowed. */
void bundle_body_init(struct bundle_body *b, struct str head, bool is_sha256,
                      struct bundle_pack *old, struct bundle_pack *new);
void bundle_body_release(struct bundle_body *b);
/* Reads `len` bytes that nobody needs, for their hashes; sets `md5` to their MD5. */
int bundle_body_pass(struct bundle_body *b, uint64_t len, unsigned char md5[MD5_LEN],
                     struct err *err) MUST_CHECK;

/* --- bundle_plan.c --- */

/* Which bytes of the old bundle a new one takes over by part copies. Before the first stretch
 * `lead` bytes of old entries are sent behind the header; behind the last stretch everything is
 * sent. */
struct bundle_stretch {
    uint64_t first, len; /* in the old object, in bytes */
};
struct bundle_plan {
    uint64_t lead;
    VEC(struct bundle_stretch) copies; /* none: nothing is worth copying */
};

/* `parts` are the sizes of the old object's parts, or none. The entries to take over are the bytes
 * from `first` to `end`. Stretches lie one behind the other, each within one old part where that
 * is possible, because only then a storage in a folder can share the part's file. */
void bundle_plan_make(struct bundle_plan *out, const struct bundle_sizes *z, uint64_t first,
                      uint64_t end, const struct upload_part *parts, size_t count);
void bundle_plan_release(struct bundle_plan *p);

/* --- bundle_meta.c --- */

/* Fills what is known before the pack flows. ERR_INVALID: the source id is not one. */
int bundle_meta_begin(struct bundle_meta *out, const struct bundle_job *job,
                      const struct git_refs *refs, struct err *err) MUST_CHECK;
void bundle_sum_text(char out[GIT_DIGEST_LEN + 1], struct str bytes); /* SHA-256 in hex */

/* --- bundle_store.c --- */

/* One new bundle on its way into the storage. */
struct bundle_write {
    const struct bundle_job *job;
    const struct bundle_sizes *sizes;
    struct bundle_body body;
    struct bundle_meta meta;
    struct object_conditions conditions;
    struct bundle_result *out;
};

/* Stores the whole body. */
int bundle_store(struct bundle_write *w, struct err *err) MUST_CHECK;
/* Stores the body by taking stretches from the old object. *cannot: the storage copies no parts of
 * this object; nothing of the new pack was read, and the caller stores the body anew. */
int bundle_store_by_copies(struct bundle_write *w, const struct object_info *old,
                           const struct bundle_plan *plan, bool *cannot,
                           struct err *err) MUST_CHECK;

#endif
