/* Reading a stored object by ranges. */
#include "archive/bundle_int.h"

enum { RANGES_STEP = 64 * 1024, RANGES_STEP_MAX = 64 * 1024 * 1024, RANGES_GROW = 4 };

int bundle_get(const struct bundle_job *job, struct arena *a, const struct object_conditions *c,
               const struct object_range *range, struct get_result *out, struct err *err)
{
    struct bucket *b = job->bucket;
    int code = b->ops->get(b, a, job->key, STR_EMPTY, c, range, out, err);

    if (code == 0 && out->unlock) {
        reader_close(out->body);
        return err_set(err, ERR_UNSUPPORTED, "the bundle is sealed, and its key is not at hand");
    }
    return code;
}

static int ranges_next(struct bundle_ranges *r, struct err *err)
{
    uint64_t len = r->step < r->size - r->at ? r->step : r->size - r->at;
    struct object_range range = {RANGE_FROM_TO, r->at, r->at + len - 1};
    struct object_conditions same = {.if_match = r->etag};
    struct bundle_job job = {.bucket = r->bucket, .key = r->key};
    struct get_result got = {0};

    reader_close(r->body);
    r->body = NULL;
    arena_reset(&r->arena);
    int code = bundle_get(&job, &r->arena, &same, &range, &got, err);
    if (code < 0)
        return code == ERR_PRECONDITION ? err_set(err, code, "the bundle has changed") : code;
    r->body = got.body;
    r->left = len;
    r->at += len;
    if (r->step < RANGES_STEP_MAX)
        r->step *= RANGES_GROW;
    return 0;
}

static int ranges_read(struct reader *reader, void *to, size_t len, size_t *got, struct err *err)
{
    struct bundle_ranges *r = container_of(reader, struct bundle_ranges, reader);
    int code = 0;

    *got = 0;
    while (code == 0 && *got == 0 && (r->left || r->at < r->size)) {
        if (r->left == 0) {
            code = ranges_next(r, err);
            continue;
        }
        code = reader_read(r->body, to, len < r->left ? len : (size_t)r->left, got, err);
        if (code == 0 && *got == 0)
            code = err_set(err, ERR_CLOSED, "the storage sends less of the bundle than it has");
        r->left -= code == 0 ? *got : 0;
    }
    return code;
}

static const struct reader_ops ranges_ops = {.read = ranges_read};

void bundle_ranges_init(struct bundle_ranges *r, const struct bundle_job *job,
                        const struct object_info *info, uint64_t at)
{
    *r = (struct bundle_ranges){.reader = {&ranges_ops},
                                .bucket = job->bucket,
                                .key = job->key,
                                .etag =
                                    arena_fmt(job->arena, "\"" STR_FMT "\"", STR_ARG(info->etag)),
                                .at = at,
                                .size = info->size,
                                .step = RANGES_STEP,
                                .arena = ARENA_INIT(0)};
}

void bundle_ranges_release(struct bundle_ranges *r)
{
    reader_close(r->body);
    arena_release(&r->arena);
    *r = (struct bundle_ranges){0};
}
