/* Prepares the body of a request for a remote storage. The client's framing is removed, and the
 * body is verified before its last bytes are sent. The body is framed again if its trailer is to be
 * kept. */
#include "s3/gateway/forward.h"

#include "sign/base64.h"

#include <stdio.h>

enum { CHUNK_LINE = 16 /* room for "10000\r\n", and for the "\r\n" behind the bytes */ };

/* Checks all claims about the body (docs/forward.md, F4), and that replication still allows the
 * change (docs/replication.md, E2). */
static int forward_prove(void *ctx, struct err *err)
{
    struct forward_body *b = ctx;
    int code = payload_verify(&b->payload, err);

    return code == 0 ? call_may_send(b->call, err) : code;
}

/* --- bodies with a trailer: STREAMING-UNSIGNED-PAYLOAD-TRAILER --- */

static size_t base64_len(size_t n)
{
    return (n + 2) / 3 * 4;
}

static struct str forward_trailer_name(const struct forward_body *b)
{
    return checksum_names[b->payload.checksum].header;
}

static uint64_t chunk_len(uint64_t bytes)
{
    char line[CHUNK_LINE];

    return (uint64_t)snprintf(line, sizeof(line), "%llx\r\n", (unsigned long long)bytes) + bytes +
           2;
}

/* Returns the length of the body together with its chunk lines and its trailer. The trailer is
 * "0\r\n<checksum header>:<base64>\r\n\r\n"; the header is x-amz-checksum-crc32, for example. */
static uint64_t framed_len(const struct forward_body *b)
{
    uint64_t n = b->payload.length, rest = n % FORWARD_CHUNK;

    return n / FORWARD_CHUNK * chunk_len(FORWARD_CHUNK) + (rest ? chunk_len(rest) : 0) + 3 +
           forward_trailer_name(b).len + 1 + base64_len(digest_size(b->payload.checksum)) + 4;
}

static void append_trailer(struct forward_body *b)
{
    const struct digest_value *sum = payload_digest(&b->payload, b->payload.checksum);

    BUG_ON(!sum); /* the last read has verified the body, so the checksum is known */
    buf_append_z(&b->chunk, "0\r\n");
    buf_append_str(&b->chunk, forward_trailer_name(b));
    buf_append_char(&b->chunk, ':');
    base64_encode(&b->chunk, str_n(sum->bytes, sum->len));
    buf_append_z(&b->chunk, "\r\n\r\n");
    b->ended = true;
}

static int next_chunk(struct forward_body *b, struct err *err)
{
    size_t want = (size_t)(b->left < FORWARD_CHUNK ? b->left : FORWARD_CHUNK);
    char *to;
    int code;

    buf_reset(&b->chunk);
    b->chunk_at = 0;
    buf_appendf(&b->chunk, "%zx\r\n", want);
    to = buf_reserve(&b->chunk, want);
    code = reader_read_full(&b->held.reader, to, want, err);
    if (code < 0)
        return code;
    buf_commit(&b->chunk, want);
    buf_append_z(&b->chunk, "\r\n");
    b->left -= want;
    if (b->left == 0)
        append_trailer(b);
    return 0;
}

static int chunks_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct forward_body *b = container_of(r, struct forward_body, chunks);
    int code = 0;

    *got = 0;
    if (b->chunk_at == b->chunk.len && !b->ended)
        code = next_chunk(b, err);
    if (code < 0)
        return code;
    *got = size_min(len, b->chunk.len - b->chunk_at);
    memcpy(to, b->chunk.p + b->chunk_at, *got);
    b->chunk_at += *got;
    return 0;
}

static const struct reader_ops chunks_ops = {.read = chunks_read};

static void frame(struct forward_body *b)
{
    b->framed = true;
    b->chunks.ops = &chunks_ops;
    buf_init(&b->chunk, FORWARD_CHUNK + 1024);
    b->left = b->payload.length;
    b->reader = &b->chunks;
    b->len = framed_len(b);
    b->sha256 = STR("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
}

/* --- small bodies --- */

static void forward_know_checksum(struct call *c, struct forward_body *b)
{
    const struct digest_value *sum = payload_digest(&b->payload, b->payload.checksum);
    struct buf text = BUF_INIT(128);

    BUG_ON(!sum);
    base64_encode(&text, str_n(sum->bytes, sum->len));
    b->has_checksum = true;
    b->checksum = (struct http_header){forward_trailer_name(b), arena_str(c->a, buf_str(&text))};
    buf_release(&text);
}

static void forward_send_bytes(struct forward_body *b)
{
    b->text = buf_str(&b->bytes);
    str_reader_init(&b->small, b->text);
    b->reader = b->text.len ? &b->small.reader : NULL;
    b->len = b->text.len;
}

static int take_small(struct call *c, struct forward_body *b, struct err *err)
{
    int code;

    buf_init(&b->bytes, b->whole ? FORWARD_WHOLE : FORWARD_SMALL);
    if (b->whole)
        code = call_gather(c, &b->payload.reader, &b->bytes, &b->budget, err);
    else
        code = reader_read_all(&b->payload.reader, &b->bytes, err);
    if (code == 0)
        code = payload_verify(&b->payload, err);
    if (code == ERR_TOO_LARGE && b->whole)
        return s3_fail(err, S3_MAX_MESSAGE_LENGTH_EXCEEDED);
    if (code < 0)
        return code;
    forward_send_bytes(b);
    const struct digest_value *hash = payload_digest(&b->payload, DIGEST_SHA256);
    b->sha256 = hash ? arena_hex(c->a, hash->bytes, hash->len) : STR_EMPTY;
    if (b->payload.in_trailer)
        forward_know_checksum(c, b);
    return arena_error(c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* --- opening --- */

/* Opens the payload. The caller has filled in o.auth, o.content_length and o.also. */
static int open_payload(struct call *c, struct forward_body *b, struct reader *from,
                        struct payload_options o, struct err *err)
{
    int code;

    o.headers = c->head->headers;
    o.header_count = c->head->header_count;
    o.checksum_is_other = c->op && c->op->id == S3_OP_CompleteMultipartUpload;
    code = payload_init(&b->payload, from, &o, err);

    b->open = code == 0;
    b->call = c;
    held_reader_init(&b->held, &b->payload.reader, b->payload.length);
    b->held.prove = forward_prove;
    b->held.ctx = b;
    b->held.unspliced = 1;
    b->reader = &b->held.reader;
    b->len = b->payload.length;
    return code;
}

int forward_body_open(struct forward_body *b, struct call *c, bool framing, struct err *err)
{
    uint64_t len = http_request_length(c->http);
    bool asks = c->head->method == HTTP_GET || c->head->method == HTTP_HEAD;
    struct payload_options o = {.auth = &c->auth,
                                .content_length = len,
                                .also = len <= FORWARD_SMALL || b->whole ? 1u << DIGEST_SHA256 : 0};
    int code;

    if (c->claimed || (len == 0 && asks && c->auth.payload < AUTH_PAYLOAD_CHUNKS))
        return 0;
    code = open_payload(c, b, http_request_body(c->http), o, err);
    if (code < 0)
        return code;
    /* A client that sent "Expect: 100-continue" is not asked for the body until the storage asks
     * for it, unless weir needs the whole body first, for the header with its checksum. */
    bool waits = c->head->expect_continue && !b->payload.in_trailer;
    if (b->whole || (len <= FORWARD_SMALL && !waits) || b->payload.length == 0)
        return take_small(c, b, err);
    b->streams = true;
    if (c->auth.payload == AUTH_PAYLOAD_HASH)
        b->sha256 = arena_hex(c->a, c->auth.payload_sha256, SIGN_HASH_LEN);
    else if (framing && b->payload.in_trailer)
        frame(b);
    return arena_error(c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

int forward_body_of(struct forward_body *b, struct call *c, struct reader *from, uint64_t bound,
                    struct err *err)
{
    static const struct identity nobody;
    bool small = bound <= FORWARD_SMALL;
    struct payload_options o = {.auth = &nobody,
                                .content_length = small ? UINT64_MAX : bound,
                                .also = small ? 1u << DIGEST_SHA256 : 0};
    int code = open_payload(c, b, from, o, err);

    return code == 0 && small ? take_small(c, b, err) : code;
}

int forward_body_replace(struct forward_body *b, struct call *c, struct buf *bytes, struct err *err)
{
    struct digest_value sum;
    struct buf text = BUF_INIT(64);

    BUG_ON(!b->whole);
    /* The budget counts the client's bytes, which are released here; the bytes that weir wrote are
     * not counted. */
    call_drop_gathered(b->budget, &b->bytes);
    b->budget = NULL;
    b->bytes = *bytes;
    *bytes = (struct buf){0};
    forward_send_bytes(b);
    digest_of(DIGEST_SHA256, b->text, &sum);
    b->sha256 = arena_hex(c->a, sum.bytes, sum.len);
    digest_of(DIGEST_MD5, b->text,
              &sum); /* storages want a Content-MD5 although the body is signed */
    base64_encode(&text, str_n(sum.bytes, sum.len));
    b->ours = b->has_checksum = true;
    b->checksum = (struct http_header){STR("Content-MD5"), arena_str(c->a, buf_str(&text))};
    buf_release(&text);
    return arena_error(c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

void forward_body_close(struct forward_body *b)
{
    if (b->open)
        payload_release(&b->payload);
    b->open = false;
    buf_release(&b->chunk);
    call_drop_gathered(b->budget, &b->bytes);
    b->budget = NULL;
}
