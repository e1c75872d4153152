/* What comes with a new object needs rights of its own: lists, tags, the tags of a copy. */
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

#define NONE STR_EMPTY

#define ALLOW(actions)                                                                             \
    "{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":[" actions                               \
    "],\"Resource\":\"arn:aws:s3:::box/*\"}"
#define DENY(actions)                                                                              \
    "{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":[" actions                                \
    "],\"Resource\":\"arn:aws:s3:::box/*\"}"

/* The statements of the bucket's policy. */
static void set_policy(struct gate *g, const char *statements)
{
    struct buf json = BUF_INIT(0);

    buf_appendf(&json, "{\"Version\":\"2012-10-17\",\"Statement\":[%s]}", statements);
    gate_ask(g, ALICE, "PUT /box?policy", NULL, buf_str(&json), 204);
    buf_release(&json);
}

/* --- lists --- */

/* In every operation that takes one. */
static void with_list(struct gate *g, enum who who, const char *header, int status)
{
    struct buf headers = BUF_INIT(0);

    gate_ask(g, who, "PUT /box/put", header, STR("x"), status);
    gate_ask(g, who, "POST /box/upload?uploads", header, NONE, status);
    buf_appendf(&headers, "x-amz-copy-source: /mine/key\n%s", header);
    gate_ask(g, who, "PUT /box/copy", headers.p, NONE, status);
    buf_release(&headers);
}

static void post(struct gate *g, const char *fields, int status)
{
    struct buf body = BUF_INIT(0);

    buf_appendf(&body,
                "--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nform\r\n%s"
                "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b--\r\n",
                fields);
    gate_ask(g, NOBODY, "POST /box", "content-type: multipart/form-data; boundary=b",
             buf_str(&body), status);
    buf_release(&body);
}

GATE_TEST(a_list_that_opens_an_object_needs_a_right_of_its_own)
{
    gate_ask(g, BOB, "PUT /mine", NULL, NONE, 200);
    gate_ask(g, BOB, "PUT /mine/key", NULL, STR("x"), 200);
    set_policy(g, ALLOW("\"s3:PutObject\""));
    with_list(g, BOB, "x-amz-acl: public-read", 403);
    with_list(g, BOB, "x-amz-grant-read: uri=http://acs.amazonaws.com/groups/global/AllUsers", 403);
    post(g, "--b\r\nContent-Disposition: form-data; name=\"acl\"\r\n\r\npublic-read\r\n", 403);
    gate_do(g, "HEAD /box/put", 404);
    with_list(g, BOB, "x-amz-acl: bucket-owner-full-control", 200);
    with_list(g, BOB, "x-amz-grant-full-control: id=alice-id", 200);
    set_policy(g, ALLOW("\"s3:PutObject\",\"s3:PutObjectAcl\""));
    with_list(g, BOB, "x-amz-acl: public-read", 200);
    post(g, "--b\r\nContent-Disposition: form-data; name=\"acl\"\r\n\r\npublic-read\r\n", 204);
    gate_ask(g, NOBODY, "GET /box/put", NULL, NONE, 200);
}

GATE_TEST(a_denial_of_lists_is_for_all_who_write)
{
    gate_ask(g, BOB, "PUT /mine", NULL, NONE, 200);
    gate_ask(g, BOB, "PUT /mine/key", "x-amz-acl: public-read", STR("x"), 200);
    with_list(g, ALICE, "x-amz-acl: public-read", 200); /* the bucket's owner */
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-grant-write: id=bob-id", NONE, 200);
    with_list(g, BOB, "x-amz-acl: public-read", 200); /* who may write by its list */
    set_policy(g, DENY("\"s3:PutObjectAcl\"") "," ALLOW("\"s3:PutObject\",\"s3:PutObjectAcl\""));
    with_list(g, ALICE, "x-amz-acl: public-read", 403);
    with_list(g, BOB, "x-amz-acl: public-read", 403);
    with_list(g, BOB, "x-amz-acl: bucket-owner-full-control", 403);
    gate_ask(g, BOB, "PUT /box/put", NULL, STR("x"), 200);
}

/* --- tags --- */

GATE_TEST(a_denial_of_tags_is_for_who_may_write_by_a_list_too)
{
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-grant-write: id=bob-id", NONE, 200);
    gate_ask(g, BOB, "PUT /box/key", "x-amz-tagging: a=b", STR("x"), 200);
    set_policy(g, DENY("\"s3:PutObjectTagging\""));
    gate_ask(g, BOB, "PUT /box/key", "x-amz-tagging: a=b", STR("x"), 403);
    gate_ask(g, BOB, "PUT /box/key", NULL, STR("x"), 200);
}

#define TAGS(value)                                                                                \
    "<Tagging><TagSet><Tag><Key>clear</Key><Value>" value "</Value></Tag></TagSet></Tagging>"
#define WHEN(effect, condition)                                                                    \
    "{\"Effect\":\"" effect "\",\"Principal\":\"*\",\"Action\":"                                   \
    "[\"s3:PutObject\",\"s3:PutObjectTagging\"],\"Resource\":\"arn:aws:s3:::box/*\","              \
    "\"Condition\":" condition "}"

/* As PutObject, PutObjectTagging and a form have them. */
static void with_tag(struct gate *g, const char *value, int put, int tag, int form)
{
    struct buf text = BUF_INIT(0);

    buf_appendf(&text, "x-amz-tagging: clear=%s", value);
    gate_ask(g, BOB, "PUT /box/put", text.p, STR("x"), put);
    buf_reset(&text);
    buf_appendf(&text, TAGS("%s"), value);
    gate_ask(g, BOB, "PUT /box/key?tagging", NULL, buf_str(&text), tag);
    /* the header is none of that operation's */
    gate_ask(g, BOB, "PUT /box/key?tagging", "x-amz-tagging: clear=no", buf_str(&text), tag);
    buf_reset(&text);
    buf_appendf(&text,
                "--b\r\nContent-Disposition: form-data; name=\"tagging\"\r\n\r\n" TAGS("%s") "\r\n",
                value);
    post(g, text.p, form);
    buf_release(&text);
}

GATE_TEST(a_policy_may_speak_of_the_tags_that_a_request_sets)
{
    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    set_policy(g, ALLOW("\"s3:PutObject\",\"s3:PutObjectTagging\"") "," WHEN(
                      "Deny", "{\"StringEquals\":{\"s3:RequestObjectTag/clear\":\"yes\"}}"));
    with_tag(g, "yes", 403, 403, 403);
    with_tag(g, "no", 200, 200, 204);
    gate_do(g, "GET /box/form?tagging", 200);
    CHECK_STR(gate_element(g, "Value"), STR("no"));

    set_policy(g, WHEN("Allow", "{\"StringEquals\":{\"s3:RequestObjectTag/clear\":\"no\"}}"));
    with_tag(g, "yes", 403, 403, 403);
    with_tag(g, "no", 200, 200, 204);
    set_policy(g, WHEN("Allow", "{\"ForAnyValue:StringEquals\":{\"s3:RequestObjectTagKeys\":"
                                "[\"clear\"]}}"));
    with_tag(g, "no", 200, 200, 204);
    gate_ask(g, BOB, "PUT /box/key?tagging", NULL, STR("<Tagging><TagSet/></Tagging>"), 403);
    gate_ask(g, BOB, "PUT /box/key?tagging", NULL, STR("<Tagging>"), 403);
    gate_ask(g, ALICE, "PUT /box/key?tagging", NULL, STR("<Tagging>"), 400);
    gate_do(g, "GET /box/key?tagging", 200);
    CHECK_STR(gate_element(g, "Value"), STR("no"));
}

static void copy_tagged(struct gate *g, const char *key, const char *headers, int status)
{
    char text[200];

    snprintf(text, sizeof(text), "x-amz-copy-source: mine/%s%s", key, headers);
    gate_ask(g, BOB, "PUT /box/copy", text, NONE, status);
}

/* Not of a header that the copy does not have them from. */
GATE_TEST(a_policy_may_speak_of_the_tags_that_a_copy_brings)
{
    static const char *const lie = "\nx-amz-tagging: clear=no";

    gate_ask(g, BOB, "PUT /mine", NULL, NONE, 200);
    gate_ask(g, BOB, "PUT /mine/yes", "x-amz-tagging: clear=yes", STR("x"), 200);
    gate_ask(g, BOB, "PUT /mine/no", "x-amz-tagging: clear=no", STR("x"), 200);
    set_policy(g, WHEN("Allow", "{\"StringEquals\":{\"s3:RequestObjectTag/clear\":\"no\"}}"));
    gate_ask(g, BOB, "PUT /box/put", "x-amz-tagging: clear=yes", STR("x"), 403);
    copy_tagged(g, "yes", "", 403);
    copy_tagged(g, "yes", lie, 403);
    copy_tagged(g, "yes", "\nx-amz-tagging-directive: COPY\nx-amz-tagging: clear=no", 403);
    copy_tagged(g, "yes", "\nx-amz-tagging-directive: REPLACE\nx-amz-tagging: clear=yes", 403);
    copy_tagged(g, "yes", "\nx-amz-tagging-directive: REPLACE\nx-amz-tagging: clear=no", 200);

    set_policy(
        g, ALLOW("\"s3:PutObject\",\"s3:PutObjectTagging\"") ","
                                                             "{\"Effect\":\"Deny\",\"Principal\":"
                                                             "\"*\",\"Action\":\"s3:PutObject\","
                                                             "\"Resource\":\"arn:aws:s3:::box/"
                                                             "*\",\"Condition\":{\"StringEquals\":"
                                                             "{\"s3:RequestObjectTag/"
                                                             "clear\":\"yes\"}}}");
    copy_tagged(g, "yes", "", 403);
    copy_tagged(g, "yes", lie, 403);
    copy_tagged(g, "no", "\nx-amz-tagging: clear=yes", 200);
    copy_tagged(g, "no", "", 200);
}

/* Ten tags of the longest values, of characters that take the most room. */
GATE_TEST(the_longest_tags_come_back_whole)
{
    struct buf xml = BUF_INIT(0);

    gate_ask(g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    buf_append_z(&xml, "<Tagging><TagSet>");
    for (int i = 0; i < 10; i++) {
        buf_appendf(&xml, "<Tag><Key>k%d</Key><Value>", i);
        for (int k = 0; k < 255; k++)
            buf_append_z(&xml, "\xe6\xb0\xb4");
        buf_appendf(&xml, "%d</Value></Tag>", i);
    }
    buf_append_z(&xml, "</TagSet></Tagging>");
    gate_ask(g, ALICE, "PUT /box/key?tagging", NULL, buf_str(&xml), 200);
    gate_do(g, "GET /box/key?tagging", 200);
    CHECK(gate_has(g, "\xe6\xb0\xb4"
                      "9</Value>"));
    buf_release(&xml);
}

GATE_TEST(tags_are_copied_by_who_may_read_them)
{
    gate_ask(g, ALICE, "PUT /box/key", "x-amz-tagging: salary=1000", STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box/plain", NULL, STR("x"), 200);
    gate_ask(g, BOB, "PUT /mine", NULL, NONE, 200);
    set_policy(g, ALLOW("\"s3:GetObject\""));
    gate_ask(g, BOB, "PUT /mine/copy", "x-amz-copy-source: /box/key", NONE, 403);
    gate_ask(g, BOB, "HEAD /mine/copy", NULL, NONE, 404);
    gate_ask(g, BOB, "PUT /mine/copy", "x-amz-copy-source: /box/plain", NONE, 200);
    gate_ask(g, BOB, "PUT /mine/copy",
             "x-amz-copy-source: /box/key\nx-amz-tagging-directive: REPLACE", NONE, 200);
    set_policy(g, ALLOW("\"s3:GetObject\",\"s3:GetObjectTagging\""));
    gate_ask(g, BOB, "PUT /mine/copy", "x-amz-copy-source: /box/key", NONE, 200);
    gate_ask(g, BOB, "GET /mine/copy?tagging", NULL, NONE, 200);
    CHECK_STR(gate_element(g, "Value"), STR("1000"));
    set_policy(g, DENY("\"s3:PutObjectTagging\""));
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/key", NONE, 403);
}

/* --- principals --- */

static void name_principal(struct gate *g, const char *effect, const char *principal, int status)
{
    struct buf json = BUF_INIT(0);

    buf_appendf(&json,
                "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"%s\",%s,\"Action\":"
                "\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::box/*\"}]}",
                effect, principal);
    gate_ask(g, ALICE, "PUT /box?policy", NULL, buf_str(&json), status);
    if (status == 400)
        GATE_ERROR(g, "MalformedPolicy");
    buf_release(&json);
}

GATE_TEST(who_a_policy_names_exists)
{
    static const struct {
        const char *principal;
        int allow, deny;
    } rows[] = {
        {"\"*\"", 204, 204},
        {"{\"AWS\":\"bob-id\"}", 204, 204},
        {"{\"CanonicalUser\":\"bob-id\"}", 204, 204},
        {"{\"AWS\":[\"arn:aws:iam::bob-id:root\",\"arn:aws:iam::bob-id:user/bob\"]}", 204, 204},
        {"{\"AWS\":\"arn:aws:iam:::user/path/bob\"}", 204, 204},
        {"{\"AWS\":\"arn:aws:iam:::user/bob-id\"}", 204, 204},
        {"{\"Service\":\"logging.s3.amazonaws.com\"}", 204, 204},
        {"{\"AWS\":\"deadbeef\"}", 400, 400},
        {"{\"AWS\":\"bob\"}", 400, 400}, /* a name is no id */
        {"{\"CanonicalUser\":\"deadbeef\"}", 400, 400},
        {"{\"AWS\":\"arn:aws:iam:::user/nobody\"}", 400, 400},
        {"{\"AWS\":\"arn:aws:iam::123456789012:user/bob\"}", 400, 400},
        {"{\"AWS\":[\"bob-id\",\"deadbeef\"]}", 400, 400},
        {"{\"AWS\":\"arn:aws:iam::123456789012:root\"}", 204, 400},
        {"{\"AWS\":\"arn:aws:iam::123456789012:role/r\"}", 204, 400},
    };
    struct buf text = BUF_INIT(0);

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        buf_reset(&text);
        buf_appendf(&text, "\"Principal\":%s", rows[i].principal);
        name_principal(g, "Allow", text.p, rows[i].allow);
        name_principal(g, "Deny", text.p, rows[i].deny);
    }
    name_principal(g, "Deny", "\"NotPrincipal\":{\"AWS\":\"deadbeef\"}", 400);
    buf_release(&text);
}
