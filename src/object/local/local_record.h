/* The values of a local storage's rows: encoding and strict decoding (docs/local-storage.md, Rows).
 *
 * Decoded strings point into the bytes that they were decoded from. Decoders return ERR_CORRUPT for
 * anything that the encoders cannot have written. */
#ifndef OBJECT_LOCAL_LOCAL_RECORD_H
#define OBJECT_LOCAL_LOCAL_RECORD_H

#include "object/bucket.h"
#include "object/condition.h"
#include "object/local/local.h"

enum { RECORD_PARTS_MAX = 16 }; /* longer lists of parts go into a row of their own */

enum where {
    WHERE_NONE,   /* the body is empty, or the version is a marker */
    WHERE_INLINE, /* the bytes are a row of family "bytes" */
    WHERE_BLOB,
    WHERE_PARTS,  /* made of parts; the list of parts is in the record */
    WHERE_PARTED, /* made of parts; the list is a row of family "bytes" */
    WHERE_KINDS
};

struct piece {
    uint32_t number; /* the part's number; 0 outside lists of parts */
    uint64_t blob, offset, size;
    struct object_checksum checksum; /* the checksum that the part was uploaded with */
};

struct object_record {
    bool is_null, is_marker;
    uint64_t sequence, size;
    int64_t modified_ms;
    struct str etag;
    enum where where;
    uint64_t id;       /* id of the row or blob; for INLINE, BLOB and PARTED */
    uint64_t offset;   /* BLOB: where the body begins in the file */
    uint64_t checksum; /* INLINE: checksum of the body; PARTED: of the list of parts */
    uint32_t part_count;
    struct str parts;        /* PARTS: the list of parts, encoded; piece_next() reads it */
    struct object_meta meta; /* headers is NULL after decoding; they are in headers_raw */
    struct str headers_raw;
};

/* Returns the state by which conditions are judged. A record with sequence 0 means that there is no
 * object. */
struct condition_state record_state(const struct object_record *r);
/* Returns the stored size, in bytes, of an object that is not made of parts. */
uint64_t record_stored(const struct object_record *r);
/* Counts a version in the usage of its bucket. `is_current`: its row has TAG_OBJECT. `sign` is 1
 * for a row that is put, and -1 for a row that is deleted; sums are modulo 2^64. */
void record_count(struct bucket_usage *u, const struct object_record *r, bool is_current, int sign);

void record_put(struct buf *out, const struct object_record *r);
int record_get(struct str in, struct object_record *out, struct err *err) MUST_CHECK;
/* Fills `out`, with strings copied into the arena. `full`: fills the whole meta, else only the
 * fields that listings show. */
int record_info(const struct object_record *r, struct arena *a, bool full, struct object_info *out,
                struct err *err) MUST_CHECK;

void piece_put(struct buf *out, const struct piece *p);
/* Removes the first piece from *list. ERR_END: the list is empty. */
int piece_next(struct str *list, struct piece *out, struct err *err) MUST_CHECK;

/* The logical bucket of a shard: the bucket that clients see, whose objects are spread over
 * shards. */
struct logical {
    uint64_t id;     /* the number of the logical bucket; 0: the bucket is no shard */
    struct str name; /* empty: the bucket is no shard */
};

struct bucket_record {
    uint64_t id;
    struct bucket_info info; /* without the name */
    struct logical logical;  /* owner of the shard and of the logical bucket are the same */
};

void bucket_record_put(struct buf *out, const struct bucket_record *r);
int bucket_record_get(struct str in, struct bucket_record *out, struct err *err) MUST_CHECK;

void usage_record_put(struct buf *out, const struct bucket_usage *u);
int usage_record_get(struct str in, struct bucket_usage *out, struct err *err) MUST_CHECK;

/* These functions return the things (object/change.h) that are different after these fields of an
 * object's meta, or this document of a bucket, were set. */
unsigned set_things(enum meta_set set);
unsigned document_things(struct str name);
void tap_record_put(struct buf *out, const struct tapped *t);
int tap_record_get(struct str in, struct tapped *out, struct err *err) MUST_CHECK;

struct upload_record {
    int64_t started_ms;
    struct object_meta meta; /* its headers are in headers_raw */
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

/* How an upload was finished, so that the same request again gets the same answer. */
struct finish_record {
    int64_t until_ms;  /* time until which the record is kept */
    uint64_t request;  /* hash of bucket, key and the parts that were named */
    uint64_t sequence; /* 0: the null version */
    bool versioned;    /* false: the answer names no version */
    uint64_t size;
    int64_t modified_ms;
    struct str etag;
};

void finish_record_put(struct buf *out, const struct finish_record *r);
int finish_record_get(struct str in, struct finish_record *out, struct err *err) MUST_CHECK;

#endif
