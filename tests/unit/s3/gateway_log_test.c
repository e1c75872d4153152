/* Access logs over the wire: the configuration, what it refuses, and the lines of requests. */
#include "unit/s3/gateway_lab.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

#define NONE STR_EMPTY
#define STATUS(bucket, more)                                                                       \
    "<BucketLoggingStatus><LoggingEnabled><TargetBucket>" bucket                                   \
    "</TargetBucket><TargetPrefix>log/</TargetPrefix>" more                                        \
    "</LoggingEnabled></BucketLoggingStatus>"
#define POLICY(effect, principal, resource)                                                        \
    "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"" effect                             \
    "\",\"Principal\":" principal                                                                  \
    ",\"Action\":\"s3:PutObject\",\"Resource\":\"arn:aws:s3:::" resource                           \
    "\",\"Condition\":{\"ArnLike\":{\"aws:SourceArn\":\"arn:aws:s3:::box\"},"                      \
    "\"StringEquals\":{\"aws:SourceAccount\":\"alice-id\"}}}]}"
#define SERVICE "{\"Service\":\"logging.s3.amazonaws.com\"}"

static void ask(struct gate *g, const char *request, const char *body, int status)
{
    gate_ask(g, ALICE, request, NULL, str_z(body), status);
}

/* "logs" takes the log of "box", which goes there. */
static void turn_on(struct gate *g)
{
    gate_do(g, "PUT /logs", 200);
    ask(g, "PUT /logs?policy", POLICY("Allow", SERVICE, "logs/log/*"), 204);
    ask(g, "PUT /box?logging", STATUS("logs", ""), 200);
}

/* Delivers, and reads the object: the lines are g->body. Empty: there was nothing. */
static void deliver(struct gate *g)
{
    char request[512];

    gate_do(g, "POST /box?logging", 200);
    struct str key = gate_element(g, "FlushedLoggingObject");
    if (!key.len) {
        g->body = STR_EMPTY;
        return;
    }
    snprintf(request, sizeof(request), "GET /logs/" STR_FMT, STR_ARG(key));
    gate_do(g, request, 200);
}

static size_t count_lines(struct gate *g)
{
    size_t count = 0;

    for (size_t i = 0; i < g->body.len; i++)
        count += g->body.p[i] == '\n';
    return count;
}

/* The field number `n` (from 0) of the first line that holds `text`; brackets and quotes hold
 * blanks. */
static struct str field(struct gate *g, const char *text, size_t n)
{
    struct str rest = g->body, line = STR_EMPTY;
    size_t at = 0;

    while (str_cut(rest, '\n', &line, &rest) && str_find(line, str_z(text)) < 0)
        ;
    for (size_t k = 0; at < line.len; k++) {
        char end = line.p[at] == '"' ? '"' : line.p[at] == '[' ? ']' : ' ';
        size_t from = end == ' ' ? at : at + 1;
        ptrdiff_t len = str_chr(str_skip(line, from), end);
        size_t until = len < 0 ? line.len : from + (size_t)len;
        if (k == n)
            return str_n(line.p + from, until - from);
        at = until + (end == ' ' ? 1 : 2);
    }
    return STR_EMPTY;
}

GATE_TEST(a_request_of_a_logged_bucket_is_a_line)
{
    char id[64];

    turn_on(g);
    gate_ask(g, ALICE, "PUT /box/a%20b", "user-agent: say \"hi\"\nreferer: here", STR("12345"),
             200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_header(g, "x-amz-request-id")));
    gate_do(g, "GET /box/a%20b?versionId=null", 200);
    gate_do(g, "GET /box/absent", 404);
    gate_ask(g, NOBODY, "GET /box?list-type=2", NULL, NONE, 403);
    deliver(g);
    CHECK_INT(count_lines(g), 4);
    CHECK_STR(field(g, "REST.PUT.OBJECT", 0), STR("alice-id"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 1), STR("box"));
    CHECK_INT(field(g, "REST.PUT.OBJECT", 2).len, strlen("16/Nov/2026:01:02:03 +0000"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 3), STR("127.0.0.1"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 4), STR("alice-id"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 5), str_z(id));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 7), STR("a%20b"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 8), STR("PUT /box/a%20b HTTP/1.1"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 9), STR("200"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 10), STR("-"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 12), STR("5"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 15), STR("here"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 16), STR("say %22hi%22"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 19), STR("SigV4"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 21), STR("AuthHeader"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 25), STR("-"));
    CHECK_STR(field(g, "REST.PUT.OBJECT", 26), NONE);
    CHECK_STR(field(g, "versionId=null", 11), STR("5"));
    CHECK_STR(field(g, "versionId=null", 17), STR("null"));
    CHECK_STR(field(g, "absent", 9), STR("404"));
    CHECK_STR(field(g, "absent", 10), STR("NoSuchKey"));
    CHECK_STR(field(g, "REST.GET.BUCKET", 4), STR("-"));
    CHECK_STR(field(g, "REST.GET.BUCKET", 9), STR("403"));
    CHECK_STR(field(g, "REST.GET.BUCKET", 21), STR("-"));
    deliver(g); /* what was delivered is not again: the flush before, and reading the object is of
                   another bucket */
    CHECK_INT(count_lines(g), 1);
    CHECK_STR(field(g, "REST.", 6), STR("REST.POST.LOGGING_STATUS"));
}

GATE_TEST(a_wrong_signature_is_logged_and_none_is_kept)
{
    turn_on(g);
    gate_ask(g, NOBODY,
             "GET /box/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=5ec4e7&x%2Damz-signature="
             "5ec4e7",
             NULL, NONE, 0);
    deliver(g);
    CHECK_INT(count_lines(g), 1);
    CHECK(gate_has(g, "X-Amz-Signature=REDACTED"));
    CHECK(!gate_has(g, "5ec4e7"));
}

GATE_TEST(a_key_that_was_hoisted_into_an_address_is_not_logged)
{
    turn_on(g);
    gate_ask(g, NOBODY,
             "PUT /box/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&"
             "x-amz-server-side-encryption-customer-algorithm=AES256&"
             "x-amz-server-side-encryption-customer-key=5ec4e7&"
             "X-Amz-Copy-Source-Server-Side-Encryption-Customer-Key=5ec4e7",
             NULL, NONE, 0);
    deliver(g);
    CHECK(gate_has(g, "x-amz-server-side-encryption-customer-key=REDACTED"));
    CHECK(gate_has(g, "customer-algorithm=AES256"));
    CHECK(!gate_has(g, "5ec4e7"));
}

GATE_TEST(each_key_of_a_batch_and_each_side_of_a_copy_has_a_line)
{
    turn_on(g);
    ask(g, "PUT /box/a", "1", 200);
    gate_ask(g, ALICE, "PUT /box/b", "x-amz-copy-source: /box/a", NONE, 200);
    ask(g, "POST /box?delete",
        "<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object></Delete>", 200);
    deliver(g);
    CHECK_INT(count_lines(g), 6);
    CHECK_STR(field(g, "REST.COPY.OBJECT_GET", 7), STR("a"));
    CHECK_STR(field(g, "REST.COPY.OBJECT b", 9), STR("200"));
    CHECK_STR(field(g, "BATCH.DELETE.OBJECT a", 9), STR("204"));
    CHECK_STR(field(g, "BATCH.DELETE.OBJECT b", 9), STR("204"));
    CHECK_STR(field(g, "REST.POST.MULTI_OBJECT_DELETE", 9), STR("200"));
}

GATE_TEST(a_list_that_let_somebody_in_is_told)
{
    turn_on(g);
    gate_ask(g, ALICE, "PUT /box/open", "x-amz-acl: public-read", STR("x"), 200);
    gate_ask(g, BOB, "GET /box/open", NULL, NONE, 200);
    deliver(g);
    CHECK_STR(field(g, "REST.GET.OBJECT", 4), STR("bob-id"));
    CHECK_STR(field(g, "REST.GET.OBJECT", 25), STR("Yes"));
}

GATE_TEST(a_configuration_is_told_as_it_was_set)
{
    char time[64];

    gate_do(g, "GET /box?logging", 200);
    CHECK(!gate_has(g, "LoggingEnabled"));
    turn_on(g);
    gate_do(g, "GET /box?logging", 200);
    CHECK(gate_has(g, "<TargetBucket>logs</TargetBucket><TargetPrefix>log/</TargetPrefix>"));
    snprintf(time, sizeof(time), STR_FMT, STR_ARG(gate_header(g, "last-modified")));
    CHECK(time[0]);
    ask(g, "PUT /box?logging",
        STATUS("logs", "<TargetGrants><Grant><Grantee "
                       "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                       "xsi:type=\"CanonicalUser\"><ID>bob-id</ID></Grantee>"
                       "<Permission>READ</Permission></Grant></TargetGrants>"),
        200);
    gate_do(g, "GET /box?logging", 200);
    CHECK(gate_has(g, "<ID>bob-id</ID>"));
    gate_do(g, "GET /box/k", 404);
    gate_do(g, "POST /box?logging", 200);
    char request[512];
    snprintf(request, sizeof(request), "GET /logs/" STR_FMT,
             STR_ARG(gate_element(g, "FlushedLoggingObject")));
    gate_ask(g, BOB, request, NULL, NONE, 200);
    ask(g, "PUT /box?logging", "<BucketLoggingStatus/>", 200);
    gate_do(g, "GET /box?logging", 200);
    CHECK(!gate_has(g, "LoggingEnabled"));
}

GATE_TEST(a_target_that_cannot_take_a_log_is_refused)
{
    ask(g, "PUT /box?logging", STATUS("absent", ""), 404);
    GATE_ERROR(g, "NoSuchKey");
    ask(g, "PUT /box?logging", STATUS("box", ""), 400);
    GATE_ERROR(g, "InvalidArgument");
    turn_on(g);
    gate_do(g, "PUT /other", 200);
    ask(g, "PUT /box?policy",
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":" SERVICE
        ",\"Action\":\"s3:PutObject\",\"Resource\":\"arn:aws:s3:::box/*\"}]}",
        204);
    ask(g, "PUT /other?logging", STATUS("box", ""), 400); /* which is itself logged */
    GATE_ERROR(g, "InvalidArgument");
    ask(g, "PUT /logs?encryption",
        "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>"
        "<SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule>"
        "</ServerSideEncryptionConfiguration>",
        200);
    ask(g, "PUT /box?logging", STATUS("logs", ""), 400);
    GATE_ERROR(g, "InvalidArgument");
    gate_do(g, "GET /box/k", 404); /* nor is it delivered in the plain */
    gate_do(g, "POST /box?logging", 400);
    gate_do(g, "DELETE /logs?encryption", 204);
    ask(g, "PUT /logs?requestPayment",
        "<RequestPaymentConfiguration><Payer>Requester</Payer></RequestPaymentConfiguration>", 200);
    ask(g, "PUT /box?logging", STATUS("logs", ""), 400);
    GATE_ERROR(g, "InvalidArgument");
    ask(g, "PUT /logs?requestPayment",
        "<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>",
        200);
    deliver(g);
    CHECK(gate_has(g, "REST.GET.OBJECT k"));
}

GATE_TEST(only_a_policy_that_names_the_service_or_a_list_lets_a_log_in)
{
    static const char *const refusing[] = {
        POLICY("Allow", "{\"AWS\":\"*\"}", "logs/log/*"),
        POLICY("Allow", "{\"Service\":\"other.amazonaws.com\"}", "logs/log/*"),
        POLICY("Allow", SERVICE, "logs/elsewhere/*"),
    };

    gate_do(g, "PUT /logs", 200);
    ask(g, "PUT /box?logging", STATUS("logs", ""), 403);
    for (size_t i = 0; i < ARRAY_SIZE(refusing); i++) {
        ask(g, "PUT /logs?policy", refusing[i], 204);
        ask(g, "PUT /box?logging", STATUS("logs", ""), 403);
        GATE_ERROR(g, "AccessDenied");
    }
    ask(g, "PUT /logs?policy", POLICY("Allow", SERVICE, "logs/log/"), 204); /* as Ceph has it */
    ask(g, "PUT /box?logging", STATUS("logs", ""), 200);
    gate_do(g, "PUT /other", 200); /* the conditions are about box */
    ask(g, "PUT /other?logging", STATUS("logs", ""), 403);
    gate_do(g, "DELETE /logs?policy", 204);
    gate_do(g, "GET /box/k", 404);
    gate_do(g, "POST /box?logging", 403);
    gate_ask(g, ALICE, "PUT /logs?acl", "x-amz-acl: log-delivery-write", NONE, 200);
    deliver(g);
    CHECK(gate_has(g, "REST.GET.OBJECT k"));
    ask(g, "PUT /logs?policy", POLICY("Deny", "\"*\"", "logs/log/*"), 204);
    ask(g, "PUT /box?logging", STATUS("logs", ""), 403);
}

/* The keys that weir's own service has, each in a denial that fits and in one that does not. */
GATE_TEST(a_denial_by_any_key_that_the_service_has_keeps_a_log_out)
{
    static const struct {
        const char *fits, *other;
    } conditions[] = {
        {"\"ArnEquals\":{\"aws:SourceArn\":\"arn:aws:s3:::box\"}",
         "\"ArnEquals\":{\"aws:SourceArn\":\"arn:aws:s3:::x\"}"},
        {"\"StringEquals\":{\"aws:SourceAccount\":\"alice-id\"}",
         "\"StringEquals\":{\"aws:SourceAccount\":\"bob-id\"}"},
        {"\"StringEquals\":{\"aws:PrincipalServiceName\":\"logging.s3.amazonaws.com\"}",
         "\"StringEquals\":{\"aws:PrincipalServiceName\":\"x\"}"},
        {"\"Bool\":{\"aws:PrincipalIsAWSService\":\"true\"}",
         "\"Bool\":{\"aws:PrincipalIsAWSService\":\"false\"}"},
        {"\"StringEquals\":{\"s3:ResourceAccount\":\"alice-id\"}",
         "\"StringEquals\":{\"s3:ResourceAccount\":\"bob-id\"}"},
        {"\"DateGreaterThan\":{\"aws:CurrentTime\":\"2020-01-01T00:00:00Z\"}",
         "\"DateGreaterThan\":{\"aws:CurrentTime\":\"2099-01-01T00:00:00Z\"}"},
    };
    char policy[1024];

    gate_do(g, "PUT /logs", 200);
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
        for (int fits = 0; fits < 2; fits++) {
            snprintf(
                policy, sizeof(policy),
                "{\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":" SERVICE
                ",\"Action\":\"s3:PutObject\",\"Resource\":\"arn:aws:s3:::logs/*\"},{\"Effect\":"
                "\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:PutObject\",\"Resource\":"
                "\"arn:aws:s3:::logs/*\",\"Condition\":{%s}}]}",
                fits ? conditions[i].fits : conditions[i].other);
            ask(g, "PUT /logs?policy", policy, 204);
            ask(g, "PUT /box?logging", STATUS("logs", ""), fits ? 403 : 200);
        }
}

GATE_TEST(nobody_but_the_owner_turns_it_on_or_off)
{
    turn_on(g);
    ask(g, "PUT /box?policy",
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","
        "\"Action\":\"s3:*BucketLogging\",\"Resource\":\"arn:aws:s3:::box\"}]}",
        204);
    gate_ask(g, BOB, "GET /box?logging", NULL, NONE, 200);
    gate_ask(g, BOB, "PUT /box?logging", NULL, STR("<BucketLoggingStatus/>"), 403);
    gate_ask(g, BOB, "POST /box?logging", NULL, NONE, 403);
}

GATE_TEST(a_record_outlives_a_clean_stop_a_new_configuration_and_its_bucket)
{
    gate_do(g, "PUT /old", 200);
    gate_do(g, "PUT /logs", 200);
    ask(g, "PUT /logs?policy",
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":" SERVICE
        ",\"Action\":\"s3:PutObject\",\"Resource\":\"arn:aws:s3:::logs/log/*\"}]}",
        204);
    ask(g, "PUT /old?logging", STATUS("logs", ""), 200);
    gate_do(g, "GET /old/k", 404);
    gate_do(g, "DELETE /old", 204);
    gate_do(g, "GET /logs", 200); /* a line is written behind its answer: this is behind it */
    gate_access_log(g, 0, 0);     /* stopped and started */
    gate_access_log(g, 1, 0);     /* everything is due at once */
    do                            /* the object comes by itself */
        gate_do(g, "GET /logs", 200);
    while (!gate_element(g, "Key").len);
    char request[512];
    snprintf(request, sizeof(request), "GET /logs/" STR_FMT, STR_ARG(gate_element(g, "Key")));
    gate_do(g, request, 200);
    CHECK_INT(count_lines(g), 2);
    CHECK(gate_has(g, "REST.GET.OBJECT k"));
    CHECK(gate_has(g, "REST.DELETE.BUCKET"));
}

GATE_TEST(a_bucket_without_a_log_records_nothing)
{
    struct access_log_stats stats;

    gate_do(g, "GET /box/k", 404);
    gate_do(g, "POST /box?logging", 200);
    CHECK(!gate_element(g, "FlushedLoggingObject").len);
    access_log_stats(g->access_log, &stats);
    CHECK_INT(stats.records, 0);
}

GATE_TEST(records_of_a_new_configuration_do_not_wait_behind_those_that_nobody_takes)
{
    char request[512];

    turn_on(g);
    gate_do(g, "GET /box/first", 404);
    gate_do(g, "DELETE /logs?policy", 204);
    gate_do(g, "PUT /more", 200);
    ask(g, "PUT /more?policy", POLICY("Allow", SERVICE, "more/log/*"), 204);
    ask(g, "PUT /box?logging", STATUS("more", ""), 200);
    gate_do(g, "GET /box/second", 404);
    gate_do(g, "POST /box?logging", 200);
    snprintf(request, sizeof(request), "GET /more/" STR_FMT,
             STR_ARG(gate_element(g, "FlushedLoggingObject")));
    gate_do(g, request, 200);
    CHECK(gate_has(g, "REST.GET.OBJECT second"));
    CHECK(!gate_has(g, "REST.GET.OBJECT first"));
    gate_do(g, "DELETE /more?policy", 204); /* so that the object in "logs" is the last */
    ask(g, "PUT /logs?policy", POLICY("Allow", SERVICE, "logs/log/*"), 204);
    deliver(g);
    CHECK(gate_has(g, "REST.GET.OBJECT first"));
}

GATE_TEST(what_waits_for_a_target_that_takes_nothing_is_bounded)
{
    struct access_log_stats stats;

    turn_on(g);
    gate_access_log(g, 0, 1);
    gate_do(g, "DELETE /logs?policy", 204);
    gate_do(g, "GET /box/kept", 404);
    gate_do(g, "POST /box?logging", 403);
    gate_do(g, "GET /box/dropped", 404);
    gate_do(g, "POST /box?logging", 403);
    access_log_stats(g->access_log, &stats);
    CHECK(stats.dropped >= 2); /* the first POST has a line too, and so has the second */
    ask(g, "PUT /logs?policy", POLICY("Allow", SERVICE, "logs/log/*"), 204);
    deliver(g);
    CHECK(gate_has(g, "REST.GET.OBJECT kept"));
    CHECK(!gate_has(g, "REST.GET.OBJECT dropped"));
}
