/* The gateway over the wire: each operation once, with its main errors. */
#include "base/clock.h"
#include "sign/sign.h"
#include "unit/s3/gateway_lab.h"

#include <stdio.h>
#include <unistd.h>

#define NONE STR_EMPTY

static void put(struct gate *g, const char *request, struct str body)
{
    gate_ask(g, ALICE, request, NULL, body, 200);
}

static void put_xml(struct gate *g, const char *request, const char *xml, int status)
{
    gate_ask(g, ALICE, request, NULL, str_z(xml), status);
}

GATE_TEST(buckets_are_made_listed_and_removed)
{
    gate_do(g, "HEAD /box", 200);
    CHECK_STR(gate_header(g, "x-amz-bucket-region"), STR("us-east-1"));
    gate_do(g, "GET /", 200);
    CHECK_STR(gate_element(g, "Name"), STR("box"));
    CHECK(gate_has(g, "<Owner><ID>alice-id</ID><DisplayName>alice</DisplayName></Owner>"));
    gate_do(g, "GET /box?location", 200);
    gate_do(g, "PUT /box", 200); /* again, as us-east-1 does */
    gate_ask(g, BOB, "PUT /box", NULL, NONE, 409);
    GATE_ERROR(g, "BucketAlreadyExists");
    gate_do(g, "PUT /Bad_Name", 400);
    GATE_ERROR(g, "InvalidBucketName");
    put_xml(g, "PUT /other",
            "<CreateBucketConfiguration><LocationConstraint>mars</LocationConstraint>"
            "</CreateBucketConfiguration>",
            400);
    GATE_ERROR(g, "InvalidLocationConstraint");
    put(g, "PUT /box/key", STR("x"));
    gate_do(g, "DELETE /box", 409);
    GATE_ERROR(g, "BucketNotEmpty");
    gate_do(g, "DELETE /box/key", 204);
    gate_do(g, "DELETE /box", 204);
    gate_do(g, "HEAD /box", 404);
    gate_do(g, "GET /box", 404);
    GATE_ERROR(g, "NoSuchBucket");
}

GATE_TEST(an_object_comes_back_with_its_headers)
{
    gate_ask(g, ALICE, "PUT /box/a%20key",
             "content-type: text/plain\nx-amz-meta-colour: blue\n"
             "x-amz-tagging: a=1&b=2\nx-amz-storage-class: STANDARD_IA",
             STR("hello"), 200);
    CHECK_STR(gate_header(g, "etag"), STR("\"5d41402abc4b2a76b9719d911017c592\""));
    CHECK(gate_header(g, "x-amz-request-id").len && gate_header(g, "x-amz-id-2").len);
    gate_do(g, "GET /box/a%20key", 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, "content-type"), STR("text/plain"));
    CHECK_STR(gate_header(g, "x-amz-meta-colour"), STR("blue"));
    CHECK_STR(gate_header(g, "x-amz-tagging-count"), STR("2"));
    CHECK_STR(gate_header(g, "x-amz-storage-class"), STR("STANDARD_IA"));
    CHECK_STR(gate_header(g, "accept-ranges"), STR("bytes"));
    CHECK(!gate_header(g, "x-amz-version-id").p);
    gate_do(g, "HEAD /box/a%20key", 200);
    CHECK_STR(gate_header(g, "content-length"), STR("5"));
    put(g, "PUT /box/plain", STR("x"));
    gate_do(g, "GET /box/plain?response-content-type=a/b", 200);
    CHECK_STR(gate_header(g, "content-type"), STR("a/b"));
    gate_do(g, "GET /box/plain", 200);
    CHECK_STR(gate_header(g, "content-type"), STR("binary/octet-stream"));
    gate_do(g, "GET /box/nothing", 404);
    GATE_ERROR(g, "NoSuchKey");
    gate_ask(g, NOBODY, "GET /box/%zz", NULL, NONE, 400);
    GATE_ERROR(g, "InvalidURI");
}

GATE_TEST(a_body_in_a_file_is_sent_whole_and_in_ranges)
{
    static char bytes[200000];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + i / 256);
    put(g, "PUT /box/file", str_n(bytes, sizeof(bytes)));
    gate_do(g, "GET /box/file", 200);
    CHECK(str_eq(g->body, str_n(bytes, sizeof(bytes))));
    gate_ask(g, ALICE, "GET /box/file", "range: bytes=1000-1999", NONE, 206);
    CHECK(str_eq(g->body, str_n(bytes + 1000, 1000)));
    CHECK_STR(gate_header(g, "content-range"), STR("bytes 1000-1999/200000"));
    gate_ask(g, ALICE, "GET /box/file", "range: bytes=-5", NONE, 206);
    CHECK_INT(g->body.len, 5);
    gate_ask(g, ALICE, "HEAD /box/file", "range: bytes=0-9", NONE, 206);
    CHECK_STR(gate_header(g, "content-length"), STR("10"));
    gate_ask(g, ALICE, "GET /box/file", "range: bytes=0-1,5-6", NONE, 200);
    gate_ask(g, ALICE, "GET /box/file", "range: bytes=200000-", NONE, 416);
    GATE_ERROR(g, "InvalidRange");
}

GATE_TEST(conditions_are_judged)
{
    const char *tag = "if-none-match: \"5d41402abc4b2a76b9719d911017c592\"";

    put(g, "PUT /box/key", STR("hello"));
    gate_ask(g, ALICE, "GET /box/key", tag, NONE, 304);
    CHECK_STR(gate_header(g, "etag"), STR("\"5d41402abc4b2a76b9719d911017c592\""));
    gate_ask(g, ALICE, "GET /box/key", "if-match: \"other\"", NONE, 412);
    GATE_ERROR(g, "PreconditionFailed");
    gate_ask(g, ALICE, "PUT /box/key", "if-none-match: *", STR("new"), 412);
    gate_ask(g, ALICE, "PUT /box/key2", "if-none-match: *", STR("new"), 200);
    gate_ask(g, ALICE, "PUT /box/key3", "if-match: \"x\"", STR("new"), 404);
    gate_ask(g, ALICE, "GET /box/key", "if-modified-since: Fri, 01 Jan 2100 00:00:00 GMT", NONE,
             304);
    gate_ask(g, ALICE, "GET /box/key", "if-unmodified-since: Fri, 01 Jan 1999 00:00:00 GMT", NONE,
             412);
}

GATE_TEST(what_is_said_of_a_body_is_checked)
{
    gate_ask(g, ALICE, "PUT /box/key", "content-md5: AAAAAAAAAAAAAAAAAAAAAA==", STR("hello"), 400);
    GATE_ERROR(g, "BadDigest");
    gate_ask(g, ALICE, "PUT /box/key", "content-md5: short", STR("hello"), 400);
    GATE_ERROR(g, "InvalidDigest");
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-checksum-crc32: AAAAAA==", STR("hello"), 400);
    GATE_ERROR(g, "BadDigest");
    gate_do(g, "HEAD /box/key", 404);
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-checksum-crc32: NhCmhg==", STR("hello"), 200);
    CHECK_STR(gate_header(g, "x-amz-checksum-crc32"), STR("NhCmhg=="));
    gate_do(g, "GET /box/key", 200);
    CHECK(!gate_header(g, "x-amz-checksum-crc32").p);
    gate_ask(g, ALICE, "GET /box/key", "x-amz-checksum-mode: ENABLED", NONE, 200);
    CHECK_STR(gate_header(g, "x-amz-checksum-crc32"), STR("NhCmhg=="));
    CHECK_STR(gate_header(g, "x-amz-checksum-type"), STR("FULL_OBJECT"));
    gate_ask(g, ALICE, "GET /box/key?attributes",
             "x-amz-object-attributes: ETag,Checksum,ObjectSize,StorageClass", NONE, 200);
    CHECK_STR(gate_element(g, "ChecksumCRC32"), STR("NhCmhg=="));
    CHECK_STR(gate_element(g, "ObjectSize"), STR("5"));
    gate_do(g, "GET /box/key?attributes", 400);
    GATE_ERROR(g, "InvalidArgument");
}

GATE_TEST(metadata_has_a_limit)
{
    char header[2200] = "x-amz-meta-long: ";

    memset(header + 17, 'x', 2100);
    gate_ask(g, ALICE, "PUT /box/key", header, STR("x"), 400);
    GATE_ERROR(g, "MetadataTooLarge");
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-storage-class: MOON", STR("x"), 400);
    GATE_ERROR(g, "InvalidStorageClass");
}

GATE_TEST(a_body_may_come_in_chunks_of_http)
{
    struct answer a = {0};
    int fd = lab_dial(&g->lab);

    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    lab_ask(fd, &a,
            STR("PUT /box/key HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                "1\r\nx\r\n0\r\n\r\n"),
            200);
    answer_release(&a);
    close(fd);
    gate_do(g, "GET /box/key", 200);
    CHECK_STR(g->body, STR("x"));
}

GATE_TEST(a_refused_body_is_not_asked_for)
{
    struct answer a = {0};
    int fd = lab_dial(&g->lab);

    lab_ask(fd, &a,
            STR("PUT /box/key HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                "Content-Length: 1000\r\n\r\n"),
            403);
    answer_release(&a);
    close(fd);
}

GATE_TEST(objects_are_copied)
{
    gate_ask(g, ALICE, "PUT /box/from", "x-amz-meta-a: 1\nx-amz-tagging: t=1", STR("hello"), 200);
    gate_ask(g, ALICE, "PUT /box/to", "x-amz-copy-source: /box/from", NONE, 200);
    CHECK(gate_has(g, "<ETag>&quot;5d41402abc4b2a76b9719d911017c592&quot;</ETag>"));
    gate_do(g, "GET /box/to", 200);
    CHECK_STR(gate_header(g, "x-amz-meta-a"), STR("1"));
    CHECK_STR(gate_header(g, "x-amz-tagging-count"), STR("1"));
    gate_ask(g, ALICE, "PUT /box/from", "x-amz-copy-source: box/from", NONE, 400);
    GATE_ERROR(g, "InvalidRequest");
    gate_ask(g, ALICE, "PUT /box/from",
             "x-amz-copy-source: box/from\nx-amz-meta-a: 2\n"
             "x-amz-metadata-directive: REPLACE",
             NONE, 200);
    gate_do(g, "HEAD /box/from", 200);
    CHECK_STR(gate_header(g, "x-amz-meta-a"), STR("2"));
    gate_ask(g, ALICE, "PUT /box/to", "x-amz-copy-source: /box/nothing", NONE, 404);
    gate_ask(g, ALICE, "PUT /box/to", "x-amz-copy-source: /nowhere/x", NONE, 404);
    gate_ask(g, ALICE, "PUT /box/to", "x-amz-copy-source: nonsense", NONE, 400);
    gate_ask(g, ALICE, "PUT /box/to",
             "x-amz-copy-source: /box/from\nx-amz-copy-source-if-match: \"x\"", NONE, 412);
}

GATE_TEST(versions_are_kept_listed_and_removed)
{
    char request[256], first[128];

    gate_do(g, "GET /box?versioning", 200);
    CHECK(!gate_has(g, "Status"));
    put_xml(g, "PUT /box?versioning",
            "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>", 200);
    put_xml(g, "PUT /box?versioning", "<VersioningConfiguration/>", 400);
    gate_do(g, "GET /box?versioning", 200);
    CHECK_STR(gate_element(g, "Status"), STR("Enabled"));
    put(g, "PUT /box/key", STR("one"));
    snprintf(first, sizeof(first), STR_FMT, STR_ARG(gate_header(g, "x-amz-version-id")));
    put(g, "PUT /box/key", STR("two"));
    gate_do(g, "DELETE /box/key", 204);
    CHECK_STR(gate_header(g, "x-amz-delete-marker"), STR("true"));
    gate_do(g, "GET /box/key", 404);
    CHECK_STR(gate_header(g, "x-amz-delete-marker"), STR("true"));
    snprintf(request, sizeof(request), "GET /box/key?versionId=%s", first);
    gate_do(g, request, 200);
    CHECK_STR(g->body, STR("one"));
    gate_do(g, "GET /box?versions", 200);
    CHECK(gate_has(g, "<DeleteMarker><Key>key</Key>") && gate_has(g, "<Version><Key>key</Key>"));
    gate_do(g, "GET /box?versions&max-keys=1", 200);
    CHECK_STR(gate_element(g, "IsTruncated"), STR("true"));
    CHECK_STR(gate_element(g, "NextKeyMarker"), STR("key"));
    snprintf(request, sizeof(request), "DELETE /box/key?versionId=%s", first);
    gate_do(g, request, 204);
    snprintf(request, sizeof(request), "GET /box/key?versionId=%s", first);
    gate_do(g, request, 404);
    GATE_ERROR(g, "NoSuchVersion");
}

GATE_TEST(listings_page_and_fold)
{
    static const char *const keys[] = {"PUT /box/a", "PUT /box/b/1", "PUT /box/b/2",
                                       "PUT /box/c%20d"};
    char request[512];

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        put(g, keys[i], STR("x"));
    gate_do(g, "GET /box?delimiter=/&encoding-type=url", 200);
    CHECK(gate_has(g, "<CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>"));
    CHECK(gate_has(g, "<Key>c%20d</Key>"));
    gate_do(g, "GET /box?list-type=2&max-keys=2", 200);
    CHECK_STR(gate_element(g, "KeyCount"), STR("2"));
    snprintf(request, sizeof(request), "GET /box?list-type=2&continuation-token=" STR_FMT,
             STR_ARG(gate_element(g, "NextContinuationToken")));
    for (char *p = strchr(request, '=') + 1; (p = strchr(p, '=')) && p[1] == '\0';)
        memcpy(p, "%3D", 4);
    gate_do(g, request, 200);
    CHECK_STR(gate_element(g, "Key"), STR("b/2"));
    CHECK_STR(gate_element(g, "IsTruncated"), STR("false"));
    gate_do(g, "GET /box?marker=b/1&max-keys=1", 200);
    CHECK_STR(gate_element(g, "Key"), STR("b/2"));
    gate_do(g, "GET /box?max-keys=0", 200);
    CHECK_STR(gate_element(g, "IsTruncated"), STR("false"));
    gate_do(g, "GET /box?max-keys=x", 400);
    gate_do(g, "GET /box?encoding-type=x", 400);
    gate_do(g, "GET /box?list-type=2&continuation-token=***", 400);
    GATE_ERROR(g, "InvalidArgument");
}

GATE_TEST(many_keys_are_deleted_at_once)
{
    put(g, "PUT /box/a", STR("x"));
    put(g, "PUT /box/b", STR("x"));
    put_xml(g, "POST /box?delete",
            "<Delete><Object><Key>a</Key></Object><Object><Key>gone</Key></Object></Delete>", 200);
    CHECK(gate_has(g, "<Deleted><Key>a</Key></Deleted><Deleted><Key>gone</Key></Deleted>"));
    put_xml(g, "POST /box?delete",
            "<Delete><Quiet>true</Quiet><Object><Key>b</Key></Object>"
            "</Delete>",
            200);
    CHECK(!gate_has(g, "<Deleted>"));
    gate_do(g, "HEAD /box/a", 404);
    put_xml(g, "POST /box?delete", "<Delete>", 400);
    GATE_ERROR(g, "MalformedXML");
    gate_ask(g, BOB, "POST /box?delete", NULL,
             STR("<Delete><Object><Key>a</Key></Object></Delete>"), 200);
    GATE_ERROR(g, "AccessDenied");
}

GATE_TEST(documents_are_kept_and_checked)
{
    static const struct {
        const char *name, *document, *absent, *bad;
    } rows[] = {
        {"cors",
         "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin>"
         "<AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>",
         "NoSuchCORSConfiguration", "<x/>"},
        {"lifecycle",
         "<LifecycleConfiguration><Rule><Filter/><Status>Enabled</Status><Expiration><Days>1"
         "</Days></Expiration></Rule></LifecycleConfiguration>",
         "NoSuchLifecycleConfiguration", "<x/>"},
        {"tagging", "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>",
         "NoSuchTagSet", "<x/>"},
        {"publicAccessBlock",
         "<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls>"
         "</PublicAccessBlockConfiguration>",
         "NoSuchPublicAccessBlockConfiguration", "<x/>"},
        {"ownershipControls",
         "<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule>"
         "</OwnershipControls>",
         "OwnershipControlsNotFoundError", "<x/>"},
        {"policy",
         "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","
         "\"Action\":\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::box/*\"}]}",
         "NoSuchBucketPolicy", "{}"},
    };
    char request[128];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        snprintf(request, sizeof(request), "GET /box?%s", rows[i].name);
        gate_do(g, request, 404);
        CHECK_STR(gate_element(g, "Code"), str_z(rows[i].absent));
        request[0] = 'P', request[1] = 'U';
        gate_ask(g, ALICE, request, NULL, str_z(rows[i].bad), 400);
        gate_ask(g, BOB, request, NULL, str_z(rows[i].document), 403);
        gate_ask(g, ALICE, request, NULL, str_z(rows[i].document),
                 strstr("tagging policy", rows[i].name) ? 204 : 200);
        request[0] = 'G', request[1] = 'E';
        gate_do(g, request, 200);
        snprintf(request, sizeof(request), "DELETE /box?%s", rows[i].name);
        gate_do(g, request, 204);
    }
    gate_do(g, "GET /box?object-lock", 404);
    GATE_ERROR(g, "ObjectLockConfigurationNotFoundError");
    gate_do(g, "GET /box?policyStatus", 200);
}

GATE_TEST(access_is_by_policy_and_list)
{
    put(g, "PUT /box/key", STR("hello"));
    gate_ask(g, BOB, "GET /box/key", NULL, NONE, 403);
    gate_ask(g, NOBODY, "GET /box/key", NULL, NONE, 403);
    gate_ask(g, BOB, "PUT /box/bobs", NULL, STR("x"), 403);
    gate_ask(g, ALICE, "PUT /box/key?acl", "x-amz-acl: public-read", NONE, 200);
    gate_ask(g, NOBODY, "GET /box/key", NULL, NONE, 200);
    gate_do(g, "GET /box/key?acl", 200);
    CHECK(gate_has(g, "AllUsers"));
    gate_ask(g, NOBODY, "GET /box/nothing", NULL, NONE, 403);
    gate_ask(g, ALICE, "PUT /box?policy", NULL,
             STR("{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":"
                 "{\"AWS\":\"arn:aws:iam::bob-id:root\"},\"Action\":[\"s3:PutObject\","
                 "\"s3:ListBucket\"],\"Resource\":[\"arn:aws:s3:::box\","
                 "\"arn:aws:s3:::box/*\"]}]}"),
             204);
    gate_ask(g, BOB, "PUT /box/bobs", NULL, STR("x"), 200);
    gate_ask(g, BOB, "GET /box", NULL, NONE, 200);
    gate_do(g, "GET /box?policyStatus", 200);
    CHECK_STR(gate_element(g, "IsPublic"), STR("false"));
    gate_ask(g, ALICE, "GET /box/bobs", NULL, NONE, 403); /* bob's, in alice's bucket */
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read", NONE, 200);
    gate_ask(g, NOBODY, "GET /box", NULL, NONE, 200);
    gate_do(g, "GET /box?acl", 200);
    CHECK(gate_has(g, "AllUsers"));
    gate_do(g, "PUT /box?acl", 400);
}

GATE_TEST(tags_retention_and_holds_are_set)
{
    char request[256];

    gate_ask(g, ALICE, "PUT /vault", "x-amz-bucket-object-lock-enabled: true", NONE, 200);
    gate_do(g, "GET /vault?object-lock", 200);
    put(g, "PUT /vault/key", STR("x"));
    snprintf(request, sizeof(request), "DELETE /vault/key?versionId=" STR_FMT,
             STR_ARG(gate_header(g, "x-amz-version-id")));
    put_xml(g, "PUT /vault/key?tagging",
            "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>", 200);
    gate_do(g, "GET /vault/key?tagging", 200);
    CHECK_STR(gate_element(g, "Value"), STR("v"));
    gate_do(g, "DELETE /vault/key?tagging", 204);
    gate_do(g, "GET /vault/key?retention", 404);
    put_xml(g, "PUT /vault/key?legal-hold", "<LegalHold><Status>ON</Status></LegalHold>", 200);
    gate_do(g, "GET /vault/key?legal-hold", 200);
    CHECK_STR(gate_element(g, "Status"), STR("ON"));
    gate_do(g, request, 403);
    put_xml(g, "PUT /vault/key?legal-hold", "<LegalHold><Status>OFF</Status></LegalHold>", 200);
    put_xml(g, "PUT /vault/key?retention",
            "<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2100-01-01T00:00:00Z"
            "</RetainUntilDate></Retention>",
            200);
    gate_do(g, "HEAD /vault/key", 200);
    CHECK_STR(gate_header(g, "x-amz-object-lock-mode"), STR("GOVERNANCE"));
    gate_do(g, "GET /vault/key?retention", 200);
    gate_do(g, request, 403);
    gate_ask(g, ALICE, request, "x-amz-bypass-governance-retention: true", NONE, 204);
    put(g, "PUT /box/key", STR("x"));
    gate_do(g, "GET /box/key?retention", 400);
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-object-lock-legal-hold: ON", STR("x"), 400);
}

static void upload_part(struct gate *g, const char *id, int number, struct str body, char etag[64])
{
    char request[256];

    snprintf(request, sizeof(request), "PUT /box/big?partNumber=%d&uploadId=%s", number, id);
    put(g, request, body);
    snprintf(etag, 64, STR_FMT, STR_ARG(gate_header(g, "etag")));
}

GATE_TEST(parts_become_an_object)
{
    static char bytes[2000];
    char request[512], id[128], xml[512], one[64], two[64];

    memset(bytes, 'p', sizeof(bytes));
    gate_ask(g, ALICE, "POST /box/big?uploads", "content-type: text/plain", NONE, 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    upload_part(g, id, 1, str_n(bytes, 1500), one);
    upload_part(g, id, 2, str_n(bytes, 10), two);
    put(g, "PUT /box/source", str_n(bytes, 300));
    snprintf(request, sizeof(request), "PUT /box/big?partNumber=3&uploadId=%s", id);
    gate_ask(g, ALICE, request,
             "x-amz-copy-source: /box/source\n"
             "x-amz-copy-source-range: bytes=0-99",
             NONE, 200);
    CHECK(gate_has(g, "<CopyPartResult"));
    gate_ask(g, ALICE, request,
             "x-amz-copy-source: /box/source\n"
             "x-amz-copy-source-range: bytes=0-300",
             NONE, 416);
    snprintf(request, sizeof(request), "GET /box/big?uploadId=%s&max-parts=2", id);
    gate_do(g, request, 200);
    CHECK_STR(gate_element(g, "NextPartNumberMarker"), STR("2"));
    gate_do(g, "GET /box?uploads", 200);
    CHECK_STR(gate_element(g, "UploadId"), str_z(id));
    snprintf(request, sizeof(request), "POST /box/big?uploadId=%s", id);
    put_xml(g, request, "<CompleteMultipartUpload/>", 400);
    GATE_ERROR(g, "MalformedXML");
    put_xml(g, request,
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag>"
            "</Part></CompleteMultipartUpload>",
            400);
    GATE_ERROR(g, "InvalidPart");
    snprintf(xml, sizeof(xml),
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s"
             "</ETag></Part><Part><PartNumber>2</PartNumber><ETag>%s</ETag></Part>"
             "</CompleteMultipartUpload>",
             one, two);
    put_xml(g, request, xml, 200);
    CHECK(gate_has(g, "-2&quot;</ETag>"));
    put_xml(g, request, xml, 200); /* the same again */
    gate_do(g, "GET /box/big", 200);
    CHECK_INT(g->body.len, 1510);
    CHECK_STR(gate_header(g, "content-type"), STR("text/plain"));
    gate_do(g, "GET /box/big?partNumber=2", 206);
    CHECK_INT(g->body.len, 10);
    CHECK_STR(gate_header(g, "x-amz-mp-parts-count"), STR("2"));
    gate_do(g, "GET /box/big?partNumber=3", 400);
    GATE_ERROR(g, "InvalidPart");
    gate_ask(g, ALICE, "GET /box/big?attributes",
             "x-amz-object-attributes: ObjectParts\nx-amz-max-parts: 1", NONE, 200);
    CHECK(gate_has(g, "<ObjectParts><IsTruncated>true</IsTruncated><MaxParts>1</MaxParts>"
                      "<NextPartNumberMarker>1</NextPartNumberMarker><PartNumberMarker>0"
                      "</PartNumberMarker><Part><ChecksumCRC64NVME>"));
    CHECK(gate_has(g, "<PartNumber>1</PartNumber><Size>1500</Size></Part>"
                      "<PartsCount>2</PartsCount></ObjectParts>"));
    gate_ask(g, ALICE, "GET /box/big?attributes",
             "x-amz-object-attributes: ObjectParts\nx-amz-part-number-marker: 1", NONE, 200);
    CHECK(gate_has(g, "<PartNumber>2</PartNumber><Size>10</Size></Part><PartsCount>2<"));
    CHECK(!gate_has(g, "<PartNumber>1</PartNumber>"));
}

GATE_TEST(an_upload_is_aborted)
{
    char request[512], id[128];

    gate_do(g, "POST /box/big?uploads", 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    snprintf(request, sizeof(request), "PUT /box/big?partNumber=10001&uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, STR("x"), 400);
    snprintf(request, sizeof(request), "DELETE /box/big?uploadId=%s", id);
    gate_do(g, request, 204);
    gate_do(g, request, 404);
    GATE_ERROR(g, "NoSuchUpload");
    snprintf(request, sizeof(request), "PUT /box/big?partNumber=1&uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, STR("x"), 404);
    GATE_ERROR(g, "NoSuchUpload");
}

GATE_TEST(a_part_s_checksums_make_the_object_s)
{
    char request[512], id[128], xml[512];

    gate_ask(g, ALICE, "POST /box/big?uploads",
             "x-amz-checksum-algorithm: CRC32\nx-amz-checksum-type: FULL_OBJECT", NONE, 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    snprintf(request, sizeof(request), "PUT /box/big?partNumber=1&uploadId=%s", id);
    gate_ask(g, ALICE, request, "x-amz-checksum-crc32: NhCmhg==", STR("hello"), 200);
    CHECK_STR(gate_header(g, "x-amz-checksum-crc32"), STR("NhCmhg=="));
    snprintf(xml, sizeof(xml),
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" STR_FMT
             "</ETag></Part></CompleteMultipartUpload>",
             STR_ARG(gate_header(g, "etag")));
    snprintf(request, sizeof(request), "POST /box/big?uploadId=%s", id);
    put_xml(g, request, xml, 200);
    CHECK_STR(gate_element(g, "ChecksumCRC32"), STR("NhCmhg=="));
    gate_ask(g, ALICE, "GET /box/big?attributes", "x-amz-object-attributes: ObjectParts", NONE,
             200);
    CHECK(gate_has(g, "<Part><ChecksumCRC32>NhCmhg==</ChecksumCRC32><PartNumber>1</PartNumber>"));
}

GATE_TEST(a_bucket_may_be_in_the_host_s_name)
{
    gate_ask(g, ALICE, "PUT /key", "host: box.s3.test", STR("hello"), 200);
    gate_do(g, "GET /box/key", 200);
    gate_ask(g, ALICE, "GET /?list-type=2", "host: box.s3.test:8000", NONE, 200);
    CHECK_STR(gate_element(g, "Name"), STR("box"));
}

GATE_TEST(browsers_are_told_the_rules)
{
    put_xml(g, "PUT /box?cors",
            "<CORSConfiguration><CORSRule><AllowedOrigin>http://a.example</AllowedOrigin>"
            "<AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>",
            200);
    gate_ask(g, NOBODY, "OPTIONS /box/key",
             "origin: http://a.example\naccess-control-request-method: GET", NONE, 200);
    CHECK_STR(gate_header(g, "access-control-allow-origin"), STR("http://a.example"));
    gate_ask(g, NOBODY, "OPTIONS /box/key",
             "origin: http://b.example\naccess-control-request-method: GET", NONE, 403);
    gate_ask(g, ALICE, "GET /box", "origin: http://a.example", NONE, 200);
    CHECK_STR(gate_header(g, "access-control-allow-origin"), STR("http://a.example"));
}

/* As an older weir may have kept it: its rules opened more than they should. */
GATE_TEST(a_kept_document_or_header_with_line_breaks_breaks_no_answer)
{
    static const char cors[] =
        "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET"
        "</AllowedMethod><ExposeHeader>a&#13;&#10;X: 2</ExposeHeader></CORSRule>"
        "</CORSConfiguration>";
    struct http_header evil = {STR("x-amz-meta-a"), STR("1\r\nX: 2")};
    struct put_options o = {.meta = {.headers = &evil, .header_count = 1}};
    struct arena a = ARENA_INIT(0);
    struct put_result put;
    struct str_reader r;
    struct bucket *b;
    struct err err = {0};

    put_xml(g, "PUT /box?cors", cors, 400);
    CHECK_OK(route_bucket(g->routes, STR("alice-id"), STR("box"), &b, &err));
    CHECK_OK(b->ops->set_document(b, "cors", STR(cors), &err));
    str_reader_init(&r, STR("hello"));
    CHECK_OK(b->ops->put(b, &a, STR("key"), &r.reader, 5, &o, &put, &err));
    b->ops->unref(b);
    gate_ask(g, ALICE, "GET /box/key", "origin: http://a.example", NONE, 200);
    CHECK(!gate_header(g, "access-control-allow-origin").p && !gate_header(g, "x").p);
    CHECK(!gate_header(g, "x-amz-meta-a").p);
    gate_ask(g, NOBODY, "OPTIONS /box/key",
             "origin: http://a.example\naccess-control-request-method: GET", NONE, 403);
    arena_release(&a);
}

GATE_TEST(what_is_not_there_says_so)
{
    gate_do(g, "GET /box?replication", 501);
    GATE_ERROR(g, "NotImplemented");
    CHECK(gate_has(g, "GetBucketReplication"));
    gate_do(g, "GET /box?inventory", 501);
    CHECK(gate_has(g, "sub-resource inventory"));
    gate_do(g, "DELETE /box?acl", 405);
    gate_do(g, "HEAD /box", 200); /* and it is still there */
    gate_do(g, "PATCH /box/key", 405);
    gate_do(g, "GET /box/key?versionId=", 400);
}

GATE_TEST(a_wrong_signature_is_refused)
{
    gate_ask(g, NOBODY, "GET /box", "authorization: AWS4-HMAC-SHA256 nonsense", NONE, 400);
    gate_ask(g, NOBODY, "GET /box",
             "authorization: AWS AKIANOBODY:abc\n"
             "date: Fri, 01 Jan 1999 00:00:00 GMT",
             NONE, 403);
}

GATE_TEST(a_form_is_an_upload)
{
    const char *type = "content-type: multipart/form-data; boundary=XX";
    struct str form = STR("--XX\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n"
                          "up/${filename}\r\n--XX\r\nContent-Disposition: form-data; "
                          "name=\"success_action_status\"\r\n\r\n201\r\n--XX\r\n"
                          "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n"
                          "Content-Type: text/plain\r\n\r\nhello\r\n--XX--\r\n");

    gate_ask(g, NOBODY, "POST /box", type, form, 403);
    gate_ask(g, NOBODY, "POST /box", "content-type: text/plain", form, 412);
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_ask(g, NOBODY, "POST /box", type, form, 201);
    CHECK_STR(gate_element(g, "Key"), STR("up/a.txt"));
    CHECK_STR(gate_header(g, "etag"), STR("\"5d41402abc4b2a76b9719d911017c592\""));
    gate_do(g, "GET /box?prefix=up", 200);
    CHECK_STR(gate_element(g, "Size"), STR("5"));
}

GATE_TEST(version_2_may_sign_a_slash_behind_the_bucket)
{
    char date[CLOCK_HTTP_LEN + 1], headers[256];
    struct buf text = BUF_INIT(0), signature = BUF_INIT(0);
    struct sign_request r = {.method = STR("GET"), .path = STR("/box/")};

    clock_http(clock_wall_ms(), date);
    CHECK_INT(sign_v2_string(&text, &r, str_z(date), STR_EMPTY), 0);
    sign_v2(&signature, STR("alice-secret-alice-secret"), buf_str(&text));
    snprintf(headers, sizeof(headers), "authorization: AWS AKIAALICE00000000001:%s\ndate: %s",
             signature.p, date);
    gate_ask(g, NOBODY, "GET /box", headers, NONE, 200);
    gate_ask(g, NOBODY, "GET /box/", headers, NONE, 200);
    gate_ask(g, NOBODY, "GET /box?prefix=a", headers, NONE, 200); /* which is not signed */
    gate_ask(g, NOBODY, "GET /box/key", headers, NONE, 403);
    GATE_ERROR(g, "SignatureDoesNotMatch");
    buf_release(&text);
    buf_release(&signature);
}

GATE_TEST(version_2_may_sign_a_sub_resource_twice)
{
    char date[CLOCK_HTTP_LEN + 1], headers[256];
    struct buf text = BUF_INIT(0), signature = BUF_INIT(0);

    clock_http(clock_wall_ms(), date);
    buf_appendf(&text, "GET\n\n\n%s\n/box?acl?acl", date);
    sign_v2(&signature, STR("alice-secret-alice-secret"), buf_str(&text));
    snprintf(headers, sizeof(headers), "authorization: AWS AKIAALICE00000000001:%s\ndate: %s",
             signature.p, date);
    gate_ask(g, NOBODY, "GET /box?acl", headers, NONE, 200);
    gate_ask(g, NOBODY, "GET /box?cors", headers, NONE, 403);
    gate_ask(g, NOBODY, "GET /box", headers, NONE, 403);
    GATE_ERROR(g, "SignatureDoesNotMatch");
    buf_release(&text);
    buf_release(&signature);
}
