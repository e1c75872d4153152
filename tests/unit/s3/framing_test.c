/* aws-chunked bodies: the published example, any split of chunks and reads, every way to break it.
 */
#include "base/clock.h"
#include "sign/base64.h"
#include "meta/error.h"
#include "s3/gateway/payload.h"
#include "unit/slow_reader.h"
#include "unit/test.h"

#include <stdlib.h>

#define SECRET STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
#define SEED   "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"

static void start_auth(struct identity *auth, enum auth_payload payload)
{
    *auth = (struct identity){.payload = payload, .kind = AUTH_V4_HEADER};
    auth->scope = (struct sign_scope){STR("20130524"), STR("us-east-1"), STR("s3")};
    memcpy(auth->timestamp, "20130524T000000Z", SIGN_TIME_LEN);
    memcpy(auth->signature, SEED, SIGN_HEX_LEN);
    sign_derive(&auth->key, SECRET, &auth->scope);
}

static void repeat(struct buf *b, char c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_append_char(b, c);
}

/* Reads all of a framed body; the code, and the bytes in `out`. */
static int decode(struct buf *out, struct framing *f, struct str body, size_t step,
                  const struct identity *auth, uint64_t length, struct str announced)
{
    struct slow_reader slow = {{&slow_ops}, body, step};

    buf_reset(out);
    framing_init(f, &slow.reader, auth, length, announced);
    return reader_read_all(&f->reader, out, NULL);
}

static void example(struct buf *b)
{
    buf_reset(b);
    buf_append_z(b, "10000;chunk-signature="
                    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n");
    repeat(b, 'a', 65536);
    buf_append_z(b, "\r\n400;chunk-signature="
                    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n");
    repeat(b, 'a', 1024);
    buf_append_z(b, "\r\n0;chunk-signature="
                    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n");
}

static int find_example(void *ctx, struct str access_key, struct auth_key *out, struct err *err)
{
    memcpy(out->secret, SECRET.p, SECRET.len);
    out->secret_len = SECRET.len;
    return 0;
}

TEST(framing, the_published_chunked_upload_from_head_to_end)
{
    const struct http_header headers[] = {
        {STR("Host"), STR("s3.amazonaws.com")},
        {STR("x-amz-date"), STR("20130524T000000Z")},
        {STR("x-amz-storage-class"), STR("REDUCED_REDUNDANCY")},
        {STR("Authorization"),
         STR("AWS4-HMAC-SHA256 "
             "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
             "aws4_request,SignedHeaders=content-encoding;content-length;host;x-amz-content-sha256;"
             "x-amz-date;x-amz-decoded-content-length;x-amz-storage-class,Signature=" SEED)},
        {STR("x-amz-content-sha256"), STR("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")},
        {STR("Content-Encoding"), STR("aws-chunked")},
        {STR("x-amz-decoded-content-length"), STR("66560")},
        {STR("Content-Length"), STR("66824")},
    };
    struct auth_request r = {.method = STR("PUT"),
                             .path = STR("/examplebucket/chunkObject.txt"),
                             .headers = headers,
                             .header_count = ARRAY_SIZE(headers)};
    struct auth_options o = {.find_key = find_example};
    struct buf body = BUF_INIT(0), out = BUF_INIT(0);
    struct arena a = ARENA_INIT(0);
    struct err err = {0};
    struct identity auth;
    struct framing f;

    CHECK_INT(clock_parse_basic(STR("20130524T000000Z"), &r.now_ms), 0);
    CHECK_OK(auth_verify(&auth, &a, &r, &o, &err));
    CHECK_INT(auth.payload, AUTH_PAYLOAD_CHUNKS);
    example(&body);
    CHECK_INT(body.len, 66824);
    for (size_t step = 1; step < 100000; step = step * 7 + 1) {
        CHECK_INT(decode(&out, &f, buf_str(&body), step, &auth, 66560, STR_EMPTY), 0);
        CHECK_INT(out.len, 66560);
        framing_release(&f);
    }
    auth_release(&auth);
    arena_release(&a);
    buf_release(&body);
    buf_release(&out);
}

static int decode_trailer(const char *trailers)
{
    struct buf body = BUF_INIT(0), out = BUF_INIT(0);
    struct identity auth;
    struct framing f;
    int code;

    start_auth(&auth, AUTH_PAYLOAD_CHUNKS_TRAILER);
    memcpy(auth.signature, "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
           SIGN_HEX_LEN);
    buf_append_z(&body, "10000;chunk-signature="
                        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n");
    repeat(&body, 'a', 65536);
    buf_append_z(&body, "\r\n400;chunk-signature="
                        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n");
    repeat(&body, 'a', 1024);
    buf_append_z(&body, "\r\n0;chunk-signature="
                        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n");
    buf_append_z(&body, trailers);
    code = decode(&out, &f, buf_str(&body), 999, &auth, 66560, STR("x-amz-checksum-crc32c"));
    if (code == 0) {
        CHECK_STR(framing_trailer(&f, STR("x-amz-checksum-crc32c")), STR("sOO8/Q=="));
        CHECK(framing_trailer(&f, STR("x-amz-checksum-crc32")).p == NULL);
    }
    framing_release(&f);
    buf_release(&body);
    buf_release(&out);
    return code;
}

#define SUM  "x-amz-checksum-crc32c:sOO8/Q=="
#define MARK "x-amz-trailer-signature:"
#define GOOD "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"

TEST(framing, the_published_upload_with_a_signed_trailer)
{
    CHECK_INT(decode_trailer(SUM "\r\n" MARK GOOD "\r\n\r\n"), 0);
    CHECK_INT(decode_trailer(SUM "\n\r\n" MARK GOOD "\r\n\r\n"), 0);
}

TEST(framing, signed_trailers_that_are_not_as_signed_are_refused)
{
    CHECK_INT(decode_trailer("x-amz-checksum-crc32c:sOO8/A==\r\n" MARK GOOD "\r\n\r\n"),
              S3_SIGNATURE_DOES_NOT_MATCH);
    CHECK_INT(decode_trailer(SUM "\r\n" MARK "00\r\n\r\n"), S3_SIGNATURE_DOES_NOT_MATCH);
    CHECK_INT(decode_trailer(MARK GOOD "\r\n\r\n"), S3_SIGNATURE_DOES_NOT_MATCH);
    CHECK_INT(decode_trailer("\r\n"), S3_MALFORMED_TRAILER_ERROR);
    CHECK_INT(decode_trailer(SUM "\r\n\r\n"), S3_INCOMPLETE_BODY);
    CHECK_INT(decode_trailer(SUM "\r\n" MARK GOOD "\r\n" SUM "\r\n\r\n"),
              S3_MALFORMED_TRAILER_ERROR);
}

TEST(framing, a_byte_changed_anywhere_in_a_signed_body_is_found)
{
    struct buf body = BUF_INIT(0), out = BUF_INIT(0);
    struct identity auth;
    struct framing f;
    unsigned seed = 5;

    start_auth(&auth, AUTH_PAYLOAD_CHUNKS);
    for (int round = 0; round < 60; round++) {
        example(&body);
        size_t at = round % 2 ? (size_t)rand_r(&seed) % body.len : (size_t)rand_r(&seed) % 90;
        body.p[at] ^= 1;
        CHECK(decode(&out, &f, buf_str(&body), 5000, &auth, 66560, STR_EMPTY) <= S3_FIRST_CODE);
        framing_release(&f);
    }
    buf_release(&body);
    buf_release(&out);
}

TEST(framing, a_body_cut_anywhere_is_incomplete)
{
    struct buf body = BUF_INIT(0), out = BUF_INIT(0);
    struct identity auth;
    struct framing f;

    start_auth(&auth, AUTH_PAYLOAD_CHUNKS);
    example(&body);
    for (size_t cut = 1; cut < body.len; cut += cut < 200 ? 1 : 2003) {
        int code = decode(&out, &f, str_head(buf_str(&body), body.len - cut), 4096, &auth, 66560,
                          STR_EMPTY);
        CHECK_STR(str_z(s3_code_name(code)), STR("IncompleteBody"));
        framing_release(&f);
    }
    buf_release(&body);
    buf_release(&out);
}

TEST(framing, the_decoded_length_is_kept_exactly)
{
    struct buf body = BUF_INIT(0), out = BUF_INIT(0);
    struct identity auth;
    struct framing f;

    start_auth(&auth, AUTH_PAYLOAD_CHUNKS);
    example(&body);
    CHECK_INT(decode(&out, &f, buf_str(&body), 4096, &auth, 66561, STR_EMPTY), S3_INCOMPLETE_BODY);
    framing_release(&f);
    CHECK_INT(decode(&out, &f, buf_str(&body), 4096, &auth, 66559, STR_EMPTY),
              S3_INVALID_CHUNK_SIZE_ERROR);
    framing_release(&f);
    buf_append_char(&body, 'x');
    CHECK_INT(decode(&out, &f, buf_str(&body), 4096, &auth, 66560, STR_EMPTY), S3_INCOMPLETE_BODY);
    framing_release(&f);
    buf_release(&body);
    buf_release(&out);
}

/* The unsigned form, with what a client said wrong. */
static void check_unsigned(const char *body, const char *announced, uint64_t length,
                           const char *want)
{
    struct buf out = BUF_INIT(0);
    struct identity auth;
    struct framing f;

    start_auth(&auth, AUTH_PAYLOAD_UNSIGNED_TRAILER);
    for (size_t step = 1; step < 100; step += 40) {
        int code = decode(&out, &f, str_z(body), step, &auth, length, str_z(announced));
        CHECK_STR(code ? str_z(s3_code_name(code)) : STR("ok"), str_z(want));
        if (code) {
            char byte;
            size_t got;
            CHECK_INT(reader_read(&f.reader, &byte, 1, &got, NULL), code);
        }
        framing_release(&f);
    }
    buf_release(&out);
}

TEST(framing, unsigned_bodies_with_trailers)
{
    static const char sum[] = "x-amz-checksum-crc32";

    check_unsigned("3\r\nabc\r\n2\r\nde\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", sum, 5,
                   "ok");
    check_unsigned("0\r\nX-Amz-Checksum-Crc32: AAAAAA== \r\n\r\n", sum, 0, "ok");
    check_unsigned("3\r\nabc\r\n0\r\n\r\n", "", 3, "ok");
    check_unsigned("0\r\n\r\n", sum, 0, "MalformedTrailerError");
    check_unsigned("0\r\nother:1\r\n\r\n", sum, 0, "MalformedTrailerError");
    check_unsigned("0\r\nnothing\r\n\r\n", sum, 0, "MalformedTrailerError");
    check_unsigned("0\r\n:x\r\n\r\n", sum, 0, "MalformedTrailerError");
    check_unsigned("0\r\nx-amz-checksum-crc32:a\nx:b\r\n\r\n", sum, 0, "MalformedTrailerError");
    check_unsigned("0\r\nx-amz-checksum-crc32:a\r\nx-amz-checksum-crc32:b\r\n\r\n", sum, 0,
                   "MalformedTrailerError");
    check_unsigned("0\r\nx-amz-checksum-crc32:a\r\n", sum, 0, "IncompleteBody");
}

TEST(framing, malformed_lines_before_a_chunk_are_refused)
{
    static const char *const bad[] = {"x\r\n",
                                      "\r\n",
                                      "-1\r\n",
                                      "0x3\r\nabc\r\n",
                                      " 3\r\nabc\r\n",
                                      "3\nabc",
                                      "3;\r\n",
                                      "3;x=1\r\nabc\r\n",
                                      "00000000000000003\r\nabc",
                                      "ffffffffffffffff\r\n",
                                      "4\r\nabcd\r\n"};
    char line[FRAMING_LINE_MAX + 2];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        check_unsigned(bad[i], "", 3, "InvalidChunkSizeError");
    memset(line, '0', sizeof(line));
    line[sizeof(line) - 1] = 0;
    check_unsigned(line, "", 3, "InvalidChunkSizeError");
    check_unsigned("3\r\nabcX\r\n0\r\n\r\n", "", 3, "IncompleteBody");
}

/* --- payload --- */

struct check {
    struct http_header headers[4];
    size_t count;
    struct identity auth;
    struct err err;
    struct payload p;
};

static int run(struct check *c, struct str body, uint64_t length)
{
    struct slow_reader slow = {{&slow_ops}, body, 3};
    struct payload_options o = {&c->auth, c->headers, c->count, length, 1u << DIGEST_MD5};
    struct buf out = BUF_INIT(0);
    int code = payload_init(&c->p, &slow.reader, &o, &c->err);

    if (code == 0)
        code = reader_read_all(&c->p.reader, &out, &c->err);
    if (code == 0)
        code = payload_verify(&c->p, &c->err);
    buf_release(&out);
    return code;
}

static void check_payload(const char *name, const char *value, const char *want)
{
    struct check c = {.count = 1};
    int code;

    c.headers[0] = (struct http_header){str_z(name), str_z(value)};
    code = run(&c, STR("123456789"), 9);
    CHECK_STR(code ? str_z(s3_code_name(code)) : STR("ok"), str_z(want));
    if (code == 0)
        CHECK_INT(payload_digest(&c.p, DIGEST_MD5)->len, 16);
    payload_release(&c.p);
}

TEST(payload, what_the_head_says_of_the_body_is_checked_at_its_end)
{
    check_payload("x-none", "", "ok");
    check_payload("x-amz-checksum-crc32", "y/Q5Jg==", "ok");
    check_payload("x-amz-checksum-crc32", "y/Q5Jw==", "BadDigest");
    check_payload("x-amz-checksum-crc32", "y/Q5", "BadDigest");
    check_payload("X-Amz-Checksum-Crc32c", "4waSgw==", "ok");
    check_payload("x-amz-checksum-crc64nvme", "rosUhgp5mIg=", "ok");
    check_payload("x-amz-checksum-crc64nvme", "rosUhgp5mIk=", "BadDigest");
    check_payload("x-amz-checksum-sha1", "98O8HYCOBHMq8eZZczDTYZ5DRBk=", "BadDigest");
    check_payload("Content-MD5", "JfnnlDI7RTiF9RgfG2JNCw==", "ok");
    check_payload("Content-MD5", "JfnnlDI7RTiF9RgfG2JNDA==", "BadDigest");
    check_payload("Content-MD5", "bad", "InvalidDigest");
    check_payload("Content-MD5", "", "InvalidDigest");
}

TEST(payload, a_checksum_of_something_else_is_left_alone)
{
    struct check c = {0};
    const struct http_header header = {STR("x-amz-checksum-crc32"), STR("of an object-2")};
    struct payload_options o = {&c.auth, &header, 1, 9, 0, true};
    struct slow_reader slow = {{&slow_ops}, STR("123456789"), 100};
    char bytes[9];

    CHECK_INT(payload_init(&c.p, &slow.reader, &o, &c.err), 0);
    CHECK_INT(reader_read_full(&c.p.reader, bytes, sizeof(bytes), &c.err), 0);
    CHECK_INT(payload_verify(&c.p, &c.err), 0);
    payload_release(&c.p);
}

TEST(payload, a_framed_body_needs_its_decoded_length)
{
    struct check c = {.auth.payload = AUTH_PAYLOAD_UNSIGNED_TRAILER};

    CHECK_INT(run(&c, STR("0\r\n\r\n"), 5), S3_MISSING_CONTENT_LENGTH);
    payload_release(&c.p);
}

TEST(payload, two_checksums_are_refused)
{
    struct check c = {.count = 2};

    c.headers[0] = (struct http_header){STR("x-amz-checksum-crc32"), STR("y/Q5Jg==")};
    c.headers[1] = (struct http_header){STR("x-amz-checksum-crc32c"), STR("4waSgw==")};
    CHECK_INT(run(&c, STR("123456789"), 9), S3_INVALID_REQUEST);
    payload_release(&c.p);
}

TEST(payload, the_signed_hash_and_the_length_are_checked)
{
    struct check c = {.auth.payload = AUTH_PAYLOAD_HASH};
    struct digest_value hash;

    digest_of(DIGEST_SHA256, STR("123456789"), &hash);
    memcpy(c.auth.payload_sha256, hash.bytes, hash.len);
    CHECK_INT(run(&c, STR("123456789"), 9), 0);
    payload_release(&c.p);
    CHECK_INT(run(&c, STR("123456789"), UINT64_MAX), 0);
    payload_release(&c.p);
    CHECK_INT(run(&c, STR("123456780"), 9), S3_X_AMZ_CONTENT_SHA256_MISMATCH);
    CHECK(payload_digest(&c.p, DIGEST_MD5) == NULL);
    CHECK_INT(payload_verify(&c.p, &c.err), S3_X_AMZ_CONTENT_SHA256_MISMATCH);
    payload_release(&c.p);
    CHECK_INT(run(&c, STR("12345678"), 9), S3_INCOMPLETE_BODY);
    payload_release(&c.p);
    CHECK_INT(run(&c, STR("1234567890"), 9), S3_INCOMPLETE_BODY);
    payload_release(&c.p);
}

static int run_trailer(const char *length, const char *body)
{
    struct check c = {.count = 2, .auth.payload = AUTH_PAYLOAD_UNSIGNED_TRAILER};
    int code;

    c.headers[0] = (struct http_header){STR("x-amz-trailer"), STR("x-amz-checksum-crc32")};
    c.headers[1] = (struct http_header){STR("x-amz-decoded-content-length"), str_z(length)};
    code = run(&c, str_z(body), strlen(body));
    payload_release(&c.p);
    return code;
}

TEST(payload, a_trailing_checksum_is_checked)
{
    CHECK_INT(run_trailer("9", "9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n"), 0);
    CHECK_INT(run_trailer("9", "9\r\n123456780\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n"),
              S3_BAD_DIGEST);
    CHECK_INT(run_trailer("9", "9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:y/Q5\r\n\r\n"),
              S3_BAD_DIGEST);
    CHECK_INT(run_trailer("9", "9\r\n123456789\r\n0\r\n\r\n"), S3_MALFORMED_TRAILER_ERROR);
    CHECK_INT(run_trailer("x", ""), S3_INVALID_ARGUMENT);
}

TEST(payload, a_storage_that_stops_at_the_length_still_gets_the_verdict)
{
    struct check c = {.auth.payload = AUTH_PAYLOAD_HASH};
    struct payload_options o = {&c.auth, NULL, 0, 9, 0};
    struct slow_reader slow = {{&slow_ops}, STR("123456789"), 100};
    char bytes[9];

    CHECK_INT(payload_init(&c.p, &slow.reader, &o, &c.err), 0);
    CHECK_INT(reader_read_full(&c.p.reader, bytes, sizeof(bytes), &c.err), 0);
    CHECK_INT(payload_verify(&c.p, &c.err), S3_X_AMZ_CONTENT_SHA256_MISMATCH);
    payload_release(&c.p);
}

static bool fake_as_socket(struct reader *r, int *fd, uint64_t *len)
{
    *fd = 7;
    *len = 9;
    return true;
}

static void fake_skip(struct reader *r, uint64_t n)
{
    struct slow_reader *s = container_of(r, struct slow_reader, reader);

    s->rest = str_skip(s->rest, n);
}

TEST(payload, a_socket_shows_through_only_when_nothing_is_hashed)
{
    static const struct reader_ops socket_ops = {
        .read = slow_read, .as_socket = fake_as_socket, .skip = fake_skip};

    for (unsigned also = 0; also < 2; also++) {
        struct check c = {0};
        struct payload_options o = {&c.auth, NULL, 0, 9, also};
        struct slow_reader slow = {{&socket_ops}, STR("123456789"), 100};
        uint64_t len;
        int fd;
        CHECK_INT(payload_init(&c.p, &slow.reader, &o, &c.err), 0);
        CHECK_INT(reader_as_socket(&c.p.reader, &fd, &len), !also);
        if (!also) {
            reader_skip(&c.p.reader, 8);
            CHECK_INT(payload_verify(&c.p, &c.err), S3_INCOMPLETE_BODY);
        }
        payload_release(&c.p);
    }
}
