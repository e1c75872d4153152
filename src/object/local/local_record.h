/* The values of a local storage's rows: encoding and strict decoding (docs/local-storage.md, Rows).
 *
 * What is decoded points into the bytes it was decoded from. Decoders return ERR_CORRUPT for
 * anything that the encoders cannot have written. */
#ifndef OBJECT_LOCAL_LOCAL_RECORD_H
#define OBJECT_LOCAL_LOCAL_RECORD_H

#include "object/bucket.h"
#include "object/local/local.h"

enum { RECORD_PARTS_MAX = 16 }; /* more go into a row of their own */

enum where {
    WHERE_NONE,   /* no bytes: an empty body, a marker */
    WHERE_INLINE, /* a row of family "bytes" */
    WHERE_BLOB,
    WHERE_PARTS,  /* the list is in the record */
    WHERE_PARTED, /* the list is a row of family "bytes" */
    WHERE_KINDS
};

struct piece {
    uint32_t number; /* of the part; 0 outside lists */
    uint64_t blob, offset, size;
    struct object_checksum checksum; /* that the part came with */
};

struct object_record {
    bool is_null, is_marker;
    uint64_t sequence, size;
    int64_t modified_ms;
    struct str etag;
    enum where where;
    uint64_t id;       /* INLINE, BLOB, PARTED */
    uint64_t offset;   /* BLOB: where the body begins in the file */
    uint64_t checksum; /* INLINE: of the body; PARTED: of the list */
    uint32_t part_count;
    struct str parts;        /* PARTS: the list of parts, encoded; piece_next() reads it */
    struct object_meta meta; /* headers is NULL after decoding; they are in headers_raw */
    struct str headers_raw;
};

/* Bytes that an object of one piece takes where it is stored. */
uint64_t record_stored(const struct object_record *r);

void record_put(struct buf *out, const struct object_record *r);
int record_get(struct str in, struct object_record *out, struct err *err) MUST_CHECK;
/* The info's fields, copied into the arena. With `full` the whole meta, else what listings show. */
int record_info(const struct object_record *r, struct arena *a, bool full, struct object_info *out,
                struct err *err) MUST_CHECK;

void piece_put(struct buf *out, const struct piece *p);
/* Takes the first off *list. ERR_END when there is none. */
int piece_next(struct str *list, struct piece *out, struct err *err) MUST_CHECK;

struct bucket_record {
    uint64_t id;
    struct bucket_info info; /* without the name */
};

void bucket_record_put(struct buf *out, const struct bucket_record *r);
int bucket_record_get(struct str in, struct bucket_record *out, struct err *err) MUST_CHECK;

void usage_record_put(struct buf *out, const struct bucket_usage *u);
int usage_record_get(struct str in, struct bucket_usage *out, struct err *err) MUST_CHECK;

/* The things that are different after what is kept beside an object's bytes, or a document of a
 * bucket, was set. */
unsigned set_things(enum meta_set set);
unsigned document_things(struct str name);
void tap_record_put(struct buf *out, const struct tapped *t);
int tap_record_get(struct str in, struct tapped *out, struct err *err) MUST_CHECK;

struct upload_record {
    int64_t started_ms;
    struct object_meta meta; /* as in object_record */
    struct str headers_raw;
};

void upload_record_put(struct buf *out, const struct upload_record *r);
int upload_record_get(struct str in, struct upload_record *out, struct err *err) MUST_CHECK;
int upload_record_info(const struct upload_record *r, struct arena *a, struct upload_info *out,
                       struct err *err) MUST_CHECK;

struct part_record {
    uint64_t size, blob, offset;
    int64_t modified_ms;
    struct str etag;
    struct object_checksum checksum;
};

void part_record_put(struct buf *out, const struct part_record *r);
int part_record_get(struct str in, struct part_record *out, struct err *err) MUST_CHECK;

struct blob_record {
    uint64_t refs, size, checksum;
};

void blob_record_put(struct buf *out, const struct blob_record *r);
int blob_record_get(struct str in, struct blob_record *out, struct err *err) MUST_CHECK;

/* How an upload was finished. */
struct finish_record {
    int64_t until_ms;  /* remembered until then */
    uint64_t request;  /* hash of bucket, key and the parts that were named */
    uint64_t sequence; /* 0: the null version */
    bool versioned;    /* else the answer names no version */
    uint64_t size;
    int64_t modified_ms;
    struct str etag;
};

void finish_record_put(struct buf *out, const struct finish_record *r);
int finish_record_get(struct str in, struct finish_record *out, struct err *err) MUST_CHECK;

#endif
