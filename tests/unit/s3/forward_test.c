/* The gateway in front of another gateway: what a client sends arrives, what it asks comes back,
 * and nothing damaged is ever kept. */
#include "route/space.h"
#include "unit/object/fake_overlay.h"
#include "unit/s3/forward_lab.h"

#include <stdio.h>
#include <unistd.h>

#define NONE STR_EMPTY

/* A front whose main storage is the back, and a bucket "box" of alice's there. */
#define PAIR_TEST(name)                                                                            \
    static void run_##name(struct pair *p);                                                        \
    TEST(forward, name)                                                                            \
    {                                                                                              \
        struct pair p;                                                                             \
        pair_start(&p);                                                                            \
        gate_do(&p.front, "PUT /box", 200);                                                        \
        run_##name(&p);                                                                            \
        pair_stop(&p);                                                                             \
    }                                                                                              \
    static void run_##name(struct pair *p)

static char large[300 * 1024];

static struct str large_body(void)
{
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i * 11 + i / 255);
    return str_n(large, sizeof(large));
}

static void put(struct pair *p, const char *request, struct str body)
{
    gate_ask(&p->front, ALICE, request, NULL, body, 200);
}

/* At the storage itself. */
static void check_kept(struct pair *p, const char *path, struct str body)
{
    char request[128];

    snprintf(request, sizeof(request), "GET %s", path);
    gate_do(&p->back, request, 200);
    CHECK(str_eq(p->back.body, body));
}

static void check_absent(struct pair *p, const char *path)
{
    char request[128];

    snprintf(request, sizeof(request), "GET %s", path);
    gate_do(&p->back, request, 404);
}

PAIR_TEST(what_a_signature_covers_is_not_taken_back_by_the_connection)
{
    struct gate *g = &p->front;
    struct buf request = BUF_INIT(0);

    put(p, "PUT /box/key", STR("first"));
    gate_presign(&request, ALICE, "PUT /box/key", "if-none-match: *");
    gate_ask(g, NOBODY, request.p, "if-none-match: *\nconnection: keep-alive, If-None-Match",
             STR("second"), 400);
    GATE_ERROR(g, "InvalidRequest");
    gate_ask(g, NOBODY, request.p, "if-none-match: *", STR("second"), 412);
    check_kept(p, "/box/key", STR("first"));

    put(p, "PUT /box/other", STR("other"));
    buf_reset(&request);
    gate_presign(&request, ALICE, "PUT /box/key", "x-amz-copy-source: box/other\nx-mine: 1");
    gate_ask(g, NOBODY, request.p,
             "x-amz-copy-source: box/other\nx-mine: 1\nconnection: x-amz-copy-source", STR("bytes"),
             400);
    gate_ask(g, NOBODY, request.p, "x-amz-copy-source: box/other\nx-mine: 1\nconnection: x-mine",
             NONE, 400);
    gate_ask(g, NOBODY, request.p, "x-amz-copy-source: box/other\nx-mine: 1\nconnection: te", NONE,
             200);
    check_kept(p, "/box/key", STR("other"));
    gate_ask(g, ALICE, "GET /box/key", "range: bytes=0-1\nconnection: range", NONE, 400);
    gate_ask(g, ALICE, "GET /box/key", "x-mine: 1\nconnection: x-mine", NONE, 200);
    buf_release(&request);
}

PAIR_TEST(headers_that_were_hoisted_into_a_query_arrive_as_headers)
{
    struct buf request = BUF_INIT(0);

    gate_presign(&request, ALICE,
                 "PUT /box/key?x-amz-meta-colour=light%20blue&x-amz-tagging=a%3D1&x-id=PutObject&"
                 "x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32",
                 NULL);
    gate_ask(&p->front, NOBODY, request.p, NULL, STR("hello"), 200);
    gate_do(&p->back, "GET /box/key", 200);
    CHECK_STR(gate_header(&p->back, "x-amz-meta-colour"), STR("light blue"));
    CHECK_STR(gate_header(&p->back, "x-amz-tagging-count"), STR("1"));
    CHECK_STR(p->back.body, STR("hello"));
    buf_reset(&request);
    gate_presign(&request, ALICE, "PUT /box/copy?x-amz-copy-source=box%2Fkey", NULL);
    gate_ask(&p->front, NOBODY, request.p, NULL, NONE, 200);
    check_kept(p, "/box/copy", STR("hello"));
    buf_reset(&request);
    gate_presign(&request, ALICE, "PUT /box/once?x-weir-if-none-match=%2A", NULL);
    gate_ask(&p->front, NOBODY, request.p, NULL, STR("first"), 200);
    gate_ask(&p->front, NOBODY, request.p, NULL, STR("second"), 412);
    check_kept(p, "/box/once", STR("first"));
    buf_reset(&request);
    gate_presign(&request, ALICE,
                 "GET /box/once?x-weir-if-match=%228b04d5e3775d298e78455efc5ca404d5%22", NULL);
    gate_ask(&p->front, NOBODY, request.p, NULL, NONE, 200);
    gate_do(&p->front, "DELETE /box/once", 204);
    gate_ask(&p->front, ALICE, "PUT /box/once", NULL, STR("second"), 200);
    gate_ask(&p->front, NOBODY, request.p, NULL, NONE, 412);
    buf_release(&request);
}

PAIR_TEST(what_only_the_storage_may_know_is_its_to_refuse)
{
    gate_do(&p->front, "DELETE /box?somethingNew", 501);
    CHECK(gate_has(&p->front, "somethingNew"));
    CHECK(!str_eq(gate_header(&p->front, "x-amz-request-id"),
                  gate_header(&p->front, "x-weir-request-id"))); /* the storage has answered */
    gate_do(&p->back, "HEAD /box", 200);
}

PAIR_TEST(objects_and_their_headers_go_through)
{
    struct gate *g = &p->front;

    gate_ask(g, ALICE, "PUT /box/a%20key%2Bx",
             "content-type: text/plain\nx-amz-meta-colour: blue\nx-amz-tagging: a=1", STR("hello"),
             200);
    CHECK_STR(gate_header(g, "etag"), STR("\"5d41402abc4b2a76b9719d911017c592\""));
    CHECK(gate_header(g, "x-amz-request-id").len && gate_header(g, "x-weir-request-id").len);
    check_kept(p, "/box/a%20key%2Bx", STR("hello"));
    CHECK_STR(gate_header(&p->back, "x-amz-meta-colour"), STR("blue"));
    gate_do(g, "GET /box/a%20key%2Bx", 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, "content-type"), STR("text/plain"));
    CHECK_STR(gate_header(g, "x-amz-tagging-count"), STR("1"));
    gate_do(g, "HEAD /box/a%20key%2Bx", 200);
    CHECK_STR(gate_header(g, "content-length"), STR("5"));
    gate_ask(g, ALICE, "GET /box/a%20key%2Bx", "range: bytes=1-2", NONE, 206);
    CHECK_STR(g->body, STR("el"));
    CHECK_STR(gate_header(g, "content-range"), STR("bytes 1-2/5"));
    gate_ask(g, ALICE, "GET /box/a%20key%2Bx",
             "if-none-match: \"5d41402abc4b2a76b9719d911017c592\"", NONE, 304);
    CHECK_STR(gate_header(g, "etag"), STR("\"5d41402abc4b2a76b9719d911017c592\""));
    gate_ask(g, ALICE, "GET /box/a%20key%2Bx", "if-match: \"other\"", NONE, 412);
    GATE_ERROR(g, "PreconditionFailed");
    gate_do(g, "DELETE /box/a%20key%2Bx", 204);
    gate_do(g, "GET /box/a%20key%2Bx", 404);
    GATE_ERROR(g, "NoSuchKey");
    gate_do(g, "GET /box?list-type=2", 200);
    CHECK_STR(gate_element(g, "KeyCount"), STR("0"));
    gate_do(g, "DELETE /box", 204);
    gate_do(g, "HEAD /box", 404);
}

PAIR_TEST(large_bodies_and_ranges_of_them_go_through)
{
    struct str body = large_body();

    put(p, "PUT /box/large", body);
    check_kept(p, "/box/large", body);
    gate_do(&p->front, "GET /box/large", 200);
    CHECK(str_eq(p->front.body, body));
    p->front.payload = "UNSIGNED-PAYLOAD";
    put(p, "PUT /box/unsigned", body);
    check_kept(p, "/box/unsigned", body);
}

PAIR_TEST(versions_and_documents_are_the_storage_s)
{
    struct gate *g = &p->front;

    gate_ask(g, ALICE, "PUT /box?versioning", NULL,
             STR("<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
             200);
    put(p, "PUT /box/key", STR("1"));
    CHECK(gate_header(g, "x-amz-version-id").len);
    gate_do(g, "DELETE /box/key", 204);
    CHECK_STR(gate_header(g, "x-amz-delete-marker"), STR("true"));
    gate_do(g, "GET /box?versions", 200);
    CHECK(gate_has(g, "<DeleteMarker>") && gate_has(g, "<Version>"));
    gate_do(g, "GET /box?policy", 404);
    GATE_ERROR(g, "NoSuchBucketPolicy");
    gate_do(g, "GET /box?analytics", 501); /* said by the storage, not by us */
    CHECK_STR(gate_header(g, "x-amz-request-id"), gate_element(g, "RequestId"));
}

/* --- framings --- */

static void try_framing(struct pair *p, const struct framed *f, struct str body, int number)
{
    char good[64], bad[64];

    snprintf(good, sizeof(good), "/box/good-%d-%zu", number, body.len);
    snprintf(bad, sizeof(bad), "/box/bad-%d-%zu", number, body.len);
    pair_put_framed(p, good, f, body, false, 200);
    check_kept(p, good, body);
    CHECK_STR(gate_header(&p->back, "content-encoding"), STR("gzip"));
    pair_put_framed(p, bad, f, body, true, f->is_signed ? 403 : 400);
    check_absent(p, bad);
}

PAIR_TEST(every_framing_is_decoded_and_what_is_damaged_is_never_kept)
{
    struct str bodies[] = {STR("a small body, a small body"), large_body()};
    char small_sum[128], large_sum[128], sum[64];

    pair_checksum(sum, DIGEST_CRC32, bodies[0]);
    snprintf(small_sum, sizeof(small_sum), "x-amz-checksum-crc32:%s", sum);
    pair_checksum(sum, DIGEST_CRC32, bodies[1]);
    snprintf(large_sum, sizeof(large_sum), "x-amz-checksum-crc32:%s", sum);
    for (int i = 0; i < 4; i++) {
        const char *trailer = i % 2 ? large_sum : small_sum;
        struct framed kinds[] = {
            {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", true, NULL, 65536},
            {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", true, trailer, 65536},
            {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", false, trailer, 65536},
        };
        p->remote->takes_trailers = i >= 2;
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
            try_framing(p, &kinds[k], bodies[i % 2], i * 10 + (int)k);
    }
}

PAIR_TEST(a_checksum_in_a_trailer_is_kept_where_the_storage_can_be_told)
{
    struct str small = STR("small"), body = large_body();
    char sum[64], trailer[128];
    struct framed f = {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", false, trailer, 65536};

    pair_checksum(sum, DIGEST_CRC32, small);
    snprintf(trailer, sizeof(trailer), "x-amz-checksum-crc32:%s", sum);
    pair_put_framed(p, "/box/small", &f, small, false, 200);
    CHECK_STR(gate_header(&p->front, "x-amz-checksum-crc32"), str_z(sum));
    pair_checksum(sum, DIGEST_CRC32, body);
    snprintf(trailer, sizeof(trailer), "x-amz-checksum-crc32:%s", sum);
    pair_put_framed(p, "/box/dropped", &f, body, false, 200);
    CHECK(!gate_header(&p->front, "x-amz-checksum-crc32").p);
    p->remote->takes_trailers = true;
    pair_put_framed(p, "/box/kept", &f, body, false, 200);
    CHECK_STR(gate_header(&p->front, "x-amz-checksum-crc32"), str_z(sum));
    check_kept(p, "/box/kept", body);
}

PAIR_TEST(a_wrong_hash_or_checksum_is_refused_before_the_storage_has_it_all)
{
    struct gate *g = &p->front;
    struct str body = large_body();

    gate_ask(g, ALICE, "PUT /box/md5", "content-md5: XUFAKrxLKna5cZ2REBfFkg==", body, 400);
    GATE_ERROR(g, "BadDigest");
    check_absent(p, "/box/md5");
    gate_ask(g, ALICE, "PUT /box/crc", "x-amz-checksum-crc32: AAAAAA==", body, 400);
    GATE_ERROR(g, "BadDigest");
    check_absent(p, "/box/crc");
    g->payload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    gate_ask(g, ALICE, "PUT /box/hash", NULL, body, 400);
    GATE_ERROR(g, "XAmzContentSHA256Mismatch");
    check_absent(p, "/box/hash");
    gate_ask(g, ALICE, "PUT /box/hash", NULL, STR("small"), 400);
    GATE_ERROR(g, "XAmzContentSHA256Mismatch");
    check_absent(p, "/box/hash");
}

/* --- who asks --- */

PAIR_TEST(users_without_credentials_there_are_refused_and_strangers_go_unsigned)
{
    put(p, "PUT /box/key", STR("x"));
    gate_ask(&p->front, BOB, "GET /box/key", NULL, NONE, 403);
    GATE_ERROR(&p->front, "AccessDenied");
    CHECK(gate_has(&p->front, "no credentials"));
    gate_ask(&p->front, NOBODY, "GET /box/key", NULL, NONE, 403);
    gate_ask(&p->front, ALICE, "PUT /box/key", "x-amz-acl: public-read", STR("x"), 200);
    gate_ask(&p->front, NOBODY, "GET /box/key", NULL, NONE, 200);
    CHECK_STR(p->front.body, STR("x"));
    gate_ask(&p->front, NOBODY, "GET /box/key", "host: box.s3.test", NONE, 403);
    gate_ask(&p->front, NOBODY, "GET /key", "host: box.s3.test", NONE, 200);
}

PAIR_TEST(buckets_of_all_storages_are_listed_where_they_are_found)
{
    struct gate *g = &p->front;
    struct err err = {0};

    CHECK_OK(route_set(g->routes, STR("alice-id"), STR("here"), STR("local"), &err));
    gate_do(g, "PUT /here", 200);
    gate_do(g, "GET /", 200);
    CHECK(gate_has(g, "<Name>box</Name>") && gate_has(g, "<Name>here</Name>"));
    gate_do(&p->back, "HEAD /here", 404);
    gate_do(&p->back, "PUT /here", 200); /* no request through the front reaches this one */
    gate_ask(g, ALICE, "PUT /here/key", NULL, STR("local"), 200);
    gate_do(&p->back, "GET /here/key", 404);
    gate_ask(g, BOB, "GET /", NULL, NONE, 200);
    CHECK(!gate_has(g, "<Name>"));
    CHECK_OK(route_block(g->routes, STR("back"), STR("box"), true, &err));
    gate_do(g, "GET /box", 403);
    gate_do(g, "PUT /box", 403);
}

PAIR_TEST(a_name_that_leads_to_a_remote_storage_is_not_made_here_by_others)
{
    struct gate *g = &p->front;
    struct err err = {0};

    CHECK_OK(routes_set_main(g->routes, STR("local"), &err));
    CHECK_OK(route_set(g->routes, STR("alice-id"), STR("box"), STR("back"), &err));
    gate_ask(g, BOB, "PUT /box", NULL, NONE, 409);
    GATE_ERROR(g, "BucketAlreadyExists");
    /* nor when policies disagree, so that nobody else is led there */
    CHECK_OK(route_set(g->routes, STR("carol-id"), STR("box"), STR("local"), &err));
    gate_ask(g, BOB, "PUT /box", NULL, NONE, 409);
    GATE_ERROR(g, "BucketAlreadyExists");
    put(p, "PUT /box/key", STR("alice's"));
    check_kept(p, "/box/key", STR("alice's"));
    CHECK_OK(route_set(g->routes, STR("bob-id"), STR("box"), STR("local"), &err));
    gate_ask(g, BOB, "PUT /box", NULL, NONE, 200);
    put(p, "PUT /box/key", STR("alice's still"));
    check_kept(p, "/box/key", STR("alice's still"));
}

PAIR_TEST(a_form_goes_on_as_a_put)
{
    struct gate *g = &p->front;
    struct str body =
        STR("--X\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nposted/${filename}\r\n"
            "--X\r\nContent-Disposition: form-data; name=\"x-amz-meta-a\"\r\n\r\nb\r\n"
            "--X\r\nContent-Disposition: form-data; name=\"success_action_status\"\r\n\r\n201\r\n"
            "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\n"
            "Content-Type: text/plain\r\n\r\nfile's bytes\r\n--X--\r\n");

    gate_ask(g, NOBODY, "POST /box", "content-type: multipart/form-data; boundary=X", body, 403);
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_ask(g, NOBODY, "POST /box", "content-type: multipart/form-data; boundary=X", body, 201);
    CHECK_STR(gate_element(g, "Key"), STR("posted/f.txt"));
    CHECK(gate_element(g, "ETag").len && gate_header(g, "etag").len);
    gate_ask(&p->back, NOBODY, "GET /box?prefix=posted", NULL, NONE, 200);
    CHECK_STR(gate_element(&p->back, "Size"), STR("12"));
}

PAIR_TEST(a_form_on_a_remote_storage_copies_nothing)
{
    struct gate *g = &p->front;
    struct str body =
        STR("--X\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nposted\r\n"
            "--X\r\nContent-Disposition: form-data; name=\"X-Amz-Copy-Source\"\r\n\r\n"
            "box/other\r\n"
            "--X\r\nContent-Disposition: form-data; name=\"x-amz-copy-source-if-match\"\r\n\r\n"
            "x\r\n"
            "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
            "file's bytes\r\n--X--\r\n");

    put(p, "PUT /box/other", STR("somebody's"));
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_ask(g, NOBODY, "POST /box", "content-type: multipart/form-data; boundary=X", body, 204);
    gate_ask(&p->back, NOBODY, "GET /box?prefix=posted", NULL, NONE, 200);
    CHECK_STR(gate_element(&p->back, "Size"), STR("12"));
}

/* --- copies between storages --- */

/* A bucket "here" of alice's on the front's own storage. */
static void make_here(struct pair *p)
{
    struct err err = {0};

    CHECK_OK(route_set(p->front.routes, STR("alice-id"), STR("here"), STR("local"), &err));
    gate_do(&p->front, "PUT /here", 200);
}

PAIR_TEST(objects_are_copied_to_a_remote_storage_and_back)
{
    struct gate *g = &p->front;
    struct str body = large_body();

    make_here(p);
    gate_ask(g, ALICE, "PUT /here/a%20b", "content-type: a/b\nx-amz-meta-m: 1\nx-amz-tagging: t=1",
             body, 200);
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /here/a%20b", NONE, 200);
    gate_ask(g, ALICE, "PUT /box/copy", /* whose CORS rules are the storage's */
             "x-amz-copy-source: /here/a%20b\norigin: http://page.example", NONE, 200);
    CHECK(!gate_header(g, "access-control-allow-origin").p);
    CHECK(gate_element(g, "ETag").len && gate_element(g, "LastModified").len);
    check_kept(p, "/box/copy", body);
    CHECK_STR(gate_header(&p->back, "content-type"), STR("a/b"));
    CHECK_STR(gate_header(&p->back, "x-amz-meta-m"), STR("1"));
    CHECK_STR(gate_header(&p->back, "x-amz-tagging-count"), STR("1"));
    gate_ask(g, ALICE, "PUT /here/back",
             "x-amz-copy-source: box/copy\nx-amz-metadata-directive: REPLACE\nx-amz-meta-n: 2",
             NONE, 200);
    gate_do(g, "GET /here/back", 200);
    CHECK(str_eq(g->body, body));
    CHECK_STR(gate_header(g, "x-amz-meta-n"), STR("2"));
    CHECK(!gate_header(g, "x-amz-meta-m").p);
    gate_ask(g, ALICE, "PUT /box/within", "x-amz-copy-source: box/copy", NONE, 200);
    check_kept(p, "/box/within", body);
}

/* Half of its keys are at the remote storage, the other half in a folder here. */
PAIR_TEST(a_bucket_over_a_remote_storage_and_a_local_one_is_not_passed_on_but_served)
{
    struct gate *g = &p->front;
    struct storage *home = routes_storage(g->routes, STR("back"));
    struct bucket_info wide = {.name = STR("wide"), .owner = STR("alice-id")};
    struct fake_overlay o;
    struct err err = {0};

    fake_overlay_open(&o, home, routes_storage(g->routes, STR("local")), "m");
    routes_set_overlay(g->routes, &o.overlay);
    CHECK_OK(storage_create_bucket(home, &wide, &err));
    gate_ask(g, ALICE, "PUT /wide/a", NULL, STR("there"), 200);
    gate_ask(g, ALICE, "PUT /wide/z", NULL, STR("here"), 200);
    gate_do(&p->back, "GET /wide", 200);
    CHECK(gate_has(&p->back, "<Key>a</Key>") && !gate_has(&p->back, "<Key>z</Key>"));
    gate_do(g, "GET /wide/a", 200);
    CHECK_STR(g->body, STR("there"));
    gate_do(g, "GET /wide/z", 200);
    CHECK_STR(g->body, STR("here"));
    gate_do(g, "GET /wide?list-type=2", 200);
    CHECK(gate_has(g, "<Key>a</Key>") && gate_has(g, "<Key>z</Key>"));
    gate_do(g, "HEAD /wide", 200);
    gate_do(g, "GET /wide?cors", 404);
    gate_do(g, "PUT /wide", 409); /* it is there */
    gate_do(g, "DELETE /wide/a", 204);
    gate_do(g, "DELETE /wide/z", 204);
    gate_do(g, "DELETE /wide", 204);
    gate_do(g, "HEAD /wide", 404);
    routes_set_overlay(g->routes, NULL);
    fake_overlay_close(&o);
}

PAIR_TEST(a_copy_between_storages_keeps_conditions_and_says_what_is_not_there)
{
    struct gate *g = &p->front;

    make_here(p);
    put(p, "PUT /box/key", STR("hello"));
    gate_ask(g, ALICE, "PUT /here/x",
             "x-amz-copy-source: box/key\nx-amz-copy-source-if-match: \"other\"", NONE, 412);
    gate_ask(g, ALICE, "PUT /here/x",
             "x-amz-copy-source: box/key\n"
             "x-amz-copy-source-if-match: \"5d41402abc4b2a76b9719d911017c592\"",
             NONE, 200);
    gate_ask(g, ALICE, "PUT /here/y", "x-amz-copy-source: box/none", NONE, 404);
    GATE_ERROR(g, "NoSuchKey");
    gate_ask(g, ALICE, "PUT /box/y", "x-amz-copy-source: here/none", NONE, 404);
    gate_ask(g, ALICE, "PUT /box/y", "x-amz-copy-source: here/x\nx-amz-acl: public-read", NONE,
             501);
    check_absent(p, "/box/y");
    gate_ask(g, BOB, "PUT /box/y", "x-amz-copy-source: here/x", NONE, 403);
}

/* The storage would look for the source on itself, and might find another of that name. */
PAIR_TEST(a_copy_from_elsewhere_is_not_the_storage_s_whatever_its_query_has)
{
    struct gate *g = &p->front;

    make_here(p);
    gate_ask(g, ALICE, "PUT /here/src", NULL, STR("mine"), 200);
    gate_do(&p->back, "PUT /here", 200);
    gate_ask(&p->back, ALICE, "PUT /here/src", NULL, STR("another"), 200);
    gate_ask(g, ALICE, "PUT /box/copy?new=1", "x-amz-copy-source: here/src", NONE, 501);
    CHECK(gate_has(g, "The parameter new of CopyObject"));
    check_absent(p, "/box/copy");
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: here/src", NONE, 200);
    check_kept(p, "/box/copy", STR("mine"));
}

/* A checksum of parts' checksums, on what is then one piece. */
PAIR_TEST(a_copy_to_a_remote_storage_drops_a_checksum_of_parts)
{
    struct gate *g = &p->front;
    char request[256], xml[256], id[128];

    make_here(p);
    gate_ask(g, ALICE, "POST /here/src?uploads", "x-amz-checksum-algorithm: CRC32", NONE, 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    snprintf(request, sizeof(request), "PUT /here/src?partNumber=1&uploadId=%s", id);
    gate_ask(g, ALICE, request, "x-amz-checksum-crc32: NhCmhg==", STR("hello"), 200);
    snprintf(xml, sizeof(xml),
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" STR_FMT
             "</ETag></Part></CompleteMultipartUpload>",
             STR_ARG(gate_header(g, "etag")));
    snprintf(request, sizeof(request), "POST /here/src?uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, str_z(xml), 200);
    CHECK_STR(gate_element(g, "ChecksumType"), STR("COMPOSITE"));
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: here/src", NONE, 200);
    CHECK(!gate_has(g, "Checksum"));
    check_kept(p, "/box/copy", STR("hello"));
}

PAIR_TEST(a_copy_between_storages_refuses_what_it_cannot_know_of_owners)
{
    struct gate *g = &p->front;

    make_here(p);
    put(p, "PUT /box/key", STR("hello"));
    gate_ask(g, ALICE, "PUT /here/key", NULL, STR("hello"), 200);
    gate_ask(g, ALICE, "PUT /here/x",
             "x-amz-copy-source: box/key\nx-amz-source-expected-bucket-owner: alice-id", NONE, 501);
    GATE_ERROR(g, "NotImplemented");
    gate_ask(g, ALICE, "PUT /here/x",
             "x-amz-copy-source: box/key\nx-amz-expected-bucket-owner: bob-id", NONE, 403);
    gate_ask(g, ALICE, "PUT /here/x",
             "x-amz-copy-source: box/key\nx-amz-expected-bucket-owner: alice-id", NONE, 200);
    gate_ask(g, ALICE, "PUT /box/x",
             "x-amz-copy-source: here/key\nx-amz-expected-bucket-owner: alice-id", NONE, 501);
    gate_ask(g, ALICE, "PUT /box/x",
             "x-amz-copy-source: here/key\nx-amz-source-expected-bucket-owner: bob-id", NONE, 403);
    check_absent(p, "/box/x");
    gate_ask(g, ALICE, "PUT /box/x",
             "x-amz-copy-source: here/key\nx-amz-source-expected-bucket-owner: alice-id", NONE,
             200);
}

PAIR_TEST(parts_are_copied_between_storages)
{
    struct gate *g = &p->front;
    struct str body = large_body();
    char request[256], xml[512], id[128];

    make_here(p);
    gate_ask(g, ALICE, "PUT /here/src", NULL, body, 200);
    gate_do(g, "POST /box/joined?uploads", 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    snprintf(request, sizeof(request), "PUT /box/joined?partNumber=1&uploadId=%s", id);
    gate_ask(g, ALICE, request,
             "x-amz-copy-source: here/src\nx-amz-copy-source-range: bytes=10-200009", NONE, 200);
    snprintf(xml, sizeof(xml),
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" STR_FMT
             "</ETag></Part></CompleteMultipartUpload>",
             STR_ARG(gate_element(g, "ETag")));
    snprintf(request, sizeof(request), "POST /box/joined?uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, str_z(xml), 200);
    check_kept(p, "/box/joined", str_n(large + 10, 200000));
}

static bool space_never_has_it(void *ctx, struct str name)
{
    return false;
}

static int space_took_raced(void *ctx, struct str name, bool *out, struct err *err)
{
    *out = str_eq(name, STR("raced"));
    return 0;
}

PAIR_TEST(a_bucket_whose_name_a_space_takes_meanwhile_is_removed_from_the_storage)
{
    static const struct bucket_space late = {
        .kind = "late", .has = space_never_has_it, .look = space_took_raced};
    struct err err = {0};

    CHECK_OK(routes_add_space(p->front.routes, &late, &err));
    gate_do(&p->front, "PUT /raced", 409);
    GATE_ERROR(&p->front, "BucketAlreadyExists");
    gate_do(&p->back, "HEAD /raced", 404);
    gate_do(&p->front, "PUT /other", 200);
    gate_do(&p->back, "HEAD /other", 200);
}
