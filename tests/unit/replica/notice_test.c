/* Notifications of storages: how they are read and set up. */
#include "replica/notice.h"

#include "replica/notice_setup.h"
#include "s3/gateway/capture.h"
#include "unit/store/four.h"
#include "unit/store/redis_test.h"

#include <stdio.h>
#include <stdlib.h>

/* As each storage sends it, cut to the members that are read. */
#define CEPH(event, key)                                                                           \
    "{\"eventVersion\":\"2.2\",\"eventSource\":\"ceph:s3\",\"eventName\":\"" event "\","           \
    "\"s3\":{\"configurationId\":\"weir\",\"bucket\":{\"name\":\"box\"},"                          \
    "\"object\":{\"key\":\"" key "\",\"size\":1,\"versionId\":\"\"}}}"

static void read_one(struct notices *out, struct arena *a, const char *body)
{
    struct err err = {0};

    CHECK_OK(notices_read(out, a, str_z(body), &err));
}

TEST(notice, keys_are_read_as_they_stand_and_as_in_a_query)
{
    static const struct {
        const char *written;
        const char *keys[NOTICE_KEYS];
    } rows[] = {
        {"plain/key.txt", {"plain/key.txt", NULL}},
        {"a+b", {"a+b", "a b"}},
        {"a%2Bb%2Fc", {"a%2Bb%2Fc", "a+b/c"}},
        {"100%", {"100%", NULL}},
        {"%ff", {"%ff", NULL}}, /* decoded it is not UTF-8 */
        {"a%00b", {"a%00b", NULL}},
        {"\xc3\xbc:x", {"\xc3\xbc:x", NULL}},
    };
    struct arena a = ARENA_INIT(0);
    struct notices n;
    char body[512];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        snprintf(body, sizeof(body), "{\"Records\":[" CEPH("ObjectCreated:Put", "%s") "]}",
                 rows[i].written);
        read_one(&n, &a, body);
        CHECK_INT(n.count, 1);
        CHECK_STR(n.list[0].bucket, STR("box"));
        CHECK_INT(n.list[0].key_count, rows[i].keys[1] ? 2 : 1);
        for (size_t k = 0; k < n.list[0].key_count; k++)
            CHECK_STR(n.list[0].keys[k], str_z(rows[i].keys[k]));
    }
    arena_release(&a);
}

TEST(notice, events_become_changes_by_their_names)
{
    static const struct {
        const char *event;
        unsigned changes;
    } rows[] = {
        {"ObjectCreated:Put", THINGS_OF_OBJECT},
        {"s3:ObjectCreated:CompleteMultipartUpload", THINGS_OF_OBJECT},
        {"s3:ObjectRemoved:DeleteMarkerCreated", THING_OBJECT},
        {"ObjectTagging:Delete", THING_OBJECT_TAGS},
        {"ObjectAcl:Put", THING_OBJECT_ACL},
        {"LifecycleExpiration:Delete", THING_OBJECT},
        {"s3:ObjectLifecycle:Expiration:Current", THING_OBJECT},
        {"s3:ObjectAccessed:Get", 0},
        {"s3:BucketCreated:*", 0},
    };
    struct arena a = ARENA_INIT(0);
    struct notices n;
    char body[512];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        snprintf(body, sizeof(body), "{\"Records\":[" CEPH("%s", "k") "]}", rows[i].event);
        read_one(&n, &a, body);
        CHECK_INT(n.count, rows[i].changes ? 1 : 0);
        CHECK_INT(n.other, rows[i].changes ? 0 : 1);
        if (n.count)
            CHECK_INT(n.list[0].changes, rows[i].changes);
    }
    arena_release(&a);
}

TEST(notice, several_records_are_read_and_unclear_ones_are_counted)
{
    struct arena a = ARENA_INIT(0);
    struct notices n;
    char *long_key = xcalloc(1, 3000), *body = xcalloc(1, 8000);

    memset(long_key, 'k', 1025);
    snprintf(
        body, 8000,
        "{\"EventName\":\"s3:ObjectCreated:Put\",\"Key\":\"box/a\",\"Records\":[%s,%s,%s,null,7,{},"
        "{\"eventName\":\"ObjectCreated:Put\",\"s3\":{\"object\":{\"key\":\"k\"}}},"
        "{\"eventName\":\"ObjectCreated:Put\",\"s3\":\"box\"}," CEPH("ObjectCreated:Put",
                                                                     "%s") "]}",
        CEPH("ObjectCreated:Put", "a"), CEPH("ObjectRemoved:Delete", "b"),
        CEPH("ObjectCreated:Put", ""), long_key);
    read_one(&n, &a, body);
    CHECK_INT(n.count, 2);
    CHECK_STR(n.list[1].keys[0], STR("b"));
    CHECK_INT(n.unclear, 7);
    read_one(&n, &a, "{\"Service\":\"Amazon S3\",\"Event\":\"s3:TestEvent\",\"Bucket\":\"box\"}");
    CHECK_INT(n.count + n.other + n.unclear, 0);
    free(long_key);
    free(body);
    arena_release(&a);
}

TEST(notice, what_is_no_notification_is_refused)
{
    static const char *const bodies[] = {
        "", "{", "[]", "7", "{\"Records\":{}}", "{\"Records\":\"x\"}"};
    struct arena a = ARENA_INIT(0);
    struct notices n;
    char *large = xcalloc(1, NOTICE_BODY_MAX + 2);

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
        CHECK(notices_read(&n, &a, str_z(bodies[i]), NULL) < 0);
    memset(large, ' ', NOTICE_BODY_MAX + 1);
    CHECK_INT(notices_read(&n, &a, str_z(large), NULL), ERR_TOO_LARGE);
    free(large);
    arena_release(&a);
}

/* --- recorded --- */

static struct replications *open_replications(struct four *f)
{
    struct replications_options o = {
        .app = f->stores[DB_APP], .queue = f->stores[DB_QUEUE], .config = f->stores[DB_CONFIG]};
    struct replications *r;
    struct err err = {0};

    CHECK_OK(replications_open(&r, &o, &err));
    return r;
}

static void add(struct replications *r, const char *bucket)
{
    struct replication_new n = {.id = {STR("u"), str_z(bucket), STR("far"), STR("two"), STR_EMPTY}};
    struct err err = {0};

    CHECK_OK(replication_add(r, &n, STR("far"), &err));
}

static int64_t events_of(struct replications *r, const char *bucket)
{
    struct replication_id id = {STR("u"), str_z(bucket), STR("far"), STR("two"), STR_EMPTY};
    struct arena a = ARENA_INIT(0);
    struct replication_status s;
    struct err err = {0};

    CHECK_OK(replication_read(r, &a, &id, &s, &err));
    arena_release(&a);
    return s.events;
}

static size_t tell(struct replications *r, const char *storage, const char *body)
{
    struct arena a = ARENA_INIT(0);
    struct notices n;
    struct err err = {0};
    size_t recorded = 0;

    read_one(&n, &a, body);
    CHECK_OK(notices_record(r, str_z(storage), &n, &recorded, &err));
    arena_release(&a);
    return recorded;
}

TEST_FOUR(notice, those_of_replicated_buckets_are_recorded_and_no_others)
{
    struct replications *r = open_replications(f);

    CHECK_INT(tell(r, "far", "{\"Records\":[" CEPH("ObjectCreated:Put", "k") "]}"), 0);
    check_reply(f->stores[DB_APP], "KEYS *", "[]");
    add(r, "box");
    CHECK_INT(tell(r, "far",
                   "{\"Records\":[" CEPH("ObjectCreated:Put", "k") "," CEPH("ObjectRemoved:Delete",
                                                                            "a+b") "]}"),
              2);
    CHECK_INT(events_of(r, "box"), 3); /* "k", "a+b", "a b" */
    check_reply(f->stores[DB_APP], "HGET box:k far", "\"1\"");
    CHECK_INT(tell(r, "two", "{\"Records\":[" CEPH("ObjectCreated:Put", "k") "]}"), 0);
    CHECK_INT(tell(r, "nowhere", "{\"Records\":[" CEPH("ObjectCreated:Put", "k") "]}"), 0);
    CHECK_INT(events_of(r, "box"), 3);
    replications_close(r);
}

/* A process that does not hear of new policies must ask before it says that a bucket is not
 * replicated. */
TEST_FOUR(notice, a_replication_that_was_made_elsewhere_is_known)
{
    struct replications *here = open_replications(f), *there = open_replications(f);

    add(there, "box");
    CHECK_INT(tell(here, "far", "{\"Records\":[" CEPH("ObjectCreated:Put", "k") "]}"), 1);
    CHECK_INT(events_of(here, "box"), 1);
    replications_close(here);
    replications_close(there);
}

TEST_FOUR(notice, many_records_go_in_several_steps)
{
    enum { RECORDS = 700 };
    struct replications *r = open_replications(f);
    struct buf body = {0};

    add(r, "box");
    buf_append_z(&body, "{\"Records\":[");
    for (int i = 0; i < RECORDS; i++)
        buf_appendf(&body, "%s" CEPH("ObjectCreated:Put", "k+%d"), i ? "," : "", i);
    buf_append_z(&body, "]}");
    CHECK_INT(tell(r, "far", body.p), RECORDS);
    /* "k+i" and "k i"; tasks are shared (docs/replication.md, "Work") */
    check_reply(f->stores[DB_APP], "DBSIZE", "1400");
    check_reply(f->stores[DB_APP], "HGET box:k+699 far", "\"1\"");
    CHECK(events_of(r, "box") > 0);
    buf_release(&body);
    replications_close(r);
}

/* --- set up --- */

#define OTHER "<TopicConfiguration><Id>other</Id><Topic>arn:x</Topic></TopicConfiguration>"
#define OURS  "<QueueConfiguration><Id>weir-1</Id><Queue>arn:y</Queue></QueueConfiguration>"
#define HEAD  "<NotificationConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define TAIL  "</NotificationConfiguration>"

TEST(notice_setup, an_entry_goes_into_a_configuration_and_out_and_others_stay)
{
    static const struct {
        const char *before, *entry, *after;
    } rows[] = {
        {"", OURS, HEAD OURS TAIL},
        {"<?xml version=\"1.0\"?><NotificationConfiguration/>", OURS, HEAD OURS TAIL},
        {HEAD TAIL, OURS, HEAD OURS TAIL},
        {HEAD OTHER TAIL, OURS, HEAD OTHER OURS TAIL},
        {HEAD OURS OTHER TAIL, OURS, HEAD OTHER OURS TAIL},
        {HEAD OTHER OURS OTHER TAIL, "", HEAD OTHER OTHER TAIL},
        {HEAD OURS TAIL, "", HEAD TAIL},
        {HEAD OTHER TAIL, "", HEAD OTHER TAIL},
    };
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf out = {0};
        CHECK_OK(
            notice_splice(&out, str_z(rows[i].before), STR("weir-1"), str_z(rows[i].entry), &err));
        CHECK_STR(buf_str(&out), str_z(rows[i].after));
        buf_release(&out);
    }
}

TEST(notice_setup, a_document_that_cannot_be_read_is_left_alone)
{
    static const char *const documents[] = {
        "<Error/>", "nothing", "<Id>weir-1</Id>" TAIL,
        HEAD "<TopicConfiguration></TopicConfiguration><Id>weir-1</Id>" TAIL,
        HEAD "<TopicConfiguration><Id>weir-1</Id>" TAIL};

    for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
        struct buf out = {0};
        CHECK_INT(notice_splice(&out, str_z(documents[i]), STR("weir-1"), STR("x"), NULL),
                  ERR_PEER);
        buf_release(&out);
    }
}

TEST(notice_setup, a_target_is_an_address_or_an_arn)
{
    static const char *const fine[] = {"http://weir:9671", "https://10.0.0.1/base/",
                                       "arn:minio:sqs::1:webhook"};
    static const char *const wrong[] = {"",         "weir:9671",         "http://",
                                        "ftp://x",  "http://x/?token=1", "http://x y",
                                        "arn:a\nb", "http://x\x01"};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
        CHECK_OK(notice_target_check(str_z(fine[i]), &err));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_INT(notice_target_check(str_z(wrong[i]), NULL), ERR_INVALID);
}
