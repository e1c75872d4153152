/* Payloads of replication's tasks: JSON with Chorus's field names. Pure, any thread.
 *
 *     {"FromStorage":"main","ToStorage":"backup","ToBucket":null,"User":"u1",
 *      "Object":{"Bucket":"photos","Name":"a.jpg","Version":""}}
 */
#ifndef REPLICA_TASKS_PAYLOAD_H
#define REPLICA_TASKS_PAYLOAD_H

#include "base/arena.h"
#include "base/buf.h"
#include "coord/replication.h"

/* What a type of task is about, and so which fields it has. */
enum payload_kind {
    PAYLOAD_BUCKET, /* Bucket */
    PAYLOAD_OBJECT, /* Object: Bucket, Name, Version */
    PAYLOAD_COPY,   /* Bucket, Obj: Name, VersionID, Size */
    PAYLOAD_COPIES, /* Bucket, Objs: a list of Name, Size, Absent */
    PAYLOAD_LIST,   /* Bucket, Prefix */
};

enum { PAYLOAD_OBJECTS_MAX = 64 };

/* One of several small objects that are copied by one task. */
struct payload_object {
    struct str name;
    uint64_t size;
    bool absent; /* a listing of the destination did not have it: a hint */
};

struct payload {
    struct replication_id id; /* with the source's bucket */
    struct str object, version;
    struct str prefix;
    uint64_t size;
    /* Of a copy, when it is written: `object` is the percent-encoded form of a key that is not
     * UTF-8. S3 has no such keys and JSON cannot hold one; reading it is ERR_INVALID, which says
     * so. */
    bool encoded;
    const struct payload_object *objects; /* of PAYLOAD_COPIES: 1 to PAYLOAD_OBJECTS_MAX */
    size_t object_count;
};

/* Strings are in the arena. ERR_INVALID: not such a payload; the text says what is wrong. */
int payload_read(struct payload *out, struct arena *a, struct str text, enum payload_kind kind,
                 struct err *err) MUST_CHECK;
void payload_write(struct buf *out, const struct payload *p, enum payload_kind kind);

#endif
