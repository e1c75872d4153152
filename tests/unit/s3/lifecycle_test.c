/* lifecycle: the document in all its forms, and what becomes due when. */
#include "s3/lifecycle/lifecycle.h"
#include "base/clock.h"
#include "unit/test.h"

#define DAY  ((int64_t)MS_PER_DAY)
#define NOON (INT64_C(1000) * DAY + DAY / 2)

#define CONFIG(rules)      "<LifecycleConfiguration>" rules "</LifecycleConfiguration>"
#define RULE(inside)       "<Rule><ID>r</ID><Status>Enabled</Status>" inside "</Rule>"
#define ONE(inside)        CONFIG(RULE(inside))
#define ALL                "<Filter/>"
#define EXPIRE(what)       "<Expiration>" what "</Expiration>"
#define DAYS(n)            "<Days>" n "</Days>"
#define TAG(k, v)          "<Tag><Key>" k "</Key><Value>" v "</Value></Tag>"
#define MOVE(when, to)     "<Transition>" when "<StorageClass>" to "</StorageClass></Transition>"
#define NONCURRENT(inside) "<NoncurrentVersionExpiration>" inside "</NoncurrentVersionExpiration>"
#define ABORT(n)                                                                                   \
    "<AbortIncompleteMultipartUpload><DaysAfterInitiation>" n                                      \
    "</DaysAfterInitiation></AbortIncompleteMultipartUpload>"

static int read_code(const char *xml)
{
    struct arena a = {0};
    struct err err = {0};
    struct lifecycle config;
    int code = lifecycle_read(&config, &a, str_z(xml), &err);

    CHECK((code < 0) == (err.text[0] != '\0'));
    arena_release(&a);
    return code;
}

static struct lifecycle config_of(struct arena *a, const char *xml)
{
    struct err err = {0};
    struct lifecycle config;

    CHECK_OK(lifecycle_read(&config, a, str_z(xml), &err));
    return config;
}

static struct lifecycle_due due_by(const char *xml, struct lifecycle_facts facts, int64_t now,
                                   int64_t day)
{
    struct arena a = {0};
    struct lifecycle config = config_of(&a, xml);
    struct lifecycle_due due = lifecycle_due(&config, &facts, now, day);

    due.rule = NULL;
    due.storage_class = due.storage_class.len ? STR("some") : STR_EMPTY;
    arena_release(&a);
    return due;
}

#define CURRENT .key = STR("a/b"), .size = 100, .modified_ms = NOON, .is_latest = true

static enum lifecycle_action action_of(const char *xml, struct lifecycle_facts facts)
{
    return due_by(xml, facts, NOON, DAY).action;
}

TEST(lifecycle, days_count_from_the_last_change_and_end_at_the_next_midnight)
{
    struct lifecycle_facts o = {CURRENT};
    struct lifecycle_due due = due_by(ONE(ALL EXPIRE(DAYS("3"))), o, NOON, DAY);

    CHECK_INT(due.action, LIFECYCLE_EXPIRE);
    CHECK_INT(due.at_ms, 1004 * DAY);
    o.modified_ms = 1000 * DAY;
    CHECK_INT(due_by(ONE(ALL EXPIRE(DAYS("3"))), o, NOON, DAY).at_ms, 1003 * DAY);
}

TEST(lifecycle, shorter_days_are_not_rounded)
{
    struct lifecycle_facts o = {CURRENT};

    CHECK_INT(due_by(ONE(ALL EXPIRE(DAYS("3"))), o, NOON, 10000).at_ms, NOON + 30000);
}

TEST(lifecycle, a_date_is_due_at_its_midnight)
{
    struct lifecycle_facts o = {CURRENT};
    struct lifecycle_due due =
        due_by(ONE(ALL EXPIRE("<Date>2001-01-01T00:00:00Z</Date>")), o, NOON, DAY);

    CHECK_INT(due.action, LIFECYCLE_EXPIRE);
    CHECK_INT(due.at_ms, INT64_C(978307200000));
}

TEST(lifecycle, the_earliest_rule_wins_and_disabled_rules_do_nothing)
{
    const char *two = "<LifecycleConfiguration>"
                      "<Rule><ID>a</ID><Prefix/><Status>Enabled</Status>"
                      "<Expiration><Days>9</Days></Expiration></Rule>"
                      "<Rule><ID>b</ID><Prefix/><Status>Enabled</Status>"
                      "<Expiration><Days>2</Days></Expiration></Rule>"
                      "<Rule><ID>c</ID><Prefix/><Status>Disabled</Status>"
                      "<Expiration><Days>1</Days></Expiration></Rule>"
                      "</LifecycleConfiguration>";
    struct arena a = {0};
    struct lifecycle config = config_of(&a, two);
    struct lifecycle_facts o = {CURRENT};
    struct lifecycle_due due = lifecycle_due(&config, &o, NOON, DAY);

    CHECK_STR(due.rule->id, STR("b"));
    CHECK_INT(due.at_ms, 1003 * DAY);
    arena_release(&a);
}

TEST(lifecycle, filters_choose_by_prefix_tags_and_size)
{
    static const struct {
        const char *filter;
        bool takes;
    } rows[] = {
        {"<Filter/>", true},
        {"<Prefix>a/</Prefix>", true},
        {"<Prefix>b/</Prefix>", false},
        {"<Filter><Prefix>a/b</Prefix></Filter>", true},
        {"<Filter><Prefix>a/bc</Prefix></Filter>", false},
        {"<Filter>" TAG("t", "1") "</Filter>", true},
        {"<Filter>" TAG("t", "2") "</Filter>", false},
        {"<Filter>" TAG("x", "1") "</Filter>", false},
        {"<Filter><ObjectSizeGreaterThan>99</ObjectSizeGreaterThan></Filter>", true},
        {"<Filter><ObjectSizeGreaterThan>100</ObjectSizeGreaterThan></Filter>", false},
        {"<Filter><ObjectSizeLessThan>101</ObjectSizeLessThan></Filter>", true},
        {"<Filter><ObjectSizeLessThan>100</ObjectSizeLessThan></Filter>", false},
        {"<Filter><And><Prefix>a</Prefix>" TAG("t", "1") TAG("u", "2") "</And></Filter>", true},
        {"<Filter><And><Prefix>a</Prefix>" TAG("t", "1") TAG("u", "3") "</And></Filter>", false},
        {"<Filter><And><Prefix>b</Prefix>" TAG("t", "1") "</And></Filter>", false},
        /* without And as with it */
        {"<Filter><Prefix>a</Prefix>" TAG("t", "1") "</Filter>", true},
        {"<Filter><Prefix>b</Prefix>" TAG("t", "1") "</Filter>", false},
        {"<Filter><Prefix>a/</Prefix>" TAG("t", "1") "<And><Prefix>a</Prefix>" TAG(
             "u", "2") "</And></Filter>",
         true},
        {"<Filter><Prefix>a/</Prefix>" TAG("t", "1") "<And><Prefix>a</Prefix>" TAG(
             "u", "3") "</And></Filter>",
         false},
    };
    struct tag tags[] = {{STR("u"), STR("2")}, {STR("t"), STR("1")}};
    struct tag_set set = {tags, 2};
    struct lifecycle_facts o = {CURRENT, .tags = &set};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf xml = {0};
        buf_appendf(&xml, ONE("%s" EXPIRE(DAYS("1"))), rows[i].filter);
        if ((action_of(xml.p, o) == LIFECYCLE_EXPIRE) != rows[i].takes)
            test_fail(__FILE__, __LINE__, "%s", rows[i].filter);
        buf_release(&xml);
    }
}

TEST(lifecycle, a_lone_delete_marker_goes_by_flag_at_once_and_by_days_later)
{
    const char *flag =
        ONE(ALL EXPIRE("<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>"));
    const char *days = ONE(ALL EXPIRE(DAYS("5")));
    struct lifecycle_facts marker = {CURRENT, .is_marker = true, .is_alone = true};

    CHECK_INT(due_by(flag, marker, NOON, DAY).action, LIFECYCLE_REMOVE_MARKER);
    CHECK_INT(due_by(flag, marker, NOON, DAY).at_ms, NOON);
    CHECK_INT(due_by(days, marker, NOON, DAY).action, LIFECYCLE_REMOVE_MARKER);
    CHECK_INT(due_by(days, marker, NOON, DAY).at_ms, 1006 * DAY);
    marker.is_alone = false;
    CHECK_INT(action_of(flag, marker), LIFECYCLE_NONE);
    CHECK_INT(action_of(days, marker), LIFECYCLE_NONE);
    marker.is_alone = true;
    marker.size = 0;
    CHECK_INT(action_of(ONE("<Filter><ObjectSizeLessThan>9</ObjectSizeLessThan></Filter>" EXPIRE(
                            DAYS("1"))),
                        marker),
              LIFECYCLE_NONE);
    CHECK_INT(action_of(flag, (struct lifecycle_facts){CURRENT, .is_alone = true}), LIFECYCLE_NONE);
}

TEST(lifecycle, noncurrent_versions_count_from_when_they_ceased_to_be_current)
{
    const char *xml = ONE(ALL NONCURRENT("<NoncurrentDays>2</NoncurrentDays>"));
    const char *newer = ONE(ALL NONCURRENT("<NoncurrentDays>2</NoncurrentDays>"
                                           "<NewerNoncurrentVersions>3</NewerNoncurrentVersions>"));
    struct lifecycle_facts o = {
        .key = STR("k"), .modified_ms = 0, .noncurrent_since_ms = NOON, .newer_noncurrent = 2};

    CHECK_INT(due_by(xml, o, NOON, DAY).action, LIFECYCLE_REMOVE);
    CHECK_INT(due_by(xml, o, NOON, DAY).at_ms, 1003 * DAY);
    CHECK_INT(action_of(newer, o), LIFECYCLE_NONE);
    o.newer_noncurrent = 3;
    CHECK_INT(action_of(newer, o), LIFECYCLE_REMOVE);
    CHECK_INT(action_of(ONE(ALL EXPIRE(DAYS("1"))), o), LIFECYCLE_NONE);
    CHECK_INT(action_of(xml, (struct lifecycle_facts){CURRENT}), LIFECYCLE_NONE);
}

TEST(lifecycle, of_the_transitions_that_came_due_the_last_counts_until_removal_is_due)
{
    const char *xml = ONE(ALL MOVE(DAYS("1"), "WARM") MOVE(DAYS("3"), "COLD") EXPIRE(DAYS("9")));
    struct arena a = {0};
    struct lifecycle config = config_of(&a, xml);
    struct lifecycle_facts o = {CURRENT};

    CHECK_INT(lifecycle_due(&config, &o, 1001 * DAY, DAY).action, LIFECYCLE_EXPIRE);
    CHECK_STR(lifecycle_due(&config, &o, 1002 * DAY, DAY).storage_class, STR("WARM"));
    CHECK_STR(lifecycle_due(&config, &o, 1004 * DAY, DAY).storage_class, STR("COLD"));
    o.storage_class = STR("COLD");
    CHECK_INT(lifecycle_due(&config, &o, 1004 * DAY, DAY).action, LIFECYCLE_EXPIRE);
    CHECK_INT(lifecycle_due(&config, &o, 1010 * DAY, DAY).action, LIFECYCLE_EXPIRE);
    arena_release(&a);
}

TEST(lifecycle, uploads_are_aborted_by_prefix)
{
    struct arena a = {0};
    struct lifecycle config = config_of(&a, ONE("<Prefix>a/</Prefix>" ABORT("2")));
    struct lifecycle_due due;

    CHECK(lifecycle_abort(&config, STR("a/b"), NOON, DAY, &due));
    CHECK_INT(due.at_ms, 1003 * DAY);
    CHECK(!lifecycle_abort(&config, STR("b"), NOON, DAY, &due));
    arena_release(&a);
}

TEST(lifecycle, the_header_names_date_and_rule)
{
    struct lifecycle_rule rule = {.id = STR("my rule")};
    struct lifecycle_due due = {LIFECYCLE_EXPIRE, INT64_C(978307200000), &rule, STR_EMPTY};
    struct buf out = {0};

    lifecycle_expiration_header(&out, &due);
    CHECK_STR(buf_str(&out),
              STR("expiry-date=\"Mon, 01 Jan 2001 00:00:00 GMT\", rule-id=\"my%20rule\""));
    buf_release(&out);
}

TEST(lifecycle, days_past_the_end_of_time_are_never_due)
{
    struct lifecycle_facts o = {CURRENT};

    o.modified_ms = INT64_MAX - 5;
    CHECK_INT(due_by(ONE(ALL EXPIRE(DAYS("2147483647"))), o, NOON, DAY).at_ms, INT64_MAX);
}

TEST(lifecycle, every_form_reads_back_as_written_and_a_rule_without_id_gets_one)
{
    const char *xml =
        "<LifecycleConfiguration>"
        "<Rule><Prefix>old</Prefix><Status>Disabled</Status>"
        "<Expiration><Days>1</Days></Expiration></Rule>"
        "<Rule><ID>2</ID><Filter/><Status>Enabled</Status>"
        "<Expiration><Date>2030-01-01T00:00:00.000Z</Date></Expiration>"
        "<Transition><Date>2029-01-01T00:00:00.000Z</Date><StorageClass>GLACIER</StorageClass>"
        "</Transition></Rule>"
        "<Rule><ID>3</ID><Filter><And><Prefix>p</Prefix>"
        "<Tag><Key>a</Key><Value>b</Value></Tag><Tag><Key>c</Key><Value/></Tag>"
        "<ObjectSizeGreaterThan>0</ObjectSizeGreaterThan>"
        "<ObjectSizeLessThan>9</ObjectSizeLessThan></And></Filter><Status>Enabled</Status>"
        "<NoncurrentVersionExpiration><NoncurrentDays>4</NoncurrentDays>"
        "<NewerNoncurrentVersions>5</NewerNoncurrentVersions></NoncurrentVersionExpiration>"
        "<NoncurrentVersionTransition><NoncurrentDays>0</NoncurrentDays>"
        "<StorageClass>COLD</StorageClass></NoncurrentVersionTransition></Rule>"
        "<Rule><ID>4</ID><Filter><Prefix/></Filter><Status>Enabled</Status>"
        "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"
        "<AbortIncompleteMultipartUpload><DaysAfterInitiation>6</DaysAfterInitiation>"
        "</AbortIncompleteMultipartUpload></Rule>"
        "</LifecycleConfiguration>";
    struct arena a = {0};
    struct lifecycle config = config_of(&a, xml);
    struct buf first = {0}, second = {0};

    CHECK_INT(config.rules[0].id.len, 32);
    lifecycle_write(&first, &config);
    config = config_of(&a, first.p);
    CHECK_INT(config.count, 4);
    CHECK(config.rules[0].filter.old_form && !config.rules[0].enabled);
    CHECK_INT(config.rules[2].filter.tags.count, 2);
    CHECK_INT(config.rules[2].noncurrent_newer, 5);
    CHECK_INT(config.rules[3].abort_days, 6);
    lifecycle_write(&second, &config);
    CHECK_STR(buf_str(&second), buf_str(&first));
    buf_release(&first);
    buf_release(&second);
    arena_release(&a);
}

TEST(lifecycle, rules_of_another_shape_are_malformed)
{
    static const char *const bad[] = {
        "",
        CONFIG(""),
        "<Rule/>",
        CONFIG("<Rule><ID>r</ID>" ALL EXPIRE(DAYS("1")) "</Rule>"),
        CONFIG("<Rule><Status>enabled</Status>" ALL EXPIRE(DAYS("1")) "</Rule>"),
        ONE(EXPIRE(DAYS("1"))),
        ONE("<Prefix/>" ALL EXPIRE(DAYS("1"))),
        ONE("<Filter><Prefix>a/</Prefix><And><Prefix>b/</Prefix></And></Filter>" EXPIRE(DAYS("1"))),
        ONE("<Filter><And/></Filter>" EXPIRE(DAYS("1"))),
        ONE("<Filter><Tag/></Filter>" EXPIRE(DAYS("1"))),
        ONE(ALL EXPIRE("")),
        ONE(ALL EXPIRE(DAYS("1") "<Date>2030-01-01T00:00:00Z</Date>")),
        ONE(ALL EXPIRE(DAYS("one"))),
        ONE(ALL EXPIRE("<Date>tomorrow</Date>")),
        ONE(ALL NONCURRENT("")),
        ONE(ALL MOVE("", "COLD")),
        ONE(ALL MOVE(DAYS("1"), "")),
        ONE(ALL MOVE(DAYS("1"), "cold storage")),
        ONE(ALL EXPIRE(DAYS("1")) "<Other/>"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (read_code(bad[i]) != S3_MALFORMED_XML)
            test_fail(__FILE__, __LINE__, "%s", bad[i]);
}

TEST(lifecycle, values_out_of_range_are_invalid_arguments)
{
    static const char *const bad[] = {
        ONE(ALL EXPIRE(DAYS("0"))),
        ONE(ALL EXPIRE(DAYS("-1"))),
        ONE(ALL EXPIRE(DAYS("2147483648"))),
        ONE(ALL EXPIRE("<Date>2030-01-01T00:00:01Z</Date>")),
        ONE(ALL NONCURRENT("<NoncurrentDays>0</NoncurrentDays>")),
        ONE(ALL NONCURRENT("<NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>101"
                           "</NewerNoncurrentVersions>")),
        ONE(ALL ABORT("0")),
        ONE(ALL MOVE(DAYS("-1"), "COLD")),
        ONE(ALL MOVE(DAYS("5"), "COLD") EXPIRE(DAYS("5"))),
        CONFIG(RULE(ALL EXPIRE(DAYS("1"))) RULE(ALL EXPIRE(DAYS("2")))),
    };
    struct buf xml = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (read_code(bad[i]) != S3_INVALID_ARGUMENT)
            test_fail(__FILE__, __LINE__, "%s", bad[i]);
    buf_append_z(&xml, "<LifecycleConfiguration><Rule><ID>");
    for (int i = 0; i < 256; i++)
        buf_append_char(&xml, 'a');
    buf_append_z(&xml, "</ID><Status>Enabled</Status><Prefix/>" EXPIRE(
                           DAYS("1")) "</Rule></LifecycleConfiguration>");
    CHECK_INT(read_code(xml.p), S3_INVALID_ARGUMENT);
    buf_release(&xml);
}

TEST(lifecycle, actions_that_do_not_go_together_are_invalid_requests)
{
    static const char *const bad[] = {
        ONE(ALL),
        ONE("<Filter>" TAG("a", "b") "</Filter>" ABORT("1")),
        ONE("<Filter><ObjectSizeLessThan>5</ObjectSizeLessThan></Filter>" ABORT("1")),
        ONE("<Filter>" TAG("a", "b") "</Filter>" EXPIRE(
            "<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>")),
        ONE("<Filter><And>" TAG("a", "b") TAG("a", "c") "</And></Filter>" EXPIRE(DAYS("1"))),
        ONE("<Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan><ObjectSizeLessThan>5"
            "</ObjectSizeLessThan></And></Filter>" EXPIRE(DAYS("1"))),
        ONE(ALL MOVE(DAYS("1"), "COLD") EXPIRE("<Date>2030-01-01T00:00:00Z</Date>")),
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (read_code(bad[i]) != S3_INVALID_REQUEST)
            test_fail(__FILE__, __LINE__, "%s", bad[i]);
}
