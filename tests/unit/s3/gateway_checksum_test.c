/* Checksums that the gateway makes, carries to copies, and tells of parts. */
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

#define NONE      STR_EMPTY
#define ASK       "x-amz-checksum-mode: ENABLED"
#define ALGORITHM "x-amz-checksum-algorithm: "

enum { BODY_MAX = 300 * 1024 };

static struct str bytes(size_t len)
{
    static char all[BODY_MAX];

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(i * 7 + i / 251);
    return str_n(all, len);
}

static struct str sum_of(enum digest_kind kind, struct str body)
{
    static char text[64];
    struct arena a = ARENA_INIT(0);
    struct digest_value value;

    digest_of(kind, body, &value);
    snprintf(text, sizeof(text), STR_FMT, STR_ARG(digest_text(&a, &value)));
    arena_release(&a);
    return str_z(text);
}

GATE_TEST(what_comes_without_a_checksum_gets_crc64nvme)
{
    size_t sizes[] = {0, 5, BODY_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct str body = bytes(sizes[i]);
        gate_ask(g, ALICE, "PUT /box/key", NULL, body, 200);
        CHECK_STR(gate_header(g, "x-amz-checksum-crc64nvme"), sum_of(DIGEST_CRC64NVME, body));
        CHECK_STR(gate_header(g, "x-amz-checksum-type"), STR("FULL_OBJECT"));
        gate_ask(g, ALICE, "GET /box/key", ASK, NONE, 200);
        CHECK_STR(gate_header(g, "x-amz-checksum-crc64nvme"), sum_of(DIGEST_CRC64NVME, body));
        gate_do(g, "GET /box/key", 200);
        CHECK(!gate_header(g, "x-amz-checksum-crc64nvme").p);
    }
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-checksum-crc32: NhCmhg==", STR("hello"), 200);
    CHECK(!gate_header(g, "x-amz-checksum-crc64nvme").p);
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("hello"), 200);
    CHECK_STR(gate_header(g, "x-amz-checksum-crc64nvme"), STR("M3eFcAZSQlc="));
}

GATE_TEST(a_copy_has_the_checksum_that_is_asked_for)
{
    struct str body = bytes(BODY_MAX);

    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("hello"), 200);
    gate_ask(g, ALICE, "PUT /box/large", NULL, body, 200);
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/key\n" ALGORITHM "CRC32", NONE,
             200);
    CHECK_STR(gate_element(g, "ChecksumCRC32"), STR("NhCmhg=="));
    CHECK_STR(gate_element(g, "ChecksumType"), STR("FULL_OBJECT"));
    CHECK(!gate_has(g, "ChecksumCRC64NVME"));
    gate_ask(g, ALICE, "GET /box/copy", ASK, NONE, 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, "x-amz-checksum-crc32"), STR("NhCmhg=="));
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/large\n" ALGORITHM "SHA256", NONE,
             200);
    CHECK_STR(gate_element(g, "ChecksumSHA256"), sum_of(DIGEST_SHA256, body));
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/large", NONE, 200);
    CHECK_STR(gate_element(g, "ChecksumCRC64NVME"), sum_of(DIGEST_CRC64NVME, body));
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/key\n" ALGORITHM "MD5", NONE, 400);
    GATE_ERROR(g, "InvalidRequest");
}

GATE_TEST(an_object_gets_another_checksum_in_its_place)
{
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-meta-a: 1", STR("hello"), 200);
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-copy-source: /box/key", NONE, 400);
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-copy-source: /box/key\n" ALGORITHM "SHA1", NONE, 200);
    gate_ask(g, ALICE, "GET /box/key", ASK, NONE, 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, "x-amz-meta-a"), STR("1"));
    CHECK_STR(gate_header(g, "x-amz-checksum-sha1"), sum_of(DIGEST_SHA1, STR("hello")));
}

/* --- parts --- */

struct upload {
    char id[64];
    struct buf xml;
};

static struct upload begin(struct gate *g, const char *headers)
{
    struct upload u = {.xml = BUF_INIT(0)};

    gate_ask(g, ALICE, "POST /box/big?uploads", headers, NONE, 200);
    snprintf(u.id, sizeof(u.id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    buf_append_z(&u.xml, "<CompleteMultipartUpload>");
    return u;
}

static void part(struct gate *g, struct upload *u, int number, const char *headers, struct str body)
{
    char request[128];

    snprintf(request, sizeof(request), "PUT /box/big?partNumber=%d&uploadId=%s", number, u->id);
    gate_ask(g, ALICE, request, headers, body, 200);
    struct str etag = gate_header(g, "etag");
    buf_appendf(&u->xml, "<Part><PartNumber>%d</PartNumber><ETag>" STR_FMT "</ETag></Part>", number,
                STR_ARG(etag.p ? etag : gate_element(g, "ETag")));
}

static void finish(struct gate *g, struct upload *u, const char *headers, int status)
{
    char request[128];

    snprintf(request, sizeof(request), "POST /box/big?uploadId=%s", u->id);
    buf_append_z(&u->xml, "</CompleteMultipartUpload>");
    gate_ask(g, ALICE, request, headers, buf_str(&u->xml), status);
    buf_release(&u->xml);
}

GATE_TEST(a_part_is_answered_with_its_own_checksum)
{
    struct str body = bytes(2000);
    struct upload u = begin(g, ALGORITHM "SHA256");

    part(g, &u, 1, NULL, body); /* its kind is the upload's, also when the client sends none */
    CHECK_STR(gate_header(g, "x-amz-checksum-sha256"), sum_of(DIGEST_SHA256, body));
    part(g, &u, 2, NULL, STR("hello"));
    finish(g, &u, NULL, 200);
    CHECK(str_ends(gate_element(g, "ChecksumSHA256"), STR("-2")));
    gate_ask(g, ALICE, "GET /box/big?partNumber=1", ASK, NONE, 206);
    CHECK_STR(g->body, body);
    CHECK_STR(gate_header(g, "x-amz-checksum-sha256"), sum_of(DIGEST_SHA256, body));
    CHECK_STR(gate_header(g, "x-amz-checksum-type"), STR("COMPOSITE"));
    gate_ask(g, ALICE, "HEAD /box/big?partNumber=2", ASK, NONE, 206);
    CHECK_STR(gate_header(g, "x-amz-checksum-sha256"), sum_of(DIGEST_SHA256, STR("hello")));
    gate_do(g, "GET /box/big?partNumber=1", 206);
    CHECK(!gate_header(g, "x-amz-checksum-sha256").p);
    gate_ask(g, ALICE, "GET /box/big?attributes", "x-amz-object-attributes: ObjectParts", NONE,
             200);
    CHECK_STR(gate_element(g, "ChecksumSHA256"), sum_of(DIGEST_SHA256, body));
}

GATE_TEST(an_object_of_one_piece_is_its_own_part)
{
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("hello"), 200);
    gate_ask(g, ALICE, "GET /box/key?partNumber=1", ASK, NONE, 206);
    CHECK_STR(gate_header(g, "x-amz-checksum-crc64nvme"), STR("M3eFcAZSQlc="));
}

GATE_TEST(an_upload_without_an_algorithm_gets_crc64nvme_of_all_its_bytes)
{
    struct str body = bytes(BODY_MAX);
    struct upload u = begin(g, NULL);

    part(g, &u, 1, NULL, str_head(body, 200 * KIB));
    part(g, &u, 2, NULL, str_skip(body, 200 * KIB));
    finish(g, &u, NULL, 200);
    CHECK_STR(gate_element(g, "ChecksumCRC64NVME"), sum_of(DIGEST_CRC64NVME, body));
    CHECK_STR(gate_element(g, "ChecksumType"), STR("FULL_OBJECT"));
    gate_ask(g, ALICE, "HEAD /box/big", ASK, NONE, 200);
    CHECK_STR(gate_header(g, "x-amz-checksum-crc64nvme"), sum_of(DIGEST_CRC64NVME, body));
    u = begin(g, NULL);
    part(g, &u, 1, NULL, STR("hello"));
    finish(g, &u, "x-amz-checksum-crc64nvme: AAAAAAAAAAA=", 400);
    GATE_ERROR(g, "BadDigest");
}

GATE_TEST(an_upload_is_as_long_as_its_client_says)
{
    static const struct {
        const char *size;
        int status;
        const char *error;
    } said[] = {{"x-amz-mp-object-size: 2004", 400, "InvalidRequest"},
                {"x-amz-mp-object-size: -1", 400, "InvalidArgument"},
                {"x-amz-mp-object-size: 2005", 200, ""}};

    for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
        struct upload u = begin(g, NULL);
        part(g, &u, 1, NULL, bytes(2000));
        part(g, &u, 2, NULL, STR("world"));
        finish(g, &u, said[i].size, said[i].status);
        CHECK_STR(gate_element(g, "Code"), str_z(said[i].error));
    }
}

GATE_TEST(an_upload_whose_parts_differ_in_kind_has_no_checksum)
{
    struct upload u = begin(g, NULL);

    part(g, &u, 1, NULL, bytes(200));
    part(g, &u, 2, "x-amz-checksum-crc32: NhCmhg==", STR("hello"));
    finish(g, &u, NULL, 200);
    CHECK(!gate_has(g, "Checksum"));
    gate_ask(g, ALICE, "GET /box/big?partNumber=2", ASK, NONE, 206);
    CHECK_STR(gate_header(g, "x-amz-checksum-crc32"), STR("NhCmhg=="));
}

/* From a row, from a blob that is shared whole and in part, and over the border of two parts. */
GATE_TEST(a_part_that_is_copied_has_the_upload_s_checksum)
{
    static const char *const kinds[] = {NULL, ALGORITHM "CRC32"};
    struct str body = bytes(BODY_MAX);
    struct upload u = begin(g, NULL);

    part(g, &u, 1, NULL, body);
    part(g, &u, 2, NULL, body);
    finish(g, &u, NULL, 200);
    gate_ask(g, ALICE, "PUT /box/of-parts", "x-amz-copy-source: /box/big", NONE, 200);
    gate_ask(g, ALICE, "PUT /box/small", NULL, bytes(500), 200);
    gate_ask(g, ALICE, "PUT /box/large", NULL, body, 200);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct buf all = BUF_INIT(0);
        enum digest_kind kind = kinds[i] ? DIGEST_CRC32 : DIGEST_CRC64NVME;
        const char *element = kinds[i] ? "ChecksumCRC32" : "ChecksumCRC64NVME";
        u = begin(g, kinds[i]);
        part(g, &u, 1, "x-amz-copy-source: /box/small", NONE);
        CHECK_STR(gate_element(g, element), sum_of(kind, bytes(500)));
        part(g, &u, 2, "x-amz-copy-source: /box/large", NONE);
        CHECK_STR(gate_element(g, element), sum_of(kind, body));
        part(g, &u, 3, "x-amz-copy-source: /box/large\nx-amz-copy-source-range: bytes=7-2006",
             NONE);
        CHECK_STR(gate_element(g, element), sum_of(kind, str_head(str_skip(body, 7), 2000)));
        part(g, &u, 4,
             "x-amz-copy-source: /box/of-parts\nx-amz-copy-source-range: bytes=307190-307209",
             NONE);
        buf_append_str(&all, str_skip(body, BODY_MAX - 10));
        buf_append_str(&all, str_head(body, 10));
        CHECK_STR(gate_element(g, element), sum_of(kind, buf_str(&all)));
        finish(g, &u, NULL, 200);
        CHECK(gate_element(g, element).len > 0);
        gate_ask(g, ALICE, "HEAD /box/big?partNumber=3", ASK, NONE, 206);
        CHECK(gate_header(g, "x-amz-checksum-type").len > 0);
        buf_release(&all);
    }
}

/* --- Content-MD5, which the storage computes --- */

static void put_md5(struct gate *g, const char *request, struct str body, struct str said,
                    int status)
{
    char headers[128];

    snprintf(headers, sizeof(headers), "content-md5: " STR_FMT, STR_ARG(sum_of(DIGEST_MD5, said)));
    gate_ask(g, ALICE, request, headers, body, status);
    if (status == 400)
        GATE_ERROR(g, "BadDigest");
}

GATE_TEST(a_body_has_the_md5_that_is_said)
{
    size_t sizes[] = {0, 5, 2000, BODY_MAX};
    struct upload u = begin(g, NULL);
    char request[128];

    snprintf(request, sizeof(request), "PUT /box/big?partNumber=1&uploadId=%s", u.id);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct str body = bytes(sizes[i]);
        put_md5(g, "PUT /box/key", body, STR("other"), 400);
        put_md5(g, request, body, STR("other"), 400);
        gate_do(g, "HEAD /box/key", 404);
        put_md5(g, "PUT /box/key", body, body, 200);
        put_md5(g, request, body, body, 200);
        gate_do(g, "DELETE /box/key", 204);
    }
    buf_release(&u.xml);
}
