/* Computes checksums: for bodies that come without a checksum, and for copies that ask for one. */
#include "s3/gateway/gateway_int.h"

#include <stdlib.h>

enum { SUM_BLOCK = 256 * 1024 };

enum digest_kind checksum_of_part(const struct object_meta *upload)
{
    struct envelope e = {0};

    if (upload->checksum.type != CHECKSUM_NONE)
        return upload->checksum.kind;
    if (upload->encryption.len && envelope_read(&e, upload->encryption, NULL) < 0)
        return DIGEST_MD5;
    return sse_checksum(e.kind);
}

int checksum_asked(struct call *c, enum digest_kind *out, struct err *err)
{
    struct str name = http_header(c->head, "x-amz-checksum-algorithm");

    *out = DIGEST_MD5;
    if (name.len && !checksum_by_algorithm(name, out))
        return err_set(err, S3_INVALID_REQUEST,
                       "Checksum algorithm provided is unsupported. Please try again with any of "
                       "the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]");
    return 0;
}

static bool is_checksum(struct str header)
{
    return str_ieq(str_head(header, 15), STR("x-amz-checksum-"));
}

/* Whether weir knows the x-amz-checksum-* header: it is a checksum of a kind that weir can check,
 * or one of the headers -algorithm, -type and -mode, which say more about a checksum. */
static bool checksum_is_known(struct str header)
{
    static const struct str about[] = {STR("algorithm"), STR("type"), STR("mode")};
    enum digest_kind kind;

    for (size_t i = 0; i < ARRAY_SIZE(about); i++)
        if (str_ieq(str_skip(header, 15), about[i]))
            return true;
    return checksum_by_header(header, &kind);
}

static int unknown_checksum(struct str name, struct err *err)
{
    return err_set(err, S3_INVALID_REQUEST,
                   "The checksum " STR_FMT
                   " is not supported; those that are: CRC32, CRC32C, CRC64NVME, SHA1, SHA256",
                   STR_ARG(str_head(name, 64)));
}

int checksum_check_names(const struct call *c, struct err *err)
{
    struct str algorithm = http_header(c->head, "x-amz-sdk-checksum-algorithm"), name;
    struct str trailers = http_header(c->head, "x-amz-trailer");
    enum digest_kind kind;

    for (size_t i = 0; i < c->head->header_count; i++) {
        name = c->head->headers[i].name;
        if (is_checksum(name) && !checksum_is_known(name))
            return unknown_checksum(name, err);
    }
    while (str_token(&trailers, ", \t", &name))
        if (is_checksum(name) && !checksum_by_header(name, &kind))
            return unknown_checksum(name, err);
    return algorithm.len && !checksum_by_algorithm(algorithm, &kind)
               ? unknown_checksum(algorithm, err)
               : 0;
}

bool checksum_is_whole(const struct object_checksum *sum, enum digest_kind kind)
{
    return sum->type == CHECKSUM_FULL_OBJECT && sum->kind == kind && sum->value.len;
}

/* --- checksums of bytes that stream --- */

static int summed_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct summed *s = container_of(r, struct summed, reader);
    int code = reader_read(s->from, to, len, got, err);

    if (code == 0)
        digests_update(s->digests, str_n(to, *got));
    return code;
}

static const struct reader_ops summed_ops = {.read = summed_read};

static int summed_take(struct digests *d, enum digest_kind kind, struct arena *a,
                       struct object_checksum *out, struct err *err)
{
    struct digest_value value;

    digests_final(d, kind, &value);
    *out = (struct object_checksum){CHECKSUM_FULL_OBJECT, kind, digest_text(a, &value)};
    return out->value.len ? 0 : err_code(err, ERR_NO_MEMORY);
}

static int summed_verify(void *ctx, struct object_meta *meta, struct err *err)
{
    struct summed *s = ctx;
    int code = summed_take(s->digests, s->kind, s->a, &s->checksum, err);

    meta->checksum = s->checksum;
    return code;
}

struct reader *summed_open(struct summed *s, struct arena *a, struct reader *from,
                           enum digest_kind kind, struct put_options *put)
{
    *s = (struct summed){.reader.ops = &summed_ops, .from = from, .kind = kind, .a = a};
    if (kind == DIGEST_MD5)
        return from;
    s->digests = digests_new(1u << kind);
    put->verify = summed_verify;
    put->ctx = s;
    return &s->reader;
}

void summed_close(struct summed *s)
{
    digests_free(s->digests);
    s->digests = NULL;
}

int checksum_compute(struct arena *a, struct reader *from, enum digest_kind kind,
                     struct object_checksum *out, struct err *err)
{
    struct digests *d = digests_new(1u << kind);
    char *block = xzalloc(SUM_BLOCK);
    size_t got = 1;
    int code = 0;

    while (code == 0 && got) {
        code = reader_read(from, block, SUM_BLOCK, &got, err);
        if (code == 0)
            digests_update(d, str_n(block, got));
    }
    if (code == 0)
        code = summed_take(d, kind, a, out, err);
    digests_free(d);
    free(block);
    return code;
}
