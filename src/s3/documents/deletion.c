/* Reads and writes the document of DeleteObjects. */
#include "s3/documents/deletion.h"

/* The elements that an Object may have; only Key is required. */
static const char *const parts[] = {"Key", "VersionId", "ETag", "LastModifiedTime", "Size"};

/* Checks an Object: its members must not contain elements. */
static int check_object(const struct xml_node *object, struct err *err)
{
    int code = document_shape(object, "Key! VersionId? ETag? LastModifiedTime? Size?", err);

    for (const struct xml_node *n = object->children; n && code == 0; n = n->next)
        code = document_shape(n, "", err);
    if (code == 0 && !xml_child_text(object, "Key", STR_EMPTY).len)
        code = err_set(err, S3_MALFORMED_XML, "A Key is empty");
    return code;
}

static int deletion_read_objects(struct deletion *out, struct arena *a, struct err *err)
{
    size_t count = document_count(out->root, "Object");

    if (count > DELETION_MAX_KEYS)
        return err_set(err, S3_MALFORMED_XML, "There are more than %d keys", DELETION_MAX_KEYS);
    out->keys = arena_array(a, count, sizeof(*out->keys));
    if (!out->keys)
        return err_code(err, ERR_NO_MEMORY);
    for (struct xml_node *o = xml_child(out->root, "Object"); o; o = xml_next(o, "Object")) {
        int code = check_object(o, err);
        if (code < 0)
            return code;
        out->keys[out->count++] = xml_child_text(o, "Key", STR_EMPTY);
    }
    return 0;
}

int deletion_read(struct deletion *out, struct arena *a, struct str text, struct err *err)
{
    int code;

    *out = (struct deletion){0};
    code = document_read(&out->root, a, text, "Delete", err);
    if (code == 0)
        code = document_shape(out->root, "Object+ Quiet?", err);
    if (code == 0)
        code = document_bool(out->root, "Quiet", false, &out->quiet, err);
    return code < 0 ? code : deletion_read_objects(out, a, err);
}

static void deletion_write_object(struct buf *out, const struct xml_node *object)
{
    xml_open(out, "Object");
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        struct str text = xml_child_text(object, parts[i], STR_EMPTY);
        if (text.len)
            xml_element(out, parts[i], text);
    }
    xml_close(out, "Object");
}

void deletion_write(struct buf *out, const struct deletion *d)
{
    document_open(out, "Delete");
    for (struct xml_node *o = xml_child(d->root, "Object"); o; o = xml_next(o, "Object"))
        deletion_write_object(out, o);
    if (d->quiet)
        xml_element(out, "Quiet", STR("true"));
    xml_close(out, "Delete");
}
