/* Writes object_meta as headers of requests, and reads it from headers of answers. */
#include "base/clock.h"
#include "object/remote/remote_int.h"

#include <stdio.h>

/* --- writing object_meta into a request --- */

int remote_meta_check(const struct object_meta *meta, struct err *err)
{
    if (meta->encryption.len)
        return err_set(err, ERR_UNSUPPORTED, "a remote storage keeps no sealed bytes");
    if (meta->acl.len && meta->acl.p[0] != '<')
        return err_set(err, ERR_UNSUPPORTED,
                       "a remote storage takes access control lists as <AccessControlPolicy>");
    return 0;
}

void ask_checksum(struct ask *q, const struct object_checksum *sum)
{
    if (sum->type != CHECKSUM_NONE && checksum_names[sum->kind].header.p)
        ask_header(q, checksum_names[sum->kind].header.p, sum->value);
}

/* Adds x-amz-grant-* for each permission of an <AccessControlPolicy>. */
static void ask_grants(struct ask *q, struct str policy)
{
    static const struct {
        const char *permission, *header;
    } grants[] = {
        {"FULL_CONTROL", "x-amz-grant-full-control"},
        {"READ", "x-amz-grant-read"},
        {"WRITE", "x-amz-grant-write"},
        {"READ_ACP", "x-amz-grant-read-acp"},
        {"WRITE_ACP", "x-amz-grant-write-acp"},
    };
    struct xml_node *root = NULL;

    if (policy.len == 0 || xml_read(&root, &q->a, policy, NULL) < 0)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(grants); i++) {
        struct buf value = BUF_INIT(HTTP_MAX_LINE);
        struct xml_node *list = xml_child(root, "AccessControlList");
        for (struct xml_node *g = xml_child(list, "Grant"); g; g = xml_next(g, "Grant")) {
            struct xml_node *who = xml_child(g, "Grantee");
            struct str id = xml_child_text(who, "ID", STR_EMPTY);
            struct str uri = xml_child_text(who, "URI", STR_EMPTY);
            if (!str_eq(xml_child_text(g, "Permission", STR_EMPTY), str_z(grants[i].permission)))
                continue;
            buf_appendf(&value, "%s%s=\"" STR_FMT "\"", value.len ? ", " : "",
                        id.len ? "id" : "uri", STR_ARG(id.len ? id : uri));
        }
        ask_header(q, grants[i].header, arena_str(&q->a, buf_str(&value)));
        buf_release(&value);
    }
}

static void ask_lock(struct ask *q, const struct object_meta *meta)
{
    char until[CLOCK_ISO_LEN + 1];

    if (meta->retain_until_ms) {
        clock_iso(meta->retain_until_ms, until);
        ask_header(q, "x-amz-object-lock-mode",
                   meta->retain_compliance ? STR("COMPLIANCE") : STR("GOVERNANCE"));
        ask_header(q, "x-amz-object-lock-retain-until-date", arena_str(&q->a, str_z(until)));
    }
    if (meta->legal_hold)
        ask_header(q, "x-amz-object-lock-legal-hold", STR("ON"));
}

void ask_meta(struct ask *q, const struct object_meta *meta)
{
    for (size_t i = 0; i < meta->header_count; i++) {
        q->too_many |= q->request.header_count == ARRAY_SIZE(q->headers);
        if (!q->too_many) /* headers without a value are sent too */
            q->headers[q->request.header_count++] = meta->headers[i];
    }
    ask_header(q, "x-amz-tagging", meta->tags);
    ask_header(q, "x-amz-storage-class", meta->storage_class);
    ask_grants(q, meta->acl);
    ask_lock(q, meta);
}

void ask_conditions(struct ask *q, const struct object_conditions *c)
{
    if (!c)
        return;
    ask_header(q, "If-Match", c->if_match);
    ask_header(q, "If-None-Match", c->if_none_match);
    ask_time(q, "If-Modified-Since", c->if_modified_since_ms);
    ask_time(q, "If-Unmodified-Since", c->if_unmodified_since_ms);
}

/* --- reading object_meta from an answer --- */

static int read_headers(struct object_meta *out, struct arena *a, const struct http_head *head,
                        struct err *err)
{
    out->headers = arena_array(a, head->header_count + 1, sizeof(*out->headers));
    if (!out->headers)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *h = &head->headers[i];
        if (header_is_kept(h->name))
            out->headers[out->header_count++] =
                (struct http_header){arena_lower(a, h->name), arena_str(a, h->value)};
    }
    return 0;
}

struct object_checksum remote_checksum_of(struct arena *a, const struct http_head *head)
{
    struct object_checksum sum = {0};

    for (int kind = 0; kind < DIGEST_KINDS; kind++) {
        const char *name = checksum_names[kind].header.p;
        struct str value = name ? http_header(head, name) : STR_EMPTY;
        if (value.len == 0)
            continue;
        sum = (struct object_checksum){CHECKSUM_FULL_OBJECT, (enum digest_kind)kind,
                                       arena_str(a, value)};
        if (str_chr(value, '-') >= 0 ||
            str_eq(http_header(head, "x-amz-checksum-type"), STR("COMPOSITE")))
            sum.type = CHECKSUM_COMPOSITE;
    }
    return sum;
}

static void meta_read_lock(struct object_meta *out, const struct http_head *head)
{
    out->retain_until_ms =
        remote_iso_time(http_header(head, "x-amz-object-lock-retain-until-date"));
    out->retain_compliance = str_eq(http_header(head, "x-amz-object-lock-mode"), STR("COMPLIANCE"));
    out->legal_hold = str_eq(http_header(head, "x-amz-object-lock-legal-hold"), STR("ON"));
}

/* Returns the number of parts, from a header or from an ETag such as "...-12". */
static uint32_t parts_of(const struct http_head *head, struct str etag)
{
    struct str text = http_header(head, "x-amz-mp-parts-count");
    ptrdiff_t at = str_chr(etag, '-');
    uint64_t count = 0;

    if (text.len == 0 && at >= 0)
        text = str_skip(etag, (size_t)at + 1);
    return str_u64(text, &count) == 0 && count <= OBJECT_MAX_PARTS ? (uint32_t)count : 0;
}

int remote_info_of(struct object_info *out, struct arena *a, const struct ask *q, struct str key,
                   struct err *err)
{
    struct str version = ask_answer(q, "x-amz-version-id");
    struct str class = ask_answer(q, "x-amz-storage-class");

    *out = (struct object_info){.key = arena_str(a, key),
                                .version = version.len ? arena_str(a, version) : STR("null"),
                                .etag = remote_etag(a, ask_answer(q, "ETag"))};
    if (clock_parse_http(ask_answer(q, "Last-Modified"), &out->modified_ms) < 0)
        out->modified_ms = 0;
    out->size = q->head->content_length;
    out->part_count = parts_of(q->head, out->etag);
    if (!str_eq(class, STR("STANDARD")))
        out->meta.storage_class = arena_str(a, class);
    out->meta.checksum = remote_checksum_of(a, q->head);
    out->is_private = str_eq(ask_answer(q, "x-weir-acl"), STR("private"));
    meta_read_lock(&out->meta, q->head);
    int code = read_headers(&out->meta, a, q->head, err);
    if (code == 0 && (out->etag.len == 0 || !q->head->has_length))
        code = err_set(err, ERR_PEER, "the storage answers without an ETag or a length");
    return code < 0 ? code : arena_error(a);
}
