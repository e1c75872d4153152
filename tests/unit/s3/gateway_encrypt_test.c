/* Server-side encryption over the wire: headers, errors, and every kind copied to every other. */
#include "os/file.h"
#include "meta/keyring.h"
#include "unit/s3/gateway_lab.h"

#include <stdio.h>
#include <stdlib.h>

#define NONE STR_EMPTY

enum { R = SEALED_RECORD, BODY_MAX = 200 * 1024 };

#define KEY_ONE            "d2VpciBjdXN0b21lciBrZXkgbnVtYmVyIG9uZSAxMjM="
#define KEY_TWO            "d2VpciBjdXN0b21lciBrZXkgbnVtYmVyIHR3byAxMjM="
#define MD5_ONE            "7D+ZAjjxmnFR+Jb95XRGNg=="
#define MD5_TWO            "AHW77E+gm0wj5Zs6z8alqQ=="
#define SSE                "x-amz-server-side-encryption"
#define ALGORITHM          SSE "-customer-algorithm: AES256\n"
#define CUSTOMER(key, md5) ALGORITHM SSE "-customer-key: " key "\n" SSE "-customer-key-md5: " md5
#define SOURCE_CUSTOMER(key, md5)                                                                  \
    "x-amz-copy-source-server-side-encryption-customer-algorithm: AES256\n"                        \
    "x-amz-copy-source-server-side-encryption-customer-key: " key                                  \
    "\nx-amz-copy-source-server-side-encryption-customer-key-md5: " md5
#define ONE CUSTOMER(KEY_ONE, MD5_ONE)
#define TWO CUSTOMER(KEY_TWO, MD5_TWO)
#define S3  SSE ": AES256"
#define KMS SSE ": aws:kms\n" SSE "-aws-kms-key-id: payroll"

/* How an object is asked for, read, and copied from. */
static const struct kind {
    const char *name, *put, *get, *source;
} kinds[] = {
    {"none", NULL, NULL, NULL},
    {"c", ONE, ONE, SOURCE_CUSTOMER(KEY_ONE, MD5_ONE)},
    {"s3", S3, NULL, NULL},
    {"kms", KMS, NULL, NULL},
};

/* The keys of a copy are others than those of its source. */
static const struct kind copies[] = {
    {"none", NULL, NULL, NULL},
    {"c", TWO, TWO, NULL},
    {"s3", S3, NULL, NULL},
    {"kms", SSE ": aws:kms\n" SSE "-aws-kms-key-id: archive", NULL, NULL},
};

static void write_keys(struct gate *g, const char *text)
{
    struct err err = {0};

    CHECK_OK(file_write_durable(g->key_file, str_z(text), 0600, &err));
}

#define ENCRYPTION_TEST(name)                                                                      \
    static void run_##name(struct gate *g);                                                        \
    TEST(encryption, name)                                                                         \
    {                                                                                              \
        struct gate g;                                                                             \
        gate_start(&g);                                                                            \
        write_keys(&g, "payroll 1 00112233445566778899aabbccddeeff"                                \
                       "00112233445566778899aabbccddeeff\n"                                        \
                       "archive 1 10112233445566778899aabbccddeeff"                                \
                       "00112233445566778899aabbccddeeff\n");                                      \
        gate_do(&g, "PUT /box", 200);                                                              \
        run_##name(&g);                                                                            \
        gate_stop(&g);                                                                             \
    }                                                                                              \
    static void run_##name(struct gate *g)

static struct str bytes(size_t len)
{
    static char all[BODY_MAX];

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(i * 7 + i / 251);
    return str_n(all, len);
}

static void expect_kind(struct gate *g, const struct kind *k)
{
    struct str algorithm = gate_header(g, SSE);

    if (strcmp(k->name, "none") == 0)
        CHECK(!algorithm.p && !gate_header(g, SSE "-customer-algorithm").p);
    else if (strcmp(k->name, "c") == 0)
        CHECK_STR(gate_header(g, SSE "-customer-algorithm"), STR("AES256"));
    else
        CHECK_STR(algorithm, strcmp(k->name, "s3") == 0 ? STR("AES256") : STR("aws:kms"));
}

ENCRYPTION_TEST(an_object_is_encrypted_with_our_key)
{
    struct buf keys = BUF_INIT(0);
    struct err err = {0};

    gate_ask(g, ALICE, "PUT /box/key", S3, STR("hello"), 200);
    CHECK_STR(gate_header(g, SSE), STR("AES256"));
    CHECK_STR(gate_header(g, "etag"), STR("\"5d41402abc4b2a76b9719d911017c592\""));
    gate_do(g, "GET /box/key", 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, SSE), STR("AES256"));
    gate_do(g, "HEAD /box/key", 200);
    CHECK_STR(gate_header(g, SSE), STR("AES256"));
    CHECK_STR(gate_header(g, "content-length"), STR("5"));
    gate_do(g, "GET /box", 200);
    CHECK_STR(gate_element(g, "Size"), STR("5"));
    CHECK_OK(file_read(g->key_file, &keys, &err));
    CHECK(str_find(buf_str(&keys), STR("\nsse-s3 ")) > 0);
    gate_ask(g, ALICE, "GET /box/key", S3, NONE, 400);
    GATE_ERROR(g, "InvalidArgument");
    gate_ask(g, ALICE, "HEAD /box/key", S3, NONE, 400);
    gate_ask(g, ALICE, "GET /box/key", ONE, NONE, 400);
    GATE_ERROR(g, "InvalidRequest");
    buf_release(&keys);
}

ENCRYPTION_TEST(an_object_is_encrypted_with_a_named_key)
{
    gate_ask(g, ALICE, "PUT /box/key", KMS, STR("hello"), 200);
    CHECK_STR(gate_header(g, SSE), STR("aws:kms"));
    CHECK_STR(gate_header(g, SSE "-aws-kms-key-id"), STR("payroll"));
    CHECK(str_ends(gate_header(g, "etag"), STR("-0\"")));
    gate_do(g, "GET /box/key", 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, SSE "-aws-kms-key-id"), STR("payroll"));
    gate_ask(g, ALICE, "PUT /box/key", SSE ": aws:kms\n" SSE "-aws-kms-key-id: nobody", STR("x"),
             400);
    GATE_ERROR(g, "KMS.NotFoundException");
    gate_ask(g, ALICE, "PUT /box/key", SSE ": aws:kms", STR("x"), 400); /* there is no aws/s3 */
    GATE_ERROR(g, "KMS.NotFoundException");
    gate_ask(g, ALICE, "PUT /box/key", KMS "\n" SSE "-context: eyJhIjoiYiJ9", STR("x"), 200);
    CHECK_STR(gate_header(g, SSE "-context"), STR("eyJhIjoiYiJ9"));
    gate_ask(g, ALICE, "PUT /box/key", KMS "\n" SSE "-context: W10=", STR("x"), 400);
    gate_ask(g, ALICE, "PUT /box/key", KMS "\n" SSE "-context: ?", STR("x"), 400);
    gate_do(g, "GET /box/key", 200);
    CHECK_STR(g->body, STR("x"));
}

ENCRYPTION_TEST(an_object_is_encrypted_with_the_customers_key)
{
    gate_ask(g, ALICE, "PUT /box/key", ONE, STR("hello"), 200);
    CHECK_STR(gate_header(g, SSE "-customer-algorithm"), STR("AES256"));
    CHECK_STR(gate_header(g, SSE "-customer-key-md5"), STR(MD5_ONE));
    gate_ask(g, ALICE, "GET /box/key", ONE, NONE, 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, SSE "-customer-key-md5"), STR(MD5_ONE));
    gate_ask(g, ALICE, "HEAD /box/key", ONE, NONE, 200);
    gate_ask(g, ALICE, "GET /box/key?attributes", ONE "\nx-amz-object-attributes: ObjectSize", NONE,
             200);
    CHECK_STR(gate_element(g, "ObjectSize"), STR("5"));
    const char *reads[] = {"GET /box/key", "GET /box/key?attributes"};
    for (size_t i = 0; i < 2; i++) {
        gate_ask(g, ALICE, reads[i], "x-amz-object-attributes: ETag", NONE, 400);
        GATE_ERROR(g, "InvalidRequest");
        gate_ask(g, ALICE, reads[i], TWO "\nx-amz-object-attributes: ETag", NONE, 400);
        GATE_ERROR(g, "InvalidRequest");
    }
    gate_do(g, "HEAD /box/key", 400);
    gate_ask(g, ALICE, "HEAD /box/key", TWO, NONE, 400);
    gate_do(g, "GET /box/key?tagging", 200); /* what is beside the bytes needs no key */
    gate_do(g, "GET /box", 200);
    CHECK_STR(gate_element(g, "Size"), STR("5"));
    gate_ask(g, ALICE, "PUT /box/plain", NULL, STR("x"), 200);
    gate_ask(g, ALICE, "GET /box/plain", ONE, NONE, 400);
    GATE_ERROR(g, "InvalidRequest");
}

ENCRYPTION_TEST(headers_that_do_not_fit_are_refused)
{
    static const struct {
        const char *headers, *code;
    } wrong[] = {
        {ALGORITHM, "InvalidArgument"},
        {ALGORITHM SSE "-customer-key: " KEY_ONE, "InvalidArgument"},
        {SSE "-customer-key: " KEY_ONE "\n" SSE "-customer-key-md5: " MD5_ONE, "InvalidArgument"},
        {CUSTOMER(KEY_ONE, MD5_TWO), "InvalidArgument"},
        {CUSTOMER(KEY_ONE, "?"), "InvalidArgument"},
        {CUSTOMER("d2Vpcg==", MD5_ONE), "InvalidArgument"},
        {CUSTOMER("?", MD5_ONE), "InvalidArgument"},
        {SSE "-customer-algorithm: AES128\n" SSE "-customer-key: " KEY_ONE "\n" SSE
             "-customer-key-md5: " MD5_ONE,
         "InvalidEncryptionAlgorithmError"},
        {ONE "\n" S3, "InvalidArgument"},
        {ONE "\n" KMS, "InvalidArgument"},
        {SSE ": AES128", "InvalidArgument"},
        {SSE ": aes:kms", "InvalidArgument"},
        {SSE ": aws:kms:dsse", "InvalidArgument"},
        {SSE "-aws-kms-key-id: payroll", "InvalidArgument"},
        {S3 "\n" SSE "-aws-kms-key-id: payroll", "InvalidArgument"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        gate_ask(g, ALICE, "PUT /box/key", wrong[i].headers, STR("x"), 400);
        CHECK_STR(gate_element(g, "Code"), str_z(wrong[i].code));
        gate_ask(g, ALICE, "POST /box/key?uploads", wrong[i].headers, NONE, 400);
        CHECK_STR(gate_element(g, "Code"), str_z(wrong[i].code));
    }
    gate_do(g, "HEAD /box/key", 404);
}

ENCRYPTION_TEST(ranges_of_encrypted_objects_are_plain)
{
    struct str body = bytes(2 * R + 100);
    char request[512];

    for (size_t i = 1; i < ARRAY_SIZE(kinds); i++) {
        gate_ask(g, ALICE, "PUT /box/key", kinds[i].put, body, 200);
        snprintf(request, sizeof(request), "range: bytes=%d-%d\n%s", R - 1, R + 1,
                 kinds[i].get ? kinds[i].get : "x-a: b");
        gate_ask(g, ALICE, "GET /box/key", request, NONE, 206);
        CHECK_STR(g->body, str_n(body.p + R - 1, 3));
        expect_kind(g, &kinds[i]);
        snprintf(request, sizeof(request), "bytes %d-%d/%d", R - 1, R + 1, 2 * R + 100);
        CHECK_STR(gate_header(g, "content-range"), str_z(request));
        gate_ask(g, ALICE, "GET /box/key?partNumber=1", kinds[i].get, NONE, 206);
        CHECK(str_eq(g->body, body));
    }
}

static void ask_copy(struct gate *g, const char *to, const struct kind *from,
                     const struct kind *copy, int status)
{
    char headers[1200];

    snprintf(headers, sizeof(headers), "x-amz-copy-source: /box/%s%s%s%s%s", from->name,
             from->source ? "\n" : "", from->source ? from->source : "", copy->put ? "\n" : "",
             copy->put ? copy->put : "");
    gate_ask(g, ALICE, to, headers, NONE, status);
}

static void expect_copy(struct gate *g, const struct kind *copy, struct str body)
{
    gate_ask(g, ALICE, "GET /box/copy", copy->get, NONE, 200);
    CHECK_INT(g->body.len, body.len);
    CHECK(str_eq(g->body, body));
    expect_kind(g, copy);
    gate_ask(g, ALICE, "HEAD /box/copy", copy->get, NONE, 200);
    expect_kind(g, copy);
}

ENCRYPTION_TEST(every_kind_is_copied_to_every_other)
{
    static const size_t sizes[] = {0, 1, 500, R - 1, R, R + 1, 2 * R + 7};

    for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
        struct str body = bytes(sizes[s]);
        char name[32];
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
            snprintf(name, sizeof(name), "PUT /box/%s", kinds[i].name);
            gate_ask(g, ALICE, name, kinds[i].put, body, 200);
        }
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
            for (size_t j = 0; j < ARRAY_SIZE(copies); j++) {
                ask_copy(g, "PUT /box/copy", &kinds[i], &copies[j], 200);
                expect_kind(g, &copies[j]);
                expect_copy(g, &copies[j], body);
            }
    }
}

ENCRYPTION_TEST(a_copy_needs_the_sources_key)
{
    static const struct kind bare = {"c", NULL, NULL, NULL},
                             wrong = {"c", NULL, NULL, SOURCE_CUSTOMER(KEY_TWO, MD5_TWO)},
                             needless = {"s3", NULL, NULL, SOURCE_CUSTOMER(KEY_TWO, MD5_TWO)};

    gate_ask(g, ALICE, "PUT /box/c", ONE, STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box/s3", S3, STR("x"), 200);
    for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
        ask_copy(g, "PUT /box/copy", &bare, &copies[i], 400);
        GATE_ERROR(g, "InvalidRequest");
        ask_copy(g, "PUT /box/copy", &wrong, &copies[i], 400);
        ask_copy(g, "PUT /box/copy", &needless, &copies[i], 400);
    }
    gate_do(g, "HEAD /box/copy", 404);
}

ENCRYPTION_TEST(an_object_is_copied_onto_itself_to_encrypt_it)
{
    gate_ask(g, ALICE, "PUT /box/none", NULL, STR("hello"), 200);
    ask_copy(g, "PUT /box/none", &kinds[0], &copies[0], 400);
    ask_copy(g, "PUT /box/none", &kinds[0], &copies[2], 200);
    gate_do(g, "GET /box/none", 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, SSE), STR("AES256"));
}

/* --- uploads --- */

static void begin(struct gate *g, const char *headers, char id[64])
{
    gate_ask(g, ALICE, "POST /box/copy?uploads", headers, NONE, 200);
    struct str text = gate_element(g, "UploadId");
    CHECK(text.len < 64);
    memcpy(id, text.p, text.len);
    id[text.len] = '\0';
}

static void part_request(char out[128], const char *id, int number)
{
    snprintf(out, 128, "PUT /box/copy?partNumber=%d&uploadId=%s", number, id);
}

/* Adds the answer's part to the document; the ETag is in a header, or in the XML of a copy. */
static void add_part(struct gate *g, struct buf *xml, int number)
{
    struct str etag = gate_header(g, "etag");

    buf_appendf(xml, "<Part><PartNumber>%d</PartNumber><ETag>" STR_FMT "</ETag></Part>", number,
                STR_ARG(etag.p ? etag : gate_element(g, "ETag")));
}

static void finish(struct gate *g, const char *id, const char *headers, struct buf *xml, int status)
{
    char request[128];
    struct buf document = BUF_INIT(0);

    buf_append_z(&document, "<CompleteMultipartUpload>");
    buf_append_str(&document, buf_str(xml));
    buf_append_z(&document, "</CompleteMultipartUpload>");
    snprintf(request, sizeof(request), "POST /box/copy?uploadId=%s", id);
    gate_ask(g, ALICE, request, headers, buf_str(&document), status);
    buf_release(&document);
}

ENCRYPTION_TEST(parts_are_sent_and_copied_into_every_kind)
{
    struct str body = bytes(R + 100);
    char id[64], request[128], name[32];

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        snprintf(name, sizeof(name), "PUT /box/%s", kinds[i].name);
        gate_ask(g, ALICE, name, kinds[i].put, body, 200);
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        for (size_t j = 0; j < ARRAY_SIZE(copies); j++) {
            struct kind part = copies[j]; /* the key alone is said again */
            struct buf xml = BUF_INIT(0), want = BUF_INIT(0);
            part.put = copies[j].get;
            begin(g, copies[j].put, id);
            expect_kind(g, &copies[j]);
            part_request(request, id, 1);
            ask_copy(g, request, &kinds[i], &part, 200);
            expect_kind(g, &copies[j]);
            add_part(g, &xml, 1);
            part_request(request, id, 2);
            gate_ask(g, ALICE, request, copies[j].get, str_head(body, 77), 200);
            expect_kind(g, &copies[j]);
            add_part(g, &xml, 2);
            finish(g, id, copies[j].get, &xml, 200);
            expect_kind(g, &copies[j]);
            buf_append_str(&want, body);
            buf_append_str(&want, str_head(body, 77));
            expect_copy(g, &copies[j], buf_str(&want));
            gate_ask(g, ALICE, "GET /box/copy?partNumber=2", copies[j].get, NONE, 206);
            CHECK_STR(g->body, str_head(body, 77));
            CHECK_STR(gate_header(g, "x-amz-mp-parts-count"), STR("2"));
            buf_release(&xml);
            buf_release(&want);
        }
}

ENCRYPTION_TEST(parts_of_a_customers_upload_need_its_key)
{
    struct buf xml = BUF_INIT(0);
    char id[64], request[128];

    gate_ask(g, ALICE, "PUT /box/none", NULL, STR("source"), 200);
    begin(g, ONE, id);
    part_request(request, id, 1);
    gate_ask(g, ALICE, request, NULL, STR("x"), 400);
    GATE_ERROR(g, "InvalidRequest");
    gate_ask(g, ALICE, request, TWO, STR("x"), 400);
    gate_ask(g, ALICE, request, "x-amz-copy-source: /box/none", NONE, 400);
    gate_ask(g, ALICE, request, "x-amz-copy-source: /box/none\n" TWO, NONE, 400);
    gate_ask(g, ALICE, request, ONE, STR("x"), 200);
    add_part(g, &xml, 1);
    finish(g, id, TWO, &xml, 400);
    finish(g, id, NULL, &xml, 200); /* older clients do not say it here, and AWS does not ask */
    gate_ask(g, ALICE, "GET /box/copy", ONE, NONE, 200);
    CHECK_STR(g->body, STR("x"));
    buf_reset(&xml);
    begin(g, NULL, id);
    part_request(request, id, 1);
    gate_ask(g, ALICE, request, ONE, STR("x"), 400);
    gate_ask(g, ALICE, request, "x-amz-copy-source: /box/none\n" ONE, NONE, 400);
    buf_release(&xml);
}

ENCRYPTION_TEST(a_customers_upload_with_checksums_is_finished_with_its_key)
{
    struct buf xml = BUF_INIT(0);
    char id[64], request[128];

    begin(g, ONE "\nx-amz-checksum-algorithm: CRC32", id);
    part_request(request, id, 1);
    gate_ask(g, ALICE, request, ONE "\nx-amz-checksum-crc32: jNwWgw==", STR("x"), 200);
    add_part(g, &xml, 1);
    finish(g, id, NULL, &xml, 400);
    GATE_ERROR(g, "InvalidRequest");
    finish(g, id, ONE, &xml, 200);
    buf_release(&xml);
}

/* --- checksums --- */

ENCRYPTION_TEST(what_hides_its_md5_gets_no_checksum_that_nobody_asked_for)
{
    bool hides[] = {false, true, false, true};

    for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
        char id[64], request[128];
        gate_ask(g, ALICE, "PUT /box/copy", copies[i].put, STR("hello"), 200);
        CHECK(!gate_header(g, "x-amz-checksum-crc64nvme").p == hides[i]);
        gate_ask(g, ALICE, "PUT /box/none", NULL, STR("hello"), 200);
        ask_copy(g, "PUT /box/copy", &kinds[0], &copies[i], 200);
        CHECK(!gate_element(g, "ChecksumCRC64NVME").len == hides[i]);
        begin(g, copies[i].put, id);
        part_request(request, id, 1);
        gate_ask(g, ALICE, request, copies[i].get, STR("hello"), 200);
        CHECK(!gate_header(g, "x-amz-checksum-crc64nvme").p == hides[i]);
    }
}

ENCRYPTION_TEST(a_copy_of_any_kind_has_the_checksum_that_is_asked_for)
{
    char name[32], headers[1024];

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        snprintf(name, sizeof(name), "PUT /box/%s", kinds[i].name);
        gate_ask(g, ALICE, name, kinds[i].put, STR("hello"), 200);
        for (size_t j = 0; j < ARRAY_SIZE(copies); j++) {
            struct kind to = copies[j];
            snprintf(headers, sizeof(headers), "%s%sx-amz-checksum-algorithm: CRC32",
                     to.put ? to.put : "", to.put ? "\n" : "");
            to.put = headers;
            ask_copy(g, "PUT /box/copy", &kinds[i], &to, 200);
            CHECK_STR(gate_element(g, "ChecksumCRC32"), STR("NhCmhg=="));
            snprintf(headers, sizeof(headers), "%s%sx-amz-checksum-mode: ENABLED",
                     to.get ? to.get : "", to.get ? "\n" : "");
            gate_ask(g, ALICE, "GET /box/copy", headers, NONE, 200);
            CHECK_STR(g->body, STR("hello"));
            CHECK_STR(gate_header(g, "x-amz-checksum-crc32"), STR("NhCmhg=="));
        }
    }
}

ENCRYPTION_TEST(the_md5_that_is_said_is_of_the_plain_bytes)
{
    struct str body = bytes(2 * R + 5);

    for (size_t i = 1; i < ARRAY_SIZE(kinds); i++) {
        char wrong[1024], right[1024];
        snprintf(wrong, sizeof(wrong), "content-md5: AAAAAAAAAAAAAAAAAAAAAA==\n%s", kinds[i].put);
        snprintf(right, sizeof(right), "content-md5: XUFAKrxLKna5cZ2REBfFkg==\n%s", kinds[i].put);
        gate_ask(g, ALICE, "PUT /box/key", wrong, STR("hello"), 400);
        GATE_ERROR(g, "BadDigest");
        gate_ask(g, ALICE, "PUT /box/key", wrong, body, 400);
        gate_ask(g, ALICE, "PUT /box/key", right, STR("hello"), 200);
        gate_ask(g, ALICE, "PUT /box/key", right, body, 400);
    }
}

/* --- defaults and policies --- */

static void put_default(struct gate *g, const char *rule, int status)
{
    char xml[512];

    snprintf(xml, sizeof(xml),
             "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>%s"
             "</ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>",
             rule);
    gate_ask(g, ALICE, "PUT /box?encryption", NULL, str_z(xml), status);
}

ENCRYPTION_TEST(a_buckets_default_applies_where_nothing_is_said)
{
    char id[64];

    gate_do(g, "GET /box?encryption", 404);
    GATE_ERROR(g, "ServerSideEncryptionConfigurationNotFoundError");
    put_default(g, "<SSEAlgorithm>AES256</SSEAlgorithm>", 200);
    gate_do(g, "GET /box?encryption", 200);
    CHECK_STR(gate_element(g, "SSEAlgorithm"), STR("AES256"));
    gate_ask(g, ALICE, "PUT /box/none", NULL, STR("hello"), 200);
    CHECK_STR(gate_header(g, SSE), STR("AES256"));
    put_default(g, "<SSEAlgorithm>aws:kms</SSEAlgorithm><KMSMasterKeyID>payroll</KMSMasterKeyID>",
                200);
    gate_do(g, "GET /box?encryption", 200);
    CHECK_STR(gate_element(g, "KMSMasterKeyID"), STR("payroll"));
    ask_copy(g, "PUT /box/copy", &kinds[0], &copies[0], 200);
    CHECK_STR(gate_header(g, SSE "-aws-kms-key-id"), STR("payroll"));
    gate_do(g, "GET /box/copy", 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, SSE), STR("aws:kms"));
    begin(g, NULL, id);
    CHECK_STR(gate_header(g, SSE), STR("aws:kms"));
    gate_ask(g, ALICE, "PUT /box/c", ONE, STR("x"), 200); /* what is said goes first */
    gate_ask(g, ALICE, "GET /box/c", ONE, NONE, 200);
    gate_do(g, "DELETE /box?encryption", 204);
    gate_do(g, "GET /box?encryption", 404);
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    CHECK(!gate_header(g, SSE).p);
    gate_do(g, "DELETE /box?encryption", 204);
    put_default(g, "<SSEAlgorithm>ROT13</SSEAlgorithm>", 400);
    put_default(g, "", 400);
    put_default(g, "<SSEAlgorithm>AES256</SSEAlgorithm><KMSMasterKeyID>x</KMSMasterKeyID>", 400);
}

ENCRYPTION_TEST(a_policy_can_ask_for_encryption)
{
    struct buf xml = BUF_INIT(0);
    char id[64], request[128];

    gate_ask(g, ALICE, "PUT /box?policy", "x-amz-confirm-remove-self-bucket-access: true",
             STR("{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Deny\",\"Principal\":"
                 "\"*\",\"Action\":\"s3:PutObject\",\"Resource\":\"arn:aws:s3:::box/*\","
                 "\"Condition\":{\"Null\":{\"s3:x-amz-server-side-encryption\":\"true\"}}}]}"),
             204);
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 403);
    gate_ask(g, ALICE, "PUT /box/key", S3, STR("x"), 200);
    gate_ask(g, ALICE, "POST /box/copy?uploads", NULL, NONE, 403);
    begin(g, S3, id);
    part_request(request, id, 1); /* parts do not say it: their upload did */
    gate_ask(g, ALICE, request, NULL, STR("x"), 200);
    add_part(g, &xml, 1);
    finish(g, id, NULL, &xml, 200);
    buf_release(&xml);
}

/* --- keys --- */

ENCRYPTION_TEST(a_lost_key_is_an_error_and_not_garbage)
{
    gate_ask(g, ALICE, "PUT /box/key", S3, STR("hello"), 200);
    gate_ask(g, ALICE, "PUT /box/kms", KMS, STR("hello"), 200);
    gate_do(g, "GET /box/key", 200);
    /* Another key under the same name and id, and none. */
    write_keys(g, "payroll 1 ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
    gate_ask(g, ALICE, "PUT /box/other", S3, STR("x"), 200); /* sees the change */
    gate_do(g, "GET /box/key", 500);
    GATE_ERROR(g, "InternalError");
    gate_do(g, "GET /box/kms", 500);
    gate_do(g, "HEAD /box/key", 200); /* what is beside the bytes is still there */
    gate_do(g, "GET /box/other", 200);
}

ENCRYPTION_TEST(keys_that_were_replaced_still_open)
{
    gate_ask(g, ALICE, "PUT /box/key", KMS, STR("hello"), 200);
    write_keys(g, "payroll 1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
                  "payroll 2 77112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
    gate_ask(g, ALICE, "PUT /box/new", KMS, STR("hello"), 200);
    gate_do(g, "GET /box/key", 200);
    CHECK_STR(g->body, STR("hello"));
    gate_do(g, "GET /box/new", 200);
    write_keys(g, "payroll 2 77112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
    gate_ask(g, ALICE, "PUT /box/another", KMS, STR("x"), 200);
    gate_do(g, "GET /box/new", 200); /* it was wrapped with the second */
    gate_do(g, "GET /box/key", 500);
}
