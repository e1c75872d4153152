/* Declarations that the files about bundles share. */
#ifndef ARCHIVE_BUNDLE_INT_H
#define ARCHIVE_BUNDLE_INT_H

#include "archive/bundle.h"

#include "base/vec.h"
#include "object/md5.h"

/* --- bundle_ranges.c --- */

/* Reads a stored object from a given byte to its end. It asks for one range after another, each
 * larger than the one before, on the condition that the object has not changed. So a caller that
 * stops early has not asked for the whole object, and a caller may pause between two ranges. */
struct bundle_ranges {
    struct reader reader;
    struct bucket *bucket;
    struct str key, etag; /* etag is quoted, for If-Match */
    uint64_t at, size;    /* the next byte to ask for; size of the object in bytes */
    uint64_t step;        /* size of the next range in bytes */
    struct arena arena;   /* memory for the range that is being read */
    struct reader *body;  /* body of the last range; NULL: no range was asked for yet */
    uint64_t left;        /* bytes of the last range that are not read yet */
};

/* The reader begins at the byte `at` of the object. */
void bundle_ranges_init(struct bundle_ranges *r, const struct bundle_job *job,
                        const struct object_info *info, uint64_t at);
void bundle_ranges_release(struct bundle_ranges *r);
/* Opens a range of the object. ERR_UNSUPPORTED: the object is encrypted, and the bucket does not
 * decrypt it. */
int bundle_get(const struct bundle_job *job, struct arena *a, const struct object_conditions *c,
               const struct object_range *range, struct get_result *out,
               struct err *err) MUST_CHECK;

/* --- bundle_body.c --- */

/* Reads the 12 bytes of a pack's header. ERR_END: the reader ended before them. Errors of the
 * reader, such as a broken connection, are returned as they are. */
int bundle_read_pack_head(unsigned char head[PACK_HEADER_LEN], struct reader *from,
                          struct err *err) MUST_CHECK;

/* One pack while it is read. bundle_pack_read() returns the bytes of its entries, and checks its
 * header and trailer. */
struct bundle_pack {
    struct reader *from; /* borrowed */
    struct pack_check *check;
    bool is_old; /* the pack is from the stored bundle, so damage is ERR_CORRUPT */
    size_t hash_len;
    uint32_t objects;
    /* First entries that the caller has not read yet, then bytes that may be the trailer. */
    char *bytes;
    size_t at, end;
    bool ended;
    struct pack_result result; /* set at the end */
};

/* Reads the header of the pack. */
int bundle_pack_open(struct bundle_pack *p, struct reader *from, const struct pack_options *o,
                     bool is_old, struct err *err) MUST_CHECK;
void bundle_pack_release(struct bundle_pack *p); /* {0} is fine */

/* The bytes of a new bundle, as one stream: header, pack header, old entries, new entries, trailer.
 * When a check fails, the read returns an error instead of the last bytes. */
struct bundle_body {
    struct reader reader;
    struct header_text *head; /* the header and the header of the pack; borrowed */
    bool head_ended;
    struct bundle_pack *old, *new; /* either may be NULL */
    /* Digest of the joined pack; NULL: there is one pack, and its own trailer is used. */
    struct digests *sum;
    unsigned char trailer[PACK_HASH_MAX];
    size_t trailer_len, trailer_at; /* trailer_len 0: it is not known yet */
    bool is_sha256;
    uint64_t given; /* bytes that were read so far */
};

/* The tail of `head` is the 12 bytes of the pack's header. The body reads the text from its
 * beginning. */
void bundle_body_init(struct bundle_body *b, struct header_text *head, bool is_sha256,
                      struct bundle_pack *old, struct bundle_pack *new);
void bundle_body_release(struct bundle_body *b);
/* Reads `len` bytes only to compute the hashes: the storage copies these bytes itself. Sets `md5`
 * to their MD5. */
int bundle_body_pass(struct bundle_body *b, uint64_t len, unsigned char md5[MD5_LEN],
                     struct err *err) MUST_CHECK;

/* --- bundle_plan.c --- */

/* Says which bytes of the old bundle the storage copies into the new one (part copies). Each copied
 * range is a stretch. Before the first stretch, weir sends `lead` bytes of old entries itself,
 * together with the header. After the last stretch, weir sends all remaining bytes. */
struct bundle_stretch {
    uint64_t first, len; /* in the old object, in bytes */
};
struct bundle_plan {
    uint64_t lead;
    VEC(struct bundle_stretch) copies; /* empty: part copies are not worthwhile */
};

/* `parts` are the sizes of the old object's parts; if count is 0, the object has no parts. The
 * bytes from `first` to `end` of the old object are the entries that the new bundle keeps. The
 * stretches follow each other without gaps. Each lies within one old part where that is possible,
 * because only then can a storage in a folder share the file of the part. */
void bundle_plan_make(struct bundle_plan *out, const struct bundle_sizes *z, uint64_t first,
                      uint64_t end, const struct upload_part *parts, size_t count);
void bundle_plan_release(struct bundle_plan *p);

/* --- bundle_meta.c --- */

/* Fills in the metadata that are known before the pack is read. ERR_INVALID: the source id has
 * other characters than letters, digits and -._ */
int bundle_meta_begin(struct bundle_meta *out, const struct bundle_job *job,
                      const struct git_refs *refs, struct err *err) MUST_CHECK;
/* Reads to the end: sets the SHA-256 of the bytes, in hex, and their number. */
int bundle_sum_reader(char out[GIT_DIGEST_LEN + 1], struct reader *from, uint64_t *len,
                      struct err *err) MUST_CHECK;

/* --- bundle_store.c --- */

/* A new bundle while it is written to the storage. */
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
/* Stores the body; the storage copies stretches of the old object. *cannot is set if the storage
 * does not copy parts of this object. Then nothing of the new pack has been read, and the caller
 * stores the body in another way. */
int bundle_store_by_copies(struct bundle_write *w, const struct object_info *old,
                           const struct bundle_plan *plan, bool *cannot,
                           struct err *err) MUST_CHECK;

#endif
