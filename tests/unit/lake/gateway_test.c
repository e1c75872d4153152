/* The S3 gateway over repositories. */
#include "lake/bucket_int.h"
#include "object/overlay.h"
#include "lake/protect.h"
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

/* A gateway with a lake: alice has the bucket "lake-data" and the repository "repo". */
struct lake_gate {
    struct gate g;
    struct kv *kv;
    struct lake *lake;
    struct lake_space *space;
    struct lake_repo repo;
    struct arena arena;
};

static int lake_gate_create(struct lake_gate *t, const char *name, struct err *err)
{
    struct lake_repo_options o = {.id = str_z(name),
                                  .owner = STR("alice-id"),
                                  .space = arena_fmt(&t->arena, "s3://lake-data/%s", name)};

    return lake_repo_create(t->lake, &t->arena, &o, &t->repo, err);
}

static void lake_gate_start(struct lake_gate *t)
{
    struct err err = {0};

    *t = (struct lake_gate){0};
    gate_start(&t->g);
    CHECK_OK(kv_open_embedded(&t->kv, t->g.db, NULL, &err));
    struct lake_options o = {.kv = t->kv, .routes = t->g.routes, .cache.memory_bytes = 1 << 20};
    CHECK_OK(lake_open(&t->lake, &o, &err));
    struct lake_space_options s = {.lake = t->lake, .store = t->g.store};
    CHECK_OK(lake_space_open(&t->space, &s, &err));
    CHECK_OK(routes_add_space(t->g.routes, lake_space_buckets(t->space), &err));
    gate_do(&t->g, "PUT /lake-data", 200);
    CHECK_OK(lake_gate_create(t, "repo", &err));
}

static void lake_gate_stop(struct lake_gate *t)
{
    /* The gateway's facts hold buckets of the space. */
    struct routes *routes = t->g.routes;
    struct store *store = t->g.store;
    struct db *db = t->g.db;

    gate_stop_serving(&t->g);
    lake_space_close(t->space);
    lake_close(t->lake);
    kv_close(t->kv);
    arena_release(&t->arena);
    routes_close(routes);
    store_close(store);
    db_close(db);
}

/* Runs a test. `waits`: every request is served on a thread that may wait. */
static void lake_gate_run(void (*test)(struct lake_gate *t, struct gate *g), bool waits)
{
    struct lake_gate t;

    gate_set_waits(waits);
    lake_gate_start(&t);
    test(&t, &t.g);
    lake_gate_stop(&t);
}

/* A test in both ways in which a repository is read: without waiting where that can be, and always
 * on a thread that may wait. */
#define LAKE_GATE_TEST(name)                                                                       \
    static void lake_gate_##name(struct lake_gate *t, struct gate *g);                             \
    TEST(lake_gateway, name)                                                                       \
    {                                                                                              \
        lake_gate_run(lake_gate_##name, false);                                                    \
    }                                                                                              \
    TEST(lake_gateway_waits, name)                                                                 \
    {                                                                                              \
        lake_gate_run(lake_gate_##name, true);                                                     \
    }                                                                                              \
    static void lake_gate_##name(struct lake_gate *t, struct gate *g)

static void lake_gate_commit(struct lake_gate *t)
{
    struct lake_commit_options o = {.message = STR("m"), .committer = STR("c")};
    struct lake_commit commit;
    struct err err = {0};

    CHECK_OK(lake_commit(t->lake, &t->arena, &t->repo, STR("main"), &o, &commit, &err));
}

static void lake_gate_branch(struct lake_gate *t, const char *name)
{
    struct lake_branch_options o = {.name = str_z(name), .source = STR("main")};
    struct lake_branch branch;
    struct err err = {0};

    CHECK_OK(lake_branch_create(t->lake, &t->arena, &t->repo, &o, &branch, &err));
}

static void lake_gate_tag(struct lake_gate *t, const char *name)
{
    struct lake_tag tag;
    struct err err = {0};

    CHECK_OK(
        lake_tag_create(t->lake, &t->arena, &t->repo, str_z(name), STR("main"), false, &tag, &err));
}

/* Makes a branch from main that takes no writes. */
static void lake_gate_protect(struct lake_gate *t, const char *name)
{
    struct lake_protection_rule rule = {str_z(name), LAKE_PROTECT_STAGING};
    struct lake_protection rules = {.rules = &rule, .count = 1};
    struct lake_branch branch;
    struct err err = {0};

    CHECK_OK(lake_branch_create(
        t->lake, &t->arena, &t->repo,
        &(struct lake_branch_options){.name = str_z(name), .source = STR("main")}, &branch, &err));
    CHECK_OK(lake_protection_set(t->lake, &t->arena, &t->repo, &rules, NULL, &err));
}

/* How many objects the namespace has in its folder of bodies. */
static size_t lake_gate_bodies(struct gate *g)
{
    size_t count = 0;
    struct str rest;

    gate_do(g, "GET /lake-data?list-type=2&prefix=repo/data/", 200);
    for (rest = g->body; str_find(rest, STR("<Key>")) >= 0; count++)
        rest = str_skip(rest, (size_t)str_find(rest, STR("<Key>")) + 1);
    return count;
}

/* --- objects --- */

LAKE_GATE_TEST(an_object_is_put_read_and_removed)
{
    gate_ask(g, ALICE, "PUT /repo/main/a/b.txt",
             "content-type: text/plain\nx-amz-meta-Colour: red\nx-amz-tagging: k=v\n", STR("hello"),
             200);
    CHECK_STR(gate_header(g, "etag"), STR("\"5d41402abc4b2a76b9719d911017c592\""));
    gate_do(g, "GET /repo/main/a/b.txt", 200);
    CHECK_STR(g->body, STR("hello"));
    CHECK_STR(gate_header(g, "content-type"), STR("text/plain"));
    CHECK_STR(gate_header(g, "x-amz-meta-colour"), STR("red"));
    CHECK_STR(gate_header(g, "x-amz-tagging-count"), STR("1"));
    gate_do(g, "HEAD /repo/main/a/b.txt", 200);
    CHECK_STR(gate_header(g, "content-length"), STR("5"));
    gate_ask(g, ALICE, "GET /repo/main/a/b.txt", "range: bytes=1-2\n", STR_EMPTY, 206);
    CHECK_STR(g->body, STR("el"));
    gate_ask(g, ALICE, "GET /repo/main/a/b.txt", "range: bytes=9-\n", STR_EMPTY, 416);
    gate_ask(g, ALICE, "GET /repo/main/a/b.txt",
             "if-none-match: \"5d41402abc4b2a76b9719d911017c592\"\n", STR_EMPTY, 304);
    gate_do(g, "DELETE /repo/main/a/b.txt", 204);
    gate_do(g, "GET /repo/main/a/b.txt", 404);
    GATE_ERROR(g, "NoSuchKey");
    gate_do(g, "DELETE /repo/main/a/b.txt", 204);
    gate_do(g, "DELETE /repo/main/", 204);
}

LAKE_GATE_TEST(commits_tags_and_expressions_are_read)
{
    gate_ask(g, ALICE, "PUT /repo/main/k", NULL, STR("one"), 200);
    lake_gate_commit(t);
    lake_gate_tag(t, "v1");
    gate_ask(g, ALICE, "PUT /repo/main/k", NULL, STR("two"), 200);
    gate_do(g, "GET /repo/main/k", 200);
    CHECK_STR(g->body, STR("two"));
    gate_do(g, "GET /repo/main@/k", 200);
    CHECK_STR(g->body, STR("one"));
    gate_do(g, "GET /repo/v1/k", 200);
    CHECK_STR(g->body, STR("one"));
    lake_gate_commit(t);
    gate_do(g, "GET /repo/main~1/k", 200);
    CHECK_STR(g->body, STR("one"));
    gate_do(g, "GET /repo/main~2/k", 404);
    gate_do(g, "GET /repo/nowhere/k", 404);
    gate_do(g, "GET /repo?list-type=2&prefix=v1/", 200);
    CHECK(gate_has(g, "<Key>v1/k</Key>"));
}

LAKE_GATE_TEST(conditional_writes_are_judged)
{
    gate_ask(g, ALICE, "PUT /repo/main/k", "if-none-match: *\n", STR("1"), 200);
    gate_ask(g, ALICE, "PUT /repo/main/k", "if-none-match: *\n", STR("2"), 412);
    gate_ask(g, ALICE, "PUT /repo/main/k", "if-match: \"wrong\"\n", STR("2"), 412);
    gate_ask(g, ALICE, "PUT /repo/main/absent", "if-match: \"wrong\"\n", STR("2"), 404);
    CHECK_INT(lake_gate_bodies(g), 1); /* bodies of refused writes are removed */
    lake_gate_commit(t);
    gate_ask(g, ALICE, "PUT /repo/main/k", "if-none-match: *\n", STR("2"), 412);
    gate_ask(g, ALICE, "DELETE /repo/main/k", "if-match: \"wrong\"\n", STR_EMPTY, 412);
    gate_do(g, "GET /repo/main/k", 200);
    CHECK_STR(g->body, STR("1"));
}

LAKE_GATE_TEST(a_body_that_fails_its_checks_leaves_nothing)
{
    gate_ask(g, ALICE, "PUT /repo/main/k", "content-md5: 1B2M2Y8AsgTpgAmY7PhCfg==\n", STR("1"),
             400);
    GATE_ERROR(g, "BadDigest");
    gate_ask(g, ALICE, "PUT /repo/main/k", "x-amz-checksum-crc32: AAAAAA==\n", STR("1"), 400);
    gate_do(g, "GET /repo/main/k", 404);
    CHECK_INT(lake_gate_bodies(g), 0);
    gate_ask(g, ALICE, "PUT /repo/main/k", "content-md5: xMpCOKC5I4INzFCab3WEmw==\n", STR("1"),
             200);
    gate_ask(g, ALICE, "GET /repo/main/k", "x-amz-checksum-mode: ENABLED\n", STR_EMPTY, 200);
    CHECK(gate_header(g, "x-amz-checksum-crc64nvme").len > 0);
}

LAKE_GATE_TEST(a_copy_inside_a_repository_shares_the_body)
{
    gate_ask(g, ALICE, "PUT /repo/main/k", "x-amz-meta-a: 1\n", STR("body"), 200);
    lake_gate_branch(t, "dev");
    gate_ask(g, ALICE, "PUT /repo/dev/copy", "x-amz-copy-source: /repo/main/k\n", STR_EMPTY, 200);
    gate_do(g, "GET /repo/dev/copy", 200);
    CHECK_STR(g->body, STR("body"));
    CHECK_STR(gate_header(g, "x-amz-meta-a"), STR("1"));
    CHECK_INT(lake_gate_bodies(g), 1);
    gate_ask(
        g, ALICE, "PUT /repo/dev/other",
        "x-amz-copy-source: /repo/main/k\nx-amz-metadata-directive: REPLACE\nx-amz-meta-b: 2\n",
        STR_EMPTY, 200);
    gate_do(g, "HEAD /repo/dev/other", 200);
    CHECK_STR(gate_header(g, "x-amz-meta-b"), STR("2"));
    CHECK_INT(gate_header(g, "x-amz-meta-a").len, 0);
    CHECK_INT(lake_gate_bodies(g), 1);
}

LAKE_GATE_TEST(copies_from_and_to_plain_buckets_have_bodies_of_their_own)
{
    gate_do(g, "PUT /plain", 200);
    gate_ask(g, ALICE, "PUT /plain/k", NULL, STR("body"), 200);
    gate_ask(g, ALICE, "PUT /repo/main/k", "x-amz-copy-source: /plain/k\n", STR_EMPTY, 200);
    gate_do(g, "DELETE /plain/k", 204);
    gate_do(g, "GET /repo/main/k", 200);
    CHECK_STR(g->body, STR("body"));
    CHECK_INT(lake_gate_bodies(g), 1);
    gate_ask(g, ALICE, "PUT /plain/back", "x-amz-copy-source: /repo/main/k\n", STR_EMPTY, 200);
    gate_do(g, "DELETE /repo/main/k", 204);
    gate_do(g, "GET /plain/back", 200);
    CHECK_STR(g->body, STR("body"));
}

LAKE_GATE_TEST(a_copy_to_another_repository_has_a_body_of_its_own)
{
    struct err err = {0};

    gate_ask(g, ALICE, "PUT /repo/main/k", NULL, STR("body"), 200);
    CHECK_OK(lake_gate_create(t, "second", &err));
    gate_ask(g, ALICE, "PUT /second/main/k", "x-amz-copy-source: /repo/main/k\n", STR_EMPTY, 200);
    gate_do(g, "GET /second/main/k", 200);
    CHECK_STR(g->body, STR("body"));
    gate_do(g, "GET /lake-data?list-type=2&prefix=second/data/", 200);
    CHECK(gate_has(g, "<KeyCount>1</KeyCount>"));
}

LAKE_GATE_TEST(tags_are_set_and_are_a_change)
{
    static const char tags[] =
        "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";

    gate_ask(g, ALICE, "PUT /repo/main/k", NULL, STR("body"), 200);
    lake_gate_commit(t);
    gate_ask(g, ALICE, "PUT /repo/main/k?tagging", NULL, STR(tags), 200);
    gate_do(g, "GET /repo/main/k?tagging", 200);
    CHECK(gate_has(g, "<Key>a</Key>"));
    gate_do(g, "GET /repo/main@/k?tagging", 200);
    CHECK(!gate_has(g, "<Key>a</Key>"));
    lake_gate_commit(t);
    gate_do(g, "DELETE /repo/main/k?tagging", 204);
    gate_do(g, "GET /repo/main/k?tagging", 200);
    CHECK(!gate_has(g, "<Key>a</Key>"));
    gate_ask(g, ALICE, "PUT /repo/main/absent?tagging", NULL, STR(tags), 404);
}

LAKE_GATE_TEST(many_keys_are_removed_at_once)
{
    gate_ask(g, ALICE, "PUT /repo/main/a", NULL, STR("1"), 200);
    gate_ask(g, ALICE, "PUT /repo/main/b", NULL, STR("2"), 200);
    lake_gate_commit(t);
    lake_gate_tag(t, "v1");
    gate_ask(g, ALICE, "POST /repo?delete", "content-md5: none\n",
             STR("<Delete><Object><Key>main/a</Key></Object></Delete>"), 400);
    gate_ask(g, ALICE, "POST /repo?delete", NULL,
             STR("<Delete><Object><Key>main/a</Key></Object><Object><Key>main/</Key></Object>"
                 "<Object><Key>v1/b</Key></Object></Delete>"),
             200);
    CHECK(gate_has(g, "<Deleted><Key>main/a</Key></Deleted>"));
    CHECK(gate_has(g, "<Key>v1/b</Key><Code>AccessDenied</Code>"));
    CHECK(gate_has(g, "is not a branch"));
    gate_do(g, "GET /repo/main/a", 404);
    gate_do(g, "GET /repo/v1/b", 200);
}

/* --- uploads in parts --- */

static struct str lake_gate_upload(struct gate *g, struct arena *a, const char *key)
{
    gate_do(g, arena_fmt(a, "POST /repo/%s?uploads", key).p, 200);
    return arena_str(a, gate_element(g, "UploadId"));
}

LAKE_GATE_TEST(an_upload_in_parts_becomes_an_object)
{
    struct arena *a = &t->arena;
    char big[200];

    memset(big, 'x', sizeof(big));
    struct str id = lake_gate_upload(g, a, "main/dir/k");
    gate_do(g, "GET /repo?uploads&prefix=main/", 200);
    CHECK(gate_has(g, "<Key>main/dir/k</Key>"));
    gate_do(g, "GET /repo?uploads&prefix=main/&delimiter=/", 200);
    CHECK(gate_has(g, "<Prefix>main/dir/</Prefix>"));
    gate_ask(g, ALICE,
             arena_fmt(a, "PUT /repo/main/dir/k?partNumber=1&uploadId=" STR_FMT, STR_ARG(id)).p,
             NULL, str_n(big, sizeof(big)), 200);
    struct str one = arena_str(a, gate_header(g, "etag"));
    gate_ask(g, ALICE,
             arena_fmt(a, "PUT /repo/main/dir/k?partNumber=2&uploadId=" STR_FMT, STR_ARG(id)).p,
             NULL, STR("end"), 200);
    struct str two = arena_str(a, gate_header(g, "etag"));
    gate_do(g, arena_fmt(a, "GET /repo/main/dir/k?uploadId=" STR_FMT, STR_ARG(id)).p, 200);
    CHECK(gate_has(g, "<PartNumber>2</PartNumber>"));
    struct str list =
        arena_fmt(a,
                  "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" STR_FMT
                  "</ETag></Part><Part><PartNumber>2</PartNumber><ETag>" STR_FMT
                  "</ETag></Part></CompleteMultipartUpload>",
                  STR_ARG(one), STR_ARG(two));
    struct str finish = arena_fmt(a, "POST /repo/main/dir/k?uploadId=" STR_FMT, STR_ARG(id));
    gate_ask(g, ALICE, finish.p, NULL, list, 200);
    struct str etag = arena_str(a, gate_element(g, "ETag"));
    gate_ask(g, ALICE, finish.p, NULL, list, 200);
    CHECK_STR(gate_element(g, "ETag"), etag);
    gate_do(g, "GET /repo/main/dir/k", 200);
    CHECK_INT(g->body.len, 203);
    gate_do(g, "GET /repo/main/dir/k?partNumber=2", 206);
    CHECK_STR(g->body, STR("end"));
    gate_do(g, "GET /repo?uploads", 200);
    CHECK(!gate_has(g, "<Upload>"));
    gate_do(g, arena_fmt(a, "DELETE /repo/main/dir/k?uploadId=" STR_FMT, STR_ARG(id)).p, 404);
}

LAKE_GATE_TEST(an_upload_is_refused_where_a_put_is)
{
    struct arena *a = &t->arena;

    gate_do(g, "POST /repo/nowhere/k?uploads", 404);
    GATE_ERROR(g, "NoSuchBucket");
    gate_do(g, "POST /repo/main@/k?uploads", 403);
    gate_do(g, "POST /repo/main/?uploads", 400);
    struct str id = lake_gate_upload(g, a, "main/k");
    gate_do(g, arena_fmt(a, "DELETE /repo/main/k?uploadId=" STR_FMT, STR_ARG(id)).p, 204);
    gate_do(g, arena_fmt(a, "GET /repo/main/k?uploadId=" STR_FMT, STR_ARG(id)).p, 404);
    GATE_ERROR(g, "NoSuchUpload");
}

/* --- what is refused --- */

/* The headers of SSE-C: 32 zeros as the key. */
#define CUSTOMER_KEY                                                                               \
    "x-amz-server-side-encryption-customer-algorithm: AES256\n"                                    \
    "x-amz-server-side-encryption-customer-key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"    \
    "x-amz-server-side-encryption-customer-key-md5: cLyPS3KoaSFGi/joRB3OUQ==\n"

LAKE_GATE_TEST(what_cannot_be_is_refused_with_a_reason)
{
    static const char lifecycle[] =
        "<LifecycleConfiguration><Rule><ID>x</ID><Filter><Prefix></Prefix></Filter>"
        "<Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>"
        "</LifecycleConfiguration>";
    static const char tags[] =
        "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
    static const char notification[] =
        "<NotificationConfiguration><TopicConfiguration><Topic>arn:aws:sns:us-east-1::hook</Topic>"
        "<Event>s3:ObjectCreated:*</Event></TopicConfiguration></NotificationConfiguration>";
    static const char retention[] = "<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>"
                                    "2099-01-01T00:00:00Z</RetainUntilDate></Retention>";
    static const char customer_copy[] = "x-amz-copy-source: /repo/main/k\n" CUSTOMER_KEY;
    static const char customer_key[] = CUSTOMER_KEY;
    static const struct {
        const char *request, *headers, *body;
        int status;
        const char *code, *words;
    } cases[] = {
        {"PUT /repo/v1/k", NULL, "x", 403, "AccessDenied", "not a branch"},
        {"PUT /repo/main@/k", NULL, "x", 403, "AccessDenied", "not a branch"},
        {"PUT /repo/main~1/k", NULL, "x", 403, "AccessDenied", "not a branch"},
        {"DELETE /repo/v1/k", NULL, "", 403, "AccessDenied", "not a branch"},
        {"PUT /repo/v1/copy", "x-amz-copy-source: /repo/main/k\n", "", 403, "AccessDenied",
         "not a branch"},
        {"PUT /repo/v1/k?tagging", NULL, tags, 403, "AccessDenied", "not a branch"},
        {"DELETE /repo/main@/k?tagging", NULL, "", 403, "AccessDenied", "not a branch"},
        {"PUT /repo/safe/new", NULL, "x", 403, "AccessDenied", "protected branch"},
        {"PUT /repo/safe/new", "x-amz-copy-source: /repo/main/k\n", "", 403, "AccessDenied",
         "protected branch"},
        {"DELETE /repo/safe/k", NULL, "", 403, "AccessDenied", "protected branch"},
        {"PUT /repo/safe/k?tagging", NULL, tags, 403, "AccessDenied", "protected branch"},
        {"POST /repo/safe/new?uploads", NULL, "", 403, "AccessDenied", "protected branch"},
        {"PUT /repo/nowhere/k", NULL, "x", 404, "NoSuchBucket", "has no branch 'nowhere'"},
        {"DELETE /repo/nowhere/k", NULL, "", 404, "NoSuchBucket", ""},
        {"PUT /repo/main/", NULL, "x", 400, "InvalidArgument", "no path"},
        {"PUT /repo/main", NULL, "x", 400, "InvalidArgument", "no path"},
        {"PUT /repo/main/k", "x-amz-server-side-encryption: AES256\n", "x", 501, "NotImplemented",
         "Encryption"},
        {"PUT /repo/main/k", "x-amz-object-lock-legal-hold: ON\n", "x", 501, "NotImplemented",
         "lock"},
        {"POST /repo/main/k?uploads", "x-amz-server-side-encryption: AES256\n", "", 501,
         "NotImplemented", "Encryption"},
        {"PUT /repo/main/k", customer_key, "x", 501, "NotImplemented", "Encryption"},
        {"POST /repo/main/k?uploads", customer_key, "", 501, "NotImplemented", "Encryption"},
        {"PUT /repo/main/copy", customer_copy, "", 501, "NotImplemented", "Encryption"},
        {"PUT /repo/main/copy",
         "x-amz-copy-source: /repo/main/k\nx-amz-server-side-encryption: AES256\n", "", 501,
         "NotImplemented", "Encryption"},
        {"POST /repo/main/k?uploads", "x-amz-object-lock-legal-hold: ON\n", "", 501,
         "NotImplemented", "lock"},
        {"PUT /repo/main/k?legal-hold", NULL, "<LegalHold><Status>ON</Status></LegalHold>", 400,
         "InvalidRequest", "Object Lock"},
        {"PUT /repo/main/k?retention", NULL, retention, 400, "InvalidRequest", "Object Lock"},
        {"PUT /repo/main/k", "x-amz-acl: public-read\n", "x", 400, "AccessControlListNotSupported",
         ""},
        {"PUT /repo/main/k?acl", "x-amz-acl: public-read\n", "", 400,
         "AccessControlListNotSupported", ""},
        {"DELETE /repo/main/k?versionId=abc", NULL, "", 501, "NotImplemented", "versions"},
        {"GET /repo/main/k?versionId=abc", NULL, "", 404, "NoSuchVersion", ""},
        {"PUT /repo?versioning", NULL,
         "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>", 501,
         "NotImplemented", "commits"},
        {"PUT /repo?lifecycle", NULL, lifecycle, 501, "NotImplemented", "lifecycle"},
        {"PUT /repo?encryption", NULL,
         "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>"
         "<SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule>"
         "</ServerSideEncryptionConfiguration>",
         501, "NotImplemented", "encryption"},
        {"PUT /repo?object-lock", NULL,
         "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>"
         "</ObjectLockConfiguration>",
         501, "NotImplemented", "lock"},
        {"PUT /repo?acl", "x-amz-acl: public-read\n", "", 400, "AccessControlListNotSupported", ""},
        {"PUT /repo?ownershipControls", NULL,
         "<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule>"
         "</OwnershipControls>",
         501, "NotImplemented", "owner"},
        {"PUT /repo?notification", "x-amz-skip-destination-validation: true\n", notification, 501,
         "NotImplemented", "notification"},
        {"PUT /repo?replication", NULL, "x", 501, "NotImplemented", ""},
        {"PUT /repo?requestPayment", NULL,
         "<RequestPaymentConfiguration><Payer>Requester</Payer></RequestPaymentConfiguration>", 501,
         "NotImplemented", ""},
        {"PUT /repo", NULL, "", 409, "BucketAlreadyExists", ""},
        {"DELETE /repo", NULL, "", 409, "BucketNotEmpty", "has commits"},
    };

    struct err err = {0};

    CHECK_OK(
        notify_add_webhook(g->notify, STR("hook"), STR("http://127.0.0.1:1/"), STR_EMPTY, &err));
    gate_ask(g, ALICE, "PUT /repo/main/k", NULL, STR("body"), 200);
    lake_gate_commit(t);
    lake_gate_tag(t, "v1");
    lake_gate_protect(t, "safe");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gate_ask(g, ALICE, cases[i].request, cases[i].headers, str_z(cases[i].body),
                 cases[i].status);
        if (!str_eq(gate_element(g, "Code"), str_z(cases[i].code)) ||
            str_find(gate_element(g, "Message"), str_z(cases[i].words)) < 0)
            test_fail(__FILE__, __LINE__, "%s: " STR_FMT, cases[i].request, STR_ARG(g->body));
    }
    gate_do(g, "GET /repo/main/k", 200);
    CHECK_STR(g->body, STR("body"));
    CHECK_INT(lake_gate_bodies(g), 1);
}

LAKE_GATE_TEST(a_read_only_repository_is_read)
{
    struct lake_repo_options o = {.id = STR("still"),
                                  .owner = STR("alice-id"),
                                  .space = STR("s3://lake-data/still"),
                                  .read_only = true};
    struct lake_repo repo;
    struct err err = {0};

    CHECK_OK(lake_repo_create(t->lake, &t->arena, &o, &repo, &err));
    gate_ask(g, ALICE, "PUT /still/main/k", NULL, STR("x"), 403);
    CHECK(gate_has(g, "read-only repository"));
    gate_do(g, "GET /still?list-type=2", 200);
}

LAKE_GATE_TEST(lost_bytes_are_a_version_that_is_gone)
{
    gate_ask(g, ALICE, "PUT /repo/main/k", NULL, STR("body"), 200);
    gate_do(g, "GET /lake-data?list-type=2&prefix=repo/data/", 200);
    struct str key = arena_str(&t->arena, gate_element(g, "Key"));
    gate_do(g, arena_fmt(&t->arena, "DELETE /lake-data/" STR_FMT, STR_ARG(key)).p, 204);
    gate_do(g, "GET /repo/main/k", 404);
    GATE_ERROR(g, "NoSuchVersion");
    gate_do(g, "HEAD /repo/main/k", 200); /* the entry is there */
}

/* --- buckets --- */

LAKE_GATE_TEST(repositories_are_listed_beside_buckets)
{
    gate_do(g, "GET /", 200);
    CHECK(gate_has(g, "<Name>lake-data</Name>"));
    CHECK(gate_has(g, "<Name>repo</Name>"));
    gate_ask(g, BOB, "GET /", NULL, STR_EMPTY, 200);
    CHECK(!gate_has(g, "<Name>repo</Name>"));
    gate_do(g, "HEAD /repo", 200);
    gate_do(g, "HEAD /repo?read-stats=true", 200);
    gate_do(g, "GET /repo?location", 200);
    gate_do(g, "GET /repo?versioning", 200);
    gate_do(g, "GET /repo?ownershipControls", 200);
    CHECK(gate_has(g, "BucketOwnerEnforced"));
}

LAKE_GATE_TEST(an_empty_repository_can_be_removed_as_a_bucket)
{
    struct err err = {0};

    gate_ask(g, ALICE, "PUT /repo/main/k", NULL, STR("x"), 200);
    gate_do(g, "DELETE /repo", 409);
    gate_do(g, "DELETE /repo/main/k", 204);
    gate_do(g, "DELETE /repo", 204);
    gate_do(g, "GET /repo?list-type=2", 404);
    GATE_ERROR(g, "NoSuchBucket");
    CHECK_OK(lake_gate_create(t, "again", &err));
    gate_ask(g, ALICE, "PUT /again/main/k", NULL, STR("x"), 200);
    lake_gate_commit(t);
    gate_do(g, "DELETE /again/main/k", 204);
    lake_gate_commit(t);
    gate_do(g, "DELETE /again", 409);
    CHECK(gate_has(g, "has commits"));
}

LAKE_GATE_TEST(a_repository_and_a_bucket_never_share_a_name)
{
    struct err err = {0};

    gate_do(g, "PUT /repo", 409);
    GATE_ERROR(g, "BucketAlreadyExists");
    gate_do(g, "PUT /taken", 200);
    CHECK_ERR(lake_gate_create(t, "taken", &err), ERR_EXISTS);
    gate_do(g, "DELETE /taken", 204);
    CHECK_OK(lake_gate_create(t, "taken", &err));
    gate_do(g, "PUT /taken", 409);
}

static bool space_never_has(void *ctx, struct str name)
{
    return false;
}

static int space_has_just_taken(void *ctx, struct str name, bool *out, struct err *err)
{
    *out = str_eq(name, STR("raced"));
    return 0;
}

LAKE_GATE_TEST(a_bucket_whose_name_a_space_takes_meanwhile_is_removed_again)
{
    struct bucket_space late = {.kind = "late",
                                .storage = lake_space_buckets(t->space)->storage,
                                .has = space_never_has,
                                .look = space_has_just_taken};
    struct storage *main = routes_main(g->routes);
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(routes_add_space(g->routes, &late, &err));
    gate_do(g, "PUT /raced", 409);
    GATE_ERROR(g, "BucketAlreadyExists");
    CHECK_ERR(storage_open_bucket(&b, main, STR_EMPTY, STR("raced"), &err), ERR_NO_BUCKET);
    gate_do(g, "PUT /other", 200);
}

/* One of two that make the same name. */
struct name_racer {
    struct lake_gate *t;
    char name[16];
    int code;
};

static void name_racer_run(void *ctx)
{
    struct name_racer *r = ctx;
    struct err err = {0};

    r->code = lake_gate_create(r->t, r->name, &err);
}

LAKE_GATE_TEST(of_a_repository_and_a_bucket_made_at_once_at_most_one_stays)
{
    struct storage *main = routes_main(g->routes);
    struct err err = {0};

    for (int i = 0; i < 15; i++) {
        struct name_racer r = {.t = t};
        struct bucket *b = NULL;
        struct thread thread = {0};
        char request[32];
        snprintf(r.name, sizeof(r.name), "race-%d", i);
        snprintf(request, sizeof(request), "PUT /race-%d", i);
        CHECK_OK(thread_start(&thread, "racer", 0, name_racer_run, &r, &err));
        gate_do(g, request, 0);
        thread_join(&thread);
        bool bucket = storage_open_bucket(&b, main, STR_EMPTY, str_z(r.name), &err) == 0;
        bool repository = routes_space_of(g->routes, str_z(r.name)) != NULL;
        if (b)
            b->ops->unref(b);
        CHECK(!(bucket && repository));
        CHECK(bucket == (g->head.status == 200));
        CHECK(repository == (r.code == 0));
    }
}

LAKE_GATE_TEST(policies_give_rights_for_single_branches)
{
    static const char policy[] =
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":{\"AWS\":"
        "\"arn:aws:iam:::user/bob\"},\"Action\":[\"s3:GetObject\",\"s3:PutObject\"],\"Resource\":"
        "\"arn:aws:s3:::repo/dev/*\"},{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":"
        "\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::repo/v1/*\"}]}";

    gate_ask(g, ALICE, "PUT /repo/main/k", NULL, STR("main"), 200);
    lake_gate_commit(t);
    lake_gate_tag(t, "v1");
    lake_gate_branch(t, "dev");
    gate_ask(g, BOB, "GET /repo/main/k", NULL, STR_EMPTY, 403);
    gate_ask(g, BOB, "GET /repo/dev/k", NULL, STR_EMPTY, 403);
    gate_ask(g, ALICE, "PUT /repo?policy", NULL, STR(policy), 204);
    gate_ask(g, BOB, "GET /repo/dev/k", NULL, STR_EMPTY, 200);
    gate_ask(g, BOB, "PUT /repo/dev/new", NULL, STR("bob"), 200);
    gate_ask(g, BOB, "PUT /repo/main/new", NULL, STR("bob"), 403);
    gate_ask(g, BOB, "GET /repo/main/k", NULL, STR_EMPTY, 403);
    gate_ask(g, NOBODY, "GET /repo/v1/k", NULL, STR_EMPTY, 200);
    gate_ask(g, NOBODY, "GET /repo/dev/k", NULL, STR_EMPTY, 403);
    gate_do(g, "GET /repo/dev/new", 200); /* the owner reads what others wrote */
    gate_do(g, "DELETE /repo?policy", 204);
    gate_ask(g, BOB, "GET /repo/dev/k", NULL, STR_EMPTY, 403);
    gate_do(g, "GET /repo?policy", 404);
}

LAKE_GATE_TEST(documents_of_a_bucket_are_kept)
{
    static const char cors[] =
        "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET"
        "</AllowedMethod></CORSRule></CORSConfiguration>";
    static const char site[] = "<WebsiteConfiguration><IndexDocument><Suffix>index.html</Suffix>"
                               "</IndexDocument></WebsiteConfiguration>";

    gate_ask(g, ALICE, "PUT /repo?cors", NULL, STR(cors), 200);
    gate_ask(g, ALICE, "PUT /repo?website", NULL, STR(site), 200);
    gate_ask(g, ALICE, "PUT /repo?tagging", NULL,
             STR("<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>"),
             204);
    gate_do(g, "GET /repo?cors", 200);
    CHECK(gate_has(g, "AllowedOrigin"));
    gate_do(g, "GET /repo?website", 200);
    CHECK(gate_has(g, "index.html"));
    gate_do(g, "GET /repo?tagging", 200);
    gate_do(g, "DELETE /repo?cors", 204);
    gate_do(g, "GET /repo?cors", 404);
    gate_do(g, "GET /repo?lifecycle", 404);
}

/* A host "<repository>.<website_domain>" serves the files of a branch below the branch's name. */
LAKE_GATE_TEST(a_branch_is_read_as_a_website)
{
    static const char site[] =
        "<WebsiteConfiguration><IndexDocument><Suffix>index.html</Suffix></IndexDocument>"
        "<ErrorDocument><Key>main/error.html</Key></ErrorDocument></WebsiteConfiguration>";
    static const char policy[] =
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","
        "\"Action\":\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::repo/main/*\"}]}";
    static const char host[] = "host: repo.web.test", html[] = "content-type: text/html\n";

    gate_ask(g, ALICE, "PUT /repo/main/index.html", html, STR("<p>home</p>"), 200);
    gate_ask(g, ALICE, "PUT /repo/main/docs/index.html", html, STR("<p>docs</p>"), 200);
    gate_ask(g, ALICE, "PUT /repo/main/error.html", html, STR("<p>none</p>"), 200);
    lake_gate_commit(t);
    lake_gate_branch(t, "dev");
    gate_ask(g, NOBODY, "GET /main/", host, STR_EMPTY, 404);
    CHECK_STR(gate_header(g, "x-amz-error-code"), STR("NoSuchWebsiteConfiguration"));
    gate_ask(g, ALICE, "PUT /repo?website", NULL, STR(site), 200);
    gate_ask(g, NOBODY, "GET /main/", host, STR_EMPTY, 403); /* nobody may read it yet */
    gate_ask(g, ALICE, "PUT /repo?policy", NULL, STR(policy), 204);
    gate_ask(g, NOBODY, "GET /main/", host, STR_EMPTY, 200);
    CHECK_STR(g->body, STR("<p>home</p>"));
    CHECK_STR(gate_header(g, "content-type"), STR("text/html"));
    gate_ask(g, NOBODY, "GET /main/docs/", host, STR_EMPTY, 200);
    CHECK_STR(g->body, STR("<p>docs</p>"));
    gate_ask(g, NOBODY, "GET /main/docs", host, STR_EMPTY, 302);
    CHECK_STR(gate_header(g, "location"), STR("/main/docs/"));
    gate_ask(g, NOBODY, "GET /main/absent", host, STR_EMPTY, 403); /* who may not list */
    CHECK_STR(g->body, STR("<p>none</p>"));
    gate_ask(g, NOBODY, "GET /dev/", host, STR_EMPTY, 403); /* another branch */
    CHECK_STR(g->body, STR("<p>none</p>"));
    gate_ask(g, NOBODY, "PUT /main/x", host, STR_EMPTY, 405);
    gate_do(g, "DELETE /repo?website", 204);
    gate_ask(g, NOBODY, "GET /main/", host, STR_EMPTY, 404);
}

LAKE_GATE_TEST(browsers_are_told_the_rules_of_a_repository)
{
    static const char cors[] =
        "<CORSConfiguration><CORSRule><AllowedOrigin>http://a.example</AllowedOrigin>"
        "<AllowedMethod>PUT</AllowedMethod></CORSRule></CORSConfiguration>";
    static const char preflight[] =
        "origin: http://a.example\naccess-control-request-method: PUT\n";

    gate_ask(g, NOBODY, "OPTIONS /repo/main/k", preflight, STR_EMPTY, 403);
    gate_ask(g, ALICE, "PUT /repo?cors", NULL, STR(cors), 200);
    gate_ask(g, NOBODY, "OPTIONS /repo/main/k", preflight, STR_EMPTY, 200);
    CHECK_STR(gate_header(g, "access-control-allow-origin"), STR("http://a.example"));
    CHECK_STR(gate_header(g, "access-control-allow-methods"), STR("PUT"));
    gate_ask(g, NOBODY, "OPTIONS /repo/main/k",
             "origin: http://b.example\naccess-control-request-method: PUT\n", STR_EMPTY, 403);
    gate_ask(g, ALICE, "PUT /repo/main/k", "origin: http://a.example\n", STR("x"), 200);
    CHECK_STR(gate_header(g, "access-control-allow-origin"), STR("http://a.example"));
}
