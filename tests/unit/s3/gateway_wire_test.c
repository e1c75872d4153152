/* What clients put on the wire that must not be misread: long lists, headers that came as
 * parameters, parameters and checksums that nobody knows. */
#include "base/clock.h"
#include "s3/gateway/gateway_int.h"
#include "sign/sign.h"
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

#define NONE STR_EMPTY

/* --- lists --- */

/* Base64 of 32 bytes, as long as a SHA-256. */
#define SUM "NVsmnZ+hOEPtrv3zFhMDhrUMdD2KE2mLQUUIA2LcOsg="

/* Of 10,000 parts that name a checksum each; the first is there, the others are not. */
GATE_TEST(a_list_of_ten_thousand_parts_with_checksums_is_read)
{
    struct buf xml = BUF_INIT(0);
    char request[256], id[64], etag[64], sum[64];
    char body[100];

    memset(body, 'x', sizeof(body));
    gate_ask(g, ALICE, "POST /box/big?uploads", "x-amz-checksum-algorithm: SHA256", NONE, 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    snprintf(request, sizeof(request), "PUT /box/big?partNumber=1&uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, str_n(body, sizeof(body)), 200);
    snprintf(etag, sizeof(etag), STR_FMT, STR_ARG(gate_header(g, "etag")));
    snprintf(sum, sizeof(sum), STR_FMT, STR_ARG(gate_header(g, "x-amz-checksum-sha256")));
    CHECK_INT(strlen(sum), strlen(SUM));
    buf_append_z(&xml, "<CompleteMultipartUpload>");
    for (int i = 1; i <= 10000; i++)
        buf_appendf(&xml,
                    "<Part><ETag>%s</ETag><ChecksumSHA256>%s</ChecksumSHA256>"
                    "<PartNumber>%d</PartNumber></Part>",
                    etag, i == 1 ? sum : SUM, i);
    buf_append_z(&xml, "</CompleteMultipartUpload>");
    snprintf(request, sizeof(request), "POST /box/big?uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, buf_str(&xml), 400);
    GATE_ERROR(g, "InvalidPart");
    buf_release(&xml);
}

/* 1000 keys of 1024 bytes, each of which takes five in XML, with versions. */
GATE_TEST(a_batch_of_the_longest_keys_is_read)
{
    struct buf xml = BUF_INIT(0);
    int deleted = 0;

    buf_append_z(&xml, "<Delete>");
    for (int i = 0; i < 1000; i++) {
        buf_appendf(&xml, "<Object><Key>%04d", i);
        for (int k = 0; k < 1020; k++)
            buf_append_z(&xml, "&amp;");
        buf_append_z(&xml, "</Key><VersionId>null</VersionId></Object>");
    }
    buf_append_z(&xml, "</Delete>");
    gate_ask(g, ALICE, "POST /box?delete", NULL, buf_str(&xml), 200);
    for (struct str rest = g->body; str_find(rest, STR("<Deleted>")) >= 0; deleted++)
        rest = str_skip(rest, (size_t)str_find(rest, STR("<Deleted>")) + 9);
    CHECK_INT(deleted, 1000);

    buf_append_z(&xml, "<!--"); /* the limit is still one */
    while (xml.len <= 8 * 1024 * 1024)
        buf_append_z(&xml, "                                                                ");
    buf_append_z(&xml, "-->");
    gate_ask(g, ALICE, "POST /box?delete", NULL, buf_str(&xml), 400);
    GATE_ERROR(g, "MaxMessageLengthExceeded");
    buf_release(&xml);
}

/* --- headers in the query --- */

static void ask_presigned(struct gate *g, const char *request, const char *signed_headers,
                          const char *headers, struct str body, int status)
{
    struct buf text = BUF_INIT(0);

    gate_presign(&text, ALICE, request, signed_headers);
    gate_ask(g, NOBODY, text.p, headers, body, status);
    buf_release(&text);
}

GATE_TEST(headers_that_were_hoisted_into_a_presigned_query_count)
{
    ask_presigned(g,
                  "PUT /box/key?x-amz-meta-colour=light%20blue&X-Amz-Acl=public-read&"
                  "x-amz-tagging=a%3D1%26b%3D2&x-amz-storage-class=STANDARD_IA&"
                  "x-amz-server-side-encryption=AES256&x-id=PutObject",
                  NULL, NULL, STR("hello"), 200);
    gate_do(g, "HEAD /box/key", 200);
    CHECK_STR(gate_header(g, "x-amz-meta-colour"), STR("light blue"));
    CHECK_STR(gate_header(g, "x-amz-tagging-count"), STR("2"));
    CHECK_STR(gate_header(g, "x-amz-storage-class"), STR("STANDARD_IA"));
    CHECK_STR(gate_header(g, "x-amz-server-side-encryption"), STR("AES256"));
    gate_ask(g, NOBODY, "GET /box/key", NULL, NONE, 200); /* its list is public */
    ask_presigned(g, "PUT /box/copy?x-amz-copy-source=box%2Fkey", NULL, NULL, NONE, 200);
    CHECK(gate_has(g, "<CopyObjectResult"));
    ask_presigned(g, "PUT /box/key?x-amz-object-lock-mode=NO", NULL, NULL, STR("x"), 400);
    ask_presigned(g, "PUT /box/key?x-amz-storage-class=NONE", NULL, NULL, STR("x"), 400);
    GATE_ERROR(g, "InvalidStorageClass");
    /* without a signature of the query they are nothing */
    gate_ask(g, ALICE, "PUT /box/plain?x-amz-meta-colour=blue", NULL, STR("x"), 200);
    gate_do(g, "HEAD /box/plain", 200);
    CHECK(!gate_header(g, "x-amz-meta-colour").p);
}

GATE_TEST(an_address_that_was_presigned_for_a_new_object_is_good_once)
{
    static const char address[] = "PUT /box/key?x-weir-if-none-match=%2A";

    ask_presigned(g, address, NULL, NULL, STR("first"), 200);
    ask_presigned(g, address, NULL, NULL, STR("second"), 412);
    ask_presigned(g, address, NULL, "if-none-match: *", STR("second"), 412);
    ask_presigned(g, address, NULL, "if-none-match: \"other\"", STR("second"), 400);
    GATE_ERROR(g, "InvalidRequest");
    ask_presigned(g, address, NULL, "connection: if-none-match", STR("second"), 412);
    gate_do(g, "GET /box/key", 200);
    CHECK_STR(g->body, STR("first"));
}

GATE_TEST(an_address_that_was_presigned_for_an_etag_reads_no_other_object)
{
    static const char address[] =
        "GET /box/key?x-weir-if-match=%225d41402abc4b2a76b9719d911017c592%22";

    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("hello"), 200);
    ask_presigned(g, address, NULL, NULL, NONE, 200);
    CHECK_STR(g->body, STR("hello"));
    ask_presigned(g, address, NULL, "range: bytes=1-2", NONE, 206);
    ask_presigned(g, address, NULL, "if-match: \"other\"", NONE, 400);
    GATE_ERROR(g, "InvalidRequest");
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("other"), 200);
    ask_presigned(g, address, NULL, NULL, NONE, 412);
    /* in a request that is signed by headers it is nothing */
    gate_ask(g, ALICE, address, NULL, NONE, 200);
}

GATE_TEST(a_header_and_its_parameter_say_the_same)
{
    ask_presigned(g, "PUT /box/key?x-amz-meta-a=1", "x-amz-meta-a: 1", "x-amz-meta-a: 1", STR("x"),
                  200);
    gate_do(g, "HEAD /box/key", 200);
    CHECK_STR(gate_header(g, "x-amz-meta-a"), STR("1"));
    ask_presigned(g, "PUT /box/key?x-amz-meta-a=1", "x-amz-meta-a: 2", "x-amz-meta-a: 2", STR("x"),
                  400);
    GATE_ERROR(g, "InvalidRequest");
    ask_presigned(g, "PUT /box/key?x-amz-meta-a=1&x-amz-meta-a=2", NULL, NULL, STR("x"), 400);
    ask_presigned(g, "PUT /box/key?x-amz-meta-a=1%0D%0Ax-evil:%202", NULL, NULL, STR("x"), 400);
    ask_presigned(g, "PUT /box/key?x-amz-meta-a%0D%0Ab=1", NULL, NULL, STR("x"), 400);
    /* a header that was not signed is refused as ever */
    ask_presigned(g, "PUT /box/key?x-amz-meta-a=1", NULL, "x-amz-meta-a: 1", STR("x"), 403);
}

GATE_TEST(a_hoisted_checksum_is_checked_unless_it_is_of_nothing)
{
    ask_presigned(g,
                  "PUT /box/key?x-amz-checksum-crc32=NhCmhg%3D%3D&"
                  "x-amz-sdk-checksum-algorithm=CRC32",
                  NULL, NULL, STR("hello"), 200);
    CHECK_STR(gate_header(g, "x-amz-checksum-crc32"), STR("NhCmhg=="));
    ask_presigned(g, "PUT /box/key?x-amz-checksum-crc32=NhCmhg%3D%3D", NULL, NULL, STR("other"),
                  400);
    GATE_ERROR(g, "BadDigest");
    ask_presigned(g,
                  "PUT /box/key?x-amz-checksum-crc32=AAAAAA%3D%3D&"
                  "x-amz-sdk-checksum-algorithm=CRC32",
                  NULL, NULL, STR("hello"), 200);
}

/* --- what cannot be a header (G7) --- */

static void post_field(struct gate *g, struct str name, struct str value, int status)
{
    struct buf body = BUF_INIT(0);

    buf_append_z(&body, "--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nform\r\n"
                        "--b\r\nContent-Disposition: form-data; name=\"");
    buf_append_str(&body, name);
    buf_append_z(&body, "\"\r\n\r\n");
    buf_append_str(&body, value);
    buf_append_z(&body,
                 "\r\n--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b--\r\n");
    gate_ask(g, NOBODY, "POST /box", "content-type: multipart/form-data; boundary=b",
             buf_str(&body), status);
    buf_release(&body);
}

GATE_TEST(a_field_of_a_form_is_a_header_or_refused_by_its_name)
{
    static const struct http_header bad[] = {
        {STR("x-amz-meta-a b"), STR("v")},      {STR("x-amz-meta-a:b"), STR("v")},
        {STR("x-amz-meta-(a)"), STR("v")},      {STR("x-amz-meta-\xc3\xa4"), STR("v")},
        {STR("x-amz-meta-a\tb"), STR("v")},     {STR("x-amz-meta-a\nb"), STR("v")},
        {STR("x-amz-meta-lf"), STR("v\nw")},    {STR("x-amz-meta-crlf"), STR("v\r\nx: y")},
        {STR("x-amz-meta-nul"), STR("v\0w")},   {STR("x-amz-meta-esc"), STR("v\x1bw")},
        {STR("x-amz-meta-del"), STR("v\x7fw")}, {STR("Cache Control"), STR("v")},
        {STR("Content-Type"), STR("a\nb")},
    };

    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        post_field(g, bad[i].name, bad[i].value, 400);
        GATE_ERROR(g, "InvalidArgument");
        CHECK(str_find(gate_element(g, "Message"), str_head(bad[i].name, 5)) >= 0);
    }
    gate_do(g, "HEAD /box/form", 404);
    post_field(g, STR("x-amz-meta-a.b_c"), STR("v\tw \xc3\xa4"), 204);
    gate_ask(g, NOBODY, "GET /box/form", NULL, NONE, 403);
    gate_do(g, "DELETE /box/form", 204);
}

GATE_TEST(a_parameter_that_stands_for_a_header_is_one_or_refused)
{
    static const char *const bad[] = {"a%0Ab", "a%0D%0Ax:%20y", "a%00b", "a%01b", "a%7Fb"};
    static const char *const names[] = {"content-type",        "cache-control",
                                        "content-disposition", "content-encoding",
                                        "content-language",    "expires"};
    char request[128];

    gate_ask(g, ALICE, "PUT /box/key", "content-type: text/x-kept", STR("x"), 200);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        for (size_t k = 0; k < ARRAY_SIZE(bad); k++) {
            snprintf(request, sizeof(request), "GET /box/key?response-%s=%s", names[i], bad[k]);
            gate_do(g, request, 400);
            GATE_ERROR(g, "InvalidArgument");
        }
    gate_do(g, "GET /box/key?response-content-type=text/x-asked", 200);
    CHECK_STR(gate_header(g, "content-type"), STR("text/x-asked"));
    ask_presigned(g, "PUT /box/other?x-amz-meta-a%20b=1", NULL, NULL, STR("x"), 400);
    ask_presigned(g, "PUT /box/other?x-amz-meta-a=1%01", NULL, NULL, STR("x"), 400);
}

/* Signs "METHOD PATH" by version 2, and leaves what is behind `more` to whoever uses the address.
 */
static void ask_presigned_v2(struct gate *g, const char *what, const char *more, struct str body,
                             int status)
{
    struct str method, path;
    struct buf text = BUF_INIT(0), signature = BUF_INIT(0), request = BUF_INIT(0);
    char until[32];

    str_cut(str_z(what), ' ', &method, &path);
    struct sign_request r = {.method = method, .path = path};
    snprintf(until, sizeof(until), "%lld", (long long)(clock_wall_ms() / MS_PER_S + 60));
    CHECK_INT(sign_v2_string(&text, &r, str_z(until), NONE), 0);
    sign_v2(&signature, gate_key(ALICE).secret, buf_str(&text));
    buf_appendf(&request, "%s?AWSAccessKeyId=" STR_FMT "&Expires=%s&Signature=", what,
                STR_ARG(gate_key(ALICE).access), until);
    url_encode(&request, buf_str(&signature), false);
    buf_append_z(&request, more);
    gate_ask(g, NOBODY, request.p, NULL, body, status);
    buf_release(&text);
    buf_release(&signature);
    buf_release(&request);
}

/* The same with the signature in the header. */
static void ask_signed_v2(struct gate *g, const char *what, const char *more, int status)
{
    struct str method, path;
    struct buf text = BUF_INIT(0), signature = BUF_INIT(0), request = BUF_INIT(0);
    char date[CLOCK_HTTP_LEN + 1], headers[256];

    str_cut(str_z(what), ' ', &method, &path);
    struct sign_request r = {.method = method, .path = path};
    clock_http(clock_wall_ms(), date);
    CHECK_INT(sign_v2_string(&text, &r, str_z(date), NONE), 0);
    sign_v2(&signature, gate_key(ALICE).secret, buf_str(&text));
    snprintf(headers, sizeof(headers), "authorization: AWS " STR_FMT ":%s\ndate: %s",
             STR_ARG(gate_key(ALICE).access), signature.p, date);
    buf_appendf(&request, "%s?%s", what, str_skip(str_z(more), 1).p);
    gate_ask(g, NOBODY, request.p, headers, NONE, status);
    buf_release(&text);
    buf_release(&signature);
    buf_release(&request);
}

/* A6: it does not sign them. */
GATE_TEST(headers_are_not_hoisted_from_a_query_of_version_2)
{
    static const char *const disguises[] = {"", "&%58-Amz-Algorithm=1", "&X-Amz-Credentia%6C=1",
                                            "&X%2DAmz-Signature"};
    char more[128];

    gate_ask(g, ALICE, "PUT /box/secret", NULL, STR("secret"), 200);
    for (size_t i = 0; i < ARRAY_SIZE(disguises); i++) {
        snprintf(more, sizeof(more), "%s&x-amz-copy-source=box%%2Fsecret&x-amz-acl=public-read",
                 disguises[i]);
        ask_presigned_v2(g, "PUT /box/key", more, STR("mine"), 200);
        gate_do(g, "GET /box/key", 200);
        CHECK_STR(g->body, STR("mine"));
        gate_ask(g, NOBODY, "GET /box/key", NULL, NONE, 403);
        gate_do(g, "DELETE /box/key", 204);
    }
    ask_presigned_v2(g, "PUT /box/key", "&X-Amz-Algorithm=1&x-amz-acl=public-read", STR("x"), 400);
    gate_do(g, "HEAD /box/key", 404);
}

/* A7, over the table of operations: each sub-resource, as it is, with a value, and with a name that
 * is encoded so that the signature does not see it. */
GATE_TEST(nothing_that_an_operation_knows_is_added_to_a_signature_of_version_2)
{
    static const char *const paths[] = {"/", "/box", "/box/key"};
    char what[64], more[3][96];

    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    for (size_t i = 0; i < operation_count; i++) {
        const struct operation *op = &operations[i];
        if (!op->query || strcmp(op->query, "list-type") == 0)
            continue;
        snprintf(what, sizeof(what), "%s %s", http_method_name(op->method), paths[op->level]);
        snprintf(more[0], sizeof(more[0]), "&%s", op->query);
        snprintf(more[1], sizeof(more[1]), "&%s=1", op->query);
        snprintf(more[2], sizeof(more[2]), "&%%%02x%s", (unsigned)op->query[0], op->query + 1);
        for (size_t k = 0; k < ARRAY_SIZE(more); k++) {
            ask_presigned_v2(g, what, more[k], NONE, 403);
            ask_signed_v2(g, what, more[k], 403);
        }
    }
    ask_presigned_v2(g, "GET /box/key", "&versionId=null", NONE, 403);
    ask_presigned_v2(g, "GET /box/key", "&somethingNew", NONE, 403);
    CHECK(gate_has(g, "somethingNew"));
    ask_presigned_v2(g, "GET /box", "&list-type=2&prefix=k&max-keys=1&x-id=ListObjects", NONE, 200);
    ask_signed_v2(g, "GET /box", "&list-type=2&prefix=k&max-keys=1&x-id=ListObjects", 200);
}

/* --- what nobody knows --- */

GATE_TEST(a_parameter_that_an_operation_does_not_know_is_not_left_out)
{
    static const char *const requests[] = {
        "DELETE /box?somethingNew",
        "DELETE /box?somethingNew=1",
        "PUT /box?abac",
        "PUT /box?metadataInventoryTable",
        "POST /box?delete&somethingNew",
        "PUT /box?versioning&somethingNew=x",
        "GET /box?abac",
        "GET /box?somethingNew",
        "HEAD /box?somethingNew",
        "GET /?somethingNew",
        "PUT /box/key?somethingNew",
        "PUT /box/key?partNumber=1",
        "PUT /box/key?versionId=null",
        "PUT /box/key?metrics",
        "GET /box?session=abc",
        "DELETE /box/key?annotation=x",
        "DELETE /box/key?somethingNew=x",
        "POST /box/key?uploads&somethingNew",
        "GET /box/key?annotation",
        "GET /box/key?select=1",
    };

    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        gate_do(g, requests[i], 501);
    gate_do(g, "PUT /box/key?tagging&acl", 400); /* which of them? */
    GATE_ERROR(g, "InvalidArgument");
    gate_do(g, "DELETE /box/key?versionId=null&versionId=x", 400);
    GATE_ERROR(g, "InvalidArgument");
    gate_do(g, "DELETE /box/key?somethingNew", 501);
    GATE_ERROR(g, "NotImplemented");
    CHECK(gate_has(g, "somethingNew"));
    gate_do(g, "GET /box/key", 200); /* and nothing has happened */
    CHECK_STR(g->body, STR("x"));
}

GATE_TEST(what_sdks_and_caches_add_is_left_out)
{
    gate_ask(g, ALICE, "PUT /box/key?x-id=PutObject", NULL, STR("x"), 200);
    gate_do(g, "GET /box/key?x-id=GetObject&20261116", 200);
    gate_do(g, "GET /box/key?v=3", 200);
    gate_do(g, "GET /box/key?session=abc&metrics", 200);
    gate_do(g, "HEAD /box/key?inventory=12", 200);
    gate_do(g, "GET /box?prefix=&marker&x-id=ListObjects", 200);
    gate_do(g, "GET /box?list-type=2&start-after=&v=1", 200);
    gate_do(g, "GET /?x-id=ListBuckets&prefix=", 200);
    gate_do(g, "HEAD /box?read-stats", 200);
    gate_do(g, "POST /box/key?uploads&x-id=CreateMultipartUpload", 200);
    gate_ask(g, ALICE, "PUT /box/key?x-user=johndoe&X-Trace", NULL, STR("x"), 200);
    gate_do(g, "GET /?x-user", 200);
    ask_presigned_v2(g, "PUT /box/key", "&content-type=text%2Fplain&content-md5=x", STR("x"), 200);
    gate_do(g, "HEAD /box/key", 200); /* and is no header */
    CHECK_STR(gate_header(g, "content-type"), STR("binary/octet-stream"));
    gate_do(g, "DELETE /box/key?versionId=null&x-id=DeleteObject&x-user=johndoe", 204);
    gate_do(g, "DELETE /box?x-id=DeleteBucket", 204);
}

GATE_TEST(checksums_that_cannot_be_checked_are_refused)
{
    static const char *const headers[] = {
        "x-amz-checksum-md5: AAAA",
        "x-amz-checksum-sha512: AAAA",
        "x-amz-checksum-xxhash64: AAAA",
        "x-amz-sdk-checksum-algorithm: SHA512",
        "x-amz-trailer: x-amz-checksum-sha512",
    };

    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        gate_ask(g, ALICE, "PUT /box/key", headers[i], STR("x"), 400);
        GATE_ERROR(g, "InvalidRequest");
    }
    CHECK(gate_has(g, "sha512"));
    gate_do(g, "HEAD /box/key", 404);
    gate_ask(g, ALICE, "PUT /box?versioning", "x-amz-checksum-sha512: AAAA",
             STR("<VersioningConfiguration/>"), 400);
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-sdk-checksum-algorithm: crc32", STR("x"), 200);
    gate_ask(g, ALICE, "POST /box/key?uploads",
             "x-amz-checksum-algorithm: CRC32\nx-amz-checksum-type: FULL_OBJECT", NONE, 200);
}
