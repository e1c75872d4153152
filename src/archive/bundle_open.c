/* Reading the header of a stored bundle. */
#include "archive/bundle_int.h"

#include "base/bytes.h"
#include "base/hex.h"

#include <stdlib.h>

enum { OPEN_FIRST = 64 * 1024 }; /* bytes that the first request asks for */

/* A reader that bundle_header_read() reads byte by byte. It hashes the bytes that were read. */
struct open_reader {
    struct reader reader;
    /* NULL: `bytes` already has the beginning of the object, and `rest` reads the bytes behind
     * it. */
    struct reader *from;
    struct reader *rest;
    struct digests *sum;
    char bytes[OPEN_FIRST];
    size_t at, end;
};

static void open_hash(struct open_reader *r)
{
    digests_update(r->sum, str_n(r->bytes, r->at));
    memmove(r->bytes, r->bytes + r->at, r->end - r->at);
    r->end -= r->at;
    r->at = 0;
}

/* Reads more bytes behind those in the buffer. At the end of the object nothing is added. */
static int open_fill(struct open_reader *r, struct err *err)
{
    size_t got = 0;

    open_hash(r);
    int code = reader_read(r->from, r->bytes + r->end, sizeof(r->bytes) - r->end, &got, err);
    if (code == 0 && got == 0 && r->rest) {
        r->from = r->rest;
        r->rest = NULL;
        return open_fill(r, err);
    }
    r->end += got;
    return code;
}

static int open_read(struct reader *reader, void *to, size_t len, size_t *got, struct err *err)
{
    struct open_reader *r = container_of(reader, struct open_reader, reader);
    int code = r->at == r->end ? open_fill(r, err) : 0;

    *got = code < 0 ? 0 : size_min(len, r->end - r->at);
    memcpy(to, r->bytes + r->at, *got);
    r->at += *got;
    return code;
}

static const struct reader_ops open_ops = {.read = open_read};

static int open_bad(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "the bundle is damaged: %s", what);
}

/* Compares the header with the metadata that were written beside it. */
static int open_check_meta(struct bundle_old *old, struct digests *sum, struct err *err)
{
    struct bundle_meta *m = &old->meta;
    struct digest_value value;
    char text[GIT_DIGEST_LEN];

    digests_final(sum, DIGEST_SHA256, &value);
    hex_write(text, value.bytes, value.len);
    if (!old->has_meta)
        return 0;
    if (m->header_sum[0] && memcmp(m->header_sum, text, sizeof(text)) != 0)
        return open_bad(err, "its header is not the one that was written");
    if (m->pack_offset != old->header.pack_at || m->objects != old->objects)
        return open_bad(err, "its pack is not where it was written");
    return 0;
}

/* Reads the header of the bundle, and behind it the header of the pack. */
static int open_header(struct bundle_old *old, struct open_reader *r, struct err *err)
{
    unsigned char head[PACK_HEADER_LEN];
    int code = bundle_header_read(&old->header, &r->reader, err);

    if (code < 0)
        return code;
    open_hash(r); /* hashes the bundle's header alone, before the pack's header is read */
    struct digests *sum = r->sum;
    r->sum = digests_new(0);
    code = bundle_read_pack_head(head, &r->reader, err);
    if (code == ERR_END ||
        (code == 0 && (memcmp(head, "PACK", 4) != 0 || be32_read(head + 4) != 2)))
        code = open_bad(err, "no pack follows its header");
    if (code == 0) {
        old->objects = be32_read(head + 8);
        code = open_check_meta(old, sum, err);
    }
    digests_free(sum);
    return code;
}

static int open_first(struct bundle_old *out, const struct bundle_job *job, struct get_result *got,
                      struct err *err)
{
    struct object_range first = {RANGE_FROM_TO, 0, OPEN_FIRST - 1};
    int code = bundle_get(job, job->arena, NULL, &first, got, err);

    if (code == ERR_RANGE)
        return open_bad(err, "it is empty");
    if (code < 0)
        return code;
    out->info = got->info;
    out->has_meta = bundle_meta_read(&out->meta, &got->info) == 0;
    return 0;
}

int bundle_open(struct bundle_old *out, const struct bundle_job *job, struct err *err)
{
    struct get_result got = {0};
    struct bundle_ranges rest;
    struct open_reader *r;

    *out = (struct bundle_old){0};
    bundle_header_init(&out->header, false);
    out->header.refs.hold = job->hold;
    int code = open_first(out, job, &got, err);
    if (code < 0) {
        bundle_old_release(out);
        return code;
    }
    bundle_ranges_init(&rest, job, &out->info, got.first + got.len);
    r = xzalloc(sizeof(*r));
    *r = (struct open_reader){.reader = {&open_ops},
                              .from = got.body,
                              .rest = &rest.reader,
                              .sum = digests_new(1u << DIGEST_SHA256)};
    code = open_header(out, r, err);
    digests_free(r->sum);
    free(r);
    bundle_ranges_release(&rest);
    reader_close(got.body);
    if (code < 0)
        bundle_old_release(out);
    else
        git_refs_digest(out->refs_digest, &out->header.refs);
    return code;
}

void bundle_old_release(struct bundle_old *old)
{
    bundle_header_release(&old->header);
    *old = (struct bundle_old){0};
}
