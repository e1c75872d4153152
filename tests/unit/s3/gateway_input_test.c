/* Bad input: paths that try to climb, bytes that S3 allows and those it does not, floods, documents
 * that explode, bodies that break off. Nothing half-written stays. */
#include "unit/s3/gateway_lab.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define NONE STR_EMPTY

/* The bucket has no object and no upload. */
static void check_empty(struct gate *g)
{
    gate_do(g, "GET /box?versions", 200);
    CHECK(!gate_has(g, "<Version>") && !gate_has(g, "<DeleteMarker>"));
    gate_do(g, "GET /box?uploads", 200);
    CHECK(!gate_has(g, "<Upload>"));
}

GATE_TEST(a_key_is_only_a_name)
{
    /* Each is a key like any other; none is another's, and none leaves the bucket. */
    static const char *const keys[] = {
        "../../etc/passwd", "..",        ".",        "a/../b",     "a//b",  "//a",     "a/",
        "%2e%2e/x",         "%252e%2fx", "a%2F%2Fb", "a%5c..%5cb", "%25zz", "~/.x%09", "a%0Ab",
    };
    char request[128], body[32];

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        snprintf(request, sizeof(request), "PUT /box/%s", keys[i]);
        snprintf(body, sizeof(body), "%zu", i);
        gate_ask(g, ALICE, request, NULL, str_z(body), 200);
    }
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        snprintf(request, sizeof(request), "GET /box/%s", keys[i]);
        snprintf(body, sizeof(body), "%zu", i == 4 ? 9 : i); /* a//b is a%2F%2Fb */
        gate_do(g, request, 200);
        CHECK_STR(g->body, str_z(body));
    }
    gate_do(g, "GET /box/b", 404); /* nothing was normalised into being */
    gate_do(g, "GET /box?prefix=..", 200);
    CHECK(gate_has(g, "<Key>../../etc/passwd</Key>") && gate_has(g, "<Key>../x</Key>"));
}

GATE_TEST(a_key_may_have_every_byte_of_utf_8_but_nul)
{
    char request[64];

    for (unsigned c = 1; c < 0x80; c++) {
        snprintf(request, sizeof(request), "PUT /box/k%%%02X", c);
        gate_ask(g, ALICE, request, NULL, STR("x"), 200);
    }
    gate_ask(g, ALICE, "PUT /box/%C3%BC%E2%82%AC%F0%9F%8C%8A", NULL, STR("x"), 200);
    for (unsigned c = 1; c < 0x80; c++) {
        snprintf(request, sizeof(request), "GET /box/k%%%02X", c);
        gate_do(g, request, 200);
        snprintf(request, sizeof(request), "DELETE /box/k%%%02X", c);
        gate_do(g, request, 204);
    }
    gate_do(g, "GET /box?encoding-type=url", 200);
    CHECK(gate_has(g, "<Key>%C3%BC%E2%82%AC%F0%9F%8C%8A</Key>"));
    CHECK(!gate_has(g, "<Key>k"));
    gate_do(g, "PUT /box/nul%00byte", 400);
    GATE_ERROR(g, "InvalidURI");
    gate_do(g, "PUT /box/%ff%fe", 400);
    GATE_ERROR(g, "InvalidURI");
    gate_do(g, "PUT /box/%C0%AE%C0%AE", 400); /* ".." in too many bytes */
}

GATE_TEST(a_key_ends_at_1024_bytes)
{
    char request[1100] = "PUT /box/";

    memset(request + 9, 'k', 1025);
    gate_do(g, request, 400);
    GATE_ERROR(g, "KeyTooLongError");
    request[9 + 1024] = '\0';
    gate_ask(g, ALICE, request, NULL, STR("x"), 200);
}

GATE_TEST(a_bucket_is_never_a_path)
{
    static const char *const names[] = {"PUT /..",    "PUT /%2e%2e", "PUT /a%2fb", "PUT /.hidden",
                                        "PUT /a%00b", "PUT /A",      "PUT /a..b",  "PUT /-ab",
                                        "PUT /ab%0a", "PUT /%C3%BCb"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        gate_do(g, names[i], 400);
    static const char *const reads[] = {"GET /..",       "GET /%2e/a",   "GET /box%2Fa",
                                        "GET /box%5Ca",  "GET /box%3Fa", "GET /box%00/a",
                                        "GET /t:box/a",  "GET /::box/a", "GET /box%20/a",
                                        "GET /b%C3%BCx", "HEAD /box+",   "DELETE /box;x/a"};
    for (size_t i = 0; i < ARRAY_SIZE(reads); i++)
        gate_do(g, reads[i], 400);
    gate_do(g, "GET /Box_1.-", 404); /* other services have such */
    gate_do(g, "GET //box", 400);    /* no bucket before the key */
    gate_do(g, "GET /", 200);
    CHECK_STR(gate_element(g, "Name"), STR("box"));
}

GATE_TEST(documents_that_explode_are_refused)
{
    static char big[1200 * 1024];
    struct str bomb = STR("<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>"
                          "<Delete><Object><Key>&b;</Key></Object></Delete>");
    struct buf deep = BUF_INIT(0);

    gate_ask(g, ALICE, "POST /box?delete", NULL, bomb, 400);
    GATE_ERROR(g, "MalformedXML");
    gate_ask(g, ALICE, "PUT /box?tagging", NULL,
             STR("<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><Tagging/>"), 400);
    GATE_ERROR(g, "MalformedXML");
    memset(big, ' ', sizeof(big));
    memcpy(big, "<Tagging>", 9);
    gate_ask(g, ALICE, "PUT /box?tagging", NULL, str_n(big, sizeof(big)), 400);
    GATE_ERROR(g, "MaxMessageLengthExceeded");
    for (int i = 0; i < 5000; i++)
        buf_append_z(&deep, "<a>");
    gate_ask(g, ALICE, "PUT /box?cors", NULL, buf_str(&deep), 400);
    GATE_ERROR(g, "MalformedXML");
    buf_release(&deep);
    gate_ask(g, ALICE, "PUT /box?policy", NULL, STR("{\"Statement\":[[[[[[["), 400);
    GATE_ERROR(g, "MalformedPolicy");
}

GATE_TEST(a_batch_has_at_most_a_thousand_keys)
{
    struct buf xml = BUF_INIT(0);

    buf_append_z(&xml, "<Delete>");
    for (int i = 0; i < 1001; i++)
        buf_appendf(&xml, "<Object><Key>k%d</Key></Object>", i);
    buf_append_z(&xml, "</Delete>");
    gate_ask(g, ALICE, "POST /box?delete", NULL, buf_str(&xml), 400);
    GATE_ERROR(g, "MalformedXML");
    buf_release(&xml);
}

GATE_TEST(floods_of_headers_and_parameters_are_refused)
{
    struct buf text = BUF_INIT(0);

    buf_append_z(&text, "GET /box HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 5000; i++)
        buf_appendf(&text, "x-flood-%d: 1\r\n", i);
    buf_append_z(&text, "\r\n");
    int status = lab_status_of(&g->lab, buf_str(&text));
    CHECK(status == 431 || status == 400);
    buf_reset(&text);
    buf_append_z(&text, "GET /box?");
    for (int i = 0; i < 100; i++)
        buf_appendf(&text, "p%d=1&", i);
    buf_append_z(&text, "z HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK_INT(lab_status_of(&g->lab, buf_str(&text)), 400);
    buf_release(&text);
}

/* A PUT that says 1000 bytes, sends `sent` and goes; the object before it stays. */
static void vanish(struct gate *g, const char *target, size_t sent)
{
    char bytes[1000];
    struct buf answer = BUF_INIT(0);
    struct http_server_stats before = lab_stats(&g->lab);
    int fd = lab_dial(&g->lab);
    ssize_t n;

    memset(bytes, 'z', sizeof(bytes));
    lab_sayf(fd, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", target);
    lab_say(fd, str_n(bytes, sent));
    shutdown(fd, SHUT_WR);
    while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        buf_append(&answer, bytes, (size_t)n);
    close(fd);
    CHECK(str_find(buf_str(&answer), STR("<Code>IncompleteBody</Code>")) > 0);
    buf_release(&answer);
    LAB_UNTIL(lab_stats(&g->lab).connections <= before.connections);
}

GATE_TEST(a_client_that_vanishes_leaves_nothing)
{
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    vanish(g, "/box/new", 10);
    vanish(g, "/box/new", 999);
    check_empty(g);
    gate_ask(g, ALICE, "PUT /box/old", NULL, STR("before"), 200);
    vanish(g, "/box/old", 500);
    gate_do(g, "GET /box/old", 200);
    CHECK_STR(g->body, STR("before"));
}

GATE_TEST(a_part_that_breaks_off_is_no_part)
{
    char request[256], id[64];

    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_do(g, "POST /box/key?uploads", 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    snprintf(request, sizeof(request), "/box/key?partNumber=1&uploadId=%s", id);
    vanish(g, request, 500);
    snprintf(request, sizeof(request), "GET /box/key?uploadId=%s", id);
    gate_do(g, request, 200);
    CHECK(!gate_has(g, "<Part>"));
    snprintf(request, sizeof(request), "DELETE /box/key?uploadId=%s", id);
    gate_do(g, request, 204);
    check_empty(g);
}

GATE_TEST(a_body_that_is_not_what_was_said_leaves_nothing)
{
    static const char *const said[] = {
        "content-md5: AAAAAAAAAAAAAAAAAAAAAA==",
        "x-amz-checksum-sha1: AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "x-amz-checksum-crc64nvme: AAAAAAAAAAA=",
    };
    static char large[5000]; /* past what is kept in the index */

    for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
        gate_ask(g, ALICE, "PUT /box/key", said[i], STR("small"), 400);
        GATE_ERROR(g, "BadDigest");
        gate_ask(g, ALICE, "PUT /box/key", said[i], str_n(large, sizeof(large)), 400);
        GATE_ERROR(g, "BadDigest");
    }
    check_empty(g);
}

GATE_TEST(a_bucket_may_be_the_name_of_the_host)
{
    const char *host = "host: box.s3.test:9000";

    gate_ask(g, ALICE, "PUT /a/key", host, STR("x"), 200);
    gate_do(g, "GET /box/a/key", 200);
    CHECK_STR(g->body, STR("x"));
    gate_ask(g, ALICE, "GET /?list-type=2&prefix=a/", host, NONE, 200);
    CHECK(gate_has(g, "<Name>box</Name>") && gate_has(g, "<Key>a/key</Key>"));
    gate_ask(g, ALICE, "GET /", "host: s3.test", NONE, 200);
    CHECK(gate_has(g, "<ListAllMyBucketsResult"));
    gate_ask(g, ALICE, "GET /", "host: nowhere.s3.test", NONE, 404);
    GATE_ERROR(g, "NoSuchBucket");
    gate_ask(g, ALICE, "GET /box/a/key", "host: evil.example", NONE, 200); /* path style */
    gate_ask(g, ALICE, "DELETE /a/key", host, NONE, 204);
    gate_ask(g, ALICE, "DELETE /", host, NONE, 204);
    gate_do(g, "HEAD /box", 404);
}
