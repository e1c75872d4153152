/* POST forms: the published example, parsing at any split, the policy's every rule. */
#include "base/clock.h"
#include "sign/base64.h"
#include "meta/error.h"
#include "s3/gateway/form.h"
#include "unit/slow_reader.h"
#include "unit/test.h"

#include <stdlib.h>

#define ACCESS   STR("AKIAIOSFODNN7EXAMPLE")
#define SECRET   STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
#define TYPE     STR("multipart/form-data; boundary=xyz")
#define FILE_END "\r\n--xyz--\r\n"

static int find_key(void *ctx, struct str access_key, struct auth_key *out, struct err *err)
{
    if (!str_eq(access_key, ACCESS))
        return ERR_NOT_FOUND;
    memcpy(out->secret, SECRET.p, SECRET.len);
    out->secret_len = SECRET.len;
    out->user = ctx;
    return 0;
}

static char the_user;
static const struct auth_options keys = {find_key, &the_user, NULL, true};

/* A form under construction. */
struct lab {
    struct buf body;
    struct slow_reader slow;
    struct arena a;
    struct err err;
    struct form f;
    struct form_options o;
    struct form_result result;
};

static void start(struct lab *lab)
{
    memset(lab, 0, sizeof(*lab));
    lab->o = (struct form_options){STR("bucket"), INT64_C(1451390400000), &keys}; /* 2015-12-29 */
}

static void field(struct lab *lab, const char *name, struct str value)
{
    buf_appendf(&lab->body,
                "--xyz\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n" STR_FMT "\r\n", name,
                STR_ARG(value));
}

static void file(struct lab *lab, const char *filename, struct str bytes)
{
    buf_appendf(&lab->body,
                "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n"
                "Content-Type: text/plain\r\n\r\n",
                filename);
    buf_append_str(&lab->body, bytes);
    buf_append_z(&lab->body, FILE_END);
}

static int open_form(struct lab *lab, size_t step)
{
    lab->slow = (struct slow_reader){{&slow_ops}, buf_str(&lab->body), step};
    return form_open(&lab->f, &lab->a, &lab->slow.reader, TYPE, &lab->err);
}

static void end(struct lab *lab)
{
    form_close(&lab->f);
    arena_release(&lab->a);
    buf_release(&lab->body);
}

TEST(form, fields_and_file_come_out_at_any_split)
{
    static const struct str files[] = {
        STR("hello"), STR(""), STR("\r\n"), STR("\r\n--xy"), STR("a\r\n--xyX\r\n--xy\r\r\n-"),
        STR("--xyz")};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        for (size_t step = 1; step < 400; step = step * 3 + 1) {
            struct buf out = BUF_INIT(0);
            struct lab lab;
            start(&lab);
            field(&lab, "key", STR("a/${filename}"));
            field(&lab, "Empty", STR(""));
            field(&lab, "lines", STR("a\r\nb"));
            file(&lab, "C:\\\\x\\\\f \\\"1\\\".txt", files[i]);
            CHECK_INT(open_form(&lab, step), 0);
            CHECK_STR(form_field(&lab.f, "KEY"), STR("a/${filename}"));
            CHECK_STR(form_field(&lab.f, "lines"), STR("a\r\nb"));
            CHECK(form_field(&lab.f, "empty").p != NULL && form_field(&lab.f, "none").p == NULL);
            CHECK_STR(lab.f.filename, STR("f \"1\".txt"));
            CHECK_STR(lab.f.file_type, STR("text/plain"));
            CHECK_INT(reader_read_all(&lab.f.file, &out, &lab.err), 0);
            CHECK_STR(buf_str(&out), files[i]);
            buf_release(&out);
            end(&lab);
        }
    }
}

TEST(form, a_large_file_streams_through)
{
    struct buf bytes = BUF_INIT(0), out = BUF_INIT(0);
    unsigned seed = 3;
    struct lab lab;

    while (bytes.len < 300000)
        buf_append_z(&bytes, rand_r(&seed) % 3 ? "\r\n--xy" : rand_r(&seed) % 2 ? "--xyz" : "data");
    start(&lab);
    field(&lab, "key", STR("k"));
    file(&lab, "f", buf_str(&bytes));
    CHECK_INT(open_form(&lab, 5000), 0);
    CHECK_INT(reader_read_all(&lab.f.file, &out, &lab.err), 0);
    CHECK(str_eq(buf_str(&out), buf_str(&bytes)));
    end(&lab);
    buf_release(&bytes);
    buf_release(&out);
}

TEST(form, the_file_may_be_a_part_of_another_name)
{
    struct buf out = BUF_INIT(0);
    struct lab lab;

    start(&lab);
    field(&lab, "file", STR("a field"));
    buf_append_z(&lab.body,
                 "--xyz\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\nbytes" FILE_END);
    lab.slow = (struct slow_reader){{&slow_ops}, buf_str(&lab.body), 5};
    CHECK_INT(form_open_part(&lab.f, &lab.a, &lab.slow.reader, TYPE, "content", &lab.err), 0);
    CHECK_STR(form_field(&lab.f, "file"), STR("a field"));
    CHECK_INT(reader_read_all(&lab.f.file, &out, &lab.err), 0);
    CHECK_STR(buf_str(&out), STR("bytes"));
    buf_release(&out);
    end(&lab);
}

static void check_open(const char *type, const char *body, const char *want)
{
    struct slow_reader slow = {{&slow_ops}, str_z(body), 7};
    struct arena a = ARENA_INIT(0);
    struct form f;
    int code = form_open(&f, &a, &slow.reader, str_z(type), NULL);

    CHECK_STR(code ? str_z(s3_code_name(code)) : STR("ok"), str_z(want));
    if (code == 0)
        form_close(&f);
    arena_release(&a);
}

TEST(form, malformed_forms_are_refused)
{
#define DISPOSITION "Content-Disposition: form-data; name="
    static const char type[] = "Multipart/Form-Data; charset=utf-8; boundary=\"xyz\"";
    static const char malformed[] = "MalformedPOSTRequest";

    check_open(type, "--xyz\r\n" DISPOSITION "file\r\n\r\nx" FILE_END, "ok");
    check_open(type, "preamble\r\n--xyz  \r\n" DISPOSITION "\"file\"\r\n\r\nx", "ok");
    check_open("text/plain", "", "RequestIsNotMultiPartContent");
    check_open("", "", "RequestIsNotMultiPartContent");
    check_open("multipart/form-data", "", malformed);
    check_open("multipart/form-data; boundary=", "", malformed);
    check_open("multipart/form-data; boundary=\"x", "", malformed);
    check_open("multipart/form-data; boundary=12345678901234567890123456789012345678901234567890"
               "123456789012345678901",
               "", malformed);
    check_open(type, "", malformed);
    check_open(type, "--xyz", malformed);
    check_open(type, "--xyz--\r\n", "IncorrectNumberOfFilesInPostRequest");
    check_open(type, "--xyz\r\n" DISPOSITION "\"a\"\r\n\r\nb\r\n--xyz--\r\n",
               "IncorrectNumberOfFilesInPostRequest");
    check_open(type, "--xyz\r\n" DISPOSITION "\"a\"\r\n\r\nb", malformed);
    check_open(type, "--xyzz\r\n" DISPOSITION "\"file\"\r\n\r\nb", malformed);
    check_open(type, "--xyz\r\n\r\nb\r\n--xyz--\r\n", malformed);
    check_open(type, "--xyz\r\nContent-Disposition: attachment\r\n\r\nb\r\n--xyz--\r\n", malformed);
    check_open(type, "--xyz\r\n" DISPOSITION "\"\"\r\n\r\nb\r\n--xyz--\r\n", malformed);
    check_open(type, "--xyz\r\nno colon\r\n\r\nb\r\n--xyz--\r\n", malformed);
}

TEST(form, fields_have_limits)
{
    struct buf big = BUF_INIT(0);
    struct lab lab;

    for (size_t i = 0; i < FORM_FIELD_MAX + 1; i++)
        buf_append_char(&big, 'x');
    start(&lab);
    field(&lab, "key", str_head(buf_str(&big), FORM_FIELD_MAX));
    file(&lab, "f", STR("x"));
    CHECK_INT(open_form(&lab, 9999), 0);
    end(&lab);
    start(&lab);
    field(&lab, "key", buf_str(&big));
    file(&lab, "f", STR("x"));
    CHECK_INT(open_form(&lab, 9999), S3_MAX_POST_PRE_DATA_LENGTH_EXCEEDED_ERROR);
    end(&lab);
    start(&lab);
    for (int i = 0; i <= FORM_FIELDS_MAX; i++)
        field(&lab, "x", STR("y"));
    file(&lab, "f", STR("x"));
    CHECK_INT(open_form(&lab, 9999), S3_MAX_POST_PRE_DATA_LENGTH_EXCEEDED_ERROR);
    end(&lab);
    start(&lab);
    buf_append_z(&lab.body, "--xyz\r\nX: ");
    buf_append_str(&lab.body, str_head(buf_str(&big), FORM_HEAD_MAX));
    CHECK_INT(open_form(&lab, 9999), S3_MALFORMED_POST_REQUEST);
    end(&lab);
    buf_release(&big);
}

TEST(form, a_file_without_its_boundary_is_refused)
{
    struct buf out = BUF_INIT(0);
    struct lab lab;

    start(&lab);
    field(&lab, "key", STR("k"));
    file(&lab, "f", STR("bytes"));
    lab.body.len -= sizeof(FILE_END) - 1 - 4;
    CHECK_INT(open_form(&lab, 100), 0);
    CHECK_INT(reader_read_all(&lab.f.file, &out, &lab.err), S3_MALFORMED_POST_REQUEST);
    end(&lab);
    buf_release(&out);
}

#define EXAMPLE                                                                                    \
    "{ \"expiration\": \"2015-12-30T12:00:00.000Z\",\r\n"                                          \
    "  \"conditions\": [\r\n"                                                                      \
    "    {\"bucket\": \"sigv4examplebucket\"},\r\n"                                                \
    "    [\"starts-with\", \"$key\", \"user/user1/\"],\r\n"                                        \
    "    {\"acl\": \"public-read\"},\r\n"                                                          \
    "    {\"success_action_redirect\": "                                                           \
    "\"http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html\"},\r\n"                  \
    "    [\"starts-with\", \"$Content-Type\", \"image/\"],\r\n"                                    \
    "    {\"x-amz-meta-uuid\": \"14365123651274\"},\r\n"                                           \
    "    {\"x-amz-server-side-encryption\": \"AES256\"},\r\n"                                      \
    "    [\"starts-with\", \"$x-amz-meta-tag\", \"\"],\r\n"                                        \
    "\r\n"                                                                                         \
    "    {\"x-amz-credential\": "                                                                  \
    "\"AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request\"},\r\n"                            \
    "    {\"x-amz-algorithm\": \"AWS4-HMAC-SHA256\"},\r\n"                                         \
    "    {\"x-amz-date\": \"20151229T000000Z\" }\r\n"                                              \
    "  ]\r\n"                                                                                      \
    "}"

static void open_example(struct lab *lab, struct str signature, struct str credential)
{
    struct buf policy = BUF_INIT(0);

    start(lab);
    lab->o.bucket = STR("sigv4examplebucket");
    base64_encode(&policy, STR(EXAMPLE));
    field(lab, "key", STR("user/user1/${filename}"));
    field(lab, "acl", STR("public-read"));
    field(lab, "success_action_redirect",
          STR("http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html"));
    field(lab, "Content-Type", STR("image/jpeg"));
    field(lab, "x-amz-meta-uuid", STR("14365123651274"));
    field(lab, "x-amz-server-side-encryption", STR("AES256"));
    field(lab, "X-Amz-Credential", credential);
    field(lab, "X-Amz-Algorithm", STR("AWS4-HMAC-SHA256"));
    field(lab, "X-Amz-Date", STR("20151229T000000Z"));
    field(lab, "x-amz-meta-tag", STR(""));
    field(lab, "Policy", buf_str(&policy));
    if (signature.len)
        field(lab, "X-Amz-Signature", signature);
    file(lab, "photo.jpg", STR("bytes"));
    CHECK_INT(open_form(lab, 1000), 0);
    buf_release(&policy);
}

#define GOOD       STR("8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e")
#define CREDENTIAL STR("AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request")

TEST(form, the_published_signed_form)
{
    struct lab lab;

    open_example(&lab, GOOD, CREDENTIAL);
    CHECK_INT(form_check(&lab.result, &lab.f, &lab.o, &lab.err), 0);
    CHECK_INT(lab.result.kind, AUTH_V4_HEADER);
    CHECK_STR(lab.result.access_key, ACCESS);
    CHECK(lab.result.user == &the_user);
    CHECK_STR(lab.result.key, STR("user/user1/photo.jpg"));
    CHECK(str_ends(lab.result.success_redirect, STR("/successful_upload.html")));
    end(&lab);
}

TEST(form, wrong_signatures_and_keys_are_refused)
{
    struct lab lab;

    open_example(&lab, STR("00"), CREDENTIAL);
    CHECK_INT(form_check(&lab.result, &lab.f, &lab.o, &lab.err), S3_SIGNATURE_DOES_NOT_MATCH);
    end(&lab);
    open_example(&lab, STR_EMPTY, CREDENTIAL);
    CHECK_INT(form_check(&lab.result, &lab.f, &lab.o, &lab.err), S3_INVALID_ARGUMENT);
    end(&lab);
    open_example(&lab, GOOD, STR("SOMEBODY/20151229/us-east-1/s3/aws4_request"));
    CHECK_INT(form_check(&lab.result, &lab.f, &lab.o, &lab.err), S3_INVALID_ACCESS_KEY_ID);
    end(&lab);
    open_example(&lab, GOOD, STR("AKIAIOSFODNN7EXAMPLE/20151228/us-east-1/s3/aws4_request"));
    CHECK_INT(form_check(&lab.result, &lab.f, &lab.o, &lab.err), S3_INVALID_ARGUMENT);
    end(&lab);
}

/* A form signed by version 2, with one policy and some fields. */
static int check_v2(struct lab *lab, const char *policy, bool with_signature)
{
    struct buf text = BUF_INIT(0), signature = BUF_INIT(0);
    int code;

    base64_encode(&text, str_z(policy));
    sign_v2(&signature, SECRET, buf_str(&text));
    field(lab, "AWSAccessKeyId", ACCESS);
    field(lab, "policy", buf_str(&text));
    if (with_signature)
        field(lab, "signature", buf_str(&signature));
    file(lab, "f.txt", STR("12345"));
    code = open_form(lab, 1000);
    if (code == 0)
        code = form_check(&lab->result, &lab->f, &lab->o, &lab->err);
    buf_release(&text);
    buf_release(&signature);
    return code;
}

#define POLICY(conditions)                                                                         \
    "{\"expiration\":\"2016-01-01T00:00:00Z\",\"conditions\":[" conditions "]}"
#define BASE "{\"bucket\":\"bucket\"},[\"starts-with\",\"$key\",\"foo\"]"

static void check_policy(const char *policy, const char *want, const char *words)
{
    struct lab lab;
    int code;

    start(&lab);
    field(&lab, "key", STR("foo.txt"));
    field(&lab, "acl", STR("private"));
    field(&lab, "x-ignore-this", STR("1"));
    code = check_v2(&lab, policy, true);
    CHECK_STR(code ? str_z(s3_code_name(code)) : STR("ok"), str_z(want));
    if (code && str_find(str_z(lab.err.text), str_z(words)) < 0)
        test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", words, lab.err.text);
    end(&lab);
}

TEST(form, a_policy_must_hold_and_speak_of_every_field)
{
    static const char denied[] = "AccessDenied", document[] = "InvalidPolicyDocument";

    check_policy(POLICY(BASE ",{\"acl\":\"private\"}"), "ok", "");
    check_policy(POLICY(BASE ",[\"eq\",\"$acl\",\"private\"]"), "ok", "");
    check_policy(POLICY("{\"bUcKeT\":\"bucket\"},[\"StArTs-WiTh\",\"$KeY\",\"foo\"],"
                        "{\"AcL\":\"private\"},[\"content-length-range\",\"0\",1024]"),
                 "ok", "");
    check_policy(POLICY(BASE ",{\"acl\":\"public\"}"), denied,
                 "Policy Condition failed: [\"eq\", \"$acl\", \"public\"]");
    check_policy(POLICY(BASE), denied, "Extra input fields: acl");
    check_policy(POLICY("[\"starts-with\",\"$key\",\"foo\"],{\"acl\":\"private\"}"), denied,
                 "Extra input fields: bucket");
    check_policy(POLICY("{\"bucket\":\"other\"},[\"starts-with\",\"$key\",\"\"],"
                        "{\"acl\":\"private\"}"),
                 denied, "Policy Condition failed");
    check_policy(POLICY(BASE ",{\"acl\":\"private\"},[\"starts-with\",\"$x-amz-meta-a\",\"b\"]"),
                 denied, "Policy Condition failed");
    check_policy("{\"expiration\":\"2015-01-01T00:00:00Z\",\"conditions\":[]}", denied,
                 "Policy expired");
    check_policy("{\"EXPIRATION\":\"2016-01-01T00:00:00Z\",\"conditions\":[]}", document,
                 "missing expiration");
    check_policy("{\"expiration\":\"tomorrow\",\"conditions\":[]}", document, "'tomorrow'");
    check_policy("{\"expiration\":\"2016-01-01T00:00:00Z\",\"CONDITIONS\":[]}", document,
                 "missing conditions");
    check_policy(POLICY("{}"), document, "exactly one property");
    check_policy(POLICY("{\"acl\":1}"), document, "must be a string");
    check_policy(POLICY("{\"acl\":\"a\",\"b\":\"c\"}"), document, "exactly one property");
    check_policy(POLICY("[\"eq\",\"acl\",\"a\"]"), document, "with '$'");
    check_policy(POLICY("[\"eq\",\"$acl\"]"), document, "with '$'");
    check_policy(POLICY("[\"less\",\"$acl\",\"a\"]"), document, "unknown operation");
    check_policy(POLICY("[]"), document, "unknown operation");
    check_policy(POLICY("7"), document, "Invalid Condition");
    check_policy(POLICY("[\"content-length-range\",0]"), document, "content-length-range");
    check_policy(POLICY("[\"content-length-range\",-1,0]"), document, "content-length-range");
    check_policy("[]", document, "Invalid JSON");
    check_policy("{", document, "Invalid JSON");
}

TEST(form, the_length_of_the_file_is_held_to_the_policy)
{
    static const struct {
        const char *range;
        int code;
    } cases[] = {
        {"0,5", 0}, {"5,5", 0}, {"0,4", S3_ENTITY_TOO_LARGE}, {"6,9", S3_ENTITY_TOO_SMALL}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buf policy = BUF_INIT(0), out = BUF_INIT(0);
        struct lab lab;
        start(&lab);
        field(&lab, "key", STR("foo"));
        buf_appendf(&policy, POLICY(BASE ",[\"content-length-range\",%s]"), cases[i].range);
        CHECK_INT(check_v2(&lab, policy.p, true), 0);
        CHECK_INT(reader_read_all(&lab.f.file, &out, &lab.err), cases[i].code);
        end(&lab);
        buf_release(&policy);
        buf_release(&out);
    }
}

TEST(form, a_condition_holds_for_every_field_of_its_name)
{
    struct lab lab;

    start(&lab);
    field(&lab, "key", STR("foo"));
    field(&lab, "KEY", STR("bar"));
    CHECK_INT(check_v2(&lab, POLICY(BASE), true), S3_ACCESS_DENIED);
    end(&lab);
}

TEST(form, what_is_missing_is_named)
{
    struct auth_options strict = keys;
    struct lab lab;

    start(&lab);
    field(&lab, "key", STR("foo"));
    CHECK_INT(check_v2(&lab, POLICY(BASE), false), S3_INVALID_ARGUMENT);
    CHECK(str_find(str_z(lab.err.text), STR("'signature'")) >= 0);
    end(&lab);
    start(&lab);
    CHECK_INT(check_v2(&lab, POLICY(BASE), true), S3_USER_KEY_MUST_BE_SPECIFIED);
    end(&lab);
    start(&lab);
    strict.allow_v2 = false;
    lab.o.auth = &strict;
    field(&lab, "key", STR("foo"));
    CHECK_INT(check_v2(&lab, POLICY(BASE), true), S3_INVALID_REQUEST);
    end(&lab);
}

TEST(form, a_form_without_a_policy_is_anonymous)
{
    struct lab lab;

    start(&lab);
    field(&lab, "key", STR("${filename}-${filename}"));
    field(&lab, "success_action_status", STR("201"));
    field(&lab, "redirect", STR("http://x/"));
    file(&lab, "dir/f", STR("x"));
    CHECK_INT(open_form(&lab, 100), 0);
    CHECK_INT(form_check(&lab.result, &lab.f, &lab.o, &lab.err), 0);
    CHECK_INT(lab.result.kind, AUTH_ANONYMOUS);
    CHECK_STR(lab.result.key, STR("f-f"));
    CHECK_STR(lab.result.success_status, STR("201"));
    CHECK_STR(lab.result.success_redirect, STR("http://x/"));
    end(&lab);
}
