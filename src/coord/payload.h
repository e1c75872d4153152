/* Payloads of replication's tasks: JSON with Chorus's field names. Every one is written and read
 * here. No I/O; any thread.
 *
 *     {"FromStorage":"main","ToStorage":"backup","ToBucket":null,"User":"u1",
 *      "Object":{"Bucket":"photos","Name":"a.jpg","Version":""}}
 */
#ifndef COORD_PAYLOAD_H
#define COORD_PAYLOAD_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "coord/replication.h"

/* What a type of task is about, and so which fields its payload has beside the replication's. */
enum task_payload_kind {
    PAYLOAD_BUCKET, /* Bucket */
    PAYLOAD_OBJECT, /* Object: Bucket, Name, Version */
    PAYLOAD_COPY,   /* Bucket, Obj: Name, VersionID, Size */
    PAYLOAD_COPIES, /* Bucket, Objs: a list of Name, Size, Absent */
    PAYLOAD_LIST,   /* Bucket, Prefix */
    PAYLOAD_EVENTS, /* Bucket, Objs: a list of Name; read as PAYLOAD_COPIES */
    PAYLOAD_KINDS
};

enum { PAYLOAD_OBJECTS_MAX = 64 };

/* One of several objects of a task. */
struct task_payload_object {
    struct str name;
    uint64_t size;
    bool absent; /* a listing of the destination did not have the object: a hint */
};

struct task_payload {
    struct replication_id id; /* with the source's bucket */
    struct str created_at;    /* RFC 3339; empty: not written. Not read */
    struct str object, version;
    struct str prefix;
    uint64_t size;
    /* `object` of a PAYLOAD_COPY is the percent-encoded form of a key that is not UTF-8, which JSON
     * cannot hold. S3 has no such keys: such a payload is written, and reading it is ERR_INVALID.
     */
    bool encoded;
    /* Of PAYLOAD_COPIES and PAYLOAD_EVENTS: 1 to PAYLOAD_OBJECTS_MAX. */
    const struct task_payload_object *objects;
    size_t object_count;
};

/* Strings are copied into the arena. ERR_INVALID: the text is no payload of this kind; the error
 * says why. */
int task_payload_read(struct task_payload *out, struct arena *a, struct str text,
                      enum task_payload_kind kind, struct err *err) MUST_CHECK;
/* Appends to `out`. */
void task_payload_write(struct buf *out, const struct task_payload *p, enum task_payload_kind kind);

/* The replication that a payload of any kind names; strings are borrowed from `payload`. False: it
 * names none. */
bool task_payload_id(struct replication_id *out, const json_t *payload);

#endif
