/* Who sent a request: right signatures of every kind, and everything that is refused. */
#include "tests_folder.h"
#include "base/clock.h"
#include "base/json.h"
#include "os/child.h"
#include "s3/access/auth.h"
#include "meta/error.h"
#include "unit/test.h"

#include <stdio.h>

#define ACCESS STR("AKIAIOSFODNN7EXAMPLE")
#define SECRET STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
#define HOST   STR("bucket.example.com")

static const int64_t NOW = INT64_C(1369353600000); /* 2013-05-24 */

static int find_key(void *ctx, struct str access_key, struct auth_key *out, struct err *err)
{
    if (str_eq(access_key, STR("BROKEN")))
        return err_set(err, ERR_UNAVAILABLE, "the store is away");
    if (!str_eq(access_key, ACCESS))
        return ERR_NOT_FOUND;
    memcpy(out->secret, SECRET.p, SECRET.len);
    out->secret_len = SECRET.len;
    out->user = ctx;
    return 0;
}

static char the_user;
static const struct auth_options options = {find_key, &the_user, NULL, true};

/* A request under construction. */
struct lab {
    struct http_header headers[16];
    struct auth_request r;
    struct arena a;
    struct buf query;
    struct identity auth;
    struct err err;
};

static void add(struct lab *lab, struct str name, struct str value)
{
    lab->headers[lab->r.header_count++] = (struct http_header){name, value};
}

static void set(struct lab *lab, struct str name, struct str value)
{
    for (size_t i = 0; i < lab->r.header_count; i++)
        if (str_ieq(lab->headers[i].name, name)) {
            lab->headers[i].value = value;
            return;
        }
    add(lab, name, value);
}

static void start(struct lab *lab)
{
    memset(lab, 0, sizeof(*lab));
    lab->r = (struct auth_request){
        .method = STR("PUT"), .path = STR("/a%20b"), .headers = lab->headers, .now_ms = NOW};
    add(lab, STR("Host"), HOST);
}

static void end(struct lab *lab)
{
    auth_release(&lab->auth);
    arena_release(&lab->a);
    buf_release(&lab->query);
}

static void sign_header(struct lab *lab, struct str payload)
{
    struct sign_credentials c = {ACCESS, SECRET, STR("eu-west-1"), STR("s3"), NULL};
    struct sign_request r = {lab->r.method, lab->r.path,         lab->r.query,
                             lab->headers,  lab->r.header_count, payload};
    struct signed_headers out;

    CHECK_INT(sign_headers(&out, &lab->a, &r, &c, NOW), 0);
    add(lab, STR("Authorization"), out.authorization);
    add(lab, STR("X-Amz-Date"), out.date);
    add(lab, STR("X-Amz-Content-Sha256"), out.content_sha256);
}

static void presign(struct lab *lab)
{
    struct sign_credentials c = {ACCESS, SECRET, STR("eu-west-1"), STR("s3"), NULL};
    struct sign_request r = {lab->r.method, lab->r.path,         lab->r.query,
                             lab->headers,  lab->r.header_count, STR(SIGN_UNSIGNED)};

    CHECK_INT(sign_query(&lab->query, &r, &c, NOW, 3600), 0);
    lab->r.query = buf_str(&lab->query);
}

static int verify(struct lab *lab)
{
    return auth_verify(&lab->auth, &lab->a, &lab->r, &options, &lab->err);
}

#define REFUSED(lab, code, words)                                                                  \
    do {                                                                                           \
        CHECK_STR(str_z(s3_code_name(verify(lab))), STR(code));                                    \
        CHECK(str_find(str_z((lab)->err.text), STR(words)) >= 0);                                  \
    } while (0)

TEST(s3_auth, a_request_without_a_signature_is_anonymous)
{
    struct lab lab;

    start(&lab);
    CHECK_INT(verify(&lab), 0);
    CHECK_INT(lab.auth.kind, AUTH_ANONYMOUS);
    CHECK(lab.auth.user == NULL && lab.auth.access_key.len == 0);
    add(&lab, STR("Authorization"), STR(""));
    CHECK_INT(verify(&lab), 0);
    CHECK_INT(lab.auth.kind, AUTH_ANONYMOUS);
    end(&lab);
}

TEST(s3_auth, what_no_signature_covers_still_says_how_the_body_is_framed)
{
    struct lab lab;

    start(&lab);
    add(&lab, STR("x-amz-content-sha256"), STR("STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
    CHECK_INT(verify(&lab), 0);
    CHECK_INT(lab.auth.payload, AUTH_PAYLOAD_UNSIGNED_TRAILER);
    set(&lab, STR("x-amz-content-sha256"), STR(SIGN_EMPTY_SHA256));
    CHECK_INT(verify(&lab), 0);
    CHECK_INT(lab.auth.payload, AUTH_PAYLOAD_HASH);
    set(&lab, STR("x-amz-content-sha256"), STR("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"));
    REFUSED(&lab, "AccessDenied", "signed chunks");
    end(&lab);
    start(&lab);
    presign(&lab);
    add(&lab, STR("x-amz-content-sha256"), STR("STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
    CHECK_INT(verify(&lab), 0);
    CHECK_INT(lab.auth.payload, AUTH_PAYLOAD_UNSIGNED_TRAILER);
    end(&lab);
}

TEST(s3_auth, a_signed_header_names_its_user_scope_and_payload)
{
    static const struct {
        struct str text;
        enum auth_payload payload;
    } cases[] = {
        {STR(SIGN_EMPTY_SHA256), AUTH_PAYLOAD_HASH},
        {STR("UNSIGNED-PAYLOAD"), AUTH_PAYLOAD_UNSIGNED},
        {STR("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), AUTH_PAYLOAD_CHUNKS},
        {STR("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"), AUTH_PAYLOAD_CHUNKS_TRAILER},
        {STR("STREAMING-UNSIGNED-PAYLOAD-TRAILER"), AUTH_PAYLOAD_UNSIGNED_TRAILER},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct lab lab;
        start(&lab);
        add(&lab, STR("x-amz-meta-a"), STR("1"));
        lab.r.query = STR("versions&prefix=a");
        sign_header(&lab, cases[i].text);
        CHECK_INT(verify(&lab), 0);
        CHECK_INT(lab.auth.kind, AUTH_V4_HEADER);
        CHECK_STR(lab.auth.access_key, ACCESS);
        CHECK(lab.auth.user == &the_user);
        CHECK_STR(lab.auth.scope.region, STR("eu-west-1"));
        CHECK_INT(lab.auth.payload, cases[i].payload);
        CHECK_STR(str_n(lab.auth.timestamp, SIGN_TIME_LEN), STR("20130524T000000Z"));
        end(&lab);
    }
}

TEST(s3_auth, anything_changed_after_signing_does_not_match)
{
    for (int what = 0; what < 6; what++) {
        struct lab lab;
        start(&lab);
        add(&lab, STR("x-amz-meta-a"), STR("1"));
        sign_header(&lab, STR(SIGN_UNSIGNED));
        switch (what) {
        case 0:
            lab.r.method = STR("GET");
            break;
        case 1:
            lab.r.path = STR("/a%20c");
            break;
        case 2:
            lab.r.query = STR("acl");
            break;
        case 3:
            set(&lab, STR("host"), STR("other.example.com"));
            break;
        case 4:
            set(&lab, STR("x-amz-meta-a"), STR("2"));
            break;
        default:
            set(&lab, STR("x-amz-content-sha256"), STR(SIGN_EMPTY_SHA256));
            break;
        }
        REFUSED(&lab, "SignatureDoesNotMatch", "does not match");
        end(&lab);
    }
}

TEST(s3_auth, headers_that_are_sent_must_be_signed)
{
    struct lab lab;

    start(&lab);
    sign_header(&lab, STR(SIGN_UNSIGNED));
    add(&lab, STR("X-Amz-Acl"), STR("public-read"));
    REFUSED(&lab, "AccessDenied", "which were not signed");
    end(&lab);
    start(&lab);
    presign(&lab);
    add(&lab, STR("X-Amz-Acl"), STR("public-read"));
    REFUSED(&lab, "AccessDenied", "which were not signed");
    end(&lab);
}

static void check_header(const char *fmt_authorization, const char *code, const char *words)
{
    struct lab lab;

    start(&lab);
    sign_header(&lab, STR(SIGN_UNSIGNED));
    set(&lab, STR("authorization"), str_z(fmt_authorization));
    CHECK_STR(str_z(s3_code_name(verify(&lab))), str_z(code));
    if (str_find(str_z(lab.err.text), str_z(words)) < 0)
        test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", words, lab.err.text);
    end(&lab);
}

TEST(s3_auth, malformed_headers_are_refused_with_their_reason)
{
#define V4     "AWS4-HMAC-SHA256 "
#define MIDDLE ", SignedHeaders=host;x-amz-date;x-amz-content-sha256, Signature=00"
    static const char malformed[] = "AuthorizationHeaderMalformed";

    check_header("Basic Zm9v", "InvalidArgument", "Unsupported Authorization Type");
    check_header("AWS HAHAHA", "InvalidArgument", "Expected AwsAccessKeyId:signature");
    check_header("AWS :x", "InvalidArgument", "Expected AwsAccessKeyId:signature");
    check_header(V4, malformed, "missing Credential");
    check_header(V4 "Credential=a/20130524/r/s3/aws4_request", malformed, "missing SignedHeaders");
    check_header(V4 "Credential=a/20130524/r/s3/aws4_request, SignedHeaders=host", malformed,
                 "missing Signature");
    check_header(V4 "Credential=a, Credential=b" MIDDLE, malformed, "not a list");
    check_header(V4 "Bogus=1" MIDDLE, malformed, "not a list");
    check_header(V4 "Credential=nothing" MIDDLE, malformed, "Credential is mal-formed");
    check_header(V4 "Credential=/20130524/r/s3/aws4_request" MIDDLE, malformed, "mal-formed");
    check_header(V4 "Credential=a/20130523/r/s3/aws4_request" MIDDLE, malformed,
                 "Invalid credential date \"20130523\"");
    check_header(V4 "Credential=a/20130524/r/ec2/aws4_request" MIDDLE, malformed,
                 "incorrect service \"ec2\"");
    check_header(V4 "Credential=a/20130524/r/s3/aws5_request" MIDDLE, malformed,
                 "incorrect terminal");
    check_header(V4 "Credential=a/20130524/r/s3/aws4_request" MIDDLE, "InvalidAccessKeyId", "");
    check_header(V4 "Credential=AKIAIOSFODNN7EXAMPLE/20130524/r/s3/aws4_request" MIDDLE,
                 "SignatureDoesNotMatch", "");
    check_header(V4 "Credential=a/20130524/r/s3/aws4_request, SignedHeaders=x-amz-date, "
                    "Signature=00",
                 "AccessDenied", "not signed");
}

TEST(s3_auth, a_failure_to_look_a_key_up_is_not_a_refusal)
{
    struct lab lab;

    start(&lab);
    sign_header(&lab, STR(SIGN_UNSIGNED));
    set(&lab, STR("authorization"), STR(V4 "Credential=BROKEN/20130524/r/s3/aws4_request" MIDDLE));
    CHECK_ERR(verify(&lab), ERR_UNAVAILABLE);
    end(&lab);
}

TEST(s3_auth, the_date_must_be_there_and_near)
{
    struct lab lab;

    start(&lab);
    sign_header(&lab, STR(SIGN_UNSIGNED));
    lab.r.now_ms = NOW + AUTH_SKEW_MS;
    CHECK_INT(verify(&lab), 0);
    lab.r.now_ms = NOW + AUTH_SKEW_MS + 1;
    REFUSED(&lab, "RequestTimeTooSkewed", "too large");
    lab.r.now_ms = NOW - AUTH_SKEW_MS - 1;
    REFUSED(&lab, "RequestTimeTooSkewed", "too large");
    set(&lab, STR("x-amz-date"), STR("Bad Date"));
    REFUSED(&lab, "AccessDenied", "valid Date or x-amz-date");
    set(&lab, STR("x-amz-date"), STR(""));
    REFUSED(&lab, "AccessDenied", "valid Date or x-amz-date");
    end(&lab);
}

TEST(s3_auth, the_payload_hash_must_be_there_and_well_formed)
{
    struct lab lab;

    start(&lab);
    sign_header(&lab, STR("not a hash"));
    REFUSED(&lab, "InvalidArgument", "x-amz-content-sha256 must be");
    set(&lab, STR("x-amz-content-sha256"), STR(""));
    REFUSED(&lab, "InvalidRequest", "Missing required header");
    end(&lab);
}

TEST(s3_auth, a_presigned_query_holds_for_its_time)
{
    struct lab lab;

    start(&lab);
    lab.r.query = STR("versionId=7");
    presign(&lab);
    CHECK_INT(verify(&lab), 0);
    CHECK_INT(lab.auth.kind, AUTH_V4_QUERY);
    CHECK_INT(lab.auth.payload, AUTH_PAYLOAD_UNSIGNED);
    CHECK_STR(lab.auth.access_key, ACCESS);
    lab.r.now_ms = NOW + MS_PER_HOUR;
    CHECK_INT(verify(&lab), 0);
    lab.r.now_ms++;
    REFUSED(&lab, "AccessDenied", "Request has expired");
    lab.r.now_ms = NOW - AUTH_SKEW_MS - 1;
    REFUSED(&lab, "AccessDenied", "Request is not yet valid");
    lab.r.now_ms = NOW;
    lab.r.path = STR("/another");
    REFUSED(&lab, "SignatureDoesNotMatch", "");
    end(&lab);
}

static void check_query_as(const char *query, const char *code, const char *words)
{
    struct lab lab;

    start(&lab);
    lab.r.query = str_z(query);
    CHECK_STR(str_z(s3_code_name(verify(&lab))), str_z(code));
    if (str_find(str_z(lab.err.text), str_z(words)) < 0)
        test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", words, lab.err.text);
    end(&lab);
}

static void check_query(const char *query, const char *words)
{
    check_query_as(query, "AuthorizationQueryParametersError", words);
}

TEST(s3_auth, malformed_presigned_queries_are_refused_with_their_reason)
{
#define QUERY(algorithm, credential, date, expires)                                                \
    "X-Amz-Algorithm=" algorithm "&X-Amz-Credential=" credential "&X-Amz-Date=" date               \
    "&X-Amz-Expires=" expires "&X-Amz-SignedHeaders=host&X-Amz-Signature=00"
#define GOOD "AWS4-HMAC-SHA256"
#define CRED "a%2F20130524%2Fr%2Fs3%2Faws4_request"
#define DATE "20130524T000000Z"
    check_query("X-Amz-Algorithm=" GOOD, "requires the X-Amz-Algorithm");
    check_query("X-Amz-Signature=00", "requires the X-Amz-Algorithm");
    check_query(QUERY("AWS4-X", CRED, DATE, "60"), "only supports");
    check_query(QUERY(GOOD, "a", DATE, "60"), "Credential is mal-formed");
    check_query(QUERY(GOOD, CRED, "2013", "60"), "ISO8601 Long Format");
    check_query(QUERY(GOOD, CRED, DATE, "soon"), "should be a number");
    check_query_as(QUERY(GOOD, CRED, DATE, "-1"), "AccessDenied", "must be non-negative");
    check_query_as(QUERY(GOOD, CRED, DATE, "604801"), "AccessDenied", "less than a week");
    check_query(QUERY(GOOD, "a%2F20130523%2Fr%2Fs3%2Faws4_request", DATE, "60"),
                "Invalid credential date");
    check_query(QUERY(GOOD, "a%2F20130524%2Fr%2Fx%2Faws4_request", DATE, "60"),
                "incorrect service");
}

TEST(s3_auth, malformed_escapes_are_an_invalid_uri)
{
    struct lab lab;

    start(&lab);
    lab.r.query = STR(QUERY("%zz", CRED, DATE, "60"));
    REFUSED(&lab, "InvalidURI", "parse");
    lab.r.query = STR_EMPTY;
    sign_header(&lab, STR(SIGN_UNSIGNED));
    lab.r.path = STR("/%zz");
    REFUSED(&lab, "InvalidURI", "parse");
    end(&lab);
}

TEST(s3_auth, two_signatures_are_refused)
{
    struct lab lab;

    start(&lab);
    presign(&lab);
    sign_header(&lab, STR(SIGN_UNSIGNED));
    REFUSED(&lab, "InvalidArgument", "Only one auth mechanism allowed");
    lab.r.query = STR("AWSAccessKeyId=a&Signature=b&Expires=1");
    REFUSED(&lab, "InvalidArgument", "Only one auth mechanism allowed");
    end(&lab);
}

TEST(s3_auth, version_2_is_taken_only_where_allowed)
{
    struct auth_options strict = options;
    struct lab lab;

    strict.allow_v2 = false;
    start(&lab);
    lab.r = (struct auth_request){.method = STR("GET"),
                                  .path = STR("/photos/puppy.jpg"),
                                  .headers = lab.headers,
                                  .header_count = 1,
                                  .bucket = STR("johnsmith")};
    CHECK_INT(clock_parse_iso(STR("2007-03-27T19:36:42Z"), &lab.r.now_ms), 0);
    add(&lab, STR("Date"), STR("Tue, 27 Mar 2007 19:36:42 +0000"));
    add(&lab, STR("Authorization"), STR("AWS AKIAIOSFODNN7EXAMPLE:bWq2s1WEIj+Ydj0vQ697zp+IXMU="));
    CHECK_INT(verify(&lab), 0);
    CHECK_INT(lab.auth.kind, AUTH_V2_HEADER);
    CHECK_INT(auth_verify(&lab.auth, &lab.a, &lab.r, &strict, &lab.err), S3_INVALID_REQUEST);
    lab.r.bucket = STR("other");
    REFUSED(&lab, "SignatureDoesNotMatch", "");
    set(&lab, STR("date"), STR("Tue, 27 Mar 2007 19:06:42 +0000"));
    REFUSED(&lab, "RequestTimeTooSkewed", "");
    set(&lab, STR("date"), STR("yesterday"));
    REFUSED(&lab, "AccessDenied", "valid Date");
    end(&lab);
}

TEST(s3_auth, a_version_2_date_may_name_its_zone_in_several_ways)
{
    static const struct {
        const char *date, *code;
    } rows[] = {
        {"Tue, 27 Mar 2007 19:36:42 GMT", "SignatureDoesNotMatch"},
        {"Tue, 27 Mar 2007 19:36:42 UTC", "SignatureDoesNotMatch"},
        {"Tue, 27 Mar 2007 19:36:42 UT", "SignatureDoesNotMatch"},
        {"Tue, 27 Mar 2007 19:36:42 +0000", "SignatureDoesNotMatch"},
        {"Tue, 27 Mar 2007 19:36:42 -0000", "SignatureDoesNotMatch"},
        {"Tuesday, 27-Mar-07 19:36:42 UTC", "SignatureDoesNotMatch"},
        {"Tue, 27 Mar 2007 19:06:42 UTC", "RequestTimeTooSkewed"},
        {"Tue, 27 Mar 2007 19:36:42 CET", "AccessDenied"},
        {"Tue, 27 Mar 2007 19:36:42 +0100", "AccessDenied"},
        {" UTC", "AccessDenied"},
    };
    struct lab lab;

    start(&lab);
    lab.r = (struct auth_request){.method = STR("GET"),
                                  .path = STR("/photos/puppy.jpg"),
                                  .headers = lab.headers,
                                  .header_count = 1,
                                  .bucket = STR("johnsmith")};
    CHECK_INT(clock_parse_iso(STR("2007-03-27T19:36:42Z"), &lab.r.now_ms), 0);
    add(&lab, STR("Date"), STR("-"));
    add(&lab, STR("Authorization"), STR("AWS AKIAIOSFODNN7EXAMPLE:bWq2s1WEIj+Ydj0vQ697zp+IXMA="));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) { /* past the date, a wrong signature is next */
        set(&lab, STR("date"), str_z(rows[i].date));
        CHECK_STR(str_z(s3_code_name(verify(&lab))), str_z(rows[i].code));
    }
    end(&lab);
}

TEST(s3_auth, a_version_2_query_holds_until_it_expires)
{
    struct lab lab;

    start(&lab);
    lab.r = (struct auth_request){.method = STR("GET"),
                                  .path = STR("/photos/puppy.jpg"),
                                  .headers = lab.headers,
                                  .header_count = 1,
                                  .bucket = STR("johnsmith"),
                                  .now_ms = INT64_C(1175139620000)};
    /* AWS's example of a query. */
    lab.r.query = STR("AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%"
                      "3D&Expires=1175139620");
    CHECK_INT(verify(&lab), 0);
    CHECK_INT(lab.auth.kind, AUTH_V2_QUERY);
    lab.r.now_ms += 1000;
    REFUSED(&lab, "AccessDenied", "Request has expired");
    lab.r.query = STR("AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=x");
    REFUSED(&lab, "AccessDenied", "requires the Signature, Expires and AWSAccessKeyId");
    lab.r.query = STR("AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=x&Expires=x");
    REFUSED(&lab, "AccessDenied", "Invalid date");
    end(&lab);
}

TEST(s3_auth, a_right_signature_puts_its_key_into_the_table)
{
    struct sign_keys *keys = sign_keys_new();
    struct auth_options keeping = options;
    struct sign_scope scope = {STR("20130524"), STR("eu-west-1"), STR("s3")};
    struct sign_key key;
    struct lab lab;

    keeping.keys = keys;
    start(&lab);
    sign_header(&lab, STR(SIGN_UNSIGNED));
    lab.r.method = STR("GET");
    CHECK_INT(auth_verify(&lab.auth, &lab.a, &lab.r, &keeping, &lab.err),
              S3_SIGNATURE_DOES_NOT_MATCH);
    CHECK(!sign_keys_get(keys, &key, SECRET, &scope));
    lab.r.method = STR("PUT");
    for (int i = 0; i < 2; i++)
        CHECK_INT(auth_verify(&lab.auth, &lab.a, &lab.r, &keeping, &lab.err), 0);
    CHECK(sign_keys_get(keys, &key, SECRET, &scope));
    end(&lab);
    sign_keys_free(keys);
}

static void check_line(struct str line)
{
    static const struct {
        struct str name;
        enum auth_kind kind;
    } kinds[] = {{STR("v4"), AUTH_V4_HEADER},
                 {STR("v4-query"), AUTH_V4_QUERY},
                 {STR("v2"), AUTH_V2_HEADER},
                 {STR("v2-query"), AUTH_V2_QUERY}};
    struct lab lab;
    struct err err = {0};
    json_t *request, *headers, *pair;
    size_t i, kind = 0;

    memset(&lab, 0, sizeof(lab));
    CHECK_OK(json_read(&request, line, &err));
    lab.r = (struct auth_request){.method = json_get_str(request, "method", STR_EMPTY),
                                  .path = json_get_str(request, "path", STR_EMPTY),
                                  .query = json_get_str(request, "query", STR_EMPTY),
                                  .headers = lab.headers,
                                  .now_ms = clock_wall_ms()};
    headers = json_object_get(request, "headers");
    json_array_foreach(headers, i, pair)
        add(&lab, str_z(json_string_value(json_array_get(pair, 0))),
            str_trim(str_z(json_string_value(json_array_get(pair, 1)))));
    if (verify(&lab) < 0)
        test_fail(__FILE__, __LINE__, "%s: " STR_FMT, lab.err.text, STR_ARG(line));
    while (!str_eq(kinds[kind].name, json_get_str(request, "kind", STR_EMPTY)))
        kind++;
    CHECK_INT(lab.auth.kind, kinds[kind].kind);
    lab.r.path = STR("/something/else");
    CHECK_INT(verify(&lab), S3_SIGNATURE_DOES_NOT_MATCH);
    end(&lab);
    json_decref(request);
}

TEST(s3_auth, what_botocore_signs_is_taken)
{
    char script[4096];
    const char *const argv[] = {"/usr/bin/python3", script, "400", "1", NULL};
    struct child_options o = {.argv = argv};
    struct buf out = BUF_INIT(0), errout = BUF_INIT(0);
    struct err err = {0};
    struct str rest, line;
    int status, count = 0;

    snprintf(script, sizeof(script), "%s/unit/s3/botocore_requests.py", tests_folder);
    CHECK_OK(child_run(&status, &o, &(struct child_io){.out = &out, .err = &errout},
                       clock_mono_ns() + 50 * NS_PER_S, &err));
    if (status == 77)
        test_need("a botocore for /usr/bin/python3");
    CHECK_INT(status, 0);
    for (rest = buf_str(&out); str_token(&rest, "\n", &line); count++)
        check_line(line);
    CHECK_INT(count, 400);
    buf_release(&out);
    buf_release(&errout);
}
