/* Moves one object between the two satellites of a shelf: compares it, copies it, and checks its
 * bytes on the way. */
#include "archive/move_int.h"
#include "archive/pack.h"

#include "base/hex.h"
#include "copy/same.h"
#include "object/md5.h"

#include <stdlib.h>

enum { MOVE_LINE_MAX = 64 }; /* longest line of a bundle's header that is kept, in bytes */

/* --- checking a body as it flows --- */

/* Finds the pack in a bundle while the bundle's bytes are copied, and checks the pack's trailer. */
struct bundle_flow {
    char line[MOVE_LINE_MAX];
    size_t len;   /* bytes of the current line, including those that are not kept */
    size_t lines; /* lines that have ended */
    bool is_sha256;
    struct pack_check *pack; /* NULL while the header is being read */
};

/* A reader that returns the bytes of a body unchanged, and computes their MD5. */
struct move_body {
    struct reader reader;
    struct reader *from;
    struct digests *md5;
    uint64_t bytes;
    bool is_bundle;
    struct bundle_flow bundle;
    const struct move_object *move;
};

static int bundle_flow_line(struct bundle_flow *b, struct err *err)
{
    struct str line = str_n(b->line, size_min(b->len, sizeof(b->line)));
    struct pack_options o = {.is_sha256 = b->is_sha256, .limits = {.pack = UINT64_MAX}};

    if (b->lines == 0 && !str_eq(line, STR("# v2 git bundle")) &&
        !str_eq(line, STR("# v3 git bundle")))
        return err_set(err, ERR_CORRUPT, "the object is not a bundle");
    b->is_sha256 |= str_eq(line, STR("@object-format=sha256"));
    if (b->len == 0)
        b->pack = pack_check_new(&o);
    b->lines++;
    b->len = 0;
    return 0;
}

static int bundle_flow_add(struct bundle_flow *b, struct str bytes, struct err *err)
{
    int code = 0;

    while (bytes.len && !b->pack && code == 0) {
        char c = bytes.p[0];
        if (c == '\n')
            code = bundle_flow_line(b, err);
        else if (b->len++ < sizeof(b->line))
            b->line[b->len - 1] = c;
        bytes = str_skip(bytes, 1);
    }
    if (code == 0 && bytes.len)
        code = pack_check_add(b->pack, bytes, err);
    return code == ERR_PARSE || code == ERR_TOO_LARGE ? err_wrap(err, ERR_CORRUPT, "the bundle")
                                                      : code;
}

static int bundle_flow_end(struct bundle_flow *b, struct err *err)
{
    struct pack_result result;
    int code = b->pack ? pack_check_end(b->pack, &result, err)
                       : err_set(err, ERR_CORRUPT, "the bundle has no pack");

    return code == ERR_PARSE ? err_wrap(err, ERR_CORRUPT, "the bundle") : code;
}

static int move_body_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct move_body *b = (struct move_body *)r;
    int code = reader_read(b->from, to, len, got, err);

    if (code < 0)
        return code;
    struct str bytes = str_n(to, *got);
    b->bytes += *got;
    digests_update(b->md5, bytes);
    return b->is_bundle ? bundle_flow_add(&b->bundle, bytes, err) : 0;
}

static const struct reader_ops move_body_ops = {.read = move_body_read};

static void move_body_init(struct move_body *b, const struct move_object *m, struct reader *from,
                           bool check_pack)
{
    *b = (struct move_body){.reader = {&move_body_ops},
                            .from = from,
                            .md5 = digests_new(1U << DIGEST_MD5),
                            .is_bundle = check_pack,
                            .move = m};
}

static void move_body_release(struct move_body *b)
{
    digests_free(b->md5);
    pack_check_free(b->bundle.pack);
}

/* Whether the ETag is the MD5 of the object's bytes. */
static bool etag_is_md5(const struct object_info *o)
{
    if (o->etag.len != 2 * MD5_LEN || o->meta.encryption.len)
        return false;
    for (size_t i = 0; i < o->etag.len; i++)
        if (!strchr("0123456789abcdef", o->etag.p[i]))
            return false;
    return true;
}

/* Called after the last byte of the body, before the copy becomes visible. */
static int move_body_prove(void *ctx, struct object_meta *meta, struct err *err)
{
    struct move_body *b = ctx;
    const struct object_info *source = &b->move->source;
    struct digest_value md5;
    char hex[2 * MD5_LEN + 1];

    if (b->bytes != source->size)
        return err_set(err, ERR_CORRUPT, "the object has %llu bytes instead of %llu",
                       (unsigned long long)b->bytes, (unsigned long long)source->size);
    digests_final(b->md5, DIGEST_MD5, &md5);
    hex_write(hex, md5.bytes, md5.len);
    if (etag_is_md5(source) && !str_eq(str_n(hex, 2 * MD5_LEN), source->etag))
        return err_set(err, ERR_CORRUPT, "the object's bytes do not have the MD5 of its ETag");
    return b->is_bundle ? bundle_flow_end(&b->bundle, err) : 0;
}

/* --- comparing --- */

static bool header_is_mtime(const struct http_header *h)
{
    return str_ieq(h->name, STR("x-amz-meta-mtime"));
}

/* Fills the headers of the copy: those of the source, plus x-amz-meta-mtime if the source has
 * none. */
static int move_meta(const struct move_object *m, struct object_meta *out, struct err *err)
{
    const struct object_meta *meta = &m->source.meta;
    struct http_header *headers =
        arena_alloc(m->arena, (meta->header_count + 1) * sizeof(*headers));
    bool has_mtime = false;

    if (!headers)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < meta->header_count; i++) {
        headers[i] = meta->headers[i];
        has_mtime |= header_is_mtime(&headers[i]);
    }
    *out = (struct object_meta){.headers = headers, .header_count = meta->header_count};
    if (!has_mtime)
        headers[out->header_count++] = shelf_mtime(m->arena, m->source.modified_ms);
    return 0;
}

/* Computes the SHA-256 of an object on one side. */
static int move_digest(const struct move_object *m, enum shelf_side side, struct str key,
                       struct str etag, struct digest_value *out, struct err *err)
{
    enum { PIECE = 64 * 1024 };
    struct digests *d = digests_new(1U << DIGEST_SHA256);
    struct shelf_body body = {0};
    char *piece = xzalloc(PIECE);
    size_t got = 1;
    int code = shelf_side_get(m->shelf, m->arena, side, key, etag, NULL, &body, err);

    while (code == 0 && got) {
        code = reader_read(body.body, piece, PIECE, &got, err);
        if (code == 0)
            digests_update(d, str_n(piece, got));
    }
    digests_final(d, DIGEST_SHA256, out);
    digests_free(d);
    shelf_body_close(&body);
    free(piece);
    return code;
}

/* Reads and compares both objects; used when their ETags cannot be compared. */
static int move_same_bytes(const struct move_object *m, const struct object_info *there, bool *same,
                           struct err *err)
{
    struct digest_value left, right;
    int code = move_digest(m, SHELF_FROM, m->source.key, m->source.etag, &left, err);

    if (code == 0)
        code = move_digest(m, SHELF_TO, there->key, there->etag, &right, err);
    *same = code == 0 && digest_is(&left, &right);
    return code;
}

int move_compare(const struct move_object *m, struct str to, enum move_state *out, struct err *err)
{
    struct object_info there;
    struct object_meta meta;
    int code = shelf_side_head(m->shelf, m->arena, SHELF_TO, to, &there, err);

    *out = MOVE_MISSING;
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    there.key = to;
    *out = MOVE_OTHER;
    code = move_meta(m, &meta, err);
    bool same = code == 0 && there.size == m->source.size && same_headers(&meta, &there.meta);
    if (same && !str_eq(there.etag, m->source.etag)) {
        if (etag_is_md5(&there) && etag_is_md5(&m->source))
            same = false;
        else
            code = move_same_bytes(m, &there, &same, err);
    }
    if (code == 0 && same)
        *out = MOVE_SAME;
    return code;
}

/* --- copying --- */

/* Lists the parts of the source. An empty list: the source was put as a whole. */
static int move_parts(const struct move_object *m, struct part_list *out, struct err *err)
{
    struct object_place p;

    *out = (struct part_list){0};
    if (m->source.part_count < 1)
        return 0;
    int code = shelf_open_read(&p, m->shelf, m->arena, SHELF_FROM, m->source.key, err);
    if (code < 0)
        return code;
    if (p.bucket->ops->object_parts)
        code = p.bucket->ops->object_parts(p.bucket, m->arena, &m->source, 0, OBJECT_MAX_PARTS, out,
                                           err);
    return object_place_end(&p, code, err);
}

static int move_put_parts(const struct move_object *m, struct str to, struct move_body *body,
                          const struct part_list *parts, const struct put_options *o,
                          struct err *err)
{
    struct upload_part *done = arena_alloc(m->arena, parts->count * sizeof(*done));
    struct upload_info upload;
    struct put_result result;
    struct err ignored = {0};
    int code = done ? shelf_upload_begin(m->shelf, m->arena, to, &o->meta, &upload, err)
                    : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    for (size_t i = 0; i < parts->count && code == 0; i++) {
        struct limit_reader part;
        limit_reader_init(&part, &body->reader, parts->parts[i].size);
        code = shelf_upload_part(m->shelf, m->arena, &upload, parts->parts[i].number, &part.reader,
                                 parts->parts[i].size, &done[i], err);
    }
    if (code == 0)
        code = move_body_prove(body, NULL, err);
    if (code == 0)
        code = shelf_upload_finish(m->shelf, m->arena, &upload, done, parts->count, &o->conditions,
                                   &result, err);
    if (code < 0 && shelf_upload_abort(m->shelf, &upload, &ignored) < 0)
        log_warn(m->shelf->satellites->o.log, "archive.upload_left", log_s("key", to),
                 log_z("error", ignored.text));
    return code;
}

int move_copy(const struct move_object *m, struct str to, bool check_pack, struct err *err)
{
    struct put_options o = {.conditions = {.if_none_match = STR("*")}};
    struct shelf_body from = {0};
    struct move_body body;
    struct part_list parts = {0};
    struct put_result result;
    int code = move_meta(m, &o.meta, err);

    if (code == 0)
        code = move_parts(m, &parts, err);
    if (code == 0)
        code = shelf_side_get(m->shelf, m->arena, SHELF_FROM, m->source.key, m->source.etag, NULL,
                              &from, err);
    if (code < 0)
        return code == ERR_PRECONDITION ? err_code(err, ERR_CONFLICT) : code;
    move_body_init(&body, m, from.body, check_pack);
    o.verify = move_body_prove;
    o.ctx = &body;
    code = parts.count
               ? move_put_parts(m, to, &body, &parts, &o, err)
               : shelf_put(m->shelf, m->arena, to, &body.reader, m->source.size, &o, &result, err);
    move_body_release(&body);
    shelf_body_close(&from);
    return code == ERR_PRECONDITION ? err_code(err, ERR_CONFLICT) : code;
}
