/* DeleteObjects: up to a thousand keys, each with its own answer. */
#include "s3/bucket_name.h"
#include "s3/gateway_int.h"

struct batch {
    bool quiet, bypass;
    struct buf xml;
};

static void put_error(struct batch *b, struct str key, struct str version, int code,
                      const struct err *err)
{
    bool words = code <= S3_FIRST_CODE && err->text[0];

    xml_open(&b->xml, "Error");
    xml_element(&b->xml, "Key", key);
    if (version.len)
        xml_element(&b->xml, "VersionId", version);
    xml_element(&b->xml, "Code", str_z(s3_code_name(code)));
    xml_element(&b->xml, "Message", str_z(words ? err->text : s3_code_message(code)));
    xml_close(&b->xml, "Error");
}

static void put_deleted(struct batch *b, struct str key, struct str version,
                        const struct remove_result *r)
{
    xml_open(&b->xml, "Deleted");
    xml_element(&b->xml, "Key", key);
    if (version.len)
        xml_element(&b->xml, "VersionId", version);
    if (r->is_marker) {
        xml_bool(&b->xml, "DeleteMarker", true);
        xml_element(&b->xml, "DeleteMarkerVersionId", r->version);
    }
    xml_close(&b->xml, "Deleted");
}

/* Conditions of one key: its ETag, time and size. */
static int remove_one(struct call *c, struct batch *b, const struct xml_node *object,
                      struct remove_result *out, struct err *err)
{
    struct bucket *bucket = c->target.bucket;
    struct str key = xml_child_text(object, "Key", STR_EMPTY);
    struct remove_options o = {.version = xml_child_text(object, "VersionId", STR_EMPTY)};
    enum s3_action action = s3_operation_action(c->op->id, o.version.len > 0);
    int code = call_need(c, &c->target, action, key, NULL, err);

    o.conditions.if_match = xml_child_text(object, "ETag", STR_EMPTY);
    if (code == 0)
        code = object_key_check(key, err);
    if (code == 0)
        code = removal_conditions_read(
            str_trim(xml_child_text(object, "LastModifiedTime", STR_EMPTY)),
            str_trim(xml_child_text(object, "Size", STR_EMPTY)), &o.conditions, err);
    if (b->bypass)
        o.bypass_governance =
            call_may(c, &c->target, S3_ACTION_BYPASS_GOVERNANCE_RETENTION, key, NULL);
    if (code == 0)
        code = call_note(c, S3_EVENT_REMOVED_DELETE, key, &o.note, err);
    if (code == 0)
        code = bucket->ops->remove(bucket, c->a, key, &o, out, err);
    if (code == 0)
        call_told(c);
    if (code == 0 && !o.version.len && !o.conditions.if_match.len)
        code = call_removed(c, key, err);
    return code;
}

static void remove_and_tell(struct call *c, struct batch *b, const struct xml_node *object)
{
    struct str key = xml_child_text(object, "Key", STR_EMPTY);
    struct str version = xml_child_text(object, "VersionId", STR_EMPTY);
    struct remove_result out = {0};
    struct err err = {0};
    int code = remove_one(c, b, object, &out, &err);

    call_log_removal(c, key, version, code);
    if (code < 0)
        put_error(b, key, version, code, &err);
    else if (!b->quiet)
        put_deleted(b, key, version, &out);
}

static int read_batch(struct call *c, struct batch *b, struct xml_node **root, struct err *err)
{
    int code = document_read(root, c->a, c->body, "Delete", err);

    if (code == 0)
        code = document_shape(*root, "Object+ Quiet?", err);
    if (code == 0)
        code = document_bool(*root, "Quiet", false, &b->quiet, err);
    if (code == 0 && document_count(*root, "Object") > CALL_DELETE_MAX)
        code = s3_fail(err, S3_MALFORMED_XML);
    for (struct xml_node *o = xml_child(*root, "Object"); o && code == 0; o = xml_next(o, "Object"))
        code = document_shape(o, "Key! VersionId? ETag? LastModifiedTime? Size?", err);
    return code;
}

/* To what is there now, by a version or a condition. */
static bool is_bound(const struct xml_node *root)
{
    for (struct xml_node *o = xml_child(root, "Object"); o; o = xml_next(o, "Object"))
        if (o->children && o->children->next) /* more than its Key */
            return true;
    return false;
}

/* Where the bucket is on two storages each key may have to be waited for. */
static int announce(struct call *c, const struct xml_node *root, struct err *err)
{
    struct str *keys = NULL;
    size_t count = 0;
    int code = c->pair.route ? capture_keys(c, c->body, &keys, &count, err) : 0;

    if (code < 0 || !c->pair.route)
        return code;
    code = call_before_removals(c, keys, count, !is_bound(root), err);
    return code < 0 ? code : call_capture(c, c->target.bucket->storage, keys, count, err);
}

int op_delete_objects(struct call *c, struct err *err)
{
    struct batch b = {.xml = BUF_INIT(CALL_OUT_MAX)};
    struct xml_node *root = NULL;
    int code = call_read_body(c, err); /* access is asked for each key in it */

    if (code == 0)
        code = read_batch(c, &b, &root, err);
    if (code == 0)
        code = announce(c, root, err);
    if (code < 0)
        return code;
    b.bypass = str_ieq(call_header(c, "x-amz-bypass-governance-retention"), STR("true"));
    document_open(&b.xml, "DeleteResult");
    for (struct xml_node *o = xml_child(root, "Object"); o; o = xml_next(o, "Object"))
        remove_and_tell(c, &b, o);
    xml_close(&b.xml, "DeleteResult");
    return respond_xml(c, 200, &b.xml);
}
