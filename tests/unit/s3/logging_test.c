/* BucketLoggingStatus: what is taken, what is kept, and how log objects are named. */
#include "s3/log/logging.h"
#include "unit/test.h"

#define ENABLED(inner)                                                                             \
    "<BucketLoggingStatus><LoggingEnabled>" inner "</LoggingEnabled></BucketLoggingStatus>"
#define TARGET "<TargetBucket>logs</TargetBucket><TargetPrefix>a&amp;b/</TargetPrefix>"
#define GRANT(permission)                                                                          \
    "<TargetGrants><Grant><Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "       \
    "xsi:type=\"CanonicalUser\"><ID>u1</ID></Grantee><Permission>" permission                      \
    "</Permission></Grant></TargetGrants>"
#define PARTITIONED(source)                                                                        \
    "<TargetObjectKeyFormat><PartitionedPrefix><PartitionDateSource>" source                       \
    "</PartitionDateSource></PartitionedPrefix></TargetObjectKeyFormat>"

static bool find(void *ctx, bool by_email, struct str name, struct str *id, struct str *display)
{
    (void)ctx;
    *id = STR("u1");
    *display = STR("One");
    return str_eq(name, by_email ? STR("one@example.org") : STR("u1"));
}

static const struct acl_users users = {find, NULL};

static int read_xml(struct arena *a, const char *xml, struct logging *out, bool *on)
{
    struct err err = {0};

    return logging_read(out, on, a, str_z(xml), &users, &err);
}

TEST(logging, an_empty_document_turns_it_off)
{
    struct arena a = {0};
    struct logging config;
    bool on = true;

    CHECK_INT(read_xml(&a, "<BucketLoggingStatus/>", &config, &on), 0);
    CHECK(!on);
    arena_release(&a);
}

TEST(logging, what_does_not_fit_is_malformed)
{
    static const char *const bad[] = {
        "<Other/>",
        ENABLED(""),
        ENABLED("<TargetBucket>logs</TargetBucket>"),
        ENABLED("<TargetBucket/><TargetPrefix/>"),
        ENABLED(TARGET "<LoggingType>Journal</LoggingType>"),
        ENABLED(TARGET "<ObjectRollTime>5</ObjectRollTime>"),
        ENABLED(TARGET PARTITIONED("Noon")),
        ENABLED(TARGET "<TargetObjectKeyFormat/>"),
        ENABLED(TARGET "<TargetObjectKeyFormat><SimplePrefix/><PartitionedPrefix/>"
                       "</TargetObjectKeyFormat>"),
        ENABLED(TARGET GRANT("READ_ACP")),
        ENABLED(TARGET GRANT("EVERYTHING")),
    };
    struct logging config;
    bool on;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct arena a = {0};
        CHECK_INT(read_xml(&a, bad[i], &config, &on), S3_MALFORMED_XML);
        arena_release(&a);
    }
}

TEST(logging, what_is_kept_reads_back)
{
    static const char *const good[] = {
        ENABLED(TARGET),
        ENABLED(TARGET PARTITIONED("EventTime")),
        ENABLED(TARGET GRANT("READ") PARTITIONED("DeliveryTime")),
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct arena a = {0};
        struct buf kept = BUF_INIT(0), again = BUF_INIT(0), xml = BUF_INIT(0);
        struct logging config, back;
        struct err err = {0};
        bool on;
        CHECK_INT(read_xml(&a, good[i], &config, &on), 0);
        config.modified_ms = 1234567890123;
        logging_encode(&kept, &config);
        CHECK_OK(logging_decode(&back, &a, buf_str(&kept), &err));
        logging_encode(&again, &back);
        CHECK_STR(buf_str(&again), buf_str(&kept));
        CHECK_STR(back.prefix, STR("a&b/"));
        CHECK_INT(back.modified_ms, 1234567890123);
        CHECK_INT(back.format, i);
        CHECK_INT(back.grants.count, i == 2);
        logging_write(&xml, &back, &users);
        CHECK_INT(read_xml(&a, xml.p, &config, &on), 0);
        CHECK(on);
        CHECK_INT(config.format, i);
        buf_release(&kept);
        buf_release(&again);
        buf_release(&xml);
        arena_release(&a);
    }
}

TEST(logging, what_is_no_kept_form_is_corrupt)
{
    static const char *const bad[] = {"", "m=1", "m=x&b=l&p=&f=s&g=o%3D", "m=1&b=l&p=&f=q&g=o%3D",
                                      "m=1&b=l&p=&f=s&g=x"};
    struct arena a = {0};
    struct logging config;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err err = {0};
        CHECK_INT(logging_decode(&config, &a, str_z(bad[i]), &err), ERR_CORRUPT);
    }
    arena_release(&a);
}

TEST(logging, objects_are_named_by_time_and_partition)
{
    static const struct {
        enum logging_format format;
        const char *name;
    } rows[] = {
        {LOGGING_SIMPLE, "p/2009-02-13-23-31-30-000000000000000A"},
        {LOGGING_BY_DELIVERY, "p/me/here/box/2009/02/13/2009-02-13-23-31-30-000000000000000A"},
        {LOGGING_BY_EVENT, "p/me/here/box/1970/01/02/1970-01-02-00-00-00-000000000000000A"},
    };
    struct logging_source source = {STR("me"), STR("box"), STR("here")};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct logging config = {.prefix = STR("p/"), .format = rows[i].format};
        struct buf key = BUF_INIT(0);
        logging_key(&key, &config, &source, 1234567890123, 1, 10);
        CHECK_STR(buf_str(&key), str_z(rows[i].name));
        buf_release(&key);
    }
}
