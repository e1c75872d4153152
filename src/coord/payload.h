/* Payloads of replication's tasks: JSON with the field names of Chorus, a replication proxy for S3.
 * All of them are written and read here. No I/O. Any thread may call these functions.
 *
 *     {"FromStorage":"main","ToStorage":"backup","ToBucket":null,"User":"u1",
 *      "Object":{"Bucket":"photos","Name":"a.jpg","Version":""}} */
#ifndef COORD_PAYLOAD_H
#define COORD_PAYLOAD_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "coord/replication.h"

/* Says which fields a payload has beside those that name the replication. */
enum task_payload_kind {
    PAYLOAD_BUCKET, /* field: Bucket */
    PAYLOAD_OBJECT, /* field: Object with Bucket, Name, Version */
    PAYLOAD_COPY,   /* fields: Bucket; Obj with Name, VersionID, Size */
    PAYLOAD_COPIES, /* fields: Bucket; Objs, a list of Name, Size, Absent */
    PAYLOAD_LIST,   /* fields: Bucket, Prefix */
    PAYLOAD_EVENTS, /* fields: Bucket; Objs, a list of Name; read like PAYLOAD_COPIES */
    PAYLOAD_KINDS
};

enum { PAYLOAD_OBJECTS_MAX = 64 };

/* One of the objects of a task that handles several objects. */
struct task_payload_object {
    struct str name;
    uint64_t size;
    bool absent; /* hint: a listing of the destination did not have the object */
};

struct task_payload {
    struct replication_id id; /* id.bucket is the source's bucket, and is never empty */
    struct str created_at;    /* time in RFC 3339; empty: not written; ignored when read */
    struct str object, version;
    struct str prefix;
    uint64_t size;
    /* True: `object` of a PAYLOAD_COPY is the percent-encoded form of a key that is not UTF-8,
     * which JSON cannot hold. S3 has no such keys, so reading such a payload fails with
     * ERR_INVALID. */
    bool encoded;
    /* For PAYLOAD_COPIES and PAYLOAD_EVENTS: 1 to PAYLOAD_OBJECTS_MAX objects. */
    const struct task_payload_object *objects;
    size_t object_count;
};

/* Reads a payload of this kind. Strings are copied into the arena. ERR_INVALID: the text is no
 * payload of this kind; the error's text says why. */
int task_payload_read(struct task_payload *out, struct arena *a, struct str text,
                      enum task_payload_kind kind, struct err *err) MUST_CHECK;
/* Appends the payload as JSON to `out`. */
void task_payload_write(struct buf *out, const struct task_payload *p, enum task_payload_kind kind);

/* Gives the id of the replication that a payload of any kind names. The strings are borrowed from
 * `payload`. False: the payload names no replication. */
bool task_payload_id(struct replication_id *out, const json_t *payload);

#endif
