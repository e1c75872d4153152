/* Every condition key of the table: a Deny by it denies a request that fits, or the policy that has
 * it is refused; and each is judged on what the request acts on. */
#include "base/clock.h"
#include "os/file.h"
#include "s3/gateway/gateway_int.h"
#include "sign/base64.h"
#include "sign/sign.h"
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

#define NONE STR_EMPTY

#define EVERYTHING                                                                                 \
    "{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"Resource\":"                  \
    "[\"arn:aws:s3:::box\",\"arn:aws:s3:::box/*\"]}"

/* Everything to everybody, but what the condition is about. */
static void deny_if(struct gate *g, const char *condition, int status)
{
    struct buf json = BUF_INIT(0);

    buf_appendf(&json,
                "{\"Version\":\"2012-10-17\",\"Statement\":[" EVERYTHING
                ",{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"Resource\":"
                "[\"arn:aws:s3:::box\",\"arn:aws:s3:::box/*\"],\"Condition\":{%s}}]}",
                condition);
    gate_ask(g, ALICE, "PUT /box?policy", NULL, buf_str(&json), status);
    buf_release(&json);
}

static void deny_value(struct gate *g, const char *operator, const char * key, const char *value)
{
    char condition[512];

    snprintf(condition, sizeof(condition), "\"%s\":{\"%s\":\"%s\"}", operator, key, value);
    deny_if(g, condition, 204);
}

/* --- the whole table --- */

enum how { BY_HEADER, BY_QUERY, BY_FORM };

struct trial {
    enum policy_key key;
    const char *suffix;
    const char *operator, * fits,
        *other; /* a value that the request has, and one that it has not */
    enum who who;
    const char *request, *headers, *body;
    int status; /* where it is not denied */
    enum how how;
};

#define GET     BOB, "GET /box/key", NULL, NULL, 200
#define PUT(h)  BOB, "PUT /box/new", h, "x", 200
#define LIST(q) BOB, "GET /box?" q, NULL, NULL, 200
#define UNTIL   "2099-01-01T00:00:00Z"
#define RETAIN                                                                                     \
    "<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>" UNTIL "</RetainUntilDate></Retention>"
#define OWNERS                                                                                     \
    "<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></"            \
    "OwnershipControls>"
#define TAGGING "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
#define KMS     "x-amz-server-side-encryption: aws:kms\nx-amz-server-side-encryption-aws-kms-key-id: k1"
#define SSE_C                                                                                      \
    "x-amz-server-side-encryption-customer-algorithm: AES256\n"                                    \
    "x-amz-server-side-encryption-customer-key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"    \
    "x-amz-server-side-encryption-customer-key-MD5: hRasmdxgYDKV3nvbahU1MA=="
#define ALL_USERS "uri=http://acs.amazonaws.com/groups/global/AllUsers"

static const struct trial trials[] = {
    {POLICY_KEY_CURRENT_TIME, "", "DateGreaterThan", "2020-01-01T00:00:00Z", UNTIL, GET},
    {POLICY_KEY_EPOCH_TIME, "", "NumericGreaterThan", "1500000000", "4500000000", GET},
    {POLICY_KEY_PRINCIPAL_ACCOUNT, "", "StringEquals", "bob-id", "alice-id", GET},
    {POLICY_KEY_PRINCIPAL_ACCOUNT, "", "StringEquals", "anonymous", "bob-id", NOBODY,
     "GET /box/key", NULL, NULL, 200},
    {POLICY_KEY_PRINCIPAL_ARN, "", "ArnEquals", "arn:aws:iam::bob-id:user/bob",
     "arn:aws:iam::alice-id:user/alice", GET},
    {POLICY_KEY_PRINCIPAL_ARN, "", "StringLike", "*:user/bob", "*:user/alice", GET},
    {POLICY_KEY_PRINCIPAL_IS_AWS_SERVICE, "", "Bool", "false", "true", GET},
    {POLICY_KEY_PRINCIPAL_TYPE, "", "StringEquals", "User", "Anonymous", GET},
    {POLICY_KEY_PRINCIPAL_TYPE, "", "StringEquals", "Anonymous", "User", NOBODY, "GET /box/key",
     NULL, NULL, 200},
    {POLICY_KEY_REFERER, "", "StringLike", "http://a.example/*", "http://b.example/*", BOB,
     "GET /box/key", "referer: http://a.example/page", NULL, 200},
    {POLICY_KEY_REFERER, "", "StringLike", "http://a.example/*", "http://b.example/*", NOBODY,
     "POST /box", "referer: http://a.example/page", "", 204, BY_FORM},
    {POLICY_KEY_REQUESTED_REGION, "", "StringEquals", "us-east-1", "eu-west-1", GET},
    {POLICY_KEY_RESOURCE_ACCOUNT, "", "StringEquals", "alice-id", "bob-id", GET},
    {POLICY_KEY_S3_RESOURCE_ACCOUNT, "", "StringEquals", "alice-id", "bob-id", GET},
    {POLICY_KEY_SECURE_TRANSPORT, "", "Bool", "false", "true", GET},
    {POLICY_KEY_SOURCE_IP, "", "IpAddress", "127.0.0.0/8", "10.0.0.0/8", GET},
    {POLICY_KEY_USER_AGENT, "", "StringEquals", "a/1", "b/1", BOB, "GET /box/key",
     "user-agent: a/1", NULL, 200},
    {POLICY_KEY_USER_AGENT, "", "StringEquals", "a/1", "b/1", NOBODY, "POST /box",
     "user-agent: a/1", "", 204, BY_FORM},
    {POLICY_KEY_USER_ID, "", "StringEquals", "bob-id", "alice-id", GET},
    {POLICY_KEY_USER_ID, "", "StringEquals", "anonymous", "bob-id", NOBODY, "GET /box/key", NULL,
     NULL, 200},
    {POLICY_KEY_USER_NAME, "", "StringEquals", "bob", "alice", GET},
    {POLICY_KEY_VIA_AWS_SERVICE, "", "Bool", "false", "true", GET},
    {POLICY_KEY_VIA_AWS_SERVICE, "", "Bool", "false", "true", NOBODY, "GET /box/key", NULL, NULL,
     200},
    {POLICY_KEY_AUTH_TYPE, "", "StringEquals", "REST-HEADER", "POST", GET},
    {POLICY_KEY_AUTH_TYPE, "", "StringEquals", "REST-QUERY-STRING", "REST-HEADER", GET, BY_QUERY},
    {POLICY_KEY_AUTH_TYPE, "", "StringEquals", "POST", "REST-HEADER", BOB, "POST /box", NULL, "",
     204, BY_FORM},
    {POLICY_KEY_DELIMITER, "", "StringEquals", "/", "-", LIST("delimiter=%2F")},
    {POLICY_KEY_EXISTING_OBJECT_TAG, "kind", "StringEquals", "red", "blue", GET},
    {POLICY_KEY_IF_MATCH, "", "StringLike", "*", "x", PUT("if-match: *")},
    {POLICY_KEY_IF_NONE_MATCH, "", "StringEquals", "*", "x", BOB, "PUT /box/once",
     "if-none-match: *", "x", 200},
    {POLICY_KEY_MAX_KEYS, "", "NumericGreaterThan", "10", "20", LIST("max-keys=15")},
    {POLICY_KEY_MAX_KEYS, "", "NumericGreaterThan", "999", "1000", LIST("list-type=2")},
    {POLICY_KEY_MAX_KEYS, "", "NumericGreaterThan", "999", "1000", LIST("max-keys=&versions")},
    {POLICY_KEY_OBJECT_CREATION_OPERATION, "", "Bool", "true", "false", PUT(NULL)},
    {POLICY_KEY_OBJECT_CREATION_OPERATION, "", "Bool", "false", "true", BOB,
     "POST /box/upload?uploads", NULL, NULL, 200},
    {POLICY_KEY_OBJECT_LOCK_LEGAL_HOLD, "", "StringEquals", "ON", "OFF",
     PUT("x-amz-object-lock-legal-hold: ON")},
    {POLICY_KEY_OBJECT_LOCK_LEGAL_HOLD, "", "StringEquals", "OFF", "ON", BOB,
     "PUT /box/key?legal-hold", NULL, "<LegalHold><Status>OFF</Status></LegalHold>", 200},
    {POLICY_KEY_OBJECT_LOCK_MODE, "", "StringEquals", "GOVERNANCE", "COMPLIANCE",
     PUT("x-amz-object-lock-mode: GOVERNANCE\nx-amz-object-lock-retain-until-date: " UNTIL)},
    {POLICY_KEY_OBJECT_LOCK_MODE, "", "StringEquals", "GOVERNANCE", "COMPLIANCE", BOB,
     "PUT /box/key?retention", NULL, RETAIN, 200},
    {POLICY_KEY_OBJECT_LOCK_REMAINING_RETENTION_DAYS, "", "NumericGreaterThan", "100", "99999",
     PUT("x-amz-object-lock-mode: GOVERNANCE\nx-amz-object-lock-retain-until-date: " UNTIL)},
    {POLICY_KEY_OBJECT_LOCK_REMAINING_RETENTION_DAYS, "", "NumericGreaterThan", "100", "99999", BOB,
     "PUT /box/key?retention", NULL, RETAIN, 200},
    {POLICY_KEY_OBJECT_LOCK_REMAINING_RETENTION_DAYS, "", "NumericLessThan", "1", "0", BOB,
     "PUT /box/plain?retention", NULL, "<Retention/>", 200},
    {POLICY_KEY_OBJECT_LOCK_RETAIN_UNTIL_DATE, "", "DateGreaterThan", "2030-01-01T00:00:00Z",
     "2199-01-01T00:00:00Z",
     PUT("x-amz-object-lock-mode: GOVERNANCE\nx-amz-object-lock-retain-until-date: " UNTIL)},
    {POLICY_KEY_OBJECT_LOCK_RETAIN_UNTIL_DATE, "", "DateGreaterThan", "2030-01-01T00:00:00Z",
     "2199-01-01T00:00:00Z", BOB, "PUT /box/key?retention", NULL, RETAIN, 200},
    {POLICY_KEY_PREFIX, "", "StringEquals", "secret", "open", LIST("prefix=secret")},
    {POLICY_KEY_PREFIX, "", "StringEquals", "absent", "open", BOB, "GET /box/absent", NULL, NULL,
     404},
    {POLICY_KEY_REQUEST_OBJECT_TAG, "a", "StringEquals", "b", "c", PUT("x-amz-tagging: a=b")},
    {POLICY_KEY_REQUEST_OBJECT_TAG, "a", "StringEquals", "b", "c", BOB, "PUT /box/plain?tagging",
     NULL, TAGGING, 200},
    {POLICY_KEY_REQUEST_OBJECT_TAG_KEYS, "", "ForAnyValue:StringEquals", "a", "c",
     PUT("x-amz-tagging: a=b")},
    {POLICY_KEY_SIGNATURE_AGE, "", "NumericLessThan", "600000", "0", GET},
    {POLICY_KEY_SIGNATURE_AGE, "", "NumericLessThan", "600000", "0", GET, BY_QUERY},
    {POLICY_KEY_SIGNATURE_AGE, "", "NumericLessThan", "600000", "0", BOB, "POST /box", NULL, "",
     204, BY_FORM},
    {POLICY_KEY_SIGNATURE_VERSION, "", "StringEquals", "AWS4-HMAC-SHA256", "AWS", GET},
    {POLICY_KEY_SIGNATURE_VERSION, "", "StringEquals", "AWS4-HMAC-SHA256", "AWS", BOB, "POST /box",
     NULL, "", 204, BY_FORM},
    {POLICY_KEY_VERSION_ID, "", "StringEquals", "null", "x", BOB, "DELETE /box/gone?versionId=null",
     NULL, NULL, 204},
    {POLICY_KEY_X_AMZ_ACL, "", "StringEquals", "public-read", "private",
     PUT("x-amz-acl: public-read")},
    {POLICY_KEY_X_AMZ_ACL, "", "StringEquals", "public-read", "private", NOBODY, "POST /box", NULL,
     "acl=public-read", 204, BY_FORM},
    {POLICY_KEY_X_AMZ_CONTENT_SHA256, "", "StringEquals", "UNSIGNED-PAYLOAD", "x", BOB,
     "PUT /box/new", NULL, "x", 200, BY_QUERY},
    {POLICY_KEY_X_AMZ_CONTENT_SHA256, "", "StringEquals", "UNSIGNED-PAYLOAD", "x", BOB, "POST /box",
     NULL, "", 204, BY_FORM},
    {POLICY_KEY_X_AMZ_COPY_SOURCE, "", "StringEquals", "box/key", "box/other",
     PUT("x-amz-copy-source: /box/key")},
    {POLICY_KEY_X_AMZ_GRANT_FULL_CONTROL, "", "StringLike", "*bob*", "*alice*",
     PUT("x-amz-grant-full-control: id=bob-id")},
    {POLICY_KEY_X_AMZ_GRANT_READ, "", "StringLike", "*AllUsers", "x",
     PUT("x-amz-grant-read: " ALL_USERS)},
    {POLICY_KEY_X_AMZ_GRANT_READ_ACP, "", "StringLike", "*AllUsers", "x",
     PUT("x-amz-grant-read-acp: " ALL_USERS)},
    {POLICY_KEY_X_AMZ_GRANT_WRITE, "", "StringLike", "*AllUsers", "x",
     PUT("x-amz-grant-write: " ALL_USERS)},
    {POLICY_KEY_X_AMZ_GRANT_WRITE_ACP, "", "StringLike", "*AllUsers", "x",
     PUT("x-amz-grant-write-acp: " ALL_USERS)},
    {POLICY_KEY_X_AMZ_METADATA_DIRECTIVE, "", "StringEquals", "REPLACE", "COPY",
     PUT("x-amz-copy-source: box/key\nx-amz-metadata-directive: REPLACE")},
    {POLICY_KEY_X_AMZ_OBJECT_OWNERSHIP, "", "StringEquals", "ObjectWriter", "BucketOwnerEnforced",
     BOB, "PUT /box?ownershipControls", NULL, OWNERS, 200},
    {POLICY_KEY_X_AMZ_SERVER_SIDE_ENCRYPTION, "", "StringEquals", "AES256", "aws:kms",
     PUT("x-amz-server-side-encryption: AES256")},
    {POLICY_KEY_X_AMZ_SERVER_SIDE_ENCRYPTION_AWS_KMS_KEY_ID, "", "StringEquals", "k1", "k2",
     PUT(KMS)},
    {POLICY_KEY_X_AMZ_SERVER_SIDE_ENCRYPTION_CUSTOMER_ALGORITHM, "", "StringEquals", "AES256", "x",
     PUT(SSE_C)},
    {POLICY_KEY_X_AMZ_STORAGE_CLASS, "", "StringEquals", "STANDARD_IA", "GLACIER",
     PUT("x-amz-storage-class: STANDARD_IA")},
    {POLICY_KEY_X_AMZ_WEBSITE_REDIRECT_LOCATION, "", "StringEquals", "/a", "/b",
     PUT("x-amz-website-redirect-location: /a")},
};

/* Judged elsewhere than in a request to this lab. */
static const enum policy_key elsewhere[] = {
    POLICY_KEY_TLS_VERSION, /* tests/e2e/test_s3_tls.py */
    POLICY_KEY_SOURCE_ARN,  /* the delivery of a log: below */
    POLICY_KEY_SOURCE_ACCOUNT,
    POLICY_KEY_PRINCIPAL_SERVICE_NAME,
};

static void add_field(struct buf *out, const char *name, struct str value)
{
    buf_appendf(out, "--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n", name);
    buf_append_str(out, value);
    buf_append_z(out, "\r\n");
}

/* A policy that takes everything, signed by `who`; the policy fixes the date, or the day alone.
 */
static void sign_form(struct buf *out, enum who who, bool date_is_signed)
{
    char stamp[CLOCK_BASIC_LEN + 1], credential[128], json[512], signature[SIGN_HEX_LEN];
    struct sign_scope scope = {.region = STR("us-east-1"), .service = STR("s3")};
    struct buf policy = BUF_INIT(0);
    struct sign_key key;

    clock_basic(clock_wall_ms(), stamp);
    scope.date = str_n(stamp, SIGN_DATE_LEN);
    snprintf(credential, sizeof(credential), STR_FMT "/%.8s/us-east-1/s3/aws4_request",
             STR_ARG(gate_key(who).access), stamp);
    snprintf(json, sizeof(json),
             "{\"expiration\":\"2099-01-01T00:00:00Z\",\"conditions\":[{\"bucket\":\"box\"},"
             "[\"starts-with\",\"$key\",\"\"],[\"starts-with\",\"$x-amz-algorithm\",\"\"],"
             "[\"starts-with\",\"$x-amz-credential\",\"\"],[\"%s\",\"$x-amz-date\",\"%.*s\"]]}",
             date_is_signed ? "eq" : "starts-with", date_is_signed ? CLOCK_BASIC_LEN : 8, stamp);
    base64_encode(&policy, str_z(json));
    sign_derive(&key, gate_key(who).secret, &scope);
    sign_hex(signature, &key, buf_str(&policy));
    add_field(out, "policy", buf_str(&policy));
    add_field(out, "x-amz-algorithm", STR("AWS4-HMAC-SHA256"));
    add_field(out, "x-amz-credential", str_z(credential));
    add_field(out, "x-amz-date", str_z(stamp));
    add_field(out, "x-amz-signature", str_n(signature, sizeof(signature)));
    buf_release(&policy);
}

/* `fields`: "name=value" or empty. */
static void ask_form(struct gate *g, enum who who, const char *headers, const char *fields,
                     bool date_is_signed, int status)
{
    struct buf body = BUF_INIT(0), head = BUF_INIT(0);
    struct str name, value;
    char text[64];

    add_field(&body, "key", STR("form"));
    if (str_cut(str_z(fields), '=', &name, &value)) {
        snprintf(text, sizeof(text), STR_FMT, STR_ARG(name));
        add_field(&body, text, value);
    }
    if (who != NOBODY)
        sign_form(&body, who, date_is_signed);
    add_field(&body, "file", STR("x"));
    buf_append_z(&body, "--b--\r\n");
    buf_appendf(&head, "content-type: multipart/form-data; boundary=b\n%s", headers ? headers : "");
    gate_ask(g, NOBODY, "POST /box", head.p, buf_str(&body), status);
    buf_release(&body);
    buf_release(&head);
}

static void ask_trial(struct gate *g, const struct trial *t, int status)
{
    struct str body = t->body ? str_z(t->body) : NONE;
    struct buf request = BUF_INIT(0);

    if (t->how == BY_FORM) {
        ask_form(g, t->who, t->headers, t->body, true, status);
    } else if (t->how == BY_QUERY) {
        gate_presign(&request, t->who, t->request, t->headers);
        gate_ask(g, NOBODY, request.p, t->headers, body, status);
    } else {
        gate_ask(g, t->who, t->request, t->headers, body, status);
    }
    buf_release(&request);
}

/* A bucket with object lock, and what the trials read. */
static void start(struct gate *g)
{
    struct err err = {0};

    gate_start(g);
    CHECK_OK(file_write_durable(g->key_file,
                                STR("k1 1 00112233445566778899aabbccddeeff"
                                    "00112233445566778899aabbccddeeff\n"),
                                0600, &err));
    gate_ask(g, ALICE, "PUT /box", "x-amz-bucket-object-lock-enabled: true", NONE, 200);
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-tagging: kind=red", STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box/plain", NULL, STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box/new", NULL, STR("x"), 200);
}

static void try_key(struct gate *g, const struct trial *t)
{
    char key[128];

    snprintf(key, sizeof(key), "%s%s", policy_keys[t->key].name, t->suffix);
    deny_value(g, t->operator, key, t->fits);
    ask_trial(g, t, 403);
    if (g->body.len)
        GATE_ERROR(g, "AccessDenied");
    deny_value(g, t->operator, key, t->other);
    ask_trial(g, t, t->status);
}

static bool is_elsewhere(enum policy_key key)
{
    for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
        if (elsewhere[i] == key)
            return true;
    return false;
}

TEST(gateway_condition, every_key_that_requests_have_denies_by_its_value)
{
    size_t tried[POLICY_KEYS] = {0};
    struct gate g;

    start(&g);
    for (size_t i = 0; i < ARRAY_SIZE(trials); i++) {
        try_key(&g, &trials[i]);
        tried[trials[i].key]++;
    }
    for (size_t i = 0; i < POLICY_KEYS; i++)
        if (!tried[i] && policy_keys[i].is_given && !is_elsewhere((enum policy_key)i))
            test_fail(__FILE__, __LINE__, "%s has no trial", policy_keys[i].name);
    gate_stop(&g);
}

/* Each form of a condition: it can never hold and is refused, or it holds of every request. */
TEST(gateway_condition, a_key_that_no_request_has_denies_or_is_refused)
{
    static const struct {
        const char *operator, * value;
        bool taken;
    } forms[] = {
        {"StringEquals", "x", false},
        {"StringLike", "*", false},
        {"ForAnyValue:StringEquals", "x", false},
        {"NumericGreaterThan", "1", false},
        {"Bool", "false", false},
        {"Bool", "true", false},
        {"Null", "false", false},
        {"Null", "true", true},
        {"StringNotEquals", "x", true},
        {"StringEqualsIfExists", "x", true},
        {"BoolIfExists", "false", true},
        {"ForAllValues:StringEquals", "x", true},
    };
    struct gate g;
    char key[128], condition[256];
    size_t never = 0;

    start(&g);
    for (size_t i = 0; i < POLICY_KEYS; i++) {
        const char *name = policy_keys[i].name;
        if (policy_keys[i].is_given)
            continue;
        never++;
        snprintf(key, sizeof(key), "%s%s", name, name[strlen(name) - 1] == '/' ? "team" : "");
        for (size_t k = 0; k < ARRAY_SIZE(forms); k++) {
            snprintf(condition, sizeof(condition), "\"%s\":{\"%s\":\"%s\"}", forms[k].operator, key,
                     forms[k].value);
            deny_if(&g, condition, forms[k].taken ? 204 : 400);
            if (forms[k].taken) {
                gate_ask(&g, BOB, "GET /box/key", NULL, NONE, 403);
            } else {
                GATE_ERROR(&g, "MalformedPolicy");
                CHECK(gate_has(&g, key));
            }
        }
        snprintf(condition, sizeof(condition), "\"StringEquals\":{\"aws:username\":\"${%s}\"}",
                 key);
        deny_if(&g, condition, 400);
        CHECK(gate_has(&g, key));
    }
    CHECK(never > 0);
    deny_if(&g, "\"StringEquals\":{\"aws:username\":\"${aws:PrincipalTag/name, 'bob'}\"}", 204);
    gate_ask(&g, BOB, "GET /box/key", NULL, NONE, 403);
    gate_stop(&g);
}

/* --- what is acted on --- */

TEST(gateway_condition, a_copy_is_judged_by_the_source_that_it_reads)
{
    static const char *const spellings[] = {
        "box/secret/a",     "/box/secret/a",     "%62ox/secret/a",
        "box%2Fsecret%2Fa", "%2Fbox/%73ecret/a", "box/secret/a?versionId=null",
    };
    static const char *const conditions[] = {
        "\"StringLike\":{\"s3:x-amz-copy-source\":\"box/secret/*\"}",
        "\"StringLike\":{\"s3:x-amz-copy-source\":\"/box/secret/*\"}",
        "\"StringEquals\":{\"s3:x-amz-copy-source\":\"box/secret/a\"}",
        ("\"StringNotLike\":{\"s3:x-amz-copy-source\":\"box/open/*\"},\"Null\":{"
         "\"s3:x-amz-copy-source\":\"false\"}"),
    };
    struct gate g;
    char header[128], request[160], id[64];

    gate_start(&g);
    gate_do(&g, "PUT /box", 200);
    gate_ask(&g, ALICE, "PUT /box/secret/a", NULL, STR("x"), 200);
    gate_ask(&g, ALICE, "PUT /box/open/a", NULL, STR("x"), 200);
    gate_ask(&g, ALICE, "POST /box/upload?uploads", NULL, NONE, 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(&g, "UploadId")));
    snprintf(request, sizeof(request), "PUT /box/upload?partNumber=1&uploadId=%s", id);
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
        deny_if(&g, conditions[i], 204);
        for (size_t k = 0; k < ARRAY_SIZE(spellings); k++) {
            snprintf(header, sizeof(header), "x-amz-copy-source: %s", spellings[k]);
            gate_ask(&g, BOB, "PUT /box/copy", header, NONE, 403);
            gate_ask(&g, BOB, request, header, NONE, 403);
        }
        gate_ask(&g, BOB, "PUT /box/copy", "x-amz-copy-source: box/%6fpen/a", NONE, 200);
    }
    gate_stop(&g);
}

/* A header or field that the operation does not look at opens nothing and hides nothing. */
TEST(gateway_condition, what_an_operation_does_not_act_on_has_no_value)
{
    struct gate g;

    start(&g);
    deny_if(&g, "\"Null\":{\"s3:x-amz-copy-source\":\"true\"}", 204);
    gate_ask(&g, BOB, "PUT /box/new", "x-amz-copy-source: box/key", NONE, 200);
    gate_ask(&g, BOB, "POST /box/new?uploads", "x-amz-copy-source: box/key", NONE, 403);
    ask_form(&g, BOB, NULL, "x-ignore-this=1", true, 403);
    ask_form(&g, NOBODY, NULL, "x-amz-copy-source=box/key", true, 403);
    deny_if(&g,
            "\"Null\":{\"s3:if-none-match\":\"true\"},\"Bool\":{"
            "\"s3:ObjectCreationOperation\":\"true\"}",
            204);
    gate_ask(&g, BOB, "PUT /box/once", "if-none-match: *", STR("x"), 200);
    gate_ask(&g, BOB, "PUT /box/twice", NULL, STR("x"), 403);
    gate_ask(&g, BOB, "POST /box/twice?uploads", NULL, NONE, 200);
    ask_form(&g, NOBODY, NULL, "if-none-match=*", true, 403);
    deny_if(&g, "\"Null\":{\"s3:x-amz-server-side-encryption\":\"true\"}", 204);
    gate_ask(&g, BOB, "PUT /box/new", "x-amz-server-side-encryption: AES256", STR("x"), 200);
    gate_ask(&g, BOB, "PUT /box/new", "x-amz-server-side-encryption:", STR("x"), 403);
    deny_if(&g, "\"Null\":{\"s3:x-amz-object-ownership\":\"true\"}", 204);
    gate_ask(&g, BOB, "PUT /box?versioning", "x-amz-object-ownership: ObjectWriter", NONE, 403);
    gate_stop(&g);
}

/* The version and the ETag are those of the key in the batch, and of the source of the copy. */
TEST(gateway_condition, each_object_of_a_request_is_judged_by_its_own_version)
{
#define BATCH(more) "<Delete><Object><Key>key</Key>" more "</Object></Delete>"
    struct gate g;

    gate_start(&g);
    gate_do(&g, "PUT /box", 200);
    gate_ask(&g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    deny_if(&g, "\"StringEquals\":{\"s3:VersionId\":\"null\"}", 204);
    gate_ask(&g, BOB, "PUT /box/copy", "x-amz-copy-source: box/key", NONE, 200);
    gate_ask(&g, BOB, "PUT /box/copy", "x-amz-copy-source: box/key?versionId=null", NONE, 403);
    gate_ask(&g, BOB, "POST /box?delete", NULL, STR(BATCH("<VersionId>null</VersionId>")), 200);
    CHECK(gate_has(&g, "AccessDenied"));
    deny_if(&g, "\"Null\":{\"s3:if-match\":\"true\"}", 204);
    gate_ask(&g, BOB, "POST /box?delete", "if-match: *", STR(BATCH("")), 200);
    CHECK(gate_has(&g, "AccessDenied"));
    gate_ask(&g, BOB, "POST /box?delete", NULL, STR(BATCH("<ETag>*</ETag>")), 200);
    CHECK(gate_has(&g, "<Deleted>"));
    gate_stop(&g);
}

/* A policy that denies old signatures is not passed by one whose age nobody can know. */
TEST(gateway_condition, a_signature_that_does_not_say_when_it_was_made_is_old)
{
    struct buf text = BUF_INIT(0), signature = BUF_INIT(0), request = BUF_INIT(0);
    struct sign_request r = {.method = STR("GET"), .path = STR("/box/key")};
    struct gate g;
    char until[32];

    start(&g);
    deny_if(&g, "\"NumericGreaterThan\":{\"s3:signatureAge\":\"600000\"}", 204);
    gate_ask(&g, BOB, "GET /box/key", NULL, NONE, 200);
    gate_ask(&g, NOBODY, "GET /box/key", NULL, NONE, 200);
    ask_form(&g, BOB, NULL, "", true, 204);
    ask_form(&g, BOB, NULL, "", false, 403);
    snprintf(until, sizeof(until), "%lld", (long long)(clock_wall_ms() / MS_PER_S + 60));
    CHECK_INT(sign_v2_string(&text, &r, str_z(until), NONE), 0);
    sign_v2(&signature, gate_key(BOB).secret, buf_str(&text));
    buf_appendf(&request, "GET /box/key?AWSAccessKeyId=" STR_FMT "&Expires=%s&Signature=",
                STR_ARG(gate_key(BOB).access), until);
    url_encode(&request, buf_str(&signature), false);
    gate_ask(&g, NOBODY, request.p, NULL, NONE, 403);
    buf_release(&text);
    buf_release(&signature);
    buf_release(&request);
    gate_stop(&g);
}

TEST(gateway_condition, a_website_is_judged_as_every_request)
{
    struct gate g;

    start(&g);
    gate_ask(&g, ALICE, "PUT /box?website", NULL,
             STR("<WebsiteConfiguration><IndexDocument><Suffix>key</Suffix></IndexDocument>"
                 "</WebsiteConfiguration>"),
             200);
    deny_value(&g, "StringEquals", "aws:PrincipalType", "User");
    gate_ask(&g, NOBODY, "GET /", "host: box.web.test", NONE, 200);
    deny_value(&g, "StringEquals", "aws:PrincipalType", "Anonymous");
    gate_ask(&g, NOBODY, "GET /", "host: box.web.test", NONE, 403);
    deny_value(&g, "StringEquals", "aws:PrincipalAccount", "anonymous");
    gate_ask(&g, NOBODY, "GET /", "host: box.web.test", NONE, 403);
    gate_stop(&g);
}

/* "anonymous" fixes nobody: a policy that lets it in is public. */
TEST(gateway_condition, a_policy_for_the_account_anonymous_is_public)
{
    struct gate g;

    gate_start(&g);
    gate_do(&g, "PUT /box", 200);
    for (int i = 0; i < 2; i++) {
        struct buf json = BUF_INIT(0);
        buf_appendf(&json,
                    "{\"Statement\":{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":"
                    "\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::box/*\",\"Condition\":{"
                    "\"StringEquals\":{\"aws:PrincipalAccount\":\"%s\"}}}}",
                    i ? "anonymous" : "bob-id");
        gate_ask(&g, ALICE, "PUT /box?policy", NULL, buf_str(&json), 204);
        gate_do(&g, "GET /box?policyStatus", 200);
        CHECK_STR(gate_element(&g, "IsPublic"), i ? STR("true") : STR("false"));
        buf_release(&json);
    }
    gate_stop(&g);
}
