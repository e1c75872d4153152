/* A gateway over two local storages, and a bucket that is switched from one to the other. */
#include "coord/lock.h"
#include "coord/switch.h"
#include "replica/switch/sides.h"
#include "replica/tap/tap.h"
#include "s3/gateway/gateway_int.h"
#include "store/store_int.h"
#include "unit/s3/gateway_lab.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

enum { OLD, NEW };
static const char *const names[] = {"local", "two"};

struct moving {
    struct gate g;
    struct store *stores[STORE_DATABASES];
    struct queue *queue;
    struct locks *locks;
    struct replications *replications;
    struct taps *taps;
    struct sides *sides;
    struct bucket *boxes[2];
    struct arena a;
};

static struct replication_id box_id(void)
{
    return (struct replication_id){STR("alice-id"), STR("box"), STR("local"), STR("two"),
                                   STR_EMPTY};
}

static void open_stores(struct moving *m)
{
    struct err err = {0};

    for (int i = 0; i < STORE_DATABASES; i++)
        CHECK_OK(store_open_embedded(&m->stores[i], m->g.db, i, STORE_DURABLE, NULL, &err));
    CHECK_OK(store_join(m->stores, STORE_DATABASES, &err));
    m->queue = queue_new(m->stores[1]);
    CHECK_OK(locks_open(&m->locks, &(struct locks_options){.store = m->stores[2]}, &err));
    CHECK_OK(replications_open(&m->replications,
                               &(struct replications_options){.app = m->stores[0],
                                                              .queue = m->stores[1],
                                                              .config = m->stores[3]},
                               &err));
}

static void open_boxes(struct moving *m)
{
    struct bucket_info info = {.name = STR("box"), .owner = STR("alice-id")};
    struct storage *two;
    char folder[256];
    struct local_options o = {
        .name = "two", .folder = folder, .db = m->g.db, .reserve_bytes = 1, .part_min = 100};
    struct err err = {0};

    snprintf(folder, sizeof(folder), "%s/two", test_dir());
    CHECK_OK(routes_add_local(m->g.routes, &o, &err));
    gate_do(&m->g, "PUT /box", 200);
    two = routes_storage(m->g.routes, STR("two"));
    CHECK_OK(two->ops->create_bucket(two, &info, &err));
    for (int i = 0; i < 2; i++) {
        struct storage *s = routes_storage(m->g.routes, str_z(names[i]));
        CHECK_OK(s->ops->open_bucket(&m->boxes[i], s, STR_EMPTY, info.name, &err));
    }
}

static void await_epoch(struct moving *m)
{
    struct replication_view *view = NULL;
    struct err err = {0};

    CHECK_OK(replications_view(m->replications, &view, &err));
    while (taps_epoch(m->taps) < replication_view_epoch(view))
        sched_yield();
    replication_view_unref(view);
}

static void moving_start(struct moving *m)
{
    struct err err = {0};

    *m = (struct moving){.a = ARENA_INIT(0)};
    gate_start(&m->g);
    open_boxes(m);
    open_stores(m);
    CHECK_OK(taps_open(&m->taps,
                       &(struct taps_options){.replications = m->replications,
                                              .queue = m->queue,
                                              .locks = m->locks,
                                              .routes = m->g.routes},
                       &err));
    m->sides = sides_new(&(struct sides_options){.replications = m->replications,
                                                 .routes = m->g.routes,
                                                 .taps = m->taps,
                                                 .app = m->stores[0],
                                                 .config = m->stores[3],
                                                 .wait_ms = 100});
    m->g.gateway->o.capture = taps_capture(m->taps);
    m->g.gateway->o.sides = sides_of_buckets(m->sides);
    struct replication_new n = {.id = box_id(), .init_done = true};
    CHECK_OK(replication_add(m->replications, &n, STR("local"), &err));
    await_epoch(m);
}

/* Like gate_stop(), but stops the other parts in between: when nothing is under way any more, and
 * the storages still exist. */
static void moving_stop(struct moving *m)
{
    close(m->g.fd);
    buf_release(&m->g.raw);
    lab_end(&m->g.lab);
    sides_free(m->sides);
    taps_close(m->taps);
    for (int i = 0; i < 2; i++)
        m->boxes[i]->ops->unref(m->boxes[i]);
    gateway_free(m->g.gateway);
    access_log_close(m->g.access_log);
    notify_close(m->g.notify);
    users_close(m->g.users);
    replications_close(m->replications);
    routes_close(m->g.routes);
    locks_close(m->locks);
    queue_free(m->queue);
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(m->stores[i]);
    store_close(m->g.store);
    db_close(m->g.db);
    arena_release(&m->a);
}

static struct bucket_switch read_switch(struct moving *m)
{
    struct bucket_switch s;
    struct err err = {0};

    CHECK_OK(switch_read(m->replications, &m->a, STR("alice-id"), STR("box"), &s, &err));
    return s;
}

static void announce(struct moving *m)
{
    struct replication_id id = box_id();
    struct switch_options o = {.multipart_ttl_ns = INT64_C(3600000000000)};
    struct task task = {.type = STR("t"), .id = STR("t"), .queue = STR("api")};
    struct err err = {0};

    CHECK_OK(switch_plan(m->replications, &id, &o, &task, STR("local"), &err));
    await_epoch(m);
}

static void begin(struct moving *m)
{
    struct err err = {0};

    announce(m);
    struct bucket_switch s = read_switch(m);
    CHECK_OK(switch_begin(m->replications, &s, STR("local"), &err));
    await_epoch(m);
}

static void give_up(struct moving *m)
{
    struct err err = {0};

    CHECK_OK(switch_abort(m->replications, STR("alice-id"), STR("box"), &err));
    await_epoch(m);
}

/* Does what a worker does after it has brought an object from one side to the other. */
static void confirm(struct moving *m, const char *key, int from)
{
    struct thing t = {THING_OBJECT, STR("box"), str_z(key), STR_EMPTY};
    struct place source = {.storage = str_z(names[from])}, to = {.storage = str_z(names[1 - from])};
    struct vector v;
    struct err err = {0};

    CHECK_OK(version_read(m->stores[0], &m->a, &t, &v, &err));
    int64_t number = vector_at(&v, &source);
    struct version_confirmation c = {
        .things = &t, .numbers = &number, .count = 1, .source = &source, .destination = &to};
    CHECK_OK(version_confirm(m->stores[0], &c, &err));
}

/* Puts an object on a side without a vector, as if it were older than the replication. */
static void plant(struct moving *m, const char *key, int side, const char *body)
{
    struct bucket *b = m->boxes[side];
    struct put_options o = {.meta.owner = STR("alice-id")};
    struct put_result out;
    struct str_reader reader;
    struct err err = {0};

    local_untap(b);
    str_reader_init(&reader, str_z(body));
    CHECK_OK(b->ops->put(b, &m->a, str_z(key), &reader.reader, strlen(body), &o, &out, &err));
}

static void put(struct moving *m, const char *key, const char *body, int status)
{
    char request[128];

    snprintf(request, sizeof(request), "PUT /box/%s", key);
    gate_ask(&m->g, ALICE, request, NULL, str_z(body), status);
}

/* `want` NULL: there must be no such object. */
static void expect(struct moving *m, const char *key, const char *body)
{
    char request[128];

    snprintf(request, sizeof(request), "GET /box/%s", key);
    gate_do(&m->g, request, body ? 200 : 404);
    if (body)
        CHECK_STR(m->g.body, str_z(body));
}

static bool on(struct moving *m, const char *key, int side)
{
    static const struct object_conditions none;
    struct get_result got;
    struct err err = {0};

    return m->boxes[side]->ops->head(m->boxes[side], &m->a, str_z(key), STR_EMPTY, &none, &got,
                                     &err) == 0;
}

#define MOVING_TEST(name)                                                                          \
    static void run_##name(struct moving *m);                                                      \
    TEST(sides, name)                                                                              \
    {                                                                                              \
        struct moving m;                                                                           \
        moving_start(&m);                                                                          \
        run_##name(&m);                                                                            \
        moving_stop(&m);                                                                           \
    }                                                                                              \
    static void run_##name(struct moving *m)

MOVING_TEST(reads_go_where_the_newest_is)
{
    plant(m, "planted", OLD, "1");
    plant(m, "planted", NEW, "1 copied");
    plant(m, "left", OLD, "2");
    put(m, "late", "3", 200); /* not brought over yet */
    announce(m);
    expect(m, "planted", "1"); /* the route leads to the old side */
    expect(m, "late", "3");
    put(m, "announced", "4", 200);
    CHECK(on(m, "announced", OLD) && !on(m, "announced", NEW));
    begin(m);
    expect(m, "planted", "1 copied");
    expect(m, "left", "2");
    expect(m, "late", "3");
    expect(m, "announced", "4");
    put(m, "late", "5", 200);
    put(m, "new", "6", 200);
    CHECK(on(m, "late", NEW) && on(m, "new", NEW) && !on(m, "new", OLD));
    expect(m, "late", "5");
    expect(m, "new", "6");
    expect(m, "none", NULL);
    gate_do(&m->g, "HEAD /box/new", 200);
    gate_do(&m->g, "HEAD /box", 200);
    gate_do(&m->g, "GET /box?location", 200);
}

MOVING_TEST(what_is_removed_stays_removed)
{
    plant(m, "a", OLD, "1");
    plant(m, "b", OLD, "1");
    plant(m, "c", OLD, "1");
    plant(m, "c", NEW, "1");
    put(m, "late", "2", 200);
    put(m, "d", "2", 200);
    begin(m);
    gate_do(&m->g, "DELETE /box/a", 204);
    gate_do(&m->g, "DELETE /box/c", 204);
    gate_do(&m->g, "DELETE /box/late", 204);
    gate_do(&m->g, "DELETE /box/never", 204);
    gate_ask(&m->g, ALICE, "POST /box?delete", NULL,
             STR("<Delete><Object><Key>b</Key></Object><Object><Key>d</Key></Object></Delete>"),
             200);
    CHECK(!gate_has(&m->g, "<Error>"));
    for (const char *const *key = (const char *const[]){"a", "b", "c", "d", "late", NULL}; *key;
         key++) {
        expect(m, *key, NULL);
        CHECK(on(m, *key, OLD));
    }
    gate_do(&m->g, "GET /box?list-type=2", 200);
    CHECK_STR(gate_element(&m->g, "KeyCount"), STR("0"));
    put(m, "a", "3", 200);
    expect(m, "a", "3");
}

MOVING_TEST(a_change_that_depends_on_what_has_not_come_waits_for_it)
{
    const char *tags =
        "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";

    put(m, "late", "1", 200);
    begin(m);
    gate_ask(&m->g, ALICE, "PUT /box/late", "If-None-Match: *\n", STR("2"), 503);
    gate_ask(&m->g, ALICE, "PUT /box/late?tagging", NULL, str_z(tags), 503);
    expect(m, "late", "1");
    plant(m, "late", NEW, "1");
    confirm(m, "late", OLD);
    gate_ask(&m->g, ALICE, "PUT /box/late", "If-None-Match: *\n", STR("2"), 412);
    gate_ask(&m->g, ALICE, "PUT /box/late?tagging", NULL, str_z(tags), 200);
    gate_do(&m->g, "GET /box/late?tagging", 200);
    CHECK(gate_has(&m->g, "<Value>v</Value>"));
    gate_ask(&m->g, ALICE, "PUT /box/other", "If-None-Match: *\n", STR("3"), 200);
    CHECK(on(m, "other", NEW));
    gate_do(&m->g, "DELETE /box", 409);
}

MOVING_TEST(a_copy_reads_its_source_where_the_newest_is)
{
    put(m, "late", "1", 200);
    plant(m, "late", NEW, "0");
    begin(m);
    gate_ask(&m->g, ALICE, "PUT /box/copy", "x-amz-copy-source: /box/late\n", STR_EMPTY, 200);
    CHECK(on(m, "copy", NEW) && !on(m, "copy", OLD));
    expect(m, "copy", "1");
    gate_do(&m->g, "POST /box/parts?uploads", 200);
    struct str id = arena_str(&m->a, gate_element(&m->g, "UploadId"));
    struct str request =
        arena_fmt(&m->a, "PUT /box/parts?partNumber=1&uploadId=" STR_FMT, STR_ARG(id));
    gate_ask(&m->g, ALICE, request.p, "x-amz-copy-source: /box/late\n", STR_EMPTY, 200);
}

static struct str begin_upload(struct moving *m, const char *key)
{
    struct str request = arena_fmt(&m->a, "POST /box/%s?uploads", key);

    gate_do(&m->g, request.p, 200);
    return arena_str(&m->a, gate_element(&m->g, "UploadId"));
}

static void end_upload(struct moving *m, const char *key, struct str id, int status)
{
    struct str part =
        arena_fmt(&m->a, "PUT /box/%s?partNumber=1&uploadId=" STR_FMT, key, STR_ARG(id));
    struct str end = arena_fmt(&m->a, "POST /box/%s?uploadId=" STR_FMT, key, STR_ARG(id));
    struct str parts = arena_fmt(&m->a, "GET /box/%s?uploadId=" STR_FMT, key, STR_ARG(id));

    gate_ask(&m->g, ALICE, part.p, NULL, STR("part"), status);
    struct str etag = arena_str(&m->a, gate_header(&m->g, "etag"));
    gate_do(&m->g, parts.p, status);
    struct str body = arena_fmt(&m->a,
                                "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
                                "<ETag>" STR_FMT "</ETag></Part></CompleteMultipartUpload>",
                                STR_ARG(etag));
    if (status == 200)
        gate_ask(&m->g, ALICE, end.p, NULL, body, 200);
}

static size_t remembered(struct moving *m)
{
    struct reply *reply;
    struct err err = {0};

    CHECK_OK(store_call(m->stores[0], &m->a, &reply, &err, STR("SCARD"), STR("s:up:alice-id:box")));
    return (size_t)reply->integer;
}

MOVING_TEST(uploads_end_where_they_were_begun)
{
    struct str before = begin_upload(m, "before"), open = begin_upload(m, "open");

    announce(m);
    struct str between = begin_upload(m, "between");
    begin(m);
    struct str after = begin_upload(m, "after"), given_up = begin_upload(m, "given-up");
    CHECK_INT(remembered(m), 2);
    gate_do(&m->g, "GET /box?uploads", 200);
    CHECK(gate_has(&m->g, "<Key>open</Key>") && gate_has(&m->g, "<Key>after</Key>"));
    end_upload(m, "before", before, 200);
    end_upload(m, "between", between, 200);
    end_upload(m, "after", after, 200);
    CHECK(on(m, "before", OLD) && !on(m, "before", NEW));
    CHECK(on(m, "between", OLD) && on(m, "after", NEW) && !on(m, "after", OLD));
    expect(m, "before", "part");
    expect(m, "after", "part");
    give_up(m);
    end_upload(m, "given-up", given_up, 200);
    end_upload(m, "open", open, 200);
    CHECK(on(m, "given-up", NEW) && on(m, "open", OLD));
    expect(m, "given-up", "part");
    expect(m, "open", "part");
    end_upload(m, "last", begin_upload(m, "last"), 200);
    CHECK(on(m, "last", OLD));
    end_upload(m, "last", STR("00000000000000000000000000000000"), 404);
}

MOVING_TEST(given_up_it_reads_what_was_written_meanwhile)
{
    plant(m, "k", OLD, "1");
    plant(m, "k", NEW, "1");
    plant(m, "gone", OLD, "1");
    plant(m, "gone", NEW, "1");
    begin(m);
    put(m, "k", "2", 200);
    put(m, "new", "3", 200);
    gate_do(&m->g, "DELETE /box/gone", 204);
    give_up(m);
    expect(m, "k", "2");
    expect(m, "new", "3");
    expect(m, "gone", NULL);
    put(m, "k", "4", 200); /* it does not wait for what has yet to go back */
    CHECK(on(m, "k", OLD));
    expect(m, "k", "4");
    gate_do(&m->g, "DELETE /box/new", 204);
    expect(m, "new", NULL);
    gate_do(&m->g, "GET /box?list-type=2", 200);
    CHECK_STR(gate_element(&m->g, "KeyCount"), STR("1"));
}

MOVING_TEST(a_batch_that_is_bound_to_what_is_there_waits_for_it)
{
    put(m, "late", "1", 200);
    begin(m);
    gate_ask(&m->g, ALICE, "POST /box?delete", NULL,
             STR("<Delete><Object><Key>late</Key><ETag>\"x\"</ETag></Object></Delete>"), 503);
    expect(m, "late", "1");
}

static _Atomic(unsigned) vector_reads;
static const struct store_engine *real_engine;

static int count_reads(struct store *s, struct arena *a, struct reply **out,
                       const struct script_run *run, struct err *err)
{
    vector_reads += str_eq(str_z(run->script->name), STR("version_read"));
    return real_engine->eval(s, a, out, run, err);
}

MOVING_TEST(a_batch_asks_for_all_its_keys_at_once)
{
    enum { KEYS = 60 };
    static struct store_engine engine;
    struct buf body = {0};
    char key[8];

    buf_append_z(&body, "<Delete>");
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "k%02d", i);
        if (i % 3 < 2)
            plant(m, key, OLD, "1");
        if (i % 3 == 1)
            put(m, key, "2", 200);
        buf_appendf(&body, "<Object><Key>%s</Key></Object>", key);
    }
    buf_append_z(&body, "</Delete>");
    begin(m);
    real_engine = m->stores[0]->engine;
    engine = *real_engine;
    engine.eval = count_reads;
    m->stores[0]->engine = &engine;
    gate_ask(&m->g, ALICE, "POST /box?delete", NULL, buf_str(&body), 200);
    CHECK(!gate_has(&m->g, "<Error>"));
    CHECK(gate_has(&m->g, "<Deleted><Key>k59</Key></Deleted>"));
    CHECK(vector_reads >= 2 &&
          vector_reads <= 3); /* one for the bucket, then one for all objects */
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "k%02d", i);
        expect(m, key, NULL);
    }
    m->stores[0]->engine = real_engine;
    buf_release(&body);
}

MOVING_TEST(listings_are_of_both_sides)
{
    plant(m, "a/1", OLD, "1");
    plant(m, "a/1", NEW, "1");
    plant(m, "b/1", OLD, "1");
    put(m, "c/1", "1", 200);
    begin(m);
    put(m, "d/1", "1", 200);
    gate_do(&m->g, "DELETE /box/b/1", 204);
    gate_do(&m->g, "GET /box?delimiter=/", 200);
    CHECK(gate_has(&m->g, "<Prefix>a/</Prefix>") && gate_has(&m->g, "<Prefix>c/</Prefix>"));
    CHECK(gate_has(&m->g, "<Prefix>d/</Prefix>") && !gate_has(&m->g, "<Prefix>b/</Prefix>"));
    gate_do(&m->g, "GET /box?list-type=2&max-keys=1", 200);
    CHECK_STR(gate_element(&m->g, "Key"), STR("a/1"));
    struct str token = gate_element(&m->g, "NextContinuationToken");
    struct str next = arena_fmt(
        &m->a, "GET /box?list-type=2&max-keys=1&continuation-token=" STR_FMT, STR_ARG(token));
    gate_do(&m->g, next.p, 200);
    CHECK_STR(gate_element(&m->g, "Key"), STR("c/1"));
    gate_do(&m->g, "GET /box?versions", 200);
    CHECK(gate_has(&m->g, "<Key>c/1</Key>") && !gate_has(&m->g, "<Key>b/1</Key>"));
    gate_ask(&m->g, BOB, "GET /box", NULL, STR_EMPTY, 403);
}

MOVING_TEST(a_version_is_found_where_it_is)
{
    const char *on_xml = "<VersioningConfiguration><Status>Enabled</Status></"
                         "VersioningConfiguration>";
    struct err err = {0};

    gate_ask(&m->g, ALICE, "PUT /box?versioning", NULL, str_z(on_xml), 200);
    CHECK_OK(m->boxes[NEW]->ops->set_versions(m->boxes[NEW], true, &err));
    put(m, "k", "1", 200);
    struct str old = arena_str(&m->a, gate_header(&m->g, "x-amz-version-id"));
    begin(m);
    put(m, "k", "2", 503); /* its versions must be brought over first */
    plant(m, "k", NEW, "1");
    confirm(m, "k", OLD);
    put(m, "k", "2", 200);
    expect(m, "k", "2");
    struct str request = arena_fmt(&m->a, "GET /box/k?versionId=" STR_FMT, STR_ARG(old));
    gate_do(&m->g, request.p, 200);
    CHECK_STR(m->g.body, STR("1"));
}

MOVING_TEST(the_policy_is_the_newest_one)
{
    const char *policy = "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\","
                         "\"Principal\":\"*\",\"Action\":\"s3:GetObject\","
                         "\"Resource\":\"arn:aws:s3:::box/*\"}]}";

    plant(m, "k", OLD, "1");
    plant(m, "k", NEW, "1");
    gate_ask(&m->g, ALICE, "PUT /box?policy", NULL, str_z(policy), 204);
    begin(m);
    gate_ask(&m->g, NOBODY, "GET /box/k", NULL, STR_EMPTY, 200); /* it has not come yet */
    gate_do(&m->g, "GET /box?policy", 200);
    gate_do(&m->g, "DELETE /box?policy", 503);
}

TEST(sides, a_bucket_in_no_switch_is_not_asked_about)
{
    struct moving m;

    moving_start(&m);
    CHECK(!atomic_load(m.g.gateway->o.sides->any));
    put(&m, "k", "1", 200);
    announce(&m);
    CHECK(atomic_load(m.g.gateway->o.sides->any));
    CHECK(sides_has(m.sides, m.boxes[OLD]->storage, STR("box")));
    CHECK(!sides_has(m.sides, m.boxes[OLD]->storage, STR("another")));
    gate_do(&m.g, "GET /", 200); /* it is one, though on two storages */
    ptrdiff_t first = str_find(m.g.body, STR("<Name>box</Name>"));
    CHECK(first >= 0 && str_find(str_skip(m.g.body, (size_t)first + 1), STR("<Name>")) < 0);
    gate_do(&m.g, "PUT /another", 200);
    gate_ask(&m.g, ALICE, "PUT /another/k", NULL, STR("2"), 200);
    gate_do(&m.g, "GET /another/k", 200);
    gate_do(&m.g, "DELETE /another/k", 204);
    gate_do(&m.g, "DELETE /another", 204);
    moving_stop(&m);
}
