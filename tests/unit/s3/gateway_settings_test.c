/* The gateway over the wire: conditions of removals, storage classes, expiration, and the settings
 * of which there is one value. */
#include "base/clock.h"
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

#define NONE STR_EMPTY

static void put(struct gate *g, const char *request, struct str body)
{
    gate_ask(g, ALICE, request, NULL, body, 200);
}

static void put_xml(struct gate *g, const char *request, const char *xml, int status)
{
    gate_ask(g, ALICE, request, NULL, str_z(xml), status);
}

GATE_TEST(a_removal_is_bound_to_size_and_time)
{
    char time[64], xml[512];

    gate_ask(g, ALICE, "DELETE /box/k", "x-amz-if-match-size: 9", NONE, 204); /* nothing there */
    put(g, "PUT /box/k", STR("12345"));
    gate_do(g, "HEAD /box/k", 200);
    snprintf(time, sizeof(time), STR_FMT, STR_ARG(gate_header(g, "last-modified")));
    gate_ask(g, ALICE, "DELETE /box/k", "x-amz-if-match-size: 9", NONE, 412);
    gate_ask(g, ALICE, "DELETE /box/k", "x-amz-if-match-size: many", NONE, 400);
    gate_ask(g, ALICE, "DELETE /box/k",
             "x-amz-if-match-last-modified-time: Thu, 01 Jan 2015 00:00:00 GMT", NONE, 412);
    gate_ask(g, ALICE, "DELETE /box/k", "if-match: \"x\"", NONE, 412);
    put_xml(g, "POST /box?delete",
            "<Delete><Object><Key>k</Key><Size>4</Size></Object><Object><Key>k</Key>"
            "<LastModifiedTime>2015-01-01T00:00:00Z</LastModifiedTime></Object></Delete>",
            200);
    CHECK(!gate_has(g, "<Deleted>"));
    GATE_ERROR(g, "PreconditionFailed");
    gate_do(g, "HEAD /box/k", 200);
    snprintf(xml, sizeof(xml),
             "<Delete><Object><Key>k</Key><Size>5</Size><LastModifiedTime>%s</LastModifiedTime>"
             "</Object></Delete>",
             time);
    put_xml(g, "POST /box?delete", xml, 200);
    CHECK(gate_has(g, "<Deleted><Key>k</Key></Deleted>"));
    gate_do(g, "HEAD /box/k", 404);
}

GATE_TEST(a_marker_is_judged_by_conditions_as_what_is_current)
{
    put_xml(g, "PUT /box?versioning",
            "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>", 200);
    gate_ask(g, ALICE, "DELETE /box/k", "if-match: *", NONE, 204); /* nothing there: no marker */
    gate_do(g, "GET /box?versions", 200);
    CHECK(!gate_has(g, "DeleteMarker"));
    put(g, "PUT /box/k", STR("x"));
    gate_ask(g, ALICE, "DELETE /box/k", "x-amz-if-match-size: 1", NONE, 204);
    CHECK_STR(gate_header(g, "x-amz-delete-marker"), STR("true"));
    gate_ask(g, ALICE, "DELETE /box/k", "x-amz-if-match-size: 1", NONE, 412);
    gate_ask(g, ALICE, "DELETE /box/k", "if-match: \"x\"", NONE, 412);
    gate_ask(g, ALICE, "DELETE /box/k", "if-match: *", NONE, 204);
}

GATE_TEST(classes_that_are_not_known_are_refused)
{
    gate_ask(g, ALICE, "PUT /box/k", "x-amz-storage-class: COLD", STR("x"), 400);
    GATE_ERROR(g, "InvalidStorageClass");
    gate_ask(g, ALICE, "PUT /box/k", "x-amz-storage-class: GLACIER_IR", STR("x"), 200);
    gate_do(g, "GET /box", 200);
    CHECK_STR(gate_element(g, "StorageClass"), STR("GLACIER_IR"));
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/k", NONE, 200);
    gate_do(g, "HEAD /box/copy", 200);
    CHECK(!gate_header(g, "x-amz-storage-class").p);
    gate_ask(g, ALICE, "GET /box/copy?attributes", "x-amz-object-attributes: StorageClass", NONE,
             200);
    CHECK_STR(gate_element(g, "StorageClass"), STR("STANDARD"));
    put_xml(g, "PUT /box?lifecycle",
            "<LifecycleConfiguration><Rule><Status>Enabled</Status><Prefix/><Transition><Days>1"
            "</Days><StorageClass>COLD</StorageClass></Transition></Rule></LifecycleConfiguration>",
            400);
    GATE_ERROR(g, "MalformedXML");
}

GATE_TEST(expiration_is_told_where_a_rule_wants_it)
{
    put_xml(
        g, "PUT /box?lifecycle",
        "<LifecycleConfiguration><Rule><ID>a rule</ID><Status>Enabled</Status><Filter><Tag><Key>"
        "t</Key><Value>1</Value></Tag></Filter><Expiration><Days>1</Days></Expiration></Rule>"
        "</LifecycleConfiguration>",
        200);
    put(g, "PUT /box/plain", STR("x"));
    CHECK(!gate_header(g, "x-amz-expiration").p);
    gate_ask(g, ALICE, "PUT /box/k", "x-amz-tagging: t=1", STR("x"), 200);
    CHECK(
        str_ends(gate_header(g, "x-amz-expiration"), STR("00:00:00 GMT\", rule-id=\"a%20rule\"")));
    gate_do(g, "HEAD /box/k", 200);
    CHECK(str_starts(gate_header(g, "x-amz-expiration"), STR("expiry-date=\"")));
    gate_do(g, "GET /box/plain", 200);
    CHECK(!gate_header(g, "x-amz-expiration").p);
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/k", NONE, 200);
    CHECK(str_starts(gate_header(g, "x-amz-expiration"), STR("expiry-date=\"")));
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/plain", NONE, 200);
    CHECK(!gate_header(g, "x-amz-expiration").p);
}

GATE_TEST(expiration_is_told_of_what_was_completed_also_again)
{
    char request[128], finish[128], xml[256];

    put_xml(g, "PUT /box?lifecycle",
            "<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><Tag><Key>t"
            "</Key><Value>1</Value></Tag></Filter><Expiration><Days>1</Days></Expiration></Rule>"
            "</LifecycleConfiguration>",
            200);
    gate_ask(g, ALICE, "POST /box/k?uploads", "x-amz-tagging: t=1", NONE, 200);
    struct str id = gate_element(g, "UploadId");
    snprintf(finish, sizeof(finish), "POST /box/k?uploadId=" STR_FMT, STR_ARG(id));
    snprintf(request, sizeof(request), "PUT /box/k?partNumber=1&uploadId=" STR_FMT, STR_ARG(id));
    gate_ask(g, ALICE, request, NULL, STR("x"), 200);
    snprintf(xml, sizeof(xml),
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" STR_FMT
             "</ETag></Part></CompleteMultipartUpload>",
             STR_ARG(gate_header(g, "etag")));
    for (int i = 0; i < 2; i++) {
        put_xml(g, finish, xml, 200);
        CHECK(str_starts(gate_header(g, "x-amz-expiration"), STR("expiry-date=\"")));
    }
}

GATE_TEST(where_the_requester_pays_who_asks_must_say_so)
{
    put_xml(g, "PUT /box?policy",
            "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","
            "\"Action\":\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::box/*\"}]}",
            204);
    gate_ask(g, ALICE, "PUT /box/k", NULL, STR("x"), 200);
    gate_ask(g, NOBODY, "GET /box/k", NULL, STR_EMPTY, 200);
    put_xml(g, "PUT /box?requestPayment",
            "<RequestPaymentConfiguration><Payer>Requester</Payer></RequestPaymentConfiguration>",
            200);
    gate_do(g, "GET /box?requestPayment", 200);
    CHECK_STR(gate_element(g, "Payer"), STR("Requester"));
    gate_do(g, "GET /box/k", 200); /* the owner */
    CHECK(!gate_header(g, "x-amz-request-charged").len);
    gate_ask(g, NOBODY, "GET /box/k", "x-amz-request-payer: requester", STR_EMPTY, 403);
    gate_ask(g, BOB, "GET /box/k", NULL, STR_EMPTY, 403);
    GATE_ERROR(g, "AccessDenied");
    gate_ask(g, BOB, "GET /box/k", "x-amz-request-payer: owner", STR_EMPTY, 403);
    gate_ask(g, BOB, "GET /box/k", "x-amz-request-payer: requester", STR_EMPTY, 200);
    CHECK_STR(gate_header(g, "x-amz-request-charged"), STR("requester"));
    gate_ask(g, BOB, "GET /box/k?x-amz-request-payer=requester", NULL, STR_EMPTY, 200);
    gate_ask(g, BOB, "GET /box/absent", "x-amz-request-payer: requester", STR_EMPTY, 403);
    CHECK(!gate_header(g, "x-amz-request-charged").len);
    put_xml(g, "PUT /box?requestPayment",
            "<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>",
            200);
    gate_ask(g, NOBODY, "GET /box/k", NULL, STR_EMPTY, 200);
}

GATE_TEST(the_owner_pays_unless_told_otherwise)
{
    gate_do(g, "GET /box?requestPayment", 200);
    CHECK_STR(gate_element(g, "Payer"), STR("BucketOwner"));
    put_xml(g, "PUT /box?requestPayment",
            "<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>",
            200);
    put_xml(g, "PUT /box?requestPayment",
            "<RequestPaymentConfiguration><Payer>Bob</Payer></RequestPaymentConfiguration>", 400);
}

GATE_TEST(buckets_are_listed_by_pages_prefix_and_region)
{
    gate_do(g, "PUT /box2", 200);
    gate_do(g, "PUT /crate", 200);
    gate_do(g, "GET /?max-buckets=1&prefix=box", 200);
    CHECK_STR(gate_element(g, "Name"), STR("box"));
    CHECK_STR(gate_element(g, "BucketRegion"), STR("us-east-1"));
    char next[256];
    snprintf(next, sizeof(next), "GET /?max-buckets=5&prefix=box&continuation-token=" STR_FMT,
             STR_ARG(gate_element(g, "ContinuationToken")));
    gate_do(g, next, 200);
    CHECK_STR(gate_element(g, "Name"), STR("box2"));
    CHECK(!gate_has(g, "crate") && !gate_has(g, "ContinuationToken"));
    gate_do(g, "GET /?bucket-region=mars", 200);
    CHECK(!gate_has(g, "<Bucket>"));
    gate_do(g, "GET /?bucket-region=us-east-1", 200);
    CHECK(gate_has(g, "crate"));
}
