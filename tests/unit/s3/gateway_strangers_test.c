/* What strangers cannot do to others: have bodies read that could not be let in, hold threads with
 * forms, use up memory, make decisions slow. */
#include "s3/gateway/gateway_int.h"
#include "unit/s3/gateway_lab.h"

#include <stdio.h>
#include <unistd.h>

#define NONE STR_EMPTY
#define ALLOW(action)                                                                              \
    "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","        \
    "\"Action\":\"" action "\",\"Resource\":\"arn:aws:s3:::box/*\"}]}"

/* A head whose body never comes is answered all the same. */
static void ask_without_body(struct gate *g, const char *head, const char *code)
{
    close(g->fd);
    g->fd = lab_dial(&g->lab);
    lab_sayf(g->fd,
             "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
             "Content-Type: multipart/form-data; boundary=b\r\n\r\n",
             head);
    gate_answer(g);
    CHECK_STR(gate_element(g, "Code"), str_z(code));
    close(g->fd);
    g->fd = lab_dial(&g->lab);
}

GATE_TEST(keys_to_delete_are_not_read_from_strangers_who_could_delete_none)
{
    ask_without_body(g, "POST /box?delete", "AccessDenied");
    gate_ask(g, ALICE, "PUT /box?policy", NULL, STR(ALLOW("s3:GetObject")), 204);
    ask_without_body(g, "POST /box?delete", "AccessDenied");
    ask_without_body(g, "POST /none?delete", "NoSuchBucket");
}

GATE_TEST(keys_to_delete_are_read_from_strangers_who_could_delete_some)
{
    struct str keys = STR("<Delete><Object><Key>a</Key></Object></Delete>");

    gate_ask(g, ALICE, "PUT /box/a", NULL, STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box?policy", NULL, STR(ALLOW("s3:DeleteObjectVersion")), 204);
    gate_ask(g, NOBODY, "POST /box?delete", NULL, keys, 200);
    CHECK(gate_has(g, "<Code>AccessDenied</Code>")); /* a version that is not named */
    gate_ask(g, ALICE, "PUT /box?policy", NULL, STR(ALLOW("s3:DeleteObject")), 204);
    gate_ask(g, NOBODY, "POST /box?delete", NULL, keys, 200);
    CHECK(gate_has(g, "<Deleted>"));
    gate_do(g, "DELETE /box?policy", 204);
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_ask(g, NOBODY, "POST /box?delete", NULL, keys, 200);
    CHECK(gate_has(g, "<Deleted>"));
}

GATE_TEST(users_are_told_of_each_key_that_they_may_not_delete)
{
    gate_ask(g, BOB, "POST /box?delete", NULL,
             STR("<Delete><Object><Key>a</Key></Object></Delete>"), 200);
    CHECK(gate_has(g, "<Code>AccessDenied</Code>"));
}

GATE_TEST(tags_are_not_read_from_strangers_to_deny_them)
{
    gate_ask(g, ALICE, "PUT /box/a", NULL, STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box?policy", NULL,
             STR("{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Deny\","
                 "\"Principal\":\"*\",\"Action\":\"s3:PutObjectTagging\","
                 "\"Resource\":\"arn:aws:s3:::box/*\",\"Condition\":{\"StringEquals\":"
                 "{\"s3:RequestObjectTag/a\":\"b\"}}}]}"),
             204);
    ask_without_body(g, "PUT /box/a?tagging", "AccessDenied");
}

GATE_TEST(a_form_for_no_bucket_is_refused_before_it_is_read)
{
    ask_without_body(g, "POST /none", "NoSuchBucket");
}

GATE_TEST(silent_forms_hold_no_thread)
{
    enum { FORMS = 40 };
    int fds[FORMS];

    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    for (int i = 0; i < FORMS; i++) {
        fds[i] = lab_dial(&g->lab);
        lab_say(fds[i], STR("POST /box HTTP/1.1\r\nHost: a\r\nContent-Length: 121\r\nContent-Type: "
                            "multipart/form-data; boundary=b\r\nExpect: 100-continue\r\n\r\n"));
        char line[25]; /* each was looked at, and asked to go on */
        CHECK_INT(recv(fds[i], line, sizeof(line), MSG_WAITALL), sizeof(line));
    }
    LAB_UNTIL(pool_stats(g->lab.pool).busy == 0);
    CHECK_INT(pool_stats(g->lab.pool).aside, 0);
    gate_ask(g, ALICE, "PUT /box/a", NULL, STR("x"), 200);
    close(g->fd);
    g->fd = fds[0];
    lab_say(g->fd,
            STR("--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nform\r\n"
                "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nxyz\r\n--b--\r\n"));
    gate_answer(g);
    CHECK_INT(g->head.status, 204);
    for (int i = 1; i < FORMS; i++)
        close(fds[i]);
    gate_do(g, "GET /box/form", 200);
    CHECK_STR(g->body, STR("xyz"));
}

GATE_TEST(bodies_past_the_memory_for_all_of_them_are_told_to_slow_down)
{
    struct gateway *gateway = g->gateway;
    struct buf keys = BUF_INIT(MIB);

    buf_append_z(&keys, "<Delete>");
    for (int i = 0; i < 1000; i++)
        buf_appendf(&keys, "<Object><Key>%d-%080d</Key></Object>", i, i);
    buf_append_z(&keys, "</Delete>");
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gateway->documents.max = 4 * MIB;
    gateway->strangers.max = MIB;
    gate_ask(g, NOBODY, "POST /box?delete", NULL, buf_str(&keys), 200);
    CHECK_SOON(gateway->documents.used == 0 && gateway->strangers.used == 0);
    gateway->strangers.max = 100 * KIB; /* not enough for the text */
    gate_ask(g, NOBODY, "POST /box?delete", NULL, buf_str(&keys), 503);
    GATE_ERROR(g, "SlowDown");
    gate_ask(g, ALICE, "POST /box?delete", NULL, buf_str(&keys), 200);
    gateway->strangers.max = 200 * KIB; /* for the text, and not for what is made of it */
    gate_ask(g, NOBODY, "POST /box?delete", NULL, buf_str(&keys), 503);
    CHECK_SOON(gateway->documents.used == 0 && gateway->strangers.used == 0);
    gateway->documents.max = 100 * KIB;
    gate_ask(g, ALICE, "POST /box?delete", NULL, buf_str(&keys), 503);
    GATE_ERROR(g, "SlowDown");
    gate_ask(g, ALICE, "PUT /box/a", NULL, STR("x"), 200);
    CHECK_SOON(gateway->documents.used == 0);
    buf_release(&keys);
}

/* How many requests were handled where they may wait. */
static _Atomic(int) pools;

static int handle_counted(struct http_request *req, void *ctx)
{
    pools += http_may_block(req);
    return gateway_handle(req, ctx);
}

static void read_by_anybody(struct gate *g, int times)
{
    for (int i = 0; i < times; i++) {
        gate_ask(g, NOBODY, "GET /box/a", NULL, NONE, 200);
        CHECK_STR(g->body, STR("x"));
    }
}

GATE_TEST(large_policies_are_judged_where_there_is_time)
{
    struct buf policy = BUF_INIT(POLICY_MAX_BYTES);
    struct lab lab = {0};
    int first = g->fd;

    lab_start(&lab, (struct http_server_options){.handler = handle_counted, .ctx = g->gateway});
    g->fd = lab_dial(&lab);

    buf_append_z(&policy, "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\","
                          "\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":[");
    for (int i = 0; i < 100; i++)
        buf_appendf(&policy, "\"arn:aws:s3:::box/%d-%030d\",", i, i);
    buf_append_z(&policy, "\"arn:aws:s3:::box/*\"]}]}");
    CHECK(policy.len > POLICY_FAST_BYTES);
    gate_ask(g, ALICE, "PUT /box/a", NULL, STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box?policy", NULL, STR(ALLOW("s3:GetObject")), 204);
    pools = 0;
    read_by_anybody(g, 3);
    CHECK_INT(pools, 0);
    gate_ask(g, ALICE, "PUT /box?policy", NULL, buf_str(&policy), 204);
    pools = 0;
    read_by_anybody(g, 3); /* kept or not: each of them */
    CHECK_INT(pools, 3);
    close(g->fd);
    g->fd = first;
    lab_end(&lab);
    buf_release(&policy);
}
