/* Decodes aws-chunked bodies, with a state for each place in the framing. Lines are read through a
 * small buffer. Once the buffer is empty, a chunk's bytes are read directly into the caller's
 * memory. */
#include "s3/gateway/framing.h"
#include "object/digest.h"
#include "meta/error.h"

enum state { CHUNK_LINE, CHUNK_BYTES, CHUNK_END, TRAILERS, DONE };

static bool framing_is_signed(const struct framing *f)
{
    return f->auth->payload != AUTH_PAYLOAD_UNSIGNED_TRAILER;
}

static bool has_trailers(const struct framing *f)
{
    return f->auth->payload != AUTH_PAYLOAD_CHUNKS;
}

static int framing_fill(struct framing *f, struct err *err)
{
    size_t got;
    int code;

    if (f->start) {
        memmove(f->buffer, f->buffer + f->start, f->end - f->start);
        f->end -= f->start;
        f->start = 0;
    }
    code = reader_read(f->inner, f->buffer + f->end, sizeof(f->buffer) - f->end, &got, err);
    if (code < 0)
        return code;
    if (got == 0)
        return s3_fail(err, S3_INCOMPLETE_BODY);
    f->end += got;
    return 0;
}

/* Reads the next line, without its end; borrowed until the next call. `too_long` is the error for a
 * line of more than FRAMING_LINE_MAX bytes. *bare: the line ended with "\n" alone. */
static int framing_read_line(struct framing *f, enum s3_code too_long, struct str *line, bool *bare,
                             struct err *err)
{
    for (;;) {
        struct str held = str_n(f->buffer + f->start, f->end - f->start);
        ptrdiff_t at = str_chr(str_head(held, FRAMING_LINE_MAX), '\n');
        if (at >= 0) {
            *bare = at == 0 || held.p[at - 1] != '\r';
            *line = str_head(held, (size_t)at - (*bare ? 0 : 1));
            f->start += (size_t)at + 1;
            return 0;
        }
        if (held.len >= FRAMING_LINE_MAX)
            return s3_fail(err, too_long);
        int code = framing_fill(f, err);
        if (code < 0)
            return code;
    }
}

static bool parse_size(struct str text, uint64_t *out)
{
    uint64_t size = 0;

    if (text.len == 0 || text.len > 16)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i], folded = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            size = size << 4 | (uint64_t)(c - '0');
        else if (folded >= 'a' && folded <= 'f')
            size = size << 4 | (uint64_t)(folded - 'a' + 10);
        else
            return false;
    }
    *out = size;
    return true;
}

/* Reads the line before a chunk: "size" or "size;chunk-signature=hex". */
static int chunk_line(struct framing *f, struct err *err)
{
    struct str line = STR_EMPTY, size, extension, label = STR("chunk-signature=");
    bool bare = false;
    int code = framing_read_line(f, S3_INVALID_CHUNK_SIZE_ERROR, &line, &bare, err);

    if (code < 0)
        return code;
    bool extended = str_cut(line, ';', &size, &extension);
    if (bare || !parse_size(size, &f->chunk_left))
        return s3_fail(err, S3_INVALID_CHUNK_SIZE_ERROR);
    if (framing_is_signed(f)) {
        if (extension.len != label.len + SIGN_HEX_LEN || !str_starts(extension, label))
            return s3_fail(err, S3_SIGNATURE_DOES_NOT_MATCH);
        memcpy(f->chunk_signature, extension.p + label.len, SIGN_HEX_LEN);
        f->digests = digests_new(1u << DIGEST_SHA256);
    } else if (extended) {
        return s3_fail(err, S3_INVALID_CHUNK_SIZE_ERROR);
    }
    if (f->chunk_left > f->length_left)
        return s3_fail(err, S3_INVALID_CHUNK_SIZE_ERROR);
    f->state = CHUNK_BYTES;
    return 0;
}

/* Checks the signature `claimed`, which is made of the previous signature and of `hashes`.
 * Afterwards `claimed` is the previous signature for the next check. */
static int check_signature(struct framing *f, const char *algorithm, struct str hashes,
                           const char claimed[SIGN_HEX_LEN], struct err *err)
{
    struct buf text = BUF_INIT(0);
    char wanted[SIGN_HEX_LEN];

    buf_append_z(&text, algorithm);
    buf_append_char(&text, '\n');
    buf_append(&text, f->auth->timestamp, SIGN_TIME_LEN);
    buf_append_char(&text, '\n');
    sign_append_scope(&text, &f->auth->scope);
    buf_append_char(&text, '\n');
    buf_append(&text, f->signature, SIGN_HEX_LEN);
    buf_append_char(&text, '\n');
    buf_append_str(&text, hashes);
    sign_hex(wanted, &f->auth->key, buf_str(&text));
    buf_release(&text);
    if (!str_eq_secret(str_n(wanted, sizeof(wanted)), str_n(claimed, SIGN_HEX_LEN)))
        return s3_fail(err, S3_SIGNATURE_DOES_NOT_MATCH);
    memcpy(f->signature, wanted, sizeof(wanted));
    return 0;
}

static int check_chunk(struct framing *f, struct err *err)
{
    struct buf hashes = BUF_INIT(0);
    struct digest_value hash;
    int code;

    digests_final(f->digests, DIGEST_SHA256, &hash);
    digests_free(f->digests);
    f->digests = NULL;
    buf_append_z(&hashes, SIGN_EMPTY_SHA256 "\n");
    buf_append_hex(&hashes, hash.bytes, hash.len);
    code = check_signature(f, SIGN_ALGORITHM "-PAYLOAD", buf_str(&hashes), f->chunk_signature, err);
    buf_release(&hashes);
    return code;
}

static int check_trailers(struct framing *f, struct str claimed, struct err *err)
{
    struct buf hashes = BUF_INIT(0);
    struct digest_value hash;
    int code;

    if (claimed.len != SIGN_HEX_LEN)
        return s3_fail(err, S3_SIGNATURE_DOES_NOT_MATCH);
    digest_of(DIGEST_SHA256, buf_str(&f->trailer_text), &hash);
    buf_append_hex(&hashes, hash.bytes, hash.len);
    code = check_signature(f, SIGN_ALGORITHM "-TRAILER", buf_str(&hashes), claimed.p, err);
    buf_release(&hashes);
    f->trailer_signed = code == 0;
    return code;
}

/* Checks that nothing follows the body, and that the body had the announced length. */
static int framing_finish(struct framing *f, struct err *err)
{
    char byte;
    size_t got = 0;
    int code = f->start < f->end ? 0 : reader_read(f->inner, &byte, 1, &got, err);

    if (code < 0)
        return code;
    if (got || f->start < f->end || f->length_left)
        return s3_fail(err, S3_INCOMPLETE_BODY);
    f->state = DONE;
    return 0;
}

/* Called when all bytes of the chunk were read. Reads the line's end behind them and checks the
 * chunk's signature. The last chunk has no bytes; the trailers follow it. */
static int chunk_end(struct framing *f, bool last, struct err *err)
{
    struct str line = STR_EMPTY;
    bool bare = false;
    int code = 0;

    if (framing_is_signed(f) && (code = check_chunk(f, err)) < 0)
        return code;
    if (last && has_trailers(f)) {
        f->state = TRAILERS;
        return 0;
    }
    code = framing_read_line(f, S3_INCOMPLETE_BODY, &line, &bare, err);
    if (code == 0 && (bare || line.len))
        code = s3_fail(err, S3_INCOMPLETE_BODY);
    if (code < 0)
        return code;
    f->state = CHUNK_LINE;
    return last ? framing_finish(f, err) : 0;
}

static bool is_announced(const struct framing *f, struct str name)
{
    struct str rest = f->announced, one;

    while (str_token(&rest, ", \t", &one))
        if (str_ieq(one, name))
            return true;
    return false;
}

struct str framing_trailer(const struct framing *f, struct str name)
{
    for (size_t i = 0; i < f->trailer_count; i++)
        if (str_eq(f->trailers[i].name, name))
            return f->trailers[i].value;
    return STR_EMPTY;
}

/* Keeps a trailer. The memory for all trailers is reserved at the start, so strings that are
 * borrowed from it do not move. */
static int keep_trailer(struct framing *f, struct str name, struct str value, struct err *err)
{
    size_t at = f->trailer_text.len;
    char *p;

    if (name.len == 0 || f->trailer_signed || f->trailer_count == FRAMING_TRAILERS_MAX ||
        !is_announced(f, name))
        return s3_fail(err, S3_MALFORMED_TRAILER_ERROR);
    buf_append_str(&f->trailer_text, name);
    buf_append_char(&f->trailer_text, ':');
    buf_append_str(&f->trailer_text, value);
    buf_append_char(&f->trailer_text, '\n');
    p = f->trailer_text.p + at;
    for (size_t i = 0; i < name.len; i++)
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] |= 0x20;
    if (framing_trailer(f, str_n(p, name.len)).p)
        return s3_fail(err, S3_MALFORMED_TRAILER_ERROR);
    f->trailers[f->trailer_count++] =
        (struct framing_trailer){str_n(p, name.len), str_n(p + name.len + 1, value.len)};
    return 0;
}

static int end_trailers(struct framing *f, struct err *err)
{
    struct str rest = f->announced, name;

    while (str_token(&rest, ", \t", &name)) {
        bool found = false;
        for (size_t i = 0; !found && i < f->trailer_count; i++)
            found = str_ieq(f->trailers[i].name, name);
        if (!found)
            return s3_fail(err, S3_MALFORMED_TRAILER_ERROR);
    }
    return framing_finish(f, err);
}

/* Reads one line of the trailers. AWS's description of signed trailers can be read in two ways, and
 * some clients write "name:value\n\r\n" before the signature. So an empty line ends signed trailers
 * only after the signature. */
static int trailer_line(struct framing *f, struct err *err)
{
    bool with_signature = framing_is_signed(f), bare = false;
    struct str line = STR_EMPTY, name, value;
    int code = framing_read_line(f, S3_MALFORMED_TRAILER_ERROR, &line, &bare, err);

    if (code < 0)
        return code;
    if (bare && !with_signature)
        return s3_fail(err, S3_MALFORMED_TRAILER_ERROR);
    if (line.len == 0) {
        if (!with_signature || f->trailer_signed)
            return end_trailers(f, err);
        return f->trailer_count ? 0 : s3_fail(err, S3_MALFORMED_TRAILER_ERROR);
    }
    if (!str_cut(line, ':', &name, &value))
        return s3_fail(err, S3_MALFORMED_TRAILER_ERROR);
    value = str_trim(value);
    if (with_signature && !f->trailer_signed && str_ieq(name, STR("x-amz-trailer-signature")))
        return check_trailers(f, value, err);
    return keep_trailer(f, name, value, err);
}

static int chunk_bytes(struct framing *f, char *to, size_t len, size_t *got, struct err *err)
{
    size_t held = f->end - f->start;
    int code;

    len = (size_t)(len < f->chunk_left ? len : f->chunk_left);
    if (held) {
        *got = size_min(len, held);
        memcpy(to, f->buffer + f->start, *got);
        f->start += *got;
    } else {
        code = reader_read(f->inner, to, len, got, err);
        if (code < 0)
            return code;
        if (*got == 0)
            return s3_fail(err, S3_INCOMPLETE_BODY);
    }
    if (f->digests)
        digests_update(f->digests, str_n(to, *got));
    f->chunk_left -= *got;
    f->length_left -= *got;
    if (f->chunk_left == 0)
        f->state = CHUNK_END;
    return 0;
}

/* Makes one step of decoding. *got stays 0 when the step gave no bytes. */
static int framing_step(struct framing *f, char *to, size_t len, size_t *got, struct err *err)
{
    switch ((enum state)f->state) {
    case CHUNK_LINE:
        return chunk_line(f, err);
    case CHUNK_BYTES:
        return f->chunk_left ? chunk_bytes(f, to, len, got, err) : chunk_end(f, true, err);
    case CHUNK_END:
        return chunk_end(f, false, err);
    case TRAILERS:
        return trailer_line(f, err);
    case DONE:
        break;
    }
    return 0;
}

static int framing_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct framing *f = container_of(r, struct framing, reader);
    int code = 0;

    *got = 0;
    if (f->failed)
        return err_set(err, f->failed, "the body was refused");
    while (code == 0 && *got == 0 && len && f->state != DONE)
        code = framing_step(f, to, len, got, err);
    if (code < 0) {
        f->failed = code;
        *got = 0;
    }
    return code;
}

static void framing_close(struct reader *r)
{
    framing_release(container_of(r, struct framing, reader));
}

static const struct reader_ops framing_ops = {.read = framing_read, .close = framing_close};

void framing_init(struct framing *f, struct reader *inner, const struct identity *auth,
                  uint64_t decoded_length, struct str announced)
{
    BUG_ON(auth->payload < AUTH_PAYLOAD_CHUNKS);
    *f = (struct framing){
        .reader = {&framing_ops},
        .inner = inner,
        .auth = auth,
        .length_left = decoded_length,
        .announced = announced,
        .trailer_text = BUF_INIT(FRAMING_TRAILERS_MAX * (FRAMING_LINE_MAX + 1)),
    };
    memcpy(f->signature, auth->signature, SIGN_HEX_LEN);
    if (has_trailers(f))
        buf_reserve(&f->trailer_text, FRAMING_TRAILERS_MAX * FRAMING_LINE_MAX);
}

void framing_release(struct framing *f)
{
    digests_free(f->digests);
    f->digests = NULL;
    buf_release(&f->trailer_text);
    f->trailer_count = 0;
}
