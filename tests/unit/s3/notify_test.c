/* Notifications from a request to a webhook: docs/notifications.md. */
#include "base/clock.h"
#include "base/json.h"
#include "s3/lifecycle/lifecycle_sweep.h"
#include "sign/hmac.h"
#include "unit/s3/gateway_lab.h"
#include "unit/s3/notify_lab.h"

#include <stdio.h>

#define NONE STR_EMPTY

struct site {
    struct gate g;
    struct receiver r;
};

static void add_webhook(struct gate *g, const char *name, const char *url, const char *secret)
{
    struct err err = {0};

    CHECK_OK(notify_add_webhook(g->notify, str_z(name), str_z(url), str_z(secret), &err));
}

/* One rule for the webhook; `filter` is prefix=... or suffix=..., or NULL. */
static void rule(struct buf *xml, const char *webhook, const char *event, const char *filter)
{
    struct str name, value;

    buf_appendf(xml,
                "<TopicConfiguration><Id>%s</Id><Topic>arn:aws:sns:us-east-1::%s</Topic>"
                "<Event>%s</Event>",
                webhook, webhook, event);
    if (filter) {
        str_cut(str_z(filter), '=', &name, &value);
        buf_appendf(xml,
                    "<Filter><S3Key><FilterRule><Name>" STR_FMT "</Name><Value>" STR_FMT
                    "</Value></FilterRule></S3Key></Filter>",
                    STR_ARG(name), STR_ARG(value));
    }
    buf_append_z(xml, "</TopicConfiguration>");
}

static void configure(struct gate *g, const char *rules, int status)
{
    struct buf xml = BUF_INIT(0);

    buf_appendf(&xml, "<NotificationConfiguration>%s</NotificationConfiguration>", rules);
    gate_ask(g, ALICE, "PUT /box?notification", "x-amz-skip-destination-validation: true",
             buf_str(&xml), status);
    buf_release(&xml);
}

static void subscribe(struct gate *g, const char *event, const char *filter)
{
    struct buf xml = BUF_INIT(0);

    rule(&xml, "hook", event, filter);
    configure(g, xml.p, 200);
    buf_release(&xml);
}

/* A bucket "box" and a webhook "hook"; nothing is subscribed yet. */
static void site_start(struct site *s)
{
    gate_start(&s->g);
    receiver_start(&s->r);
    gate_do(&s->g, "PUT /box", 200);
    add_webhook(&s->g, "hook", s->r.url, "");
}

static void site_stop(struct site *s)
{
    receiver_hold(&s->r, false);
    gate_stop(&s->g);
    receiver_stop(&s->r);
}

#define SITE_TEST(name)                                                                            \
    static void run_##name(struct gate *g, struct receiver *r);                                    \
    TEST(notify, name)                                                                             \
    {                                                                                              \
        struct site s;                                                                             \
        site_start(&s);                                                                            \
        run_##name(&s.g, &s.r);                                                                    \
        site_stop(&s);                                                                             \
    }                                                                                              \
    static void run_##name(struct gate *g, struct receiver *r)

static void put(struct gate *g, const char *key)
{
    char request[128];

    snprintf(request, sizeof(request), "PUT /box/%s", key);
    gate_ask(g, ALICE, request, NULL, STR("hello"), 200);
}

static void put_numbered(struct gate *g, unsigned from, unsigned to)
{
    char key[16];

    for (unsigned i = from; i < to; i++) {
        snprintf(key, sizeof(key), "%03u", i);
        put(g, key);
    }
}

static struct str text_at(const json_t *object, const char *path)
{
    struct str rest = str_z(path), name;
    char one[64];

    while (str_token(&rest, ".", &name)) {
        snprintf(one, sizeof(one), STR_FMT, STR_ARG(name));
        object = json_object_get(object, one);
    }
    return object ? str_n(json_string_value(object), json_string_length(object)) : STR_EMPTY;
}

/* The only record of a call; the caller's. */
static json_t *record(struct receiver *r, size_t i)
{
    struct err err = {0};
    json_t *all = NULL, *one;

    CHECK_OK(json_read(&all, receiver_get(r, i).body, &err));
    CHECK_INT(json_array_size(json_object_get(all, "Records")), 1);
    one = json_incref(json_array_get(json_object_get(all, "Records"), 0));
    json_decref(all);
    return one;
}

/* Waits for it: "ObjectCreated:Put key". */
static void expect(struct receiver *r, size_t i, const char *want)
{
    struct buf text = BUF_INIT(0);
    json_t *one;

    receiver_wait(r, i + 1);
    one = record(r, i);
    buf_append_str(&text, text_at(one, "eventName"));
    buf_append_char(&text, ' ');
    buf_append_str(&text, text_at(one, "s3.object.key"));
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
    json_decref(one);
}

static void expect_numbered(struct receiver *r, size_t i, unsigned number)
{
    char want[64];

    snprintf(want, sizeof(want), "ObjectCreated:Put %03u", number);
    expect(r, i, want);
}

static struct notify_stats stats(struct gate *g)
{
    struct notify_stats s;

    notify_stats(g->notify, &s);
    return s;
}

SITE_TEST(a_record_is_as_aws_writes_it)
{
    subscribe(g, "s3:ObjectCreated:*", NULL);
    gate_ask(g, ALICE, "PUT /box/a%20b/%C3%BC%2B%25.txt", NULL, STR("hello"), 200);
    receiver_wait(r, 1);
    json_t *one = record(r, 0);
    CHECK_STR(text_at(one, "eventVersion"), STR("2.1"));
    CHECK_STR(text_at(one, "eventSource"), STR("aws:s3"));
    CHECK_STR(text_at(one, "awsRegion"), STR("us-east-1"));
    CHECK_INT(text_at(one, "eventTime").len, 24);
    CHECK_STR(text_at(one, "eventName"), STR("ObjectCreated:Put"));
    CHECK_STR(text_at(one, "userIdentity.principalId"), STR("alice-id"));
    CHECK_STR(text_at(one, "requestParameters.sourceIPAddress"), STR("127.0.0.1"));
    CHECK_STR(text_at(one, "responseElements.x-amz-request-id"),
              gate_header(g, "x-amz-request-id"));
    CHECK_STR(text_at(one, "s3.s3SchemaVersion"), STR("1.0"));
    CHECK_STR(text_at(one, "s3.configurationId"), STR("hook"));
    CHECK_STR(text_at(one, "s3.bucket.name"), STR("box"));
    CHECK_STR(text_at(one, "s3.bucket.arn"), STR("arn:aws:s3:::box"));
    CHECK_STR(text_at(one, "s3.bucket.ownerIdentity.principalId"), STR("alice-id"));
    CHECK_STR(text_at(one, "s3.object.key"), STR("a+b/%C3%BC%2B%25.txt"));
    CHECK_STR(text_at(one, "s3.object.eTag"), STR("5d41402abc4b2a76b9719d911017c592"));
    CHECK_INT(text_at(one, "s3.object.sequencer").len, 16);
    const json_t *object = json_object_get(json_object_get(one, "s3"), "object");
    CHECK_INT(json_integer_value(json_object_get(object, "size")), 5);
    CHECK(!json_object_get(object, "versionId"));
    json_decref(one);
}

SITE_TEST(each_operation_is_its_event)
{
    subscribe(g, "s3:ObjectCreated:*", NULL);
    struct buf xml = BUF_INIT(0);
    rule(&xml, "hook",
         "s3:ObjectCreated:*</Event><Event>s3:ObjectRemoved:*</Event>"
         "<Event>s3:ObjectTagging:*</Event><Event>s3:ObjectAcl:Put",
         NULL);
    configure(g, xml.p, 200);
    buf_release(&xml);
    put(g, "k");
    gate_ask(g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/k", NONE, 200);
    gate_ask(g, ALICE, "PUT /box/k?tagging", NULL,
             STR("<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>"),
             200);
    gate_do(g, "DELETE /box/k?tagging", 204);
    gate_ask(g, ALICE, "PUT /box/k?acl", "x-amz-acl: public-read", NONE, 200);
    gate_do(g, "DELETE /box/k", 204);
    gate_do(g, "DELETE /box/k", 204); /* nothing there: no event */
    gate_ask(g, ALICE, "POST /box?delete", NULL,
             STR("<Delete><Object><Key>copy</Key></Object><Object><Key>no</Key></Object></Delete>"),
             200);
    expect(r, 0, "ObjectCreated:Put k");
    expect(r, 1, "ObjectCreated:Copy copy");
    expect(r, 2, "ObjectTagging:Put k");
    expect(r, 3, "ObjectTagging:Delete k");
    expect(r, 4, "ObjectAcl:Put k");
    expect(r, 5, "ObjectRemoved:Delete k");
    expect(r, 6, "ObjectRemoved:Delete copy");
    gate_ask(g, ALICE, "PUT /box?versioning", NULL,
             STR("<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
             200);
    gate_do(g, "DELETE /box/k", 204);
    char request[128];
    snprintf(request, sizeof(request), "DELETE /box/k?versionId=" STR_FMT,
             STR_ARG(gate_header(g, "x-amz-version-id")));
    gate_do(g, request, 204);
    expect(r, 7, "ObjectRemoved:DeleteMarkerCreated k");
    expect(r, 8, "ObjectRemoved:Delete k");
    json_t *marker = record(r, 7), *removed = record(r, 8);
    CHECK_STR(text_at(marker, "s3.object.versionId"), text_at(removed, "s3.object.versionId"));
    CHECK(str_cmp(text_at(marker, "s3.object.sequencer"), text_at(removed, "s3.object.sequencer")) <
          0);
    json_decref(marker);
    json_decref(removed);
}

SITE_TEST(a_finished_upload_is_told_once)
{
    subscribe(g, "s3:ObjectCreated:CompleteMultipartUpload", NULL);
    gate_do(g, "POST /box/mp?uploads", 200);
    struct str id = gate_element(g, "UploadId");
    char part[256], finish[256];
    snprintf(part, sizeof(part), "PUT /box/mp?partNumber=1&uploadId=" STR_FMT, STR_ARG(id));
    snprintf(finish, sizeof(finish), "POST /box/mp?uploadId=" STR_FMT, STR_ARG(id));
    gate_ask(g, ALICE, part, NULL, STR("hello"), 200);
    struct str list = STR("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
                          "<ETag>5d41402abc4b2a76b9719d911017c592</ETag></Part>"
                          "</CompleteMultipartUpload>");
    gate_ask(g, ALICE, finish, NULL, list, 200);
    gate_ask(g, ALICE, finish, NULL, list, 200); /* again: the same answer, no change */
    expect(r, 0, "ObjectCreated:CompleteMultipartUpload mp");
    subscribe(g, "s3:ObjectCreated:Put", NULL);
    put(g, "last");
    expect(r, 1, "ObjectCreated:Put last");
}

SITE_TEST(events_and_keys_are_filtered)
{
    static const struct {
        const char *event, *filter, *key;
        bool told;
    } cases[] = {
        {"s3:ObjectCreated:*", NULL, "a", true},
        {"s3:ObjectCreated:Put", NULL, "b", true},
        {"s3:ObjectCreated:Copy", NULL, "c", false},
        {"s3:ObjectRemoved:*", NULL, "d", false},
        {"s3:ObjectCreated:*", "prefix=img/", "img/e", true},
        {"s3:ObjectCreated:*", "prefix=img/", "im", false},
        {"s3:ObjectCreated:*", "suffix=.jpg", "f.jpg", true},
        {"s3:ObjectCreated:*", "suffix=.jpg", "f.png", false},
    };
    size_t told = 0;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char want[64];
        subscribe(g, cases[i].event, cases[i].filter);
        put(g, cases[i].key);
        snprintf(want, sizeof(want), "ObjectCreated:Put %s", cases[i].key);
        if (cases[i].told)
            expect(r, told++, want);
    }
    subscribe(g, "s3:ObjectCreated:*", NULL);
    put(g, "end");
    expect(r, told, "ObjectCreated:Put end"); /* nothing came in between */
}

SITE_TEST(a_configuration_is_checked_kept_tested_and_removed)
{
    gate_do(g, "GET /box?notification", 200);
    CHECK(gate_has(g, "<NotificationConfiguration"));
    struct buf xml = BUF_INIT(0);
    rule(&xml, "nobody", "s3:ObjectCreated:*", NULL);
    configure(g, xml.p, 400);
    GATE_ERROR(g, "InvalidArgument");
    configure(g, "<EventBridgeConfiguration/>", 501);
    buf_reset(&xml);
    buf_append_z(&xml, "<NotificationConfiguration>");
    rule(&xml, "hook", "s3:ObjectCreated:*", NULL);
    buf_append_z(&xml, "</NotificationConfiguration>");
    gate_ask(g, ALICE, "PUT /box?notification", NULL, buf_str(&xml), 200);
    buf_release(&xml);
    receiver_wait(r, 1);
    struct str test = receiver_get(r, 0).body;
    CHECK(str_starts(test, STR("{\"Service\":\"Amazon S3\",\"Event\":\"s3:TestEvent\",\"Time\":")));
    CHECK(str_find(test, STR("\"Bucket\":\"box\"")) > 0);
    gate_do(g, "GET /box?notification", 200);
    CHECK(gate_has(g, "<Topic>arn:aws:sns:us-east-1::hook</Topic>"));
    gate_ask(g, BOB, "GET /box?notification", NULL, NONE, 403);
    put(g, "told");
    configure(g, "", 200);
    put(g, "untold");
    gate_do(g, "GET /box?notification", 200);
    CHECK(!gate_has(g, "Topic"));
    subscribe(g, "s3:ObjectCreated:*", NULL);
    put(g, "again");
    expect(r, 1, "ObjectCreated:Put told");
    expect(r, 2, "ObjectCreated:Put again");
}

SITE_TEST(nothing_is_lost_while_the_webhook_is_down)
{
    add_webhook(g, "hook", "http://127.0.0.1:1", "");
    subscribe(g, "s3:ObjectCreated:*", NULL);
    put_numbered(g, 0, 10);
    LAB_UNTIL(stats(g).failed > 0);
    CHECK_INT(stats(g).pending, 10);
    LAB_UNTIL(stats(g).oldest_ms > 0);
    gate_notify(g, NULL); /* a restart */
    CHECK_INT(stats(g).pending, 10);
    add_webhook(g, "hook", r->url, "");
    for (unsigned i = 0; i < 10; i++)
        expect_numbered(r, i, i);
    LAB_UNTIL(stats(g).pending == 0 && stats(g).delivered == 10);
    CHECK_INT(stats(g).dropped, 0);
}

SITE_TEST(an_error_is_no_delivery_and_order_is_kept)
{
    subscribe(g, "s3:ObjectCreated:*", NULL);
    receiver_answer(r, 503);
    put_numbered(g, 0, 5);
    receiver_wait_calls(r, 3);
    receiver_answer(r, 404);
    receiver_wait_calls(r, 5);
    receiver_answer(r, 302); /* not followed: it would become a GET */
    receiver_wait_calls(r, 7);
    CHECK_INT(receiver_taken(r), 0);
    receiver_answer(r, 204);
    for (unsigned i = 0; i < 5; i++)
        expect_numbered(r, i, i);
}

SITE_TEST(a_slow_webhook_holds_up_neither_writes_nor_another_webhook)
{
    struct receiver other;
    struct buf xml = BUF_INIT(0);

    receiver_start(&other);
    add_webhook(g, "other", other.url, "");
    rule(&xml, "hook", "s3:ObjectCreated:*", NULL);
    rule(&xml, "other", "s3:ObjectCreated:*", NULL);
    configure(g, xml.p, 200);
    buf_release(&xml);
    receiver_hold(r, true);
    put_numbered(g, 0, 20);
    expect_numbered(&other, 19, 19);
    CHECK_INT(receiver_taken(r), 0);
    receiver_hold(r, false);
    expect_numbered(r, 19, 19);
    struct err err = {0};
    CHECK_OK(notify_remove_webhook(g->notify, STR("other"), &err));
    receiver_stop(&other);
}

SITE_TEST(past_the_limits_the_oldest_are_given_up_and_counted)
{
    gate_notify(g, &(struct notify_options){.max_pending = 3});
    subscribe(g, "s3:ObjectCreated:*", NULL);
    receiver_answer(r, 500);
    put_numbered(g, 0, 10);
    LAB_UNTIL(stats(g).dropped == 7);
    CHECK_INT(stats(g).pending, 3);
    receiver_answer(r, 200);
    for (unsigned i = 0; i < 3; i++)
        expect_numbered(r, i, 7 + i);
    LAB_UNTIL(stats(g).pending == 0);
    gate_notify(g, &(struct notify_options){.max_age_ms = 1});
    receiver_answer(r, 500);
    put_numbered(g, 20, 22);
    LAB_UNTIL(stats(g).dropped == 2);
    LAB_UNTIL(stats(g).pending == 0);
}

SITE_TEST(a_webhook_that_goes_takes_what_waits_with_it)
{
    struct webhook_info *list;
    struct arena a = ARENA_INIT(0);
    struct err err = {0};
    size_t count;

    subscribe(g, "s3:ObjectCreated:*", NULL);
    receiver_answer(r, 500);
    put_numbered(g, 0, 4);
    CHECK_OK(notify_remove_webhook(g->notify, STR("hook"), &err));
    CHECK_INT(stats(g).dropped, 4);
    CHECK_ERR(notify_remove_webhook(g->notify, STR("hook"), &err), ERR_NOT_FOUND);
    put(g, "nowhere");
    CHECK_INT(stats(g).dropped, 5); /* counted, not kept for ever */
    receiver_answer(r, 200);
    add_webhook(g, "hook", r->url, "");
    put(g, "here");
    expect(r, 0, "ObjectCreated:Put here");
    CHECK_OK(notify_webhooks(g->notify, &a, &list, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(list[0].name, STR("hook"));
    CHECK_STR(list[0].url, str_z(r->url));
    arena_release(&a);
}

SITE_TEST(a_secret_signs_and_is_kept_sealed)
{
    unsigned char sum[HMAC_SHA256_LEN];
    struct arena a = ARENA_INIT(0);
    struct buf text = BUF_INIT(0), hex = BUF_INIT(0);
    struct reply *reply;
    struct err err = {0};

    add_webhook(g, "hook", r->url, "very-secret");
    CHECK_OK(store_call(g->store, &a, &reply, &err, STR("HGET"), STR("webhooks"), STR("hook")));
    CHECK(str_find(reply->str, STR("very-secret")) < 0);
    gate_notify(g, NULL); /* read back */
    subscribe(g, "s3:ObjectCreated:*", NULL);
    put(g, "k");
    receiver_wait(r, 1);
    struct received got = receiver_get(r, 0);
    struct str time, signature;
    CHECK(str_starts(got.signature, STR("t=")) &&
          str_cut(str_skip(got.signature, 2), ',', &time, &signature));
    buf_append_str(&text, time);
    buf_append_char(&text, '.');
    buf_append_str(&text, got.body);
    hmac_sha256(STR("very-secret"), buf_str(&text), sum);
    buf_append_hex(&hex, sum, sizeof(sum));
    CHECK_STR(str_skip(signature, 3), buf_str(&hex));
    buf_release(&text);
    buf_release(&hex);
    arena_release(&a);
}

SITE_TEST(names_and_urls_that_cannot_be_are_refused)
{
    static const char *const urls[] = {"", "ftp://x/", "http://", "no url", "http:///path"};
    static const char *const names[] = {"", "a:b", "a b", "a/b"};
    struct err err = {0};

    (void)r;
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++)
        CHECK_ERR(notify_add_webhook(g->notify, STR("x"), str_z(urls[i]), NONE, &err), ERR_INVALID);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        CHECK_ERR(notify_add_webhook(g->notify, str_z(names[i]), STR("http://x/"), NONE, &err),
                  ERR_INVALID);
}

SITE_TEST(what_weir_does_by_itself_is_told_too)
{
    struct arena a = ARENA_INIT(0);
    struct bucket *b = NULL;
    struct bucket_info info;
    struct err err = {0};
    bool wanted;

    put(g, "old");
    subscribe(g, "s3:LifecycleExpiration:*", NULL);
    CHECK_OK(route_bucket(g->routes, STR("alice-id"), STR("box"), &b, &err));
    CHECK_OK(b->ops->info(b, &a, &info, &err));
    struct notify_event e = {.bucket = &info, .key = STR("old"), .event = S3_EVENT_EXPIRED_DELETE};
    CHECK_OK(notify_event_own(&e, g->notify, &a, b, &wanted, &err));
    CHECK(wanted);
    struct remove_options o = {.note = &e.note};
    struct remove_result out;
    CHECK_OK(b->ops->remove(b, &a, STR("old"), &o, &out, &err));
    notify_sent(&e);
    expect(r, 0, "LifecycleExpiration:Delete old");
    json_t *one = record(r, 0);
    CHECK_STR(text_at(one, "eventVersion"), STR("2.3"));
    CHECK_STR(text_at(one, "userIdentity.principalId"), STR("s3.amazonaws.com"));
    json_decref(one);
    b->ops->unref(b);
    arena_release(&a);
}

SITE_TEST(a_sweep_of_lifecycle_rules_is_told)
{
    struct lifecycle_sweep sweep;
    struct bucket *b = NULL;
    struct err err = {0};

    put(g, "old");
    subscribe(g, "s3:LifecycleExpiration:*", NULL);
    gate_ask(g, ALICE, "PUT /box?lifecycle", NULL,
             STR("<LifecycleConfiguration><Rule><ID>x</ID><Status>Enabled</Status><Filter><Prefix>"
                 "</Prefix></Filter><Expiration><Days>1</Days></Expiration></Rule>"
                 "</LifecycleConfiguration>"),
             200);
    CHECK_OK(route_bucket(g->routes, STR("alice-id"), STR("box"), &b, &err));
    lifecycle_sweep_init(&sweep, b, MS_PER_DAY, NULL);
    sweep.notify = g->notify;
    while (!sweep.done)
        CHECK_OK(lifecycle_sweep_page(&sweep, clock_wall_ms() + 3 * MS_PER_DAY, &err));
    lifecycle_sweep_release(&sweep);
    b->ops->unref(b);
    expect(r, 0, "LifecycleExpiration:Delete old");
}
