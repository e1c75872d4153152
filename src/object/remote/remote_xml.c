/* Documents of a peer's answers: errors, results of copies and uploads, tags, buckets. Listings are
 * in remote_list_xml.c. */
#include "base/clock.h"
#include "object/remote/remote_int.h"

int remote_read_root(struct xml_node **out, struct arena *a, struct str text, const char *name,
                     struct err *err)
{
    struct xml_node *root = NULL;
    int code = xml_read(&root, a, text, err);

    if (code == ERR_NO_MEMORY)
        return code;
    if (code < 0)
        return err_wrap(err, ERR_PEER, "the storage's answer is no document");
    if (str_eq(root->name, STR("Error"))) {
        struct str said = xml_child_text(root, "Code", STR_EMPTY);
        return remote_error_of(200, said, xml_child_text(root, "Message", STR_EMPTY), err);
    }
    /* A simple peer that does not know a query parameter ignores it, and lists the bucket. */
    if (str_eq(root->name, STR("ListBucketResult")) && strcmp(name, "ListBucketResult") != 0)
        return err_set(err, ERR_UNSUPPORTED, "the storage lists objects when asked for a %s", name);
    if (!str_eq(root->name, str_z(name)))
        return err_set(err, ERR_PEER, "the storage answers with another document than %s", name);
    *out = root;
    return 0;
}

struct remote_error remote_read_error(struct arena *a, struct str text)
{
    struct xml_node *root = NULL;

    if (xml_read(&root, a, text, NULL) < 0 || !str_eq(root->name, STR("Error")))
        return (struct remote_error){0};
    return (struct remote_error){.code = xml_child_text(root, "Code", STR_EMPTY),
                                 .message = xml_child_text(root, "Message", STR_EMPTY)};
}

struct str remote_etag(struct arena *a, struct str text)
{
    text = str_trim(text);
    if (str_starts(text, STR("W/")))
        text = str_skip(text, 2);
    if (text.len >= 2 && text.p[0] == '"' && text.p[text.len - 1] == '"')
        text = str_n(text.p + 1, text.len - 2);
    return arena_str(a, text);
}

int64_t remote_iso_time(struct str text)
{
    int64_t ms = 0;

    return clock_parse_iso(text, &ms) == 0 ? ms : 0;
}

int remote_read_result(struct put_result *out, struct arena *a, struct str text, const char *root,
                       struct err *err)
{
    struct xml_node *node = NULL;
    int code = remote_read_root(&node, a, text, root, err);

    if (code < 0)
        return code;
    *out = (struct put_result){
        .etag = remote_etag(a, xml_child_text(node, "ETag", STR_EMPTY)),
        .modified_ms = remote_iso_time(xml_child_text(node, "LastModified", STR_EMPTY))};
    return 0;
}

int remote_read_upload_id(struct str *out, struct arena *a, struct str text, struct err *err)
{
    struct xml_node *node = NULL;
    int code = remote_read_root(&node, a, text, "InitiateMultipartUploadResult", err);

    if (code < 0)
        return code;
    *out = xml_child_text(node, "UploadId", STR_EMPTY);
    return out->len ? 0 : err_set(err, ERR_PEER, "the storage answers without an upload's id");
}

/* Reads tags into the form of x-amz-tagging: "k=v&k2=v2". */
int remote_read_tags(struct str *out, struct arena *a, struct str text, struct err *err)
{
    struct buf tags = BUF_INIT(HTTP_MAX_HEAD);
    struct xml_node *root = NULL;
    int code = remote_read_root(&root, a, text, "Tagging", err);
    struct xml_node *tag = xml_child(xml_child(root, "TagSet"), "Tag");

    for (; code == 0 && tag; tag = xml_next(tag, "Tag")) {
        if (tags.len)
            buf_append_char(&tags, '&');
        url_encode(&tags, xml_child_text(tag, "Key", STR_EMPTY), false);
        buf_append_char(&tags, '=');
        url_encode(&tags, xml_child_text(tag, "Value", STR_EMPTY), false);
    }
    if (code == 0 && buf_error(&tags) < 0)
        code = err_set(err, ERR_PEER, "the storage answers with too many tags");
    if (code == 0)
        *out = arena_str(a, buf_str(&tags));
    buf_release(&tags);
    return code;
}

static size_t count_children(const struct xml_node *parent, const char *name)
{
    size_t count = 0;

    for (struct xml_node *n = xml_child(parent, name); n; n = xml_next(n, name))
        count++;
    return count;
}

int remote_read_buckets(struct remote_bucket_page *out, struct arena *a, struct str text,
                        struct err *err)
{
    struct xml_node *root = NULL;
    int code = remote_read_root(&root, a, text, "ListAllMyBucketsResult", err);

    if (code < 0)
        return code;
    struct xml_node *all = xml_child(root, "Buckets");
    *out = (struct remote_bucket_page){
        .buckets = arena_array(a, count_children(all, "Bucket") + 1, sizeof(*out->buckets)),
        .token = xml_child_text(root, "ContinuationToken", STR_EMPTY)};
    if (!out->buckets)
        return err_code(err, ERR_NO_MEMORY);
    for (struct xml_node *n = xml_child(all, "Bucket"); n; n = xml_next(n, "Bucket")) {
        struct bucket_info *b = &out->buckets[out->count++];
        b->name = xml_child_text(n, "Name", STR_EMPTY);
        b->created_ms = remote_iso_time(xml_child_text(n, "CreationDate", STR_EMPTY));
        if (b->name.len == 0)
            return err_set(err, ERR_PEER, "the storage lists a bucket without a name");
    }
    return 0;
}
