/* A gateway that serves a bucket of a space and a bucket that lies over two storages, while buckets
 * beside them and the latter itself are replicated. Neither bucket has a storage. */
#include "coord/lock.h"
#include "coord/replication.h"
#include "replica/tap/tap.h"
#include "s3/gateway/gateway_int.h"
#include "store/store_int.h"
#include "unit/object/fake_overlay.h"
#include "unit/s3/gateway_lab.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define NONE STR_EMPTY

struct kinds {
    struct gate g;
    struct store *stores[STORE_DATABASES];
    struct queue *queue;
    struct locks *locks;
    struct replications *replications;
    struct taps *taps;
    struct storage *under; /* of the space */
    struct fake_space space;
    struct fake_overlay overlay; /* at home on "local", with parts on "two" too */
};

static struct storage *open_folder(struct kinds *k, const char *name, uint32_t id)
{
    char folder[256];
    struct local_options o = {.name = name,
                              .folder = folder,
                              .db = k->g.db,
                              .id = id,
                              .reserve_bytes = 1,
                              .part_min = 100};
    struct storage *s = NULL;
    struct err err = {0};

    snprintf(folder, sizeof(folder), "%s/%s", test_dir(), name);
    CHECK_OK(local_open(&s, &o, &err));
    return s;
}

static void kinds_replicate(struct kinds *k, const char *bucket)
{
    struct replication_new n = {
        .id = {STR("alice-id"), str_z(bucket), STR("local"), STR("two"), STR_EMPTY},
        .init_done = bucket[0] != 0};
    struct replication_view *view = NULL;
    struct err err = {0};

    CHECK_OK(replication_add(k->replications, &n, STR("local"), &err));
    CHECK_OK(replications_view(k->replications, &view, &err));
    while (taps_epoch(k->taps) < replication_view_epoch(view))
        sched_yield();
    replication_view_unref(view);
}

static void kinds_open_taps(struct kinds *k)
{
    struct err err = {0};

    for (int i = 0; i < STORE_DATABASES; i++)
        CHECK_OK(store_open_embedded(&k->stores[i], k->g.db, i, STORE_DURABLE, NULL, &err));
    CHECK_OK(store_join(k->stores, STORE_DATABASES, &err));
    k->queue = queue_new(k->stores[1]);
    CHECK_OK(locks_open(&k->locks, &(struct locks_options){.store = k->stores[2]}, &err));
    CHECK_OK(replications_open(&k->replications,
                               &(struct replications_options){.app = k->stores[0],
                                                              .queue = k->stores[1],
                                                              .config = k->stores[3]},
                               &err));
    CHECK_OK(taps_open(&k->taps,
                       &(struct taps_options){.replications = k->replications,
                                              .queue = k->queue,
                                              .locks = k->locks,
                                              .routes = k->g.routes},
                       &err));
    k->g.gateway->o.capture = taps_capture(k->taps);
}

/* Buckets of alice's: "plain-box", "repo" of the space, and "wide" of the overlay. All buckets of
 * hers are replicated, and two of them by a replication of their own. */
static void kinds_start(struct kinds *k)
{
    struct bucket_info repo = {.name = STR("repo"), .owner = STR("alice-id")};
    struct storage *two;
    struct err err = {0};

    *k = (struct kinds){0};
    gate_start(&k->g);
    two = open_folder(k, "two", 7);
    CHECK_OK(routes_add_storage(k->g.routes, two, &err));
    k->under = open_folder(k, "under", 8);
    fake_space_open(&k->space, k->under);
    CHECK_OK(routes_add_space(k->g.routes, &k->space.space, &err));
    fake_overlay_open(&k->overlay, routes_storage(k->g.routes, STR("local")), two, "m");
    routes_set_overlay(k->g.routes, &k->overlay.overlay);
    kinds_open_taps(k);
    kinds_replicate(k, "");
    kinds_replicate(k, "plain-box");
    kinds_replicate(k, "wide");
    CHECK_OK(storage_create_bucket(k->space.space.storage, &repo, &err));
    gate_do(&k->g, "PUT /plain-box", 200);
    gate_do(&k->g, "PUT /wide", 200);
}

static void kinds_stop(struct kinds *k)
{
    close(k->g.fd);
    buf_release(&k->g.raw);
    lab_end(&k->g.lab);
    taps_close(k->taps);
    gateway_free(k->g.gateway);
    access_log_close(k->g.access_log);
    notify_close(k->g.notify);
    users_close(k->g.users);
    replications_close(k->replications);
    routes_close(k->g.routes);
    fake_overlay_close(&k->overlay);
    fake_space_close(&k->space);
    k->under->ops->close(k->under);
    locks_close(k->locks);
    queue_free(k->queue);
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(k->stores[i]);
    store_close(k->g.store);
    db_close(k->g.db);
}

/* "METHOD /bucket rest", asked by `who`. */
static void ask(struct gate *g, enum who who, const char *method, const char *bucket,
                const char *rest, const char *headers, struct str body, int status)
{
    char request[1024];

    snprintf(request, sizeof(request), "%s /%s%s", method, bucket, rest);
    gate_ask(g, who, request, headers, body, status);
}

static void check_body(struct gate *g, const char *bucket, const char *rest, const char *want)
{
    ask(g, ALICE, "GET", bucket, rest, NULL, NONE, 200);
    CHECK_STR(g->body, str_z(want));
}

static void check_objects(struct gate *g, const char *b)
{
    ask(g, ALICE, "PUT", b, "/a", "x-amz-meta-colour: red\n", STR("near"), 200);
    ask(g, ALICE, "PUT", b, "/z/1", NULL, STR("far"), 200);
    check_body(g, b, "/a", "near");
    CHECK_STR(gate_header(g, "x-amz-meta-colour"), STR("red"));
    check_body(g, b, "/z/1", "far");
    ask(g, ALICE, "HEAD", b, "/a", NULL, NONE, 200);
    ask(g, ALICE, "GET", b, "/none", NULL, NONE, 404);
    ask(g, ALICE, "GET", b, "?list-type=2", NULL, NONE, 200);
    CHECK(gate_has(g, "<Key>a</Key>") && gate_has(g, "<Key>z/1</Key>"));
    ask(g, ALICE, "GET", b, "?versions", NULL, NONE, 200);
    CHECK(gate_has(g, "<Key>z/1</Key>"));
    ask(g, ALICE, "PUT", b, "/a?tagging", NULL,
        STR("<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>"), 200);
    ask(g, ALICE, "GET", b, "/a?tagging", NULL, NONE, 200);
    CHECK_STR(gate_element(g, "Value"), STR("v"));
}

static void check_copies(struct gate *g, const char *b)
{
    char source[64];

    snprintf(source, sizeof(source), "x-amz-copy-source: %s/a\n", b);
    ask(g, ALICE, "PUT", b, "/x", source, NONE, 200); /* from one part to the other */
    check_body(g, b, "/x", "near");
    ask(g, ALICE, "PUT", "plain-box", "/from", source, NONE, 200);
    check_body(g, "plain-box", "/from", "near");
    ask(g, ALICE, "PUT", "plain-box", "/plain", NULL, STR("plain"), 200);
    ask(g, ALICE, "PUT", b, "/plain", "x-amz-copy-source: plain-box/plain\n", NONE, 200);
    check_body(g, b, "/plain", "plain");
}

static void check_upload(struct gate *g, const char *b)
{
    char id[256], rest[512], etag[64], list[256];
    struct str text;

    ask(g, ALICE, "POST", b, "/upload?uploads", NULL, NONE, 200);
    text = gate_element(g, "UploadId");
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(text));
    snprintf(rest, sizeof(rest), "/upload?partNumber=1&uploadId=%s", id);
    ask(g, ALICE, "PUT", b, rest, NULL, STR("one part"), 200);
    text = gate_header(g, "etag");
    snprintf(etag, sizeof(etag), STR_FMT, STR_ARG(text));
    ask(g, ALICE, "GET", b, "?uploads", NULL, NONE, 200);
    CHECK_STR(gate_element(g, "Key"), STR("upload"));
    snprintf(rest, sizeof(rest), "/upload?uploadId=%s", id);
    ask(g, ALICE, "GET", b, rest, NULL, NONE, 200);
    CHECK_STR(gate_element(g, "PartNumber"), STR("1"));
    snprintf(list, sizeof(list),
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
             "</CompleteMultipartUpload>",
             etag);
    ask(g, ALICE, "POST", b, rest, NULL, str_z(list), 200);
    check_body(g, b, "/upload", "one part");
}

/* What one request changes of a bucket's documents, the next one goes by. */
static void check_access(struct gate *g, const char *b)
{
    char policy[512];

    ask(g, BOB, "GET", b, "/a", NULL, NONE, 403);
    ask(g, NOBODY, "PUT", b, "/a", NULL, STR("mine"), 403);
    snprintf(policy, sizeof(policy),
             "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","
             "\"Action\":\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::%s/*\"}]}",
             b);
    ask(g, ALICE, "PUT", b, "?policy", NULL, str_z(policy), 204);
    ask(g, NOBODY, "GET", b, "/a", NULL, NONE, 200);
    ask(g, ALICE, "DELETE", b, "?policy", NULL, NONE, 204);
    ask(g, NOBODY, "GET", b, "/a", NULL, NONE, 403);
    ask(g, ALICE, "HEAD", b, "?read-stats=true", NULL, NONE, 200);
}

/* Lines of the access log are named after the bucket's home. */
static void check_log(struct gate *g, const char *b)
{
    ask(g, ALICE, "PUT", "plain-box", "?policy", NULL,
        STR("{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":"
            "{\"Service\":\"logging.s3.amazonaws.com\"},\"Action\":\"s3:PutObject\","
            "\"Resource\":\"arn:aws:s3:::plain-box/log/*\"}]}"),
        204);
    ask(g, ALICE, "PUT", b, "?logging", NULL,
        STR("<BucketLoggingStatus><LoggingEnabled><TargetBucket>plain-box</TargetBucket>"
            "<TargetPrefix>log/</TargetPrefix></LoggingEnabled></BucketLoggingStatus>"),
        200);
    check_body(g, b, "/a", "near");
    ask(g, ALICE, "POST", b, "?logging", NULL, NONE, 200);
    CHECK(gate_element(g, "FlushedLoggingObject").len > 0);
}

static void check_removals(struct gate *g, const char *b)
{
    ask(g, ALICE, "DELETE", b, "", NULL, NONE, 409);
    ask(g, ALICE, "DELETE", b, "/x", NULL, NONE, 204);
    ask(g, ALICE, "GET", b, "/x", NULL, NONE, 404);
    ask(g, ALICE, "POST", b, "?delete", NULL,
        STR("<Delete><Object><Key>a</Key></Object><Object><Key>z/1</Key></Object>"
            "<Object><Key>plain</Key></Object><Object><Key>upload</Key></Object></Delete>"),
        200);
    CHECK(gate_has(g, "<Key>z/1</Key>") && !gate_has(g, "<Error>"));
    ask(g, ALICE, "GET", b, "?list-type=2", NULL, NONE, 200);
    CHECK_STR(gate_element(g, "KeyCount"), STR("0"));
}

static void check_served(struct gate *g, const char *bucket)
{
    check_objects(g, bucket);
    check_copies(g, bucket);
    check_upload(g, bucket);
    check_access(g, bucket);
    check_log(g, bucket);
    check_removals(g, bucket);
    ask(g, ALICE, "DELETE", bucket, "", NULL, NONE, 204);
    ask(g, ALICE, "GET", bucket, "", NULL, NONE, 404);
}

TEST(kinds_gateway, a_bucket_of_a_space_is_served_while_others_are_replicated)
{
    struct kinds k;

    kinds_start(&k);
    struct gate *g = &k.g;
    gate_do(g, "GET /", 200);
    CHECK(gate_has(g, "<Name>repo</Name>") && gate_has(g, "<Name>plain-box</Name>"));
    gate_ask(g, BOB, "GET /", NULL, NONE, 200);
    CHECK(!gate_has(g, "<Name>repo</Name>"));
    gate_do(g, "PUT /repo", 409); /* nobody makes a bucket under its name */
    gate_ask(g, BOB, "PUT /repo", NULL, NONE, 409);
    check_served(g, "repo");
    gate_do(g, "PUT /repo", 200); /* the name is free, for a storage */
    kinds_stop(&k);
}

TEST(kinds_gateway, a_bucket_over_two_storages_is_served_while_it_is_replicated)
{
    struct kinds k;

    kinds_start(&k);
    struct gate *g = &k.g;
    gate_do(g, "GET /", 200);
    CHECK(gate_has(g, "<Name>wide</Name>") && !gate_has(g, "<Name>wide-far</Name>"));
    gate_do(g, "PUT /wide", 200); /* of its owner: it is there */
    gate_ask(g, BOB, "PUT /wide", NULL, NONE, 409);
    check_served(g, "wide");
    kinds_stop(&k);
}

/* A space hides a bucket of the same name, and the routes say so. */
TEST(kinds_gateway, a_space_is_asked_before_all_storages)
{
    struct bucket_info hidden = {.name = STR("repo"), .owner = STR("alice-id")};
    struct route_ask ask_for = {.user = STR("alice-id"), .bucket = STR("repo")};
    struct target t;
    struct kinds k;
    struct err err = {0};

    kinds_start(&k);
    struct storage *two = routes_storage(k.g.routes, STR("two"));
    CHECK_OK(two->ops->create_bucket(two, &hidden, &err));
    CHECK_ERR(route_resolve(k.g.routes, &ask_for, &t, &err), ERR_AGAIN); /* it may have to wait */
    ask_for.may_wait = true;
    CHECK_OK(route_resolve(k.g.routes, &ask_for, &t, &err));
    CHECK_INT(t.kind, TARGET_SPACE);
    CHECK(t.storage == k.space.space.storage && t.bucket && !t.bucket->storage);
    target_release(&t);
    ask_for.make = true;
    CHECK_OK(route_resolve(k.g.routes, &ask_for, &t, &err));
    CHECK_INT(t.kind, TARGET_TAKEN);
    ask_for = (struct route_ask){.user = STR("alice-id"), .bucket = STR("wide"), .may_wait = true};
    CHECK_OK(route_resolve(k.g.routes, &ask_for, &t, &err));
    CHECK_INT(t.kind, TARGET_HERE);
    CHECK(t.storage == k.overlay.home && t.bucket && !t.bucket->storage);
    target_release(&t);
    kinds_stop(&k);
}
