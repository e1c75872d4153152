/* Reads the listings in a peer's answers. The peer may be faulty or hostile, so the entries are
 * checked: those that are returned are in order, under the prefix, after the place where the page
 * begins, and not more than asked for (docs/remote-storage.md, M7). */
#include "object/remote/remote_int.h"

#include <stdlib.h>

/* A page that is being read. */
struct page {
    struct arena *a;
    const struct list_options *o;
    const struct xml_node *root;
    bool encoded; /* names are percent-encoded */
    struct list_entry *entries;
    size_t count;
};

static int wrong(struct err *err, const char *what)
{
    return err_set(err, ERR_PEER, "the storage lists %s", what);
}

static bool is_true(const struct xml_node *node, const char *name)
{
    return str_ieq(xml_child_text(node, name, STR_EMPTY), STR("true"));
}

static bool is_encoded(const struct xml_node *root)
{
    return str_eq(xml_child_text(root, "EncodingType", STR_EMPTY), STR("url"));
}

/* Reads a name. In a percent-encoded name '+' means a blank: some peers write blanks in this way,
 * as HTML forms do, and the other peers write a real '+' as %2B. */
static int read_name(struct arena *a, bool encoded, struct str text, struct str *out,
                     struct err *err)
{
    struct buf decoded = BUF_INIT(OBJECT_KEY_MAX);
    int code = encoded ? url_decode(&decoded, text, true) : 0;

    *out = encoded ? arena_str(a, buf_str(&decoded)) : text;
    buf_release(&decoded);
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (code < 0 || out->len == 0 || out->len > OBJECT_KEY_MAX)
        return wrong(err, "a name that cannot be");
    return 0;
}

static int node_read_u64(const struct xml_node *node, const char *name, uint64_t *out,
                         struct err *err)
{
    if (str_u64(xml_child_text(node, name, STR_EMPTY), out) < 0)
        return wrong(err, "something without its number");
    return 0;
}

static struct str class_of(const struct xml_node *node)
{
    struct str name = xml_child_text(node, "StorageClass", STR_EMPTY);

    return str_eq(name, STR("STANDARD")) ? STR_EMPTY : name;
}

static struct str owner_of(const struct xml_node *node)
{
    return xml_child_text(xml_child(node, "Owner"), "ID", STR_EMPTY);
}

/* --- objects and versions --- */

static int entry_read_xml(struct page *p, const struct xml_node *n, bool versions, struct err *err)
{
    struct list_entry *e = &p->entries[p->count];
    struct object_info *info = &e->info;
    int code = read_name(p->a, p->encoded, xml_child_text(n, "Key", STR_EMPTY), &info->key, err);

    info->is_marker = str_eq(n->name, STR("DeleteMarker"));
    if (code == 0 && !info->is_marker)
        code = node_read_u64(n, "Size", &info->size, err);
    info->version = versions ? xml_child_text(n, "VersionId", STR("null")) : STR_EMPTY;
    info->is_latest = !versions || is_true(n, "IsLatest");
    info->modified_ms = remote_iso_time(xml_child_text(n, "LastModified", STR_EMPTY));
    info->etag = remote_etag(p->a, xml_child_text(n, "ETag", STR_EMPTY));
    info->meta.owner = owner_of(n);
    info->meta.storage_class = class_of(n);
    p->count += code == 0;
    return code;
}

static int prefix_read_xml(struct page *p, const struct xml_node *n, struct err *err)
{
    struct list_entry *e = &p->entries[p->count];
    int code =
        read_name(p->a, p->encoded, xml_child_text(n, "Prefix", STR_EMPTY), &e->info.key, err);

    e->is_prefix = true;
    p->count += code == 0;
    return code;
}

static bool is_object(const struct xml_node *n, bool versions)
{
    return versions ? str_eq(n->name, STR("Version")) || str_eq(n->name, STR("DeleteMarker"))
                    : str_eq(n->name, STR("Contents"));
}

static int read_entries(struct page *p, bool versions, struct err *err)
{
    size_t most = 0;
    int code = 0;

    for (const struct xml_node *n = p->root->children; n; n = n->next)
        most++;
    p->entries = arena_array(p->a, most + 1, sizeof(*p->entries));
    if (!p->entries)
        return err_code(err, ERR_NO_MEMORY);
    for (const struct xml_node *n = p->root->children; n && code == 0; n = n->next) {
        if (is_object(n, versions))
            code = entry_read_xml(p, n, versions, err);
        else if (str_eq(n->name, STR("CommonPrefixes")))
            code = prefix_read_xml(p, n, err);
    }
    return code;
}

/* Whether the entry was on an earlier page: the common prefix `after`, or a version of the key
 * `after`. Some peers begin a page with such entries. */
static bool is_seen(const struct page *p, const struct list_entry *e)
{
    return str_eq(e->info.key, p->o->after) &&
           (e->is_prefix || (e->info.version.len && p->o->after_version.len == 0));
}

/* Whether the entry fits the delimiter. After the listing's prefix, a common prefix must end with
 * the first delimiter, and a key must have no delimiter. */
static bool is_folded(const struct page *p, const struct list_entry *e)
{
    struct str rest = str_skip(e->info.key, p->o->prefix.len), delimiter = p->o->delimiter;
    ptrdiff_t at = delimiter.len ? str_find(rest, delimiter) : -1;

    return e->is_prefix ? at >= 0 && (size_t)at + delimiter.len == rest.len : at < 0;
}

static int check_place(const struct page *p, const struct list_entry *e, struct err *err)
{
    int order = str_cmp(e->info.key, p->o->after);

    if (!str_starts(e->info.key, p->o->prefix))
        return wrong(err, "what is not under the prefix");
    if (!is_folded(p, e))
        return wrong(err, "what does not follow from the delimiter");
    if (order > 0 || (e->is_prefix && str_starts(p->o->after, e->info.key)) ||
        (order == 0 && p->o->after_version.len && !str_eq(e->info.version, p->o->after_version)))
        return 0;
    return wrong(err, "what was on an earlier page");
}

/* Compares entries by key. Versions of a key stay in the peer's order: newest first. */
static int entry_order(const void *left, const void *right)
{
    const struct list_entry *a = left, *b = right;
    int order = str_cmp(a->info.key, b->info.key);

    return order ? order : (a->info.part_count > b->info.part_count) * 2 - 1;
}

static int arrange(struct page *p, struct err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->count; i++) {
        if (is_seen(p, &p->entries[i]))
            continue;
        int code = check_place(p, &p->entries[i], err);
        if (code < 0)
            return code;
        p->entries[kept] = p->entries[i];
        /* Until the entries are sorted, this is the entry's index, for entry_order(). */
        p->entries[kept].info.part_count = (uint32_t)kept;
        kept++;
    }
    p->count = kept;
    if (kept)
        qsort(p->entries, kept, sizeof(*p->entries), entry_order);
    for (size_t i = 0; i < kept; i++)
        p->entries[i].info.part_count = 0;
    return 0;
}

static int page_read_xml(struct list_result *out, struct page *p, bool versions, struct err *err)
{
    int code = read_entries(p, versions, err);

    if (code == 0)
        code = arrange(p, err);
    if (code < 0)
        return code;
    bool more = is_true(p->root, "IsTruncated") || p->count > p->o->limit;
    size_t count = size_min(p->count, p->o->limit);
    if (more && count == 0)
        return wrong(err, "nothing and says that there is more");
    *out = (struct list_result){.entries = p->entries, .count = count, .more = more};
    if (more) {
        const struct list_entry *last = &p->entries[count - 1];
        out->next = last->info.key;
        out->next_version = last->is_prefix ? STR_EMPTY : last->info.version;
    }
    return 0;
}

int remote_read_list(struct list_result *out, struct arena *a, struct str text,
                     const struct list_options *o, struct err *err)
{
    struct xml_node *root = NULL;
    int code = remote_read_root(&root, a, text, "ListBucketResult", err);

    if (code < 0)
        return code;
    struct page p = {.a = a, .o = o, .root = root, .encoded = is_encoded(root)};
    return page_read_xml(out, &p, false, err);
}

int remote_read_versions(struct list_result *out, struct arena *a, struct str text,
                         const struct list_options *o, struct err *err)
{
    struct xml_node *root = NULL;
    int code = remote_read_root(&root, a, text, "ListVersionsResult", err);

    if (code < 0)
        return code;
    struct page p = {.a = a, .o = o, .root = root, .encoded = is_encoded(root)};
    return page_read_xml(out, &p, true, err);
}

/* --- uploads --- */

static int read_upload(struct upload_list *out, struct arena *a, bool encoded,
                       const struct xml_node *n, struct err *err)
{
    struct upload_info *u = &out->uploads[out->count];
    int code = read_name(a, encoded, xml_child_text(n, "Key", STR_EMPTY), &u->key, err);

    u->id = xml_child_text(n, "UploadId", STR_EMPTY);
    u->started_ms = remote_iso_time(xml_child_text(n, "Initiated", STR_EMPTY));
    u->meta.owner = owner_of(n);
    u->initiator = xml_child_text(xml_child(n, "Initiator"), "ID", STR_EMPTY);
    u->meta.storage_class = class_of(n);
    if (code == 0 && u->id.len == 0)
        code = wrong(err, "an upload without an id");
    out->count += code == 0;
    return code;
}

/* Reads the place where the next page begins. It must be after the place where this page began. */
static int read_next_upload(struct upload_list *out, struct arena *a, const struct xml_node *root,
                            const struct list_options *o, struct err *err)
{
    int code = read_name(a, is_encoded(root), xml_child_text(root, "NextKeyMarker", STR_EMPTY),
                         &out->next_key, err);

    out->next_id = xml_child_text(root, "NextUploadIdMarker", STR_EMPTY);
    if (code < 0)
        return code;
    int order = str_cmp(out->next_key, o->after);
    if (order < 0 || (order == 0 && str_eq(out->next_id, o->after_version)))
        return wrong(err, "uploads in a circle");
    return 0;
}

int remote_read_uploads(struct upload_list *out, struct arena *a, struct str text,
                        const struct list_options *o, struct err *err)
{
    struct xml_node *root = NULL;
    size_t most = 1;
    int code = remote_read_root(&root, a, text, "ListMultipartUploadsResult", err);

    if (code < 0)
        return code;
    for (struct xml_node *n = root->children; n; n = n->next)
        most++;
    *out = (struct upload_list){.uploads = arena_array(a, most, sizeof(*out->uploads)),
                                .prefixes = arena_array(a, most, sizeof(*out->prefixes)),
                                .more = is_true(root, "IsTruncated")};
    if (!out->uploads || !out->prefixes)
        return err_code(err, ERR_NO_MEMORY);
    for (struct xml_node *n = root->children; n && code == 0; n = n->next) {
        if (str_eq(n->name, STR("Upload")))
            code = read_upload(out, a, is_encoded(root), n, err);
        else if (str_eq(n->name, STR("CommonPrefixes")))
            code = read_name(a, is_encoded(root), xml_child_text(n, "Prefix", STR_EMPTY),
                             &out->prefixes[out->prefix_count++], err);
    }
    if (code == 0 && out->count + out->prefix_count > o->limit)
        code = wrong(err, "more uploads than asked for");
    return code < 0 || !out->more ? code : read_next_upload(out, a, root, o, err);
}

static void read_checksum(struct upload_part *out, const struct xml_node *n)
{
    for (int kind = 0; kind < DIGEST_KINDS; kind++) {
        const char *name = checksum_names[kind].element;
        struct str value = name ? xml_child_text(n, name, STR_EMPTY) : STR_EMPTY;
        if (value.len)
            out->checksum =
                (struct object_checksum){CHECKSUM_FULL_OBJECT, (enum digest_kind)kind, value};
    }
}

static int part_read_xml(struct part_list *out, struct arena *a, uint32_t after,
                         const struct xml_node *n, struct err *err)
{
    struct upload_part *part = &out->parts[out->count];
    uint64_t number = 0;
    int code = node_read_u64(n, "PartNumber", &number, err);

    if (code == 0)
        code = node_read_u64(n, "Size", &part->size, err);
    uint32_t last = out->count ? out->parts[out->count - 1].number : after;
    if (code == 0 && (number <= last || number > OBJECT_MAX_PARTS))
        code = wrong(err, "parts out of order");
    part->number = (uint32_t)number;
    part->modified_ms = remote_iso_time(xml_child_text(n, "LastModified", STR_EMPTY));
    part->etag = remote_etag(a, xml_child_text(n, "ETag", STR_EMPTY));
    read_checksum(part, n);
    out->count += code == 0;
    return code;
}

int remote_read_parts(struct part_list *out, struct arena *a, struct str text, uint32_t after,
                      size_t limit, struct err *err)
{
    struct xml_node *root = NULL;
    size_t most = 1;
    int code = remote_read_root(&root, a, text, "ListPartsResult", err);

    if (code < 0)
        return code;
    for (struct xml_node *n = xml_child(root, "Part"); n; n = xml_next(n, "Part"))
        most++;
    *out = (struct part_list){.parts = arena_array(a, most, sizeof(*out->parts)),
                              .more = is_true(root, "IsTruncated")};
    if (!out->parts)
        return err_code(err, ERR_NO_MEMORY);
    for (struct xml_node *n = xml_child(root, "Part"); n && code == 0; n = xml_next(n, "Part"))
        code = part_read_xml(out, a, after, n, err);
    if (code == 0 && (out->count > limit || (out->more && out->count == 0)))
        code = wrong(err, "another number of parts than asked for");
    struct str name = xml_child_text(root, "ChecksumAlgorithm", STR_EMPTY);
    struct object_checksum *sum = &out->upload.meta.checksum;
    if (checksum_by_algorithm(name, &sum->kind))
        sum->type = str_eq(xml_child_text(root, "ChecksumType", STR_EMPTY), STR("FULL_OBJECT"))
                        ? CHECKSUM_FULL_OBJECT
                        : CHECKSUM_COMPOSITE;
    out->upload.meta.owner = owner_of(root);
    out->upload.meta.storage_class = class_of(root);
    return code;
}
