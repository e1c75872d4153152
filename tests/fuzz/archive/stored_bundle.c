/* Stored bundles: an object with any metadata and bytes is opened, and if it opens, a pack is
 * appended to it. Either nothing is written, or the new object opens and has the sum of the
 * objects. The input has lines `name: value` of metadata, a NUL, and the bytes of the object. */
#include "archive/bundle.h"
#include "object/digest.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A bucket of one object in memory. */
struct memory_bucket {
    struct bucket bucket;
    struct buf bytes;
    struct http_header headers[BUNDLE_HEADERS_MAX];
    size_t header_count;
    struct str_reader body;
    bool was_put;
};

static int memory_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                      const struct object_conditions *c, const struct object_range *range,
                      struct get_result *out, struct err *err)
{
    struct memory_bucket *m = container_of(b, struct memory_bucket, bucket);

    (void)a, (void)version, (void)c;
    if (range->first >= m->bytes.len)
        return err_code(err, ERR_RANGE);
    out->info = (struct object_info){.key = key, .size = m->bytes.len, .etag = STR("e")};
    out->info.meta.headers = m->headers;
    out->info.meta.header_count = m->header_count;
    out->first = range->first;
    out->len = size_min(m->bytes.len - range->first, range->last - range->first + 1);
    str_reader_init(&m->body, str_n(m->bytes.p + out->first, out->len));
    out->body = &m->body.reader;
    return 0;
}

static int memory_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                      uint64_t size, const struct put_options *o, struct put_result *out,
                      struct err *err)
{
    struct memory_bucket *m = container_of(b, struct memory_bucket, bucket);
    struct object_meta meta = o->meta;
    struct buf all = BUF_INIT(0);

    (void)a, (void)key, (void)size;
    int code = reader_read_all(body, &all, err);
    if (code == 0)
        code = o->verify(o->ctx, &meta, err);
    if (code < 0) {
        buf_release(&all);
        return code;
    }
    buf_release(&m->bytes);
    m->bytes = all;
    m->header_count = meta.header_count;
    memcpy(m->headers, meta.headers, meta.header_count * sizeof(*meta.headers));
    m->was_put = true;
    *out = (struct put_result){.etag = STR("f"), .size = all.len};
    return 0;
}

static const struct bucket_ops memory_ops = {.get = memory_get, .put = memory_put};

static void memory_fill(struct memory_bucket *m, struct arena *a, struct str input)
{
    struct str meta, line, name, value;

    *m = (struct memory_bucket){.bucket = {.ops = &memory_ops, .can = STORAGE_ANY_LENGTH}};
    str_cut(input, '\0', &meta, &input);
    while (meta.len && m->header_count < BUNDLE_HEADERS_MAX) {
        str_cut(meta, '\n', &line, &meta);
        str_cut(line, ':', &name, &value);
        m->headers[m->header_count++] = (struct http_header){
            arena_fmt(a, "x-amz-meta-" STR_FMT, STR_ARG(name)), str_trim(value)};
    }
    buf_append_str(&m->bytes, input);
}

/* A pack with one empty blob. */
static void pack_of_a_blob(struct buf *pack, bool is_sha256)
{
    struct digest_value sum;

    buf_append(pack, "PACK\0\0\0\2\0\0\0\1\x30\x78\x9c\3\0\0\0\0\1", 21);
    digest_of(is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1, buf_str(pack), &sum);
    buf_append(pack, sum.bytes, sum.len);
}

static void bundle_try(struct bundle_job *job, struct memory_bucket *m)
{
    struct buf pack = {0};
    struct bundle_result out;
    struct bundle_old old, new;
    struct bundle_wants w;
    struct str_reader from;
    struct git_refs refs;
    struct err err = {0};

    if (bundle_open(&old, job, &err) < 0)
        return;
    git_refs_init(&refs, old.header.refs.is_sha256);
    bundle_wants_init(&w, &old, &refs, BUNDLE_WANTS_MAX);
    BUG_ON(w.fetch.want_count != 0);
    pack_of_a_blob(&pack, refs.is_sha256);
    str_reader_init(&from, buf_str(&pack));
    int code = bundle_append(job, &old, &refs, &from.reader, &out, &err);
    BUG_ON((code == 0) != m->was_put || (code < 0 && err.text[0] == '\0'));
    if (code == 0) {
        BUG_ON(bundle_open(&new, job, &err) < 0 || !new.has_meta);
        BUG_ON(new.objects != old.objects + 1 || new.meta.objects != new.objects);
        bundle_old_release(&new);
    }
    bundle_wants_release(&w);
    git_refs_release(&refs);
    bundle_old_release(&old);
    buf_release(&pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct memory_bucket m;
    struct bundle_job job = {.bucket = &m.bucket,
                             .arena = &a,
                             .key = STR("k"),
                             .now_s = 5,
                             .fence = 7,
                             .check = {.walk = true, .limits = {1 << 20, 1 << 22, 1 << 20, 200}}};

    memory_fill(&m, &a, str_n(data, size));
    bundle_try(&job, &m);
    buf_release(&m.bytes);
    arena_release(&a);
    return 0;
}
