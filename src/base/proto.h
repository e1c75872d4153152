/* Writes and reads messages in protobuf's encoding (proto3). A table of fields describes a message,
 * and proto_write() and proto_read() use the table. Any thread may call these functions.
 *
 *     struct tag { struct str id, commit_id; };
 *     static const struct proto_field tag_fields[] = {
 *         PROTO_FIELD(1, PROTO_STR, struct tag, id),
 *         PROTO_FIELD(2, PROTO_STR, struct tag, commit_id),
 *         {0},
 *     };
 *     proto_write(&buf, tag_fields, &tag);
 *
 * Fields with their default value (0, empty) are not written. The reader skips fields that the
 * table does not have. When a field occurs twice, its last value counts. */
#ifndef BASE_PROTO_H
#define BASE_PROTO_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct str_pair {
    struct str key, value;
};

/* Pairs of strings, sorted by their keys. Each key occurs once. */
struct str_pairs {
    struct str_pair *pairs;
    size_t count;
};

enum proto_type {
    PROTO_STR,   /* struct str, for string and bytes */
    PROTO_BOOL,  /* bool */
    PROTO_U64,   /* uint64_t, for uint64 and for int64 that is never negative */
    PROTO_I64,   /* int64_t */
    PROTO_U32,   /* uint32_t, for uint32 and enums */
    PROTO_I32,   /* int32_t */
    PROTO_TIME,  /* int64_t in ms since 1970, for google.protobuf.Timestamp; 0 is not written */
    PROTO_STRS,  /* struct str * and size_t, for repeated string */
    PROTO_U64S,  /* uint64_t * and size_t, for repeated uint64; written packed */
    PROTO_PAIRS, /* struct str_pairs, for map<string, string>; sorted when it is read */
    /* A message inside the message. Its members are members of the same struct. It is not written
     * when all of them have their default value. */
    PROTO_INNER,
};

struct proto_field {
    unsigned number; /* the field's number in protobuf; 0 ends the table */
    enum proto_type type;
    size_t offset;       /* offset of the member in the struct */
    size_t count_offset; /* offset of the member with the number of items, for STRS and U64S */
    size_t max;          /* limit of the items of STRS, U64S and PAIRS; 0: PROTO_ITEMS_MAX */
    const struct proto_field *inner;
};
enum { PROTO_ITEMS_MAX = 1024 };

#define PROTO_FIELD(number, type, owner, member)                                                   \
    {                                                                                              \
        (number), (type), offsetof(owner, member)                                                  \
    }
#define PROTO_ITEMS(number, type, owner, member, counter, limit)                                   \
    {                                                                                              \
        (number), (type), offsetof(owner, member), offsetof(owner, counter), (limit)               \
    }

/* Appends the message whose members are in `record`. A list with more items than its field allows
 * fails the buf (buf_error() is ERR_TOO_LARGE), because proto_read() would refuse the message. */
void proto_write(struct buf *out, const struct proto_field *fields, const void *record);
/* Reads a message into the struct `record`, whose members must be zero. Strings point into `in`;
 * arrays are in the arena, which may be NULL if the table has no arrays. ERR_PARSE: the bytes are
 * malformed, or have more items than a field allows. ERR_NO_MEMORY: the arena is full. */
int proto_read(void *record, const struct proto_field *fields, struct arena *a, struct str in,
               struct err *err) MUST_CHECK;

/* --- single fields, for messages that have no table --- */

enum proto_wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

void proto_put_number(struct buf *out, unsigned field, int64_t v);
void proto_put_bytes(struct buf *out, unsigned field, struct str s);
void proto_put_time(struct buf *out, unsigned field, int64_t ms);

struct proto_value {
    unsigned number;
    enum proto_wire wire;
    uint64_t value;   /* the value of a WIRE_VARINT */
    struct str bytes; /* the bytes of any other wire type */
};
/* Removes the next field from the front of `in`. Returns false when the bytes are malformed. */
bool proto_take(struct str *in, struct proto_value *out);
/* Reads a google.protobuf.Timestamp as ms since 1970. Returns false when it is malformed. */
bool proto_read_time(struct str in, int64_t *ms);

#endif
