/* Records of a local storage: a format byte, LEB128 numbers, strings with their length. */
#include "object/local/local_record.h"
#include "base/bytes.h"

enum { FORMAT = 1 };

enum { FLAG_NULL = 1, FLAG_MARKER = 2, FLAGS_ALL = 3 };

/* Bits that say which optional members a bucket's row has. A row without optional
 * members ends before these bits. */
enum { BUCKET_NOTIFIES = 1, BUCKET_LOGICAL = 2, BUCKET_HAS_ALL = 3 };

/* Bits that say which fields a stored meta has. The fields are stored in this order. */
enum {
    META_HAS_HEADERS = 1,
    META_HAS_TAGS = 2,
    META_HAS_ACL = 4,
    META_HAS_OWNER = 8,
    META_HAS_CLASS = 16,
    META_HAS_ENCRYPTION = 32,
    META_HAS_CHECKSUM = 64,
    META_HAS_RETENTION = 128,
    META_HAS_COMPLIANCE = 256,
    META_HAS_HOLD = 512,
    META_HAS_ALL = 1023,
};

/* The bytes that a decoder has not read yet. After a failure further reads return zeroes, so that a
 * decoder checks once, in cursor_end(). */
struct cursor {
    struct str rest;
    bool failed;
};

static void record_put_str(struct buf *out, struct str s)
{
    varint_append(out, s.len);
    buf_append_str(out, s);
}

static unsigned char get_byte(struct cursor *c)
{
    if (c->rest.len == 0) {
        c->failed = true;
        return 0;
    }
    unsigned char byte = (unsigned char)c->rest.p[0];
    c->rest = str_skip(c->rest, 1);
    return byte;
}

static uint64_t get_u64(struct cursor *c)
{
    const char *start = c->rest.p;
    uint64_t v = 0;

    if (!varint_take(&c->rest, &v)) {
        c->rest = STR_EMPTY;
        c->failed = true;
    } else if (c->rest.p - start > 1 && c->rest.p[-1] == 0) {
        c->failed = true; /* the encoder never writes a last byte of 0 */
    }
    return c->failed ? 0 : v;
}

static uint64_t get_below(struct cursor *c, uint64_t bound)
{
    uint64_t v = get_u64(c);
    if (v < bound)
        return v;
    c->failed = true;
    return 0;
}

static struct str get_str(struct cursor *c)
{
    uint64_t len = get_u64(c);
    if (len > c->rest.len) {
        c->failed = true;
        return STR_EMPTY;
    }
    struct str s = str_head(c->rest, len);
    c->rest = str_skip(c->rest, len);
    return s;
}

static void cursor_begin(struct cursor *c, struct str in)
{
    *c = (struct cursor){.rest = in};
    if (get_byte(c) != FORMAT)
        c->failed = true;
}

static int cursor_end(const struct cursor *c, const char *what, struct err *err)
{
    if (c->failed || c->rest.len > 0)
        return err_set(err, ERR_CORRUPT, "the row of %s cannot be read", what);
    return 0;
}

static void put_checksum(struct buf *out, const struct object_checksum *c)
{
    varint_append(out, (uint64_t)c->type);
    if (c->type == CHECKSUM_NONE)
        return;
    varint_append(out, (uint64_t)c->kind);
    record_put_str(out, c->value);
}

static void get_checksum(struct cursor *c, struct object_checksum *out)
{
    out->type = (enum checksum_type)get_below(c, CHECKSUM_COMPOSITE + 1);
    if (out->type == CHECKSUM_NONE)
        return;
    out->kind = (enum digest_kind)get_below(c, DIGEST_KINDS);
    out->value = get_str(c);
}

static unsigned meta_fields(const struct object_meta *m, struct str headers_raw)
{
    return (m->header_count || headers_raw.len ? META_HAS_HEADERS : 0u) |
           (m->tags.len ? META_HAS_TAGS : 0u) | (m->acl.len ? META_HAS_ACL : 0u) |
           (m->owner.len ? META_HAS_OWNER : 0u) | (m->storage_class.len ? META_HAS_CLASS : 0u) |
           (m->encryption.len ? META_HAS_ENCRYPTION : 0u) |
           (m->checksum.type ? META_HAS_CHECKSUM : 0u) |
           (m->retain_until_ms > 0 ? META_HAS_RETENTION : 0u) |
           (m->retain_compliance ? META_HAS_COMPLIANCE : 0u) | (m->legal_hold ? META_HAS_HOLD : 0u);
}

/* Appends the headers as one string: name, value, name, value. */
static void put_headers(struct buf *out, const struct object_meta *m, struct str raw)
{
    struct buf headers = BUF_INIT(0);

    for (size_t i = 0; m->headers && i < m->header_count; i++) {
        record_put_str(&headers, m->headers[i].name);
        record_put_str(&headers, m->headers[i].value);
    }
    record_put_str(out, m->headers ? buf_str(&headers) : raw);
    buf_release(&headers);
}

static void record_put_meta(struct buf *out, const struct object_meta *m, struct str headers_raw)
{
    unsigned fields = meta_fields(m, headers_raw);
    const struct str strings[] = {m->tags, m->acl, m->owner, m->storage_class, m->encryption};

    varint_append(out, fields);
    if (fields & META_HAS_HEADERS)
        put_headers(out, m, headers_raw);
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        if (strings[i].len)
            record_put_str(out, strings[i]);
    if (fields & META_HAS_CHECKSUM)
        put_checksum(out, &m->checksum);
    if (fields & META_HAS_RETENTION)
        varint_append(out, (uint64_t)m->retain_until_ms);
}

static void get_meta(struct cursor *c, struct object_meta *m, struct str *headers_raw)
{
    unsigned fields = (unsigned)get_below(c, META_HAS_ALL + 1);
    struct str *strings[] = {&m->tags, &m->acl, &m->owner, &m->storage_class, &m->encryption};

    *headers_raw = fields & META_HAS_HEADERS ? get_str(c) : STR_EMPTY;
    struct cursor headers = {.rest = *headers_raw};
    while (headers.rest.len > 0 && !headers.failed) {
        get_str(&headers);
        get_str(&headers);
        m->header_count++;
    }
    c->failed |= headers.failed;
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        if (fields & (META_HAS_TAGS << i))
            *strings[i] = get_str(c);
    if (fields & META_HAS_CHECKSUM)
        get_checksum(c, &m->checksum);
    if (fields & META_HAS_RETENTION)
        m->retain_until_ms = (int64_t)get_below(c, INT64_MAX);
    m->retain_compliance = fields & META_HAS_COMPLIANCE;
    m->legal_hold = fields & META_HAS_HOLD;
    c->failed |= fields != meta_fields(m, *headers_raw); /* no field that is set may be empty */
}

static int meta_copy(const struct object_meta *from, struct str headers_raw, struct arena *a,
                     struct object_meta *out)
{
    struct cursor c = {.rest = headers_raw};

    *out = *from;
    out->headers = arena_array(a, from->header_count, sizeof(*out->headers));
    out->header_count = 0;
    for (size_t i = 0; out->headers && i < from->header_count; i++) {
        struct str name = get_str(&c), value = get_str(&c);
        if (http_field_is_valid(name, value)) /* an older weir stored invalid headers */
            out->headers[out->header_count++] =
                (struct http_header){arena_str(a, name), arena_str(a, value)};
    }
    out->tags = arena_str(a, from->tags);
    out->acl = arena_str(a, from->acl);
    out->owner = arena_str(a, from->owner);
    out->storage_class = arena_str(a, from->storage_class);
    out->encryption = arena_str(a, from->encryption);
    out->checksum.value = arena_str(a, from->checksum.value);
    return arena_error(a);
}

static void put_where(struct buf *out, const struct object_record *r)
{
    varint_append(out, r->where);
    if (r->where == WHERE_INLINE || r->where == WHERE_BLOB || r->where == WHERE_PARTED)
        varint_append(out, r->id);
    if (r->where == WHERE_BLOB)
        varint_append(out, r->offset);
    if (r->where == WHERE_INLINE || r->where == WHERE_PARTED)
        varint_append(out, r->checksum);
    if (r->where == WHERE_PARTS || r->where == WHERE_PARTED)
        varint_append(out, r->part_count);
    if (r->where == WHERE_PARTS)
        record_put_str(out, r->parts);
}

static void get_where(struct cursor *c, struct object_record *r)
{
    r->where = (enum where)get_below(c, WHERE_KINDS);
    if (r->where == WHERE_INLINE || r->where == WHERE_BLOB || r->where == WHERE_PARTED)
        r->id = get_u64(c);
    if (r->where == WHERE_BLOB)
        r->offset = get_u64(c);
    if (r->where == WHERE_INLINE || r->where == WHERE_PARTED)
        r->checksum = get_u64(c);
    if (r->where == WHERE_PARTS || r->where == WHERE_PARTED)
        r->part_count = (uint32_t)get_below(c, OBJECT_MAX_PARTS + 1);
    if (r->where == WHERE_PARTS)
        r->parts = get_str(c);
}

struct condition_state record_state(const struct object_record *r)
{
    return (struct condition_state){
        .there = r->sequence > 0, .etag = r->etag, .modified_ms = r->modified_ms, .size = r->size};
}

uint64_t record_stored(const struct object_record *r)
{
    return r->meta.encryption.len ? sealed_size(r->size) : r->size;
}

void record_count(struct bucket_usage *u, const struct object_record *r, bool is_current, int sign)
{
    if (r->is_marker)
        return;
    *(is_current ? &u->objects : &u->old_versions) += sign < 0 ? UINT64_MAX : 1;
    *(is_current ? &u->bytes : &u->old_bytes) += sign < 0 ? 0 - r->size : r->size;
}

void record_put(struct buf *out, const struct object_record *r)
{
    buf_append_char(out, FORMAT);
    varint_append(out, (r->is_null ? FLAG_NULL : 0u) | (r->is_marker ? FLAG_MARKER : 0u));
    varint_append(out, r->sequence);
    varint_append(out, (uint64_t)r->modified_ms);
    varint_append(out, r->size);
    record_put_str(out, r->etag);
    put_where(out, r);
    record_put_meta(out, &r->meta, r->headers_raw);
}

int record_get(struct str in, struct object_record *out, struct err *err)
{
    struct cursor c;

    *out = (struct object_record){0};
    cursor_begin(&c, in);
    uint64_t flags = get_below(&c, FLAGS_ALL + 1);
    out->is_null = flags & FLAG_NULL;
    out->is_marker = flags & FLAG_MARKER;
    out->sequence = get_u64(&c);
    out->modified_ms = (int64_t)get_below(&c, INT64_MAX);
    out->size = get_u64(&c);
    out->etag = get_str(&c);
    get_where(&c, out);
    get_meta(&c, &out->meta, &out->headers_raw);
    return cursor_end(&c, "an object", err);
}

int record_info(const struct object_record *r, struct arena *a, bool full, struct object_info *out,
                struct err *err)
{
    struct object_meta shown = {.owner = r->meta.owner,
                                .storage_class = r->meta.storage_class,
                                .checksum = r->meta.checksum};

    out->is_marker = r->is_marker;
    out->size = r->size;
    out->modified_ms = r->modified_ms;
    out->part_count = r->part_count;
    out->etag = arena_str(a, r->etag);
    int code =
        meta_copy(full ? &r->meta : &shown, full ? r->headers_raw : STR_EMPTY, a, &out->meta);
    return code < 0 ? err_code(err, code) : 0;
}

void piece_put(struct buf *out, const struct piece *p)
{
    varint_append(out, p->number);
    varint_append(out, p->blob);
    varint_append(out, p->offset);
    varint_append(out, p->size);
    put_checksum(out, &p->checksum);
}

int piece_next(struct str *list, struct piece *out, struct err *err)
{
    struct cursor c = {.rest = *list};

    if (list->len == 0)
        return err_code(err, ERR_END);
    out->number = (uint32_t)get_below(&c, OBJECT_MAX_PARTS + 1);
    out->blob = get_u64(&c);
    out->offset = get_u64(&c);
    out->size = get_u64(&c);
    out->checksum = (struct object_checksum){0};
    get_checksum(&c, &out->checksum);
    if (c.failed)
        return err_set(err, ERR_CORRUPT, "a list of parts cannot be read");
    *list = c.rest;
    return 0;
}

void bucket_record_put(struct buf *out, const struct bucket_record *r)
{
    buf_append_char(out, FORMAT);
    varint_append(out, r->id);
    varint_append(out, (uint64_t)r->info.created_ms);
    varint_append(out, (uint64_t)r->info.versions);
    varint_append(out, r->info.object_lock);
    record_put_str(out, r->info.owner);
    unsigned has =
        (r->info.notifies ? BUCKET_NOTIFIES : 0u) | (r->logical.id ? BUCKET_LOGICAL : 0u);
    if (has)
        varint_append(out, has);
    if (r->logical.id) {
        varint_append(out, r->logical.id);
        record_put_str(out, r->logical.name);
    }
}

int bucket_record_get(struct str in, struct bucket_record *out, struct err *err)
{
    struct cursor c;

    *out = (struct bucket_record){0};
    cursor_begin(&c, in);
    out->id = get_u64(&c);
    out->info.created_ms = (int64_t)get_below(&c, INT64_MAX);
    uint64_t versions = get_below(&c, VERSIONS_SUSPENDED + 1);
    out->info.versions = versions == VERSIONS_ON          ? VERSIONS_ON
                         : versions == VERSIONS_SUSPENDED ? VERSIONS_SUSPENDED
                                                          : VERSIONS_NEVER;
    out->info.object_lock = get_below(&c, 2);
    out->info.owner = get_str(&c);
    bool has_more = c.rest.len > 0;
    uint64_t has = has_more ? get_below(&c, BUCKET_HAS_ALL + 1) : 0;
    out->info.notifies = has & BUCKET_NOTIFIES;
    if (has & BUCKET_LOGICAL) {
        out->logical.id = get_u64(&c);
        out->logical.name = get_str(&c);
        c.failed |= !out->logical.id || !out->logical.name.len;
    }
    c.failed |= has_more && !has;
    return cursor_end(&c, "a bucket", err);
}

void usage_record_put(struct buf *out, const struct bucket_usage *u)
{
    buf_append_char(out, FORMAT);
    varint_append(out, u->objects);
    varint_append(out, u->bytes);
    varint_append(out, u->old_versions);
    varint_append(out, u->old_bytes);
}

int usage_record_get(struct str in, struct bucket_usage *out, struct err *err)
{
    struct cursor c;

    *out = (struct bucket_usage){0};
    cursor_begin(&c, in);
    out->objects = get_u64(&c);
    out->bytes = get_u64(&c);
    out->old_versions = get_u64(&c);
    out->old_bytes = get_u64(&c);
    return cursor_end(&c, "what a bucket holds", err);
}

unsigned set_things(enum meta_set set)
{
    unsigned things = 0;

    if (set & META_TAGS)
        things |= THING_OBJECT_TAGS;
    if (set & META_ACL)
        things |= THING_OBJECT_ACL;
    if (set & ~((unsigned)META_TAGS | META_ACL))
        things |= THING_OBJECT;
    return things;
}

unsigned document_things(struct str name)
{
    return str_eq(name, STR("tagging")) ? THING_BUCKET_TAGS
           : str_eq(name, STR("acl"))   ? THING_BUCKET_ACL
                                        : THING_BUCKET;
}

/* A tap's row stores what changed as an index into this table. */
enum { TAP_SET = 3, TAP_DOCUMENT = 6 };
static const unsigned tap_changes[] = {
    CHANGE_PUT | THINGS_OF_OBJECT,
    CHANGE_MARKER | THING_OBJECT,
    CHANGE_REMOVED | THING_OBJECT,
    [TAP_SET] = 0, /* the row's `set` says what changed */
    CHANGE_BUCKET_MADE,
    CHANGE_BUCKET_GONE,
    [TAP_DOCUMENT] = 0, /* the row's `document` says what changed */
    THING_BUCKET,
};

static size_t tap_code(const struct tapped *t)
{
    size_t code = 0;

    if (t->set || t->document.len)
        return t->set ? TAP_SET : TAP_DOCUMENT;
    while (code < ARRAY_SIZE(tap_changes) && tap_changes[code] != t->changes)
        code++;
    BUG_ON(code == ARRAY_SIZE(tap_changes));
    return code;
}

/* Appends the row's value. The change's number is not in it but in the row's key. */
void tap_record_put(struct buf *out, const struct tapped *t)
{
    buf_append_char(out, FORMAT);
    varint_append(out, tap_code(t));
    record_put_str(out, t->bucket);
    record_put_str(out, t->owner);
    record_put_str(out, t->key);
    record_put_str(out, t->version);
    record_put_str(out, t->document);
    varint_append(out, (uint64_t)t->set);
    varint_append(out, t->size);
}

int tap_record_get(struct str in, struct tapped *out, struct err *err)
{
    struct cursor c;

    *out = (struct tapped){0};
    cursor_begin(&c, in);
    uint64_t code = get_below(&c, ARRAY_SIZE(tap_changes));
    out->bucket = get_str(&c);
    out->owner = get_str(&c);
    out->key = get_str(&c);
    out->version = get_str(&c);
    out->document = get_str(&c);
    out->set = (enum meta_set)get_below(&c, 2 * META_CLASS);
    out->size = get_u64(&c);
    if ((out->set && code != TAP_SET) || (out->document.len > 0) != (code == TAP_DOCUMENT))
        c.failed = true;
    out->changes = code == TAP_SET        ? set_things(out->set)
                   : code == TAP_DOCUMENT ? document_things(out->document)
                                          : tap_changes[c.failed ? 0 : code];
    return cursor_end(&c, "a change", err);
}

void upload_record_put(struct buf *out, const struct upload_record *r)
{
    buf_append_char(out, FORMAT);
    varint_append(out, (uint64_t)r->started_ms);
    record_put_meta(out, &r->meta, r->headers_raw);
}

int upload_record_get(struct str in, struct upload_record *out, struct err *err)
{
    struct cursor c;

    *out = (struct upload_record){0};
    cursor_begin(&c, in);
    out->started_ms = (int64_t)get_below(&c, INT64_MAX);
    get_meta(&c, &out->meta, &out->headers_raw);
    return cursor_end(&c, "an upload", err);
}

int upload_record_info(const struct upload_record *r, struct arena *a, struct upload_info *out,
                       struct err *err)
{
    out->started_ms = r->started_ms;
    int code = meta_copy(&r->meta, r->headers_raw, a, &out->meta);
    return code < 0 ? err_code(err, code) : 0;
}

void part_record_put(struct buf *out, const struct part_record *r)
{
    buf_append_char(out, FORMAT);
    varint_append(out, r->size);
    varint_append(out, r->blob);
    varint_append(out, r->offset);
    varint_append(out, (uint64_t)r->modified_ms);
    record_put_str(out, r->etag);
    put_checksum(out, &r->checksum);
}

int part_record_get(struct str in, struct part_record *out, struct err *err)
{
    struct cursor c;

    *out = (struct part_record){0};
    cursor_begin(&c, in);
    out->size = get_u64(&c);
    out->blob = get_u64(&c);
    out->offset = get_u64(&c);
    out->modified_ms = (int64_t)get_below(&c, INT64_MAX);
    out->etag = get_str(&c);
    get_checksum(&c, &out->checksum);
    return cursor_end(&c, "a part", err);
}

void blob_record_put(struct buf *out, const struct blob_record *r)
{
    buf_append_char(out, FORMAT);
    varint_append(out, r->refs);
    varint_append(out, r->size);
    varint_append(out, r->checksum);
}

int blob_record_get(struct str in, struct blob_record *out, struct err *err)
{
    struct cursor c;

    *out = (struct blob_record){0};
    cursor_begin(&c, in);
    out->refs = get_u64(&c);
    out->size = get_u64(&c);
    out->checksum = get_u64(&c);
    return cursor_end(&c, "a blob", err);
}

void finish_record_put(struct buf *out, const struct finish_record *r)
{
    buf_append_char(out, FORMAT);
    varint_append(out, (uint64_t)r->until_ms);
    varint_append(out, r->request);
    varint_append(out, r->sequence);
    varint_append(out, r->versioned);
    varint_append(out, r->size);
    varint_append(out, (uint64_t)r->modified_ms);
    record_put_str(out, r->etag);
}

int finish_record_get(struct str in, struct finish_record *out, struct err *err)
{
    struct cursor c;

    *out = (struct finish_record){0};
    cursor_begin(&c, in);
    out->until_ms = (int64_t)get_below(&c, INT64_MAX);
    out->request = get_u64(&c);
    out->sequence = get_u64(&c);
    out->versioned = get_below(&c, 2);
    out->size = get_u64(&c);
    out->modified_ms = (int64_t)get_below(&c, INT64_MAX);
    out->etag = get_str(&c);
    return cursor_end(&c, "a finished upload", err);
}
