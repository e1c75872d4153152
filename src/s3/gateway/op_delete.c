/* DeleteObjects: removes up to a thousand keys, and answers with a result for each. */
#include "s3/gateway/bucket_name.h"
#include "s3/documents/deletion.h"
#include "s3/gateway/gateway_int.h"

/* One of the keys, and the result of its removal. */
struct removal {
    struct str key, version;
    bool bound; /* the removal names a version or has a condition */
    int code;
    const char *why; /* text of the error; in the arena */
    struct remove_result out;
};

struct batch {
    struct deletion asked;
    bool bypass;
    struct buf xml;
    struct removal *removals;
    size_t count;
};

static void put_error(struct batch *b, const struct removal *r)
{
    bool words = r->code <= S3_FIRST_CODE && r->why[0];

    xml_open(&b->xml, "Error");
    xml_element(&b->xml, "Key", r->key);
    if (r->version.len)
        xml_element(&b->xml, "VersionId", r->version);
    xml_element(&b->xml, "Code", str_z(s3_code_name(r->code)));
    xml_element(&b->xml, "Message", str_z(words ? r->why : s3_code_message(r->code)));
    xml_close(&b->xml, "Error");
}

static void put_deleted(struct batch *b, const struct removal *r)
{
    xml_open(&b->xml, "Deleted");
    xml_element(&b->xml, "Key", r->key);
    if (r->version.len)
        xml_element(&b->xml, "VersionId", r->version);
    if (r->out.is_marker) {
        xml_bool(&b->xml, "DeleteMarker", true);
        xml_element(&b->xml, "DeleteMarkerVersionId", r->out.version);
    }
    xml_close(&b->xml, "Deleted");
}

/* Removes one key, with its conditions: ETag, time and size. */
static int removal_make(struct call *c, struct batch *b, const struct xml_node *object,
                        struct removal *r, struct err *err)
{
    struct bucket *bucket = c->target.bucket;
    struct str key = r->key;
    struct remove_options o = {.version = r->version};
    const struct s3_operation_row *row = &s3_operations[c->op->id];
    enum s3_action action = o.version.len ? row->version_action : row->action;
    struct call_item item = {.version = r->version,
                             .if_match = xml_child_text(object, "ETag", STR_EMPTY)};

    c->item = &item;
    int code = call_need(c, &c->target, action, key, NULL, err);
    if (b->bypass)
        o.bypass_governance =
            call_may(c, &c->target, S3_ACTION_BYPASS_GOVERNANCE_RETENTION, key, NULL);
    c->item = NULL;
    o.conditions.if_match = item.if_match;
    if (code == 0)
        code = object_key_check(key, c->g->o.routes, c->bucket_name, err);
    if (code == 0)
        code = removal_conditions_read(
            str_trim(xml_child_text(object, "LastModifiedTime", STR_EMPTY)),
            str_trim(xml_child_text(object, "Size", STR_EMPTY)), &o.conditions, err);
    if (code == 0)
        code = call_note(c, S3_EVENT_REMOVED_DELETE, key, &o.note, err);
    if (code == 0)
        code = bucket->ops->remove(bucket, c->a, key, &o, &r->out, err);
    if (code == 0)
        call_told(c);
    r->bound = o.version.len || o.conditions.if_match.len;
    return code;
}

static void removal_fail(struct call *c, struct removal *r, int code, const struct err *err)
{
    r->code = code;
    r->why = arena_z(c->a, str_z(err->text));
    if (!r->why)
        r->why = "";
}

/* Removes all keys, in the order of the request. */
static int remove_all(struct call *c, struct batch *b, struct err *err)
{
    b->removals = arena_array(c->a, b->asked.count, sizeof(*b->removals));
    if (!b->removals)
        return err_code(err, ERR_NO_MEMORY);
    for (struct xml_node *o = xml_child(b->asked.root, "Object"); o; o = xml_next(o, "Object")) {
        struct removal *r = &b->removals[b->count++];
        struct err why = {0};
        *r = (struct removal){.key = xml_child_text(o, "Key", STR_EMPTY),
                              .version = xml_child_text(o, "VersionId", STR_EMPTY)};
        int code = removal_make(c, b, o, r, &why);
        if (code < 0)
            removal_fail(c, r, code, &why);
    }
    return arena_error(c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* In a bucket on two storages, reports the keys that were removed, all together, so that objects of
 * the other side are hidden. If the report fails, all these removals count as failed. */
static int batch_settle(struct call *c, struct batch *b, struct err *err)
{
    struct str *keys = c->target.at.sides.route ? arena_array(c->a, b->count, sizeof(*keys)) : NULL;
    struct err why = {0};
    size_t n = 0;

    if (!keys)
        return c->target.at.sides.route ? err_code(err, ERR_NO_MEMORY) : 0;
    for (size_t i = 0; i < b->count; i++)
        if (b->removals[i].code == 0 && !b->removals[i].bound)
            keys[n++] = b->removals[i].key;
    int code = call_removed(c, keys, n, &why);
    for (size_t i = 0; i < b->count && code < 0; i++)
        if (b->removals[i].code == 0 && !b->removals[i].bound)
            removal_fail(c, &b->removals[i], code, &why);
    return 0;
}

static void tell_all(struct call *c, struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct removal *r = &b->removals[i];
        call_log_removal(c, r->key, r->version, r->code);
        if (r->code < 0)
            put_error(b, r);
        else if (!b->asked.quiet)
            put_deleted(b, r);
    }
}

/* Does any of the removals have a version or a condition? */
static bool is_bound(const struct xml_node *root)
{
    for (struct xml_node *o = xml_child(root, "Object"); o; o = xml_next(o, "Object"))
        if (o->children && o->children->next) /* the object has more than its Key */
            return true;
    return false;
}

/* Announces the removals in a bucket that is on two storages. The call may first have to wait until
 * keys are copied from the other side. Does nothing elsewhere. */
static int batch_announce(struct call *c, const struct deletion *b, struct err *err)
{
    if (!c->target.at.sides.route)
        return 0;
    int code = call_before_removals(c, b->keys, b->count, !is_bound(b->root), err);
    return code < 0 ? code : call_capture(c, b->keys, b->count, err);
}

int op_delete_objects(struct call *c, struct err *err)
{
    struct batch b = {.xml = BUF_INIT(CALL_OUT_MAX)};
    int code = call_read_body(c, err); /* access is decided for each key in the body */

    if (code == 0)
        code = deletion_read(&b.asked, c->a, c->body, err);
    if (code == 0)
        code = batch_announce(c, &b.asked, err);
    if (code < 0)
        return code;
    b.bypass = str_ieq(http_header(c->head, "x-amz-bypass-governance-retention"), STR("true"));
    code = remove_all(c, &b, err);
    if (code == 0)
        code = batch_settle(c, &b, err);
    if (code < 0)
        return code;
    document_open(&b.xml, "DeleteResult");
    tell_all(c, &b);
    xml_close(&b.xml, "DeleteResult");
    return respond_xml(c, 200, &b.xml);
}
