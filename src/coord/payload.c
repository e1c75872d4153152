/* Reads and writes the payloads of replication's tasks. This is the only file that knows their
 * fields. */
#include "coord/payload.h"

#include "object/bucket.h"

enum { NAME_MAX_BYTES = 255, VERSION_MAX_BYTES = 1024 };

/* A field of the payload: a string of `min` to `max` bytes. */
struct field {
    const char *name;
    size_t min, max;
    struct str *out;
};

static int payload_read_field(struct arena *a, const json_t *object, const struct field *f,
                              struct err *err)
{
    const json_t *value = json_object_get(object, f->name);

    if (value && !json_is_string(value) && !json_is_null(value))
        return err_set(err, ERR_INVALID, "the payload's %s is no text", f->name);
    struct str text = json_get_str(object, f->name, STR_EMPTY);
    if (text.len < f->min || text.len > f->max || str_chr(text, '\0') >= 0)
        return err_set(err, ERR_INVALID, "the payload's %s has %zu bytes, not %zu to %zu", f->name,
                       text.len, f->min, f->max);
    *f->out = arena_str(a, text);
    return text.len && !f->out->len ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int payload_read_fields(struct arena *a, const json_t *object, const struct field *fields,
                               size_t count, struct err *err)
{
    int code = json_is_object(object) ? 0 : err_set(err, ERR_INVALID, "the payload lacks a part");

    for (size_t i = 0; i < count && code == 0; i++)
        code = payload_read_field(a, object, &fields[i], err);
    return code;
}

static uint64_t payload_read_size(const json_t *object)
{
    int64_t size = json_get_i64(object, "Size", 0);

    return size > 0 ? (uint64_t)size : 0;
}

static int payload_read_objects(struct task_payload *out, struct arena *a, const json_t *list,
                                struct err *err)
{
    size_t count = json_array_size(list);
    struct task_payload_object *objects;
    int code = 0;

    if (count == 0 || count > PAYLOAD_OBJECTS_MAX)
        return err_set(err, ERR_INVALID, "the payload has %zu objects, not 1 to %d", count,
                       PAYLOAD_OBJECTS_MAX);
    objects = arena_array(a, count, sizeof(*objects));
    if (!objects)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count && code == 0; i++) {
        const json_t *object = json_array_get(list, i);
        struct field name = {"Name", 1, OBJECT_KEY_MAX, &objects[i].name};
        code = payload_read_fields(a, object, &name, 1, err);
        objects[i].size = payload_read_size(object);
        objects[i].absent = json_get_bool(object, "Absent", false);
    }
    out->objects = objects;
    out->object_count = count;
    return code;
}

static int payload_read_thing(struct task_payload *out, struct arena *a, const json_t *root,
                              enum task_payload_kind kind, struct err *err)
{
    const struct field bucket = {"Bucket", 1, NAME_MAX_BYTES, &out->id.bucket},
                       prefix = {"Prefix", 0, OBJECT_KEY_MAX, &out->prefix},
                       object[] = {bucket,
                                   {"Name", 1, OBJECT_KEY_MAX, &out->object},
                                   {"Version", 0, VERSION_MAX_BYTES, &out->version}},
                       copy[] = {{"Name", 1, OBJECT_KEY_MAX, &out->object},
                                 {"VersionID", 0, VERSION_MAX_BYTES, &out->version}};
    const json_t *obj = json_object_get(root, "Obj");
    int code;

    if (kind == PAYLOAD_OBJECT)
        return payload_read_fields(a, json_object_get(root, "Object"), object, ARRAY_SIZE(object),
                                   err);
    code = payload_read_fields(a, root, &bucket, 1, err);
    if (code == 0 && kind == PAYLOAD_LIST)
        code = payload_read_fields(a, root, &prefix, 1, err);
    if (code == 0 && kind == PAYLOAD_COPY && json_get_bool(obj, "Encoded", false))
        return err_set(err, ERR_INVALID, "the key is not UTF-8: S3 has no such keys");
    if (code == 0 && kind == PAYLOAD_COPY) {
        code = payload_read_fields(a, obj, copy, ARRAY_SIZE(copy), err);
        out->size = payload_read_size(obj);
    }
    if (code == 0 && (kind == PAYLOAD_COPIES || kind == PAYLOAD_EVENTS))
        code = payload_read_objects(out, a, json_object_get(root, "Objs"), err);
    return code;
}

int task_payload_read(struct task_payload *out, struct arena *a, struct str text,
                      enum task_payload_kind kind, struct err *err)
{
    const struct field common[] = {
        {"User", 1, NAME_MAX_BYTES, &out->id.user},
        {"FromStorage", 1, NAME_MAX_BYTES, &out->id.from},
        {"ToStorage", 1, NAME_MAX_BYTES, &out->id.to},
        {"ToBucket", 0, NAME_MAX_BYTES, &out->id.to_bucket},
    };
    json_t *root = NULL;
    struct err why = {0};

    *out = (struct task_payload){0};
    if (text.len > TASK_PAYLOAD_MAX)
        return err_set(err, ERR_INVALID, "the payload is too large");
    if (json_read(&root, text, &why) < 0)
        return err_set(err, ERR_INVALID, "the payload cannot be read: %s", why.text);
    int code = payload_read_fields(a, root, common, ARRAY_SIZE(common), err);
    if (code == 0)
        code = payload_read_thing(out, a, root, kind, err);
    json_decref(root);
    return code;
}

static void payload_write_object(struct json_out *w, const struct task_payload *p)
{
    json_out_key(w, "Object");
    json_out_open(w, '{');
    json_out_member_str(w, "Bucket", p->id.bucket);
    json_out_member_str(w, "Name", p->object);
    json_out_member_str(w, "Version", p->version);
    json_out_close(w, '}');
}

static void payload_write_copy(struct json_out *w, const struct task_payload *p)
{
    json_out_key(w, "Obj");
    json_out_open(w, '{');
    json_out_member_str(w, "Name", p->object);
    json_out_member_str(w, "VersionID", p->version);
    json_out_member_u64(w, "Size", p->size);
    if (p->encoded)
        json_out_member_bool(w, "Encoded", true);
    json_out_close(w, '}');
}

/* Writes the list of objects. `whole` true: it also writes each object's size and whether the
 * object is absent, which copies need. */
static void payload_write_objects(struct json_out *w, const struct task_payload *p, bool whole)
{
    json_out_key(w, "Objs");
    json_out_open(w, '[');
    for (size_t i = 0; i < p->object_count; i++) {
        json_out_open(w, '{');
        json_out_member_str(w, "Name", p->objects[i].name);
        if (whole)
            json_out_member_u64(w, "Size", p->objects[i].size);
        if (whole && p->objects[i].absent)
            json_out_member_bool(w, "Absent", true);
        json_out_close(w, '}');
    }
    json_out_close(w, ']');
}

void task_payload_write(struct buf *out, const struct task_payload *p, enum task_payload_kind kind)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "FromStorage", p->id.from);
    json_out_member_str(&w, "ToStorage", p->id.to);
    json_out_key(&w, "ToBucket");
    if (p->id.to_bucket.len)
        json_out_str(&w, p->id.to_bucket);
    else
        json_out_null(&w);
    if (p->created_at.len)
        json_out_member_str(&w, "CreatedAt", p->created_at);
    json_out_member_str(&w, "User", p->id.user);
    if (kind == PAYLOAD_OBJECT)
        payload_write_object(&w, p);
    else
        json_out_member_str(&w, "Bucket", p->id.bucket);
    if (kind == PAYLOAD_COPY)
        payload_write_copy(&w, p);
    if (kind == PAYLOAD_COPIES || kind == PAYLOAD_EVENTS)
        payload_write_objects(&w, p, kind == PAYLOAD_COPIES);
    if (kind == PAYLOAD_LIST)
        json_out_member_str(&w, "Prefix", p->prefix);
    json_out_close(&w, '}');
}

bool task_payload_id(struct replication_id *out, const json_t *payload)
{
    const json_t *object = json_object_get(payload, "Object");

    *out = (struct replication_id){
        .user = json_get_str(payload, "User", STR_EMPTY),
        .bucket = json_get_str(object ? object : payload, "Bucket", STR_EMPTY),
        .from = json_get_str(payload, "FromStorage", STR_EMPTY),
        .to = json_get_str(payload, "ToStorage", STR_EMPTY),
        .to_bucket = json_get_str(payload, "ToBucket", STR_EMPTY),
    };
    return out->user.len && out->bucket.len && out->from.len && out->to.len;
}
