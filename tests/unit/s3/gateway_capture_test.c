/* What the gateway announces of the changes that it makes. */
#include "unit/s3/forward_lab.h"

#include <stdio.h>

#define NONE STR_EMPTY

/* "<storage>/<bucket> <changes> <keys>: <outcome>;" for each, of remote storages and local ones
 * (whose changes have no end). */
static struct {
    struct mutex lock;
    struct buf text;
    bool refuses, late, ends_late; /* begin(), check(), end() */
    int in_time;                   /* of check(): so many times it is not yet */
    struct routes *moves;          /* begin() leads alice's box to the local storage */
    size_t keys;
} told;

static int begin(void *ctx, const struct intended *i, struct capture *out, struct err *err)
{
    (void)ctx;
    *out = (struct capture){.begun = !storage_can(i->storage, STORAGE_TELLS_CHANGES)};
    mutex_lock(&told.lock);
    buf_appendf(&told.text, STR_FMT "/" STR_FMT " %u", STR_ARG(i->storage->name),
                STR_ARG(i->bucket), i->changes);
    for (size_t k = 0; k < i->key_count && k < 3; k++)
        buf_appendf(&told.text, " " STR_FMT, STR_ARG(i->keys[k]));
    buf_append_z(&told.text, out->begun && !told.refuses ? ":" : ";");
    told.keys = i->key_count;
    bool refuses = told.refuses;
    mutex_unlock(&told.lock);
    out->begun = out->begun && !refuses;
    if (told.moves)
        CHECK(route_set(told.moves, STR("alice-id"), STR("box"), STR("local"), err) == 0);
    return refuses ? err_set(err, ERR_UNAVAILABLE, "so it was told") : 0;
}

static int late(bool is, struct err *err)
{
    return is ? err_set(err, ERR_BUSY, "so it was told") : 0;
}

static int check(void *ctx, const struct capture *c, struct err *err)
{
    (void)ctx, (void)c;
    mutex_lock(&told.lock);
    bool is = told.late && told.in_time-- <= 0;
    mutex_unlock(&told.lock);
    return late(is, err);
}

static int end(void *ctx, struct capture *c, enum outcome outcome, struct err *err)
{
    static const char *const names[] = {" done;", " refused;", " unknown;"};

    (void)ctx, (void)c;
    mutex_lock(&told.lock);
    buf_append_z(&told.text, names[outcome]);
    bool is = told.ends_late && outcome != OUTCOME_REFUSED;
    mutex_unlock(&told.lock);
    return late(is, err);
}

static const struct change_capture capture = {begin, check, end, NULL};

static void init(void)
{
    mutex_init(&told.lock, "capture.told");
    told.refuses = told.late = told.ends_late = false;
    told.moves = NULL;
    gate_set_capture(&capture);
}

static void release(void)
{
    gate_set_capture(NULL);
    buf_release(&told.text);
    mutex_release(&told.lock);
}

/* Of what was told since the last look. An answer may be there before its end was told. */
static void expect(const char *want)
{
    for (size_t len = 0; len < strlen(want);) {
        mutex_lock(&told.lock);
        len = told.text.len;
        mutex_unlock(&told.lock);
    }
    mutex_lock(&told.lock);
    CHECK_STR(buf_str(&told.text), str_z(want));
    buf_reset(&told.text);
    mutex_unlock(&told.lock);
}

static void answer_all(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r)) {
        peer_write_z(c, ctx);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

static void never_asked(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    (void)ctx;
    CHECK(!peer_read(c, &r));
    peer_request_release(&r);
}

static void break_off(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    (void)ctx;
    peer_read(c, &r);
    peer_request_release(&r);
}

TEST(gateway_capture, every_change_of_a_remote_storage_is_announced)
{
    struct pair p;

    init();
    pair_start_peer(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    struct gate *g = &p.front;
    gate_ask(g, ALICE, "PUT /box/a%20b", NULL, STR("hello"), 200);
    expect("back/box 7 a b: done;");
    gate_do(g, "DELETE /box/key", 200);
    expect("back/box 1 key: done;");
    gate_ask(g, ALICE, "PUT /box/to", "x-amz-copy-source: box/key", NONE, 200);
    expect("back/box 7 to: done;");
    gate_ask(g, ALICE, "POST /box/big?uploadId=u", NULL, STR("<x/>"), 200);
    expect("back/box 7 big: done;");
    gate_ask(g, ALICE, "PUT /box/key?tagging", NULL, STR("<x/>"), 200);
    expect("back/box 2 key: done;");
    gate_do(g, "PUT /box/key?acl", 200);
    expect("back/box 4 key: done;");
    gate_do(g, "PUT /fresh", 200);
    expect("back/fresh 64: done;");
    gate_do(g, "DELETE /box", 200);
    expect("back/box 128: done;");
    gate_ask(g, ALICE, "PUT /box?tagging", NULL, STR("<x/>"), 200);
    expect("back/box 16: done;");
    gate_do(g, "DELETE /box?lifecycle", 200);
    expect("back/box 8: done;");
    gate_ask(g, ALICE, "PUT /box/key?append&position=0", NULL, STR("more"), 200);
    expect("back/box 7 key: done;");
    pair_stop(&p);
    release();
}

/* A storage may pass over it, and do the operation. */
TEST(gateway_capture, a_parameter_that_is_not_known_hides_no_change)
{
    struct pair p;

    init();
    pair_start_peer(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    struct gate *g = &p.front;
    gate_ask(g, ALICE, "POST /box?delete&new=1", NULL,
             STR("<Delete><Object><Key>one</Key></Object><Object><Key>two</Key></Object></Delete>"),
             200);
    expect("back/box 9 one two: done;");
    gate_do(g, "DELETE /box/key?new=1", 200);
    expect("back/box 7 key: done;");
    gate_ask(g, ALICE, "PUT /box/key?acl&new=1", NULL, STR("<x/>"), 200);
    expect("back/box 7 key: done;");
    gate_ask(g, ALICE, "PUT /box/key?append&position=0", NULL, STR("x"), 200);
    expect("back/box 7 key: done;");
    gate_do(g, "DELETE /box?metrics&id=x", 200); /* whoever has no metrics removes the bucket */
    expect("back/box 136: done;");
    gate_do(g, "DELETE /box?acl", 200);
    expect("back/box 136: done;");
    gate_do(g, "DELETE /box?new", 200);
    expect("back/box 136: done;");
    gate_do(g, "PUT /fresh?new", 200);
    expect("back/fresh 72: done;");
    gate_do(g, "GET /box?new", 200);
    expect("");
    pair_stop(&p);
    release();
}

/* Either might be done, and each changes something else. */
TEST(gateway_capture, what_two_readers_may_take_for_two_things_is_not_sent)
{
    static const char *const asks[] = {
        "PUT /box/key?tagging&acl",
        "POST /box?delete&logging",
        "POST /box?metrics&delete",
        "DELETE /box/key?versionId=a&%76ersionId=b",
        "PUT /box/key?uploadId=a&partNumber=1&uploadId=b",
        "POST /box/key?uploads&uploadId=a",
        "POST /box?Delete",
        "DELETE /box/key?versionid=a",
        "COPY /box/key",
    };
    struct pair p;

    init();
    pair_start_peer(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
        gate_ask(&p.front, ALICE, asks[i], NULL, STR("<x/>"), i + 1 < ARRAY_SIZE(asks) ? 400 : 405);
    gate_ask(&p.front, ALICE, "POST /box/key?uploads", "content-type: multipart/form-data", NONE,
             200);
    gate_ask(&p.front, ALICE, "POST /box/key", "content-type: Multipart/Form-Data", STR("x"), 400);
    gate_ask(&p.front, ALICE, "POST /box?logging",
             "content-type: a\ncontent-type: multipart/form-data", STR("x"), 400);
    expect("");
    pair_stop(&p);
    release();
}

TEST(gateway_capture, what_changes_nothing_is_not_announced)
{
    struct pair p;

    init();
    pair_start_peer(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    struct gate *g = &p.front;
    gate_do(g, "GET /box/key", 200);
    gate_do(g, "GET /box?list-type=2", 200);
    gate_do(g, "POST /box/key?uploads", 200);
    gate_ask(g, ALICE, "PUT /box/key?uploadId=u&partNumber=1", NULL, STR("part"), 200);
    gate_do(g, "DELETE /box/key?uploadId=u", 200);
    gate_ask(g, NOBODY, "OPTIONS /box/key", "origin: http://x", NONE, 200);
    expect("");
    pair_stop(&p);
    release();
}

static void outcome_of(const char *answer, int status, const char *want)
{
    struct pair p;

    init();
    pair_start_peer(&p, answer_all, answer);
    gate_ask(&p.front, ALICE, "PUT /box/key", NULL, STR("hello"), status);
    expect(want);
    pair_stop(&p);
    release();
}

TEST(gateway_capture, a_definite_refusal_is_told_as_one)
{
    outcome_of("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 403,
               "back/box 7 key: refused;");
}

/* What was sent twice may have been refused the second time. */
TEST(gateway_capture, a_conflict_is_no_definite_refusal)
{
    outcome_of("HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n", 409,
               "back/box 7 key: unknown;");
}

TEST(gateway_capture, a_failure_of_the_storage_is_no_refusal)
{
    outcome_of("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", 500, "back/box 7 key: unknown;");
}

TEST(gateway_capture, a_storage_that_breaks_off_may_have_acted)
{
    struct pair p;

    init();
    pair_start_peer(&p, break_off, NULL);
    gate_ask(&p.front, ALICE, "DELETE /box/key", NULL, NONE, 0);
    expect("back/box 1 key: unknown;");
    pair_stop(&p);
    release();
}

/* R5 */
TEST(gateway_capture, what_cannot_be_announced_is_not_sent)
{
    struct pair p;

    init();
    pair_start_peer(&p, never_asked, NULL);
    told.refuses = true;
    gate_ask(&p.front, ALICE, "PUT /box/key", NULL, STR("hello"), 503);
    GATE_ERROR(&p.front, "ServiceUnavailable");
    CHECK(gate_header(&p.front, "retry-after").len);
    expect("back/box 7 key;");
    pair_stop(&p);
    release();
}

TEST(gateway_capture, a_removal_of_many_names_its_keys)
{
    struct buf body = BUF_INIT(0), head = BUF_INIT(0);
    struct pair p;
    char sum[64];

    init();
    pair_start(&p);
    struct gate *g = &p.front;
    gate_do(g, "PUT /box", 200);
    gate_ask(g, ALICE, "PUT /box/two", NULL, STR("2"), 200);
    expect("back/box 64: done;back/box 7 two: done;");
    buf_append_z(&body, "<Delete><Object><Key>one</Key></Object><Object><Key>two</Key></Object>");
    for (int i = 0; i < 900; i++) /* more than is read ahead otherwise */
        buf_appendf(&body, "<Object><Key>%0100d</Key></Object>", i);
    buf_append_z(&body, "</Delete>");
    pair_checksum(sum, DIGEST_MD5, buf_str(&body));
    buf_appendf(&head, "content-md5: %s", sum);
    gate_ask(g, ALICE, "POST /box?delete", head.p, buf_str(&body), 200);
    char want[200];
    snprintf(want, sizeof(want), "back/box 1 one two %0100d: done;", 0);
    expect(want);
    CHECK_INT(told.keys, 902);
    gate_do(g, "HEAD /box/two", 404);
    gate_ask(g, ALICE, "POST /box?delete", NULL, STR("<Delete"), 400);
    GATE_ERROR(g, "MalformedXML");
    expect("");
    buf_release(&body);
    buf_release(&head);
    pair_stop(&p);
    release();
}

TEST(gateway_capture, forms_and_copies_between_storages_are_announced)
{
    struct str form = STR("--X\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nposted\r\n"
                          "--X\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n"
                          "bytes\r\n--X--\r\n");
    struct pair p;
    struct err err = {0};

    init();
    pair_start(&p);
    struct gate *g = &p.front;
    CHECK_OK(route_set(g->routes, STR("alice-id"), STR("here"), STR("local"), &err));
    gate_do(g, "PUT /box", 200);
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_do(g, "PUT /here", 200);
    gate_ask(g, ALICE, "PUT /here/a", NULL, STR("hello"), 200);
    expect("back/box 64: done;back/box 32: done;local/here 64;local/here 7 a;");
    gate_ask(g, NOBODY, "POST /box", "content-type: multipart/form-data; boundary=X", form, 204);
    expect("back/box 7 posted: done;");
    gate_ask(g, ALICE, "PUT /box/b", "x-amz-copy-source: here/a", NONE, 200);
    expect("back/box 7 b: done;");
    gate_ask(g, ALICE, "PUT /box/b", "x-amz-copy-source: here/none", NONE, 404);
    expect("back/box 7 b: refused;");
    gate_ask(g, ALICE, "PUT /here/c", "x-amz-copy-source: box/b", NONE, 200);
    expect("local/here 7 c;");
    pair_stop(&p);
    release();
}

TEST(gateway_capture, a_local_storage_is_asked_before_the_body_is_read)
{
    struct str form = STR("--X\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nposted\r\n"
                          "--X\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n"
                          "bytes\r\n--X--\r\n");
    struct gate g;

    init();
    gate_start(&g);
    gate_do(&g, "PUT /box", 200);
    gate_ask(&g, ALICE, "PUT /box?acl", "x-amz-acl: public-read-write", NONE, 200);
    gate_ask(&g, ALICE, "PUT /box/k", NULL, STR("hello"), 200);
    expect("local/box 64;local/box 32;local/box 7 k;");
    told.refuses = true;
    gate_ask(&g, ALICE, "PUT /box/k", NULL, STR("other"), 503);
    GATE_ERROR(&g, "ServiceUnavailable");
    gate_do(&g, "DELETE /box/k", 503);
    gate_ask(&g, ALICE, "POST /box?delete", NULL,
             STR("<Delete><Object><Key>k</Key></Object></Delete>"), 503);
    gate_ask(&g, NOBODY, "POST /box", "content-type: multipart/form-data; boundary=X", form, 503);
    gate_do(&g, "PUT /fresh", 503);
    gate_do(&g, "GET /box/k", 200);
    CHECK_STR(g.body, STR("hello"));
    expect("local/box 7 k;local/box 1 k;local/box 1;local/box 7 posted;local/fresh 64;");
    gate_ask(&g, BOB, "DELETE /box", NULL, NONE, 403); /* who may not is not told more */
    expect("");
    gate_stop(&g);
    release();
}

/* --- others may go on without this gateway (docs/replication.md, E2, E4) --- */

static void be_late(int in_time)
{
    told.late = told.ends_late = true;
    told.in_time = in_time;
}

TEST(gateway_capture, what_may_no_longer_be_sent_is_not_sent)
{
    struct pair p;

    init();
    be_late(0);
    pair_start_peer(&p, never_asked, NULL);
    gate_ask(&p.front, ALICE, "PUT /box/key", NULL, STR("hello"), 503);
    GATE_ERROR(&p.front, "SlowDown");
    expect("back/box 7 key: unknown;");
    gate_do(&p.front, "DELETE /box/key", 503);
    expect("back/box 1 key: unknown;");
    gate_do(&p.front, "PUT /fresh", 503);
    expect("back/fresh 64: unknown;");
    pair_stop(&p);
    release();
}

static void never_gets_all(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    (void)ctx;
    CHECK(peer_read_head(c, &r));
    CHECK(!peer_read_body(c, &r));
    peer_request_release(&r);
}

/* The gateway slept while the body was under way. */
TEST(gateway_capture, a_body_is_broken_off_before_its_end)
{
    static char body[1024 * 1024];
    struct pair p;

    init();
    be_late(1);
    pair_start_peer(&p, never_gets_all, NULL);
    gate_ask(&p.front, ALICE, "PUT /box/key", NULL, str_n(body, sizeof(body)), 503);
    GATE_ERROR(&p.front, "SlowDown");
    expect("back/box 7 key: unknown;");
    pair_stop(&p);
    release();
}

TEST(gateway_capture, nobody_is_told_of_a_success_that_came_too_late)
{
    struct pair p;

    init();
    told.ends_late = true;
    pair_start_peer(&p, answer_all, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    gate_ask(&p.front, ALICE, "PUT /box/key", NULL, STR("hello"), 503);
    GATE_ERROR(&p.front, "SlowDown");
    expect("back/box 7 key: done;");
    gate_ask(&p.front, ALICE, "PUT /box/to", "x-amz-copy-source: box/key", NONE, 503);
    expect("back/box 7 to: done;");
    pair_stop(&p);
    release();
}

static void never_changed(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read(c, &r)) {
        CHECK(r.head.method != HTTP_PUT);
        peer_write_z(c, ctx);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

/* Its last bytes would be, after minutes. */
TEST(gateway_capture, a_copy_between_storages_is_not_sent_too_late)
{
    struct err err = {0};
    struct pair p;

    init();
    pair_start_peer(&p, never_changed, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    CHECK_OK(route_set(p.front.routes, STR("alice-id"), STR("here"), STR("local"), &err));
    gate_do(&p.front, "PUT /here", 200);
    gate_ask(&p.front, ALICE, "PUT /here/key", NULL, STR("hello"), 200);
    expect("local/here 64;local/here 7 key;");
    be_late(0);
    gate_ask(&p.front, ALICE, "PUT /box/to", "x-amz-copy-source: here/key", NONE, 503);
    expect("back/box 7 to: unknown;");
    pair_stop(&p);
    release();
}

/* S5: the route was found before the body was read, say, and the change was counted. */
TEST(gateway_capture, a_change_does_not_go_where_the_bucket_no_longer_is)
{
    struct pair p;

    init();
    pair_start_peer(&p, never_asked, NULL);
    told.moves = p.front.routes;
    gate_ask(&p.front, ALICE, "PUT /box/key", NULL, STR("hello"), 503);
    GATE_ERROR(&p.front, "SlowDown");
    expect("back/box 7 key: refused;");
    pair_stop(&p);
    release();
}
