/* Tags, ACL, retention and legal hold of a version: one request each. */
#include "base/clock.h"
#include "object/remote/remote_int.h"

static void write_tag(struct buf *xml, struct str name, struct str value)
{
    struct buf text = BUF_INIT(HTTP_MAX_HEAD);

    xml_open(xml, "Tag");
    if (url_decode(&text, name, true) == 0)
        xml_element(xml, "Key", buf_str(&text));
    buf_reset(&text);
    if (url_decode(&text, value, true) == 0)
        xml_element(xml, "Value", buf_str(&text));
    xml_close(xml, "Tag");
    buf_release(&text);
}

static void write_tags(struct buf *xml, const struct object_meta *meta)
{
    struct str rest = meta->tags, name, value;

    xml_prolog(xml);
    xml_open(xml, "Tagging");
    xml_open(xml, "TagSet");
    while (url_query_next(&rest, &name, &value))
        write_tag(xml, name, value);
    xml_close(xml, "TagSet");
    xml_close(xml, "Tagging");
}

static void write_acl(struct buf *xml, const struct object_meta *meta)
{
    buf_append_str(xml, meta->acl);
}

/* Writes the document that sets the retention. If `meta` has no retention, the document has an
 * empty <Retention>, which ends the retention of the version. */
static void write_retention(struct buf *xml, const struct object_meta *meta)
{
    char until[CLOCK_ISO_LEN + 1];

    xml_prolog(xml);
    xml_open(xml, "Retention");
    if (meta->retain_until_ms) {
        clock_iso(meta->retain_until_ms, until);
        xml_element(xml, "Mode", meta->retain_compliance ? STR("COMPLIANCE") : STR("GOVERNANCE"));
        xml_element(xml, "RetainUntilDate", str_z(until));
    }
    xml_close(xml, "Retention");
}

static void write_hold(struct buf *xml, const struct object_meta *meta)
{
    xml_prolog(xml);
    xml_open(xml, "LegalHold");
    xml_element(xml, "Status", meta->legal_hold ? STR("ON") : STR("OFF"));
    xml_close(xml, "LegalHold");
}

static const struct {
    enum meta_set bit;
    const char *resource;
    void (*write)(struct buf *xml, const struct object_meta *meta);
} settings[] = {
    {META_TAGS, "tagging", write_tags},
    {META_ACL, "acl", write_acl},
    {META_RETENTION, "retention", write_retention},
    {META_LEGAL_HOLD, "legal-hold", write_hold},
};

/* A version, and the meta that is set on it. */
struct setting {
    struct remote_bucket *b;
    struct str key, version;
    const struct object_meta *meta;
    bool bypass;
};

static int set_one(const struct setting *c, size_t which, struct err *err)
{
    struct buf xml = BUF_INIT(REMOTE_DOCUMENT_MAX);
    struct ask q;

    settings[which].write(&xml, c->meta);
    ask_init_bucket(&q, c->b, "PUT", c->key);
    ask_param(&q, settings[which].resource, STR_EMPTY);
    ask_param_given(&q, "versionId", c->version);
    ask_document(&q, buf_str(&xml));
    if (c->bypass)
        ask_header(&q, "x-amz-bypass-governance-retention", STR("true"));
    q.request.idempotent = true;
    int code = buf_error(&xml);
    if (code == 0)
        code = ask_send(&q, err);
    if (code < 0 && ask_is_marker(&q))
        code = err_set(err, ERR_NOT_FOUND, "a delete marker");
    ask_release(&q);
    buf_release(&xml);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int remote_set_meta(struct bucket *bucket, struct arena *a, struct str key, struct str version,
                    enum meta_set set, const struct object_meta *meta, const struct meta_options *o,
                    struct err *err)
{
    struct setting c = {remote_bucket_of(bucket), key, version, meta, o && o->bypass_governance};
    int code = remote_key_check(key, err);

    if (code == 0 && (set & META_ACL) && meta->acl.len == 0)
        code = err_set(err, ERR_INVALID, "an access control list is needed");
    for (size_t i = 0; i < ARRAY_SIZE(settings) && code == 0; i++)
        if (set & settings[i].bit)
            code = set_one(&c, i, err);
    return code;
}

int remote_get_acl(struct bucket *bucket, struct arena *a, struct str key, struct str *out,
                   struct err *err)
{
    struct ask q;

    ask_init_bucket(&q, remote_bucket_of(bucket), "GET", key);
    ask_param(&q, "acl", STR_EMPTY);
    int code = ask_send(&q, err);
    if (code == ERR_INVALID && q.head)
        code = err_wrap(err, ERR_UNSUPPORTED, "the storage tells no ACL");
    if (code == 0)
        code = ask_text(&q, a, REMOTE_DOCUMENT_MAX, out, err);
    ask_release(&q);
    return code;
}
