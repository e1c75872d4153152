/* A bucket in front of another one. */
#include "unit/archive/watched_bucket.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* A reader that counts. */
struct counted {
    struct reader reader;
    struct reader *from;
    uint64_t *count;
    bool owned;
    const uint64_t *cut_at; /* NULL: the connection never breaks */
};

static int counted_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct counted *c = container_of(r, struct counted, reader);

    if (c->cut_at && *c->cut_at) {
        if (*c->count >= *c->cut_at)
            return err_set(err, ERR_CLOSED, "the test cuts the connection");
        len = len < *c->cut_at - *c->count ? len : (size_t)(*c->cut_at - *c->count);
    }
    int code = reader_read(c->from, to, len, got, err);

    *c->count += code == 0 ? *got : 0;
    return code;
}

static void counted_close(struct reader *r)
{
    struct counted *c = container_of(r, struct counted, reader);

    reader_close(c->from);
    if (c->owned)
        free(c);
}

static const struct reader_ops counted_ops = {.read = counted_read, .close = counted_close};

static struct watched_bucket *watched_of(struct bucket *b)
{
    return container_of(b, struct watched_bucket, bucket);
}

/* Has one of the two faults, if it is this call's turn. */
static int watched_fault(struct watched_bucket *w, enum watched_fault fails,
                         enum watched_fault kills, struct err *err)
{
    if (!w->fail_at || w->calls != w->fail_at)
        return 0;
    if (w->fault == kills)
        kill(getpid(), SIGKILL);
    return w->fault == fails ? err_set(err, ERR_UNAVAILABLE, "the test says so") : 0;
}

static int watched_begin(struct watched_bucket *w, struct err *err)
{
    w->calls++;
    return watched_fault(w, WATCHED_FAILS, WATCHED_KILLS, err);
}

static int watched_end(struct watched_bucket *w, int code, struct err *err)
{
    return code < 0 ? code : watched_fault(w, WATCHED_FAILS_LATE, WATCHED_KILLS_LATE, err);
}

static int watched_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                       const struct object_conditions *c, const struct object_range *range,
                       struct get_result *out, struct err *err)
{
    struct watched_bucket *w = watched_of(b);
    int code = w->inner->ops->get(w->inner, a, key, version, c, range, out, err);

    if (code == 0) {
        struct counted *r = xzalloc(sizeof(*r));
        *r = (struct counted){{&counted_ops}, out->body, &w->read, true, &w->cut_at};
        out->body = &r->reader;
    }
    return code;
}

static void watched_body(struct watched_bucket *w, struct counted *c, struct reader *body,
                         uint64_t size)
{
    BUG_ON(size == UINT64_MAX && !(w->bucket.can & STORAGE_ANY_LENGTH));
    *c = (struct counted){{&counted_ops}, body, &w->written, false, NULL};
}

static int watched_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                       uint64_t size, const struct put_options *o, struct put_result *out,
                       struct err *err)
{
    struct watched_bucket *w = watched_of(b);
    struct counted c;
    int code = watched_begin(w, err);

    watched_body(w, &c, body, size);
    if (code == 0)
        code = w->inner->ops->put(w->inner, a, key, &c.reader, size, o, out, err);
    return watched_end(w, code, err);
}

static int watched_upload_begin(struct bucket *b, struct arena *a, struct str key,
                                const struct object_meta *meta, struct str *id, struct err *err)
{
    struct watched_bucket *w = watched_of(b);
    int code = watched_begin(w, err);

    if (code == 0)
        code = w->inner->ops->upload_begin(w->inner, a, key, meta, id, err);
    return watched_end(w, code, err);
}

static int watched_upload_part(struct bucket *b, struct arena *a, const struct upload_info *upload,
                               uint32_t number, struct reader *body, uint64_t size,
                               const struct put_options *o, struct upload_part *out,
                               struct err *err)
{
    struct watched_bucket *w = watched_of(b);
    struct counted c;
    int code = watched_begin(w, err);

    watched_body(w, &c, body, size);
    w->parts++;
    if (code == 0)
        code =
            w->inner->ops->upload_part(w->inner, a, upload, number, &c.reader, size, o, out, err);
    return watched_end(w, code, err);
}

static int watched_upload_part_copy(struct bucket *b, struct arena *a,
                                    const struct upload_info *upload, uint32_t number,
                                    struct bucket *from, const struct object_info *source,
                                    const struct object_range *range, struct upload_part *out,
                                    struct err *err)
{
    struct watched_bucket *w = watched_of(b);
    int code = watched_begin(w, err);

    BUG_ON(from != b);
    if (w->copies_no_parts)
        return err_code(err, ERR_UNSUPPORTED);
    w->copies++;
    if (code == 0)
        code = w->inner->ops->upload_part_copy(w->inner, a, upload, number, w->inner, source, range,
                                               out, err);
    return watched_end(w, code, err);
}

static int watched_upload_finish(struct bucket *b, struct arena *a,
                                 const struct upload_info *upload, const struct upload_part *parts,
                                 size_t count, const struct put_options *o, struct put_result *out,
                                 struct err *err)
{
    struct watched_bucket *w = watched_of(b);
    int code = watched_begin(w, err);

    if (code == 0)
        code = w->inner->ops->upload_finish(w->inner, a, upload, parts, count, o, out, err);
    return watched_end(w, code, err);
}

static int watched_upload_abort(struct bucket *b, const struct upload_info *upload, struct err *err)
{
    struct bucket *inner = watched_of(b)->inner;

    return inner->ops->upload_abort(inner, upload, err);
}

static int watched_object_parts(struct bucket *b, struct arena *a, const struct object_info *object,
                                uint32_t after, size_t limit, struct part_list *out,
                                struct err *err)
{
    struct bucket *inner = watched_of(b)->inner;

    return inner->ops->object_parts(inner, a, object, after, limit, out, err);
}

static const struct bucket_ops watched_ops = {
    .get = watched_get,
    .put = watched_put,
    .upload_begin = watched_upload_begin,
    .upload_part = watched_upload_part,
    .upload_part_copy = watched_upload_part_copy,
    .upload_finish = watched_upload_finish,
    .upload_abort = watched_upload_abort,
    .object_parts = watched_object_parts,
};

void watched_bucket_init(struct watched_bucket *w, struct bucket *inner, bool any_length)
{
    *w = (struct watched_bucket){.bucket = {.ops = &watched_ops,
                                            .name = inner->name,
                                            .can = any_length ? STORAGE_ANY_LENGTH : 0},
                                 .inner = inner};
}
