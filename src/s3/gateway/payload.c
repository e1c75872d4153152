/* Checks bodies while they are read. */
#include "s3/gateway/payload.h"
#include "object/names.h"
#include "sign/base64.h"
#include "meta/error.h"

/* Returns the header's value; NULL p: there is no such header. */
static struct str payload_header(const struct payload_options *o, const char *name)
{
    return http_header_among(o->headers, o->header_count, name);
}

static int payload_decode(struct payload *p, enum digest_kind kind, struct str text)
{
    p->said[kind].len = digest_size(kind);
    p->wanted |= 1u << kind;
    return base64_decode_exact(p->said[kind].bytes, p->said[kind].len, text);
}

static int set_checksum(struct payload *p, enum digest_kind kind, bool in_trailer, struct err *err)
{
    if (p->has_checksum)
        return err_set(err, S3_INVALID_REQUEST,
                       "Expecting a single x-amz-checksum- header. Multiple checksum Types are not "
                       "allowed.");
    p->has_checksum = true;
    p->in_trailer = in_trailer;
    p->checksum = kind;
    p->wanted |= 1u << kind;
    return 0;
}

/* Sets the error for a malformed checksum. AWS answers InvalidRequest, while Ceph and the public
 * test suite expect BadDigest. Either way no body has this checksum. */
static int invalid_checksum(enum digest_kind kind, const char *where, struct err *err)
{
    return err_set(err, S3_BAD_DIGEST, "Value for %s %s is invalid.", checksum_names[kind].header.p,
                   where);
}

static int parse_checksums(struct payload *p, const struct payload_options *o, struct err *err)
{
    struct str rest = p->trailer, name;
    enum digest_kind kind;
    int code = 0;

    for (size_t i = 0; code == 0 && !o->checksum_is_other && i < o->header_count; i++) {
        if (!checksum_by_header(o->headers[i].name, &kind))
            continue;
        code = set_checksum(p, kind, false, err);
        if (code == 0 && payload_decode(p, kind, o->headers[i].value) < 0)
            code = invalid_checksum(kind, "header", err);
    }
    while (code == 0 && p->framed && str_token(&rest, ", \t", &name))
        if (checksum_by_header(name, &kind))
            code = set_checksum(p, kind, true, err);
    if (code == 0 && !p->has_checksum && o->otherwise != DIGEST_MD5) {
        p->makes_checksum = true;
        p->checksum = o->otherwise;
        p->wanted |= 1u << o->otherwise;
    }
    return code;
}

static int payload_parse(struct payload *p, const struct payload_options *o, struct err *err)
{
    struct str md5 = payload_header(o, "content-md5"), length;

    if (md5.p && payload_decode(p, DIGEST_MD5, md5) < 0)
        return s3_fail(err, S3_INVALID_DIGEST);
    if (o->md5_elsewhere)
        p->wanted &= ~(1u << DIGEST_MD5);
    if (o->auth->payload == AUTH_PAYLOAD_HASH) {
        p->has_hash = true;
        p->hash.len = SIGN_HASH_LEN;
        memcpy(p->hash.bytes, o->auth->payload_sha256, SIGN_HASH_LEN);
        p->wanted |= 1u << DIGEST_SHA256;
    }
    p->length = o->content_length;
    p->trailer = payload_header(o, "x-amz-trailer");
    length = payload_header(o, "x-amz-decoded-content-length");
    if (p->framed && !length.p)
        return s3_fail(err, S3_MISSING_CONTENT_LENGTH);
    if (p->framed && str_u64(length, &p->length) < 0)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "x-amz-decoded-content-length must be the length of the body in bytes");
    return parse_checksums(p, o, err);
}

static int bad_checksum(const struct payload *p, struct err *err)
{
    return err_set(err, S3_BAD_DIGEST,
                   "The %s you specified did not match the calculated checksum.",
                   checksum_names[p->checksum].header.p);
}

static int bad_md5(struct err *err)
{
    return err_set(err, S3_BAD_DIGEST,
                   "The Content-MD5 you specified did not match what we received.");
}

int payload_check_md5(const struct payload *p, const unsigned char md5[MD5_LEN], struct err *err)
{
    const struct digest_value *said = &p->said[DIGEST_MD5];

    return said->len && memcmp(said->bytes, md5, MD5_LEN) != 0 ? bad_md5(err) : 0;
}

static int payload_compare(struct payload *p, struct err *err)
{
    if (p->read != p->length && p->length != UINT64_MAX)
        return s3_fail(err, S3_INCOMPLETE_BODY);
    for (int kind = 0; kind < DIGEST_KINDS; kind++)
        if (p->wanted & 1u << kind)
            digests_final(p->digests, (enum digest_kind)kind, &p->computed[kind]);
    if (p->has_hash && !digest_is(&p->hash, &p->computed[DIGEST_SHA256]))
        return s3_fail(err, S3_X_AMZ_CONTENT_SHA256_MISMATCH);
    if (!p->md5_elsewhere && p->said[DIGEST_MD5].len &&
        !digest_is(&p->said[DIGEST_MD5], &p->computed[DIGEST_MD5]))
        return bad_md5(err);
    if (p->in_trailer &&
        payload_decode(p, p->checksum,
                       framing_trailer(&p->framing, checksum_names[p->checksum].header)) < 0)
        return invalid_checksum(p->checksum, "trailing header", err);
    if (p->has_checksum && !digest_is(&p->said[p->checksum], &p->computed[p->checksum]))
        return bad_checksum(p, err);
    return 0;
}

/* Reads from the raw body. If the client broke off, that is the client's error and not a failure of
 * weir. */
static int read_client(struct payload *p, void *to, size_t len, size_t *got, struct err *err)
{
    int code = reader_read(p->body, to, len, got, err);

    if (code == ERR_CLOSED)
        return s3_fail(err, S3_INCOMPLETE_BODY);
    return code == ERR_TIMEOUT ? s3_fail(err, S3_REQUEST_TIMEOUT) : code;
}

static int payload_reader_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct payload *p = container_of(r, struct payload, reader);
    int code;

    *got = 0;
    if (p->done)
        return p->done < 0 ? err_set(err, p->done, "the body was refused") : 0;
    if (len == 0)
        return 0;
    code = read_client(p, to, len, got, err);
    if (code == 0 && *got) {
        digests_update(p->digests, str_n(to, *got));
        p->read += *got;
        if (p->read > p->length)
            code = s3_fail(err, S3_INCOMPLETE_BODY);
        else if (p->max && p->read > p->max)
            code = s3_fail(err, S3_ENTITY_TOO_LARGE);
    } else if (code == 0) {
        code = payload_compare(p, err);
        p->done = 1;
    }
    if (code == 0)
        return 0;
    *got = 0;
    return p->done = code;
}

int payload_verify(struct payload *p, struct err *err)
{
    char byte;
    size_t got;
    int code = payload_reader_read(&p->reader, &byte, 1, &got, err);

    if (code == 0 && got)
        code = p->done = s3_fail(err, S3_INCOMPLETE_BODY);
    return code;
}

const struct digest_value *payload_digest(const struct payload *p, enum digest_kind kind)
{
    return p->done == 1 && p->wanted & 1u << kind ? &p->computed[kind] : NULL;
}

static void payload_close(struct reader *r)
{
    payload_release(container_of(r, struct payload, reader));
}

/* Gives the socket of the raw body, so that bytes can be moved without being read here. This is
 * only for bodies that are not hashed. */
static bool payload_as_socket(struct reader *r, int *fd, uint64_t *len)
{
    struct payload *p = container_of(r, struct payload, reader);

    return !p->wanted && !p->framed && !p->done && reader_as_socket(p->body, fd, len);
}

static void payload_skip(struct reader *r, uint64_t n)
{
    struct payload *p = container_of(r, struct payload, reader);

    reader_skip(p->body, n);
    p->read += n;
}

static const struct reader_ops payload_ops = {.read = payload_reader_read,
                                              .as_socket = payload_as_socket,
                                              .skip = payload_skip,
                                              .close = payload_close};

int payload_init(struct payload *p, struct reader *body, const struct payload_options *o,
                 struct err *err)
{
    int code;

    memset(p, 0, offsetof(struct payload, framing));
    memset(&p->framed, 0, sizeof(*p) - offsetof(struct payload, framed));
    p->reader.ops = &payload_ops;
    p->wanted = o->also;
    p->md5_elsewhere = o->md5_elsewhere;
    p->framed = o->auth->payload >= AUTH_PAYLOAD_CHUNKS;
    code = payload_parse(p, o, err);
    if (code < 0)
        return code;
    p->body = body;
    if (p->framed) {
        framing_init(&p->framing, body, o->auth, p->length, p->trailer);
        p->body = &p->framing.reader;
    }
    p->digests = digests_new(p->wanted);
    return 0;
}

void payload_release(struct payload *p)
{
    if (p->framed && p->body)
        framing_release(&p->framing);
    digests_free(p->digests);
    p->digests = NULL;
    p->body = NULL;
}
