/* notification: the document, and which events a rule wants. */
#include "s3/notify/notification.h"
#include "unit/test.h"

#define CONFIG(inside) "<NotificationConfiguration>" inside "</NotificationConfiguration>"
#define TOPIC(inside)                                                                              \
    "<TopicConfiguration><Topic>arn:aws:sns:::hook</Topic>" inside "</TopicConfiguration>"
#define EVENT(name)   "<Event>" name "</Event>"
#define KEY(n, v)     "<FilterRule><Name>" n "</Name><Value>" v "</Value></FilterRule>"
#define FILTER(rules) "<Filter><S3Key>" rules "</S3Key></Filter>"

static int read_code(const char *xml)
{
    struct arena a = {0};
    struct err err = {0};
    struct notification config;
    int code = notification_read(&config, &a, str_z(xml), &err);

    CHECK((code < 0) == (err.text[0] != '\0'));
    arena_release(&a);
    return code;
}

TEST(notification, a_rule_wants_its_events_on_its_keys)
{
    struct arena a = {0};
    struct err err = {0};
    struct notification config;
    const struct notification_rule *rule;

    CHECK_OK(notification_read(
        &config, &a,
        STR(CONFIG(TOPIC(EVENT("s3:ObjectCreated:*") EVENT("s3:ObjectRemoved:Delete")
                             FILTER(KEY("prefix", "in/") KEY("Suffix", ".jpg"))))),
        &err));
    rule = &config.rules[0];
    CHECK(notification_wants(rule, S3_EVENT_CREATED_COPY, STR("in/a.jpg")));
    CHECK(notification_wants(rule, S3_EVENT_REMOVED_DELETE, STR("in/a.jpg")));
    CHECK(!notification_wants(rule, S3_EVENT_REMOVED_MARKER, STR("in/a.jpg")));
    CHECK(!notification_wants(rule, S3_EVENT_CREATED_PUT, STR("out/a.jpg")));
    CHECK(!notification_wants(rule, S3_EVENT_CREATED_PUT, STR("in/a.png")));
    CHECK_INT(rule->id.len, 32);
    arena_release(&a);
}

TEST(notification, a_configuration_reads_back_as_written_and_may_be_empty)
{
    const char *xml =
        "<NotificationConfiguration>"
        "<TopicConfiguration><Id>1</Id><Topic>arn:t</Topic><Event>s3:ObjectCreated:*</Event>"
        "<Filter><S3Key><FilterRule><Name>prefix</Name><Value/></FilterRule></S3Key></Filter>"
        "</TopicConfiguration>"
        "<QueueConfiguration><Id>2</Id><Queue>arn:q</Queue><Event>s3:ObjectTagging:Put</Event>"
        "</QueueConfiguration>"
        "<EventBridgeConfiguration/></NotificationConfiguration>";
    struct arena a = {0};
    struct err err = {0};
    struct buf first = {0}, second = {0};
    struct notification config;

    CHECK_OK(notification_read(&config, &a, str_z(xml), &err));
    notification_write(&first, &config);
    CHECK_OK(notification_read(&config, &a, buf_str(&first), &err));
    CHECK_INT(config.count, 2);
    CHECK(config.event_bridge);
    CHECK_INT(config.rules[1].target, NOTIFY_QUEUE);
    notification_write(&second, &config);
    CHECK_STR(buf_str(&first), buf_str(&second));
    CHECK_INT(read_code(CONFIG("")), 0);
    buf_release(&first);
    buf_release(&second);
    arena_release(&a);
}

TEST(notification, bad_rules_are_refused)
{
    CHECK_INT(read_code(""), S3_MALFORMED_XML);
    CHECK_INT(read_code(CONFIG(TOPIC(""))), S3_MALFORMED_XML);
    CHECK_INT(read_code(CONFIG(
                  "<TopicConfiguration>" EVENT("s3:ObjectCreated:*") "</TopicConfiguration>")),
              S3_MALFORMED_XML);
    CHECK_INT(read_code(CONFIG(TOPIC(EVENT("s3:ObjectSeen")))), S3_INVALID_ARGUMENT);
    CHECK_INT(read_code(CONFIG(TOPIC(EVENT("ObjectCreated:*")))), S3_INVALID_ARGUMENT);
    CHECK_INT(read_code(CONFIG("<QueueConfiguration><Queue>q</Queue>" EVENT(
                  "s3:ObjectCreated:*") "</QueueConfiguration>")),
              S3_INVALID_ARGUMENT);
    CHECK_INT(read_code(CONFIG(TOPIC(EVENT("s3:ObjectCreated:*") FILTER(KEY("middle", "x"))))),
              S3_INVALID_ARGUMENT);
    CHECK_INT(read_code(CONFIG(TOPIC(EVENT("s3:ObjectCreated:*")
                                         FILTER(KEY("prefix", "a") KEY("prefix", "b"))))),
              S3_INVALID_ARGUMENT);
    CHECK_INT(read_code(CONFIG(TOPIC("<Id>1</Id>" EVENT("s3:ObjectCreated:*"))
                                   TOPIC("<Id>1</Id>" EVENT("s3:ObjectCreated:*")))),
              S3_INVALID_ARGUMENT);
}
