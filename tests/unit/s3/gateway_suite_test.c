/* Behaviours that public suites of S3 ask for, in our own words: what clients older than a feature
 * cannot send comes as raw requests. */
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

#define NONE STR_EMPTY

GATE_TEST(a_bucket_may_be_made_again_with_the_same_list_only)
{
    gate_do(g, "PUT /box", 200);
    gate_ask(g, ALICE, "PUT /box", "x-amz-acl: private", NONE, 200);
    gate_ask(g, ALICE, "PUT /box", "x-amz-acl: public-read", NONE, 409);
    GATE_ERROR(g, "BucketAlreadyExists");
    gate_ask(g, ALICE, "PUT /open", "x-amz-acl: public-read", NONE, 200);
    gate_ask(g, ALICE, "PUT /open", "x-amz-acl: public-read", NONE, 200);
    gate_do(g, "PUT /open", 409);
    gate_ask(g, NOBODY, "GET /open", NULL, NONE, 200); /* its list was not touched */
}

GATE_TEST(a_request_may_say_whose_bucket_it_means)
{
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-expected-bucket-owner: alice-id", STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-expected-bucket-owner: bob-id", STR("y"), 403);
    GATE_ERROR(g, "AccessDenied");
    gate_ask(g, ALICE, "GET /box", "x-amz-expected-bucket-owner: bob-id", NONE, 403);
    gate_ask(g, ALICE, "PUT /box/copy",
             "x-amz-copy-source: /box/key\nx-amz-source-expected-bucket-owner: bob-id", NONE, 403);
    gate_ask(g, ALICE, "PUT /box/copy",
             "x-amz-copy-source: /box/key\nx-amz-source-expected-bucket-owner: alice-id", NONE,
             200);
    gate_do(g, "GET /box/key", 200);
    CHECK_STR(g->body, STR("x"));
}

GATE_TEST(a_checksum_that_is_none_fits_no_body)
{
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-checksum-sha256: bad", STR("x"), 400);
    GATE_ERROR(g, "BadDigest");
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-checksum-crc64nvme: bad", STR("x"), 400);
    GATE_ERROR(g, "BadDigest");
    gate_do(g, "HEAD /box/key", 404);
}

/* Begins an upload of `key` with these headers, sends one part, and leaves its ETag in `etag`. */
static void one_part(struct gate *g, const char *key, const char *headers, char id[64],
                     char etag[64])
{
    char request[256];

    snprintf(request, sizeof(request), "POST /box/%s?uploads", key);
    gate_ask(g, ALICE, request, headers, NONE, 200);
    snprintf(id, 64, STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    snprintf(request, sizeof(request), "PUT /box/%s?partNumber=1&uploadId=%s", key, id);
    gate_ask(g, ALICE, request, headers ? "x-amz-checksum-crc32: NhCmhg==" : NULL, STR("hello"),
             200);
    snprintf(etag, 64, STR_FMT, STR_ARG(gate_header(g, "etag")));
}

static void complete(struct gate *g, const char *key, const char *id, const char *etag,
                     const char *headers, int status)
{
    char request[256], xml[256];

    snprintf(request, sizeof(request), "POST /box/%s?uploadId=%s", key, id);
    snprintf(xml, sizeof(xml),
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
             "</CompleteMultipartUpload>",
             etag);
    gate_ask(g, ALICE, request, headers, str_z(xml), status);
}

GATE_TEST(a_part_named_twice_is_the_one_named_last)
{
    char id[64], first[64], again[64], request[256], xml[512];

    one_part(g, "sent", NULL, id, first);
    snprintf(request, sizeof(request), "PUT /box/sent?partNumber=1&uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, STR("hello again"), 200);
    snprintf(again, sizeof(again), STR_FMT, STR_ARG(gate_header(g, "etag")));
    snprintf(request, sizeof(request), "POST /box/sent?uploadId=%s", id);
    for (int i = 0; i < 2; i++) { /* the one that was kept must be named last */
        snprintf(xml, sizeof(xml),
                 "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
                 "<Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>",
                 i ? first : again, i ? again : first);
        gate_ask(g, ALICE, request, NULL, str_z(xml), i ? 200 : 400);
    }
    CHECK(gate_has(g, "-1&quot;</ETag>"));
    gate_do(g, "GET /box/sent", 200);
    CHECK_STR(g->body, STR("hello again")); /* once */
}

GATE_TEST(an_upload_says_what_its_checksum_is)
{
    char id[64], etag[64], first[64];

    one_part(g, "sum", "x-amz-checksum-algorithm: CRC32", id, etag);
    complete(g, "sum", id, etag, "x-amz-checksum-crc32: bad", 400);
    GATE_ERROR(g, "BadDigest");
    complete(g, "sum", id, etag, NULL, 200);
    CHECK_STR(gate_element(g, "ChecksumType"), STR("COMPOSITE"));
    snprintf(first, sizeof(first), STR_FMT, STR_ARG(gate_element(g, "ChecksumCRC32")));
    CHECK(first[0]);
    complete(g, "sum", id, etag, NULL, 200); /* again: the parts are gone, the answer is the same */
    CHECK_STR(gate_element(g, "ChecksumCRC32"), str_z(first));
    CHECK_STR(gate_element(g, "ChecksumType"), STR("COMPOSITE"));

    gate_ask(g, ALICE, "POST /box/full?uploads",
             "x-amz-checksum-algorithm: CRC32\nx-amz-checksum-type: FULL_OBJECT", NONE, 200);
    CHECK_STR(gate_header(g, "x-amz-checksum-algorithm"), STR("CRC32"));
    CHECK_STR(gate_header(g, "x-amz-checksum-type"), STR("FULL_OBJECT"));
}

GATE_TEST(completing_is_conditional)
{
    char id[64], etag[64];

    one_part(g, "key", NULL, id, etag);
    complete(g, "key", id, etag, "if-match: *", 404);
    GATE_ERROR(g, "NoSuchKey");
    complete(g, "key", id, etag, "if-none-match: *", 200);
    one_part(g, "key", NULL, id, etag);
    complete(g, "key", id, etag, "if-none-match: *", 412);
    GATE_ERROR(g, "PreconditionFailed");
    complete(g, "key", id, etag, "if-match: \"other\"", 412);
    complete(g, "key", id, etag, "if-match: *", 200);
}

GATE_TEST(no_object_has_a_torrent)
{
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    gate_do(g, "GET /box/key?torrent", 404);
    GATE_ERROR(g, "NoSuchKey");
    gate_ask(g, BOB, "GET /box/key?torrent", NULL, NONE, 403);
}

GATE_TEST(unfinished_uploads_do_not_keep_a_bucket)
{
    char id[64], etag[64];

    one_part(g, "a", NULL, id, etag);
    one_part(g, "a", NULL, id, etag);
    one_part(g, "b", NULL, id, etag);
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    gate_do(g, "DELETE /box", 409);
    GATE_ERROR(g, "BucketNotEmpty");
    complete(g, "b", id, etag, NULL, 200); /* what is refused aborts nothing */
    gate_do(g, "DELETE /box/key", 204);
    gate_do(g, "DELETE /box/b", 204);
    gate_do(g, "DELETE /box", 204);
    gate_do(g, "HEAD /box", 404);
}

GATE_TEST(versions_may_be_suspended_before_they_were_kept)
{
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("one"), 200);
    gate_ask(g, ALICE, "PUT /box?versioning", NULL,
             STR("<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>"),
             200);
    gate_do(g, "GET /box?versioning", 200);
    CHECK_STR(gate_element(g, "Status"), STR("Suspended"));
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("two"), 200);
    gate_do(g, "GET /box?versions", 200);
    CHECK_STR(gate_element(g, "VersionId"), STR("null"));
    CHECK_STR(gate_element(g, "IsLatest"), STR("true"));
    gate_do(g, "DELETE /box/key?versionId=null", 204);
    gate_do(g, "DELETE /box", 204);
}

GATE_TEST(a_bucket_with_versions_gets_object_lock_later)
{
    struct str lock = STR("<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>"
                          "</ObjectLockConfiguration>");
    struct str on =
        STR("<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>");

    gate_ask(g, ALICE, "PUT /box?object-lock", NULL, lock, 409);
    GATE_ERROR(g, "InvalidBucketState");
    gate_ask(g, ALICE, "PUT /box?versioning", NULL, on, 200);
    gate_ask(g, ALICE, "PUT /box?object-lock", NULL, lock, 200);
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-object-lock-legal-hold: ON", STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box?versioning", NULL,
             STR("<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>"),
             409);
}

GATE_TEST(who_may_list_is_told_that_a_key_is_absent)
{
    gate_ask(g, NOBODY, "GET /box/none", NULL, NONE, 403);
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read", NONE, 200);
    gate_ask(g, NOBODY, "GET /box/none", NULL, NONE, 404);
    gate_ask(g, NOBODY, "HEAD /box/none", NULL, NONE, 404);
    gate_ask(g, NOBODY, "GET /box/none?tagging", NULL, NONE, 404);
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    gate_ask(g, NOBODY, "GET /box/key", NULL, NONE, 403); /* its own list is private */
}

GATE_TEST(lists_name_groups_before_users)
{
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_do(g, "GET /box?acl", 200);
    CHECK(str_find(g->body, STR("AllUsers")) < str_find(g->body, STR("FULL_CONTROL")));
    gate_ask(g, ALICE, "PUT /box?acl",
             "x-amz-grant-full-control: id=bob-id\nx-amz-grant-read: id=bob-id", NONE, 200);
    gate_do(g, "GET /box?acl", 200);
    CHECK(str_find(g->body, STR(">READ<")) < str_find(g->body, STR("FULL_CONTROL")));
}

GATE_TEST(a_listing_by_prefix_tells_what_is_absent_there)
{
    gate_ask(
        g, ALICE, "PUT /box?policy", NULL,
        STR("{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","
            "\"Action\":[\"s3:ListBucket\",\"s3:PutObject\"],\"Resource\":[\"arn:aws:s3:::box\","
            "\"arn:aws:s3:::box/*\"],"
            "\"Condition\":{\"StringLike\":{\"s3:prefix\":\"open/*\"}}}]}"),
        204);
    gate_ask(g, BOB, "HEAD /box/open/none", NULL, NONE, 404);
    gate_ask(g, BOB, "HEAD /box/shut/none", NULL, NONE, 403);
    gate_ask(g, BOB, "PUT /box/open/new", NULL, STR("x"), 403); /* a key is no prefix */
}

GATE_TEST(what_is_absent_says_that_it_is_no_marker)
{
    gate_do(g, "HEAD /box/none", 404);
    CHECK_STR(gate_header(g, "x-amz-delete-marker"), STR("false"));
    gate_do(g, "GET /box/none", 404);
    GATE_ERROR(g, "NoSuchKey");
}

GATE_TEST(a_bucket_without_a_policy_has_a_status_too)
{
    gate_do(g, "GET /box?policyStatus", 200);
    CHECK_STR(gate_element(g, "IsPublic"), STR("false"));
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: authenticated-read", NONE, 200);
    gate_do(g, "GET /box?policyStatus", 200);
    CHECK_STR(gate_element(g, "IsPublic"), STR("true"));
}

GATE_TEST(the_owners_bucket_takes_no_list_at_all)
{
    gate_ask(g, ALICE, "PUT /mine", "x-amz-object-ownership: BucketOwnerEnforced", NONE, 200);
    gate_ask(g, ALICE, "PUT /mine?acl", "x-amz-acl: private", NONE, 400);
    GATE_ERROR(g, "AccessControlListNotSupported");
}

GATE_TEST(a_mode_of_retention_stays_unless_bypassed)
{
    struct str strict = STR("<Retention><Mode>COMPLIANCE</Mode><RetainUntilDate>"
                            "2100-01-01T00:00:00Z</RetainUntilDate></Retention>");

    gate_ask(g, ALICE, "PUT /lock", "x-amz-bucket-object-lock-enabled: true", NONE, 200);
    gate_ask(g, ALICE, "PUT /lock/key",
             "x-amz-object-lock-mode: GOVERNANCE\n"
             "x-amz-object-lock-retain-until-date: 2100-01-01T00:00:00Z",
             STR("x"), 200);
    gate_ask(g, ALICE, "PUT /lock/key?retention", NULL, strict, 403);
    GATE_ERROR(g, "AccessDenied");
    gate_ask(g, ALICE, "PUT /lock/key?retention", "x-amz-bypass-governance-retention: true", strict,
             200);
}

GATE_TEST(who_may_write_by_the_list_may_tag_what_is_written)
{
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_ask(g, NOBODY, "PUT /box/key", "x-amz-tagging: b=2&a=1", STR("x"), 200);
    gate_ask(g, NOBODY, "PUT /box/key?tagging", NULL, STR("<Tagging><TagSet></TagSet></Tagging>"),
             403);
    gate_ask(g, ALICE, "PUT /box/mine", "x-amz-tagging: b=2&a=1", STR("x"), 200);
    gate_do(g, "GET /box/mine?tagging", 200); /* by key */
    CHECK(str_find(g->body, STR("<Key>a</Key>")) < str_find(g->body, STR("<Key>b</Key>")));
}

GATE_TEST(what_a_bucket_holds_is_counted_for_who_asks)
{
    gate_do(g, "HEAD /box", 200);
    CHECK(!gate_header(g, "x-rgw-object-count").p);
    gate_ask(g, ALICE, "PUT /box/a", NULL, STR("12"), 200);
    gate_ask(g, ALICE, "PUT /box/b", NULL, STR("345"), 200);
    gate_do(g, "HEAD /box?read-stats=true", 200);
    CHECK_STR(gate_header(g, "x-rgw-object-count"), STR("2"));
    CHECK_STR(gate_header(g, "x-rgw-bytes-used"), STR("5"));
    CHECK_STR(gate_header(g, "x-rgw-quota-max-buckets"), STR("20"));
    CHECK_STR(gate_header(g, "x-rgw-quota-bucket-size"), STR("-1"));
    gate_ask(g, ALICE, "PUT /box?versioning", NULL,
             STR("<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
             200);
    gate_do(g, "DELETE /box/a", 204); /* kept behind a marker: it takes its room still */
    gate_do(g, "HEAD /box?read-stats=true", 200);
    CHECK_STR(gate_header(g, "x-rgw-object-count"), STR("2"));
    CHECK_STR(gate_header(g, "x-rgw-bytes-used"), STR("5"));
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read", NONE, 200);
    gate_ask(g, BOB, "HEAD /box?read-stats=true", NULL, NONE, 200);
    CHECK_STR(gate_header(g, "x-rgw-object-count"), STR("2"));
    CHECK(!gate_header(g, "x-rgw-quota-max-buckets").p); /* the owner's to know */
}

GATE_TEST(a_users_buckets_are_summed_up)
{
    gate_ask(g, BOB, "PUT /bobs", NULL, NONE, 200);
    gate_ask(g, BOB, "PUT /bobs/key", NULL, STR("not alice's"), 200);
    gate_do(g, "PUT /chest", 200);
    gate_ask(g, ALICE, "PUT /box/a", NULL, STR("12"), 200);
    gate_ask(g, ALICE, "PUT /chest/b", NULL, STR("345"), 200);
    gate_do(g, "GET /?usage", 200);
    CHECK(gate_has(g, "<Usage><Entries></Entries><Summary>"));
    CHECK(gate_has(g, "<QuotaMaxBytes>-1</QuotaMaxBytes>"
                      "<QuotaMaxBuckets>20</QuotaMaxBuckets>"));
    CHECK(gate_has(g, "<TotalBytes>5</TotalBytes><TotalEntries>2</TotalEntries>"));
    CHECK(gate_has(g, "<Entry><Bucket>box</Bucket><Bytes>2</Bytes></Entry>"
                      "<Entry><Bucket>chest</Bucket><Bytes>3</Bytes></Entry>"));
    CHECK(!gate_has(g, "bobs"));
    gate_ask(g, NOBODY, "GET /?usage", NULL, NONE, 403);
}

GATE_TEST(a_user_has_so_many_buckets_and_no_more)
{
    char request[32];

    for (int i = 2; i <= 20; i++) {
        snprintf(request, sizeof(request), "PUT /box-%d", i);
        gate_do(g, request, 200);
    }
    gate_do(g, "PUT /more", 400);
    GATE_ERROR(g, "TooManyBuckets");
    gate_do(g, "PUT /box-20", 200); /* there already */
    gate_ask(g, BOB, "PUT /more", NULL, NONE, 200);
    gate_do(g, "DELETE /box-2", 204);
    gate_do(g, "PUT /another", 200);
}

GATE_TEST(a_bucket_of_no_tenant_has_a_colon_for_ceph)
{
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    gate_do(g, "GET /:box/key", 200);
    gate_do(g, "GET /%3Abox/key", 200);
    gate_do(g, "GET /::box/key", 400);
    GATE_ERROR(g, "InvalidBucketName");
    gate_do(g, "GET /tenant:box/key", 400);
    GATE_ERROR(g, "InvalidBucketName");
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /%3Abox/key", NONE, 200);
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: tenant:box/key", NONE, 400);
    GATE_ERROR(g, "InvalidBucketName");
    gate_do(g, "GET /:", 200); /* no name at all: the buckets */
}

GATE_TEST(a_request_with_another_methods_question_gets_that_methods_rule)
{
    gate_ask(g, ALICE, "PUT /box?cors", NULL,
             STR("<CORSConfiguration><CORSRule><AllowedOrigin>*.a</AllowedOrigin>"
                 "<AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>"),
             200);
    gate_ask(g, ALICE, "PUT /box/key", "origin: x.a", STR("x"), 200);
    CHECK(!gate_header(g, "access-control-allow-origin").p);
    gate_ask(g, ALICE, "PUT /box/key", "origin: x.a\naccess-control-request-method: GET", STR("x"),
             200);
    CHECK_STR(gate_header(g, "access-control-allow-origin"), STR("x.a"));
}

GATE_TEST(small_wishes_of_listings)
{
    gate_ask(g, ALICE, "PUT /box/a%0A/b", NULL, STR("x"), 200);
    gate_do(g, "GET /box?list-type=2&continuation-token=", 200);
    CHECK(gate_has(g, "<ContinuationToken></ContinuationToken>"));
    gate_do(g, "GET /box?encoding-type=url&prefix=a%0A", 200);
    CHECK(!gate_has(g, "<Prefix>a%0A</Prefix>") && gate_has(g, "<Key>a%0A/b</Key>"));
    gate_do(g, "GET /box?encoding-type=url&prefix=%01", 200);
    CHECK(gate_has(g, "<Prefix>%01</Prefix>"));
    gate_do(g, "GET /box?allow-unordered=true", 200);
    gate_do(g, "GET /box?allow-unordered=true&delimiter=/", 400);
    GATE_ERROR(g, "InvalidArgument");
    gate_ask(g, NOBODY, "GET /", NULL, NONE, 200);
    CHECK(gate_has(g, "<Buckets></Buckets>"));
}

GATE_TEST(a_content_encoding_is_kept_without_aws_chunked)
{
    gate_ask(g, ALICE, "PUT /box/key", "content-encoding: deflate, gzip", STR("x"), 200);
    gate_do(g, "HEAD /box/key", 200);
    CHECK_STR(gate_header(g, "content-encoding"), STR("deflate, gzip"));
    gate_ask(g, ALICE, "PUT /box/key", "content-encoding: aws-chunked, gzip", STR("x"), 200);
    gate_do(g, "HEAD /box/key", 200);
    CHECK_STR(gate_header(g, "content-encoding"), STR("gzip"));
    gate_ask(g, ALICE, "PUT /box/key", "content-encoding: aws-chunked", STR("x"), 200);
    gate_do(g, "HEAD /box/key", 200);
    CHECK(!gate_header(g, "content-encoding").p);
}
