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
