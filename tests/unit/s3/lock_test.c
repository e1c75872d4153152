/* lock: configuration, retention, legal hold, headers. */
#include "s3/documents/lock.h"
#include "base/clock.h"
#include "unit/test.h"

#define NOW INT64_C(1700000000000) /* 2023-11-14T22:13:20Z */
#define DAY ((int64_t)MS_PER_DAY)

#define CONFIG(rule)                                                                               \
    "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>" rule                 \
    "</ObjectLockConfiguration>"
#define DEFAULT(mode, period)                                                                      \
    "<Rule><DefaultRetention><Mode>" mode "</Mode>" period "</DefaultRetention></Rule>"
#define RETENTION(mode, date)                                                                      \
    "<Retention><Mode>" mode "</Mode><RetainUntilDate>" date "</RetainUntilDate></Retention>"

static int config_code(struct lock_config *out, const char *xml)
{
    struct arena a = {0};
    struct err err = {0};
    int code = lock_config_read(out, &a, str_z(xml), &err);

    arena_release(&a);
    return code;
}

static int retention_code(struct lock_retention *out, const char *xml)
{
    struct arena a = {0};
    struct err err = {0};
    int code = lock_retention_read(out, &a, str_z(xml), NOW, &err);

    arena_release(&a);
    return code;
}

TEST(lock, a_default_counts_days_or_years_of_365_days_from_now)
{
    struct lock_config config;

    CHECK_INT(config_code(&config, CONFIG("")), 0);
    CHECK_INT(lock_default(&config, NOW).until_ms, 0);
    CHECK_INT(config_code(&config, CONFIG(DEFAULT("GOVERNANCE", "<Days>2</Days>"))), 0);
    CHECK_INT(lock_default(&config, NOW).until_ms, NOW + 2 * DAY);
    CHECK(!lock_default(&config, NOW).compliance);
    CHECK_INT(config_code(&config, CONFIG(DEFAULT("COMPLIANCE", "<Years>1</Years>"))), 0);
    CHECK_INT(lock_default(&config, NOW).until_ms, NOW + 365 * DAY);
    CHECK(lock_default(&config, NOW).compliance);
}

TEST(lock, a_configuration_reads_back_as_written)
{
    static const struct lock_config configs[] = {{false, 0, 0}, {true, 7, 0}, {false, 0, 3}};
    struct buf xml = {0};
    struct lock_config again;

    for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
        buf_reset(&xml);
        lock_config_write(&xml, &configs[i]);
        CHECK_INT(config_code(&again, xml.p), 0);
        CHECK_INT(again.compliance, configs[i].compliance);
        CHECK_INT(again.days, configs[i].days);
        CHECK_INT(again.years, configs[i].years);
    }
    buf_release(&xml);
}

TEST(lock, bad_configurations_are_refused)
{
    struct lock_config c;

    CHECK_INT(config_code(&c, "<ObjectLockConfiguration/>"), S3_MALFORMED_XML);
    CHECK_INT(config_code(&c, "<ObjectLockConfiguration><ObjectLockEnabled>Disabled"
                              "</ObjectLockEnabled></ObjectLockConfiguration>"),
              S3_MALFORMED_XML);
    CHECK_INT(config_code(&c, CONFIG("<Rule/>")), S3_MALFORMED_XML);
    CHECK_INT(config_code(&c, CONFIG(DEFAULT("GOVERNANCE", ""))), S3_MALFORMED_XML);
    CHECK_INT(config_code(&c, CONFIG(DEFAULT("GOVERNANCE", "<Days>1</Days><Years>1</Years>"))),
              S3_MALFORMED_XML);
    CHECK_INT(config_code(&c, CONFIG(DEFAULT("governance", "<Days>1</Days>"))), S3_MALFORMED_XML);
    CHECK_INT(config_code(&c, CONFIG(DEFAULT("GOVERNANCE", "<Days>one</Days>"))), S3_MALFORMED_XML);
    CHECK_INT(config_code(&c, CONFIG(DEFAULT("GOVERNANCE", "<Days>0</Days>"))),
              S3_INVALID_RETENTION_PERIOD);
    CHECK_INT(config_code(&c, CONFIG(DEFAULT("GOVERNANCE", "<Years>-1</Years>"))),
              S3_INVALID_RETENTION_PERIOD);
    CHECK_INT(config_code(&c, CONFIG(DEFAULT("GOVERNANCE", "<Days>36501</Days>"))),
              S3_INVALID_RETENTION_PERIOD);
    CHECK_INT(config_code(&c, CONFIG(DEFAULT("GOVERNANCE", "<Years>101</Years>"))),
              S3_INVALID_RETENTION_PERIOD);
}

TEST(lock, a_retention_reads_back_as_written_and_an_empty_one_is_none)
{
    struct lock_retention kept = {true, NOW + 123}, again;
    struct buf xml = {0};

    lock_retention_write(&xml, &kept);
    CHECK_INT(retention_code(&again, xml.p), 0);
    CHECK_INT(again.until_ms, NOW + 123);
    CHECK(again.compliance);
    CHECK_INT(retention_code(&again, "<Retention/>"), 0);
    CHECK_INT(again.until_ms, 0);
    buf_release(&xml);
}

TEST(lock, bad_retentions_are_refused)
{
    struct lock_retention r;

    CHECK_INT(retention_code(&r, RETENTION("governance", "2030-01-01T00:00:00Z")),
              S3_MALFORMED_XML);
    CHECK_INT(retention_code(&r, RETENTION("GOVERNANCE", "tomorrow")), S3_MALFORMED_XML);
    CHECK_INT(retention_code(&r, "<Retention><Mode>GOVERNANCE</Mode></Retention>"),
              S3_MALFORMED_XML);
    CHECK_INT(retention_code(&r, RETENTION("GOVERNANCE", "2023-11-14T22:13:20Z")),
              S3_INVALID_ARGUMENT);
    CHECK_INT(retention_code(&r, RETENTION("GOVERNANCE", "2023-11-14T22:13:21Z")), 0);
}

TEST(lock, a_legal_hold_is_on_or_off)
{
    struct arena a = {0};
    struct err err = {0};
    struct buf xml = {0};
    bool on;

    lock_hold_write(&xml, true);
    CHECK_OK(lock_hold_read(&on, &a, buf_str(&xml), &err));
    CHECK(on);
    CHECK_OK(lock_hold_read(&on, &a, STR("<LegalHold><Status>OFF</Status></LegalHold>"), &err));
    CHECK(!on);
    CHECK_INT(lock_hold_read(&on, &a, STR("<LegalHold><Status>on</Status></LegalHold>"), &err),
              S3_MALFORMED_XML);
    CHECK_INT(lock_hold_read(&on, &a, STR("<LegalHold/>"), &err), S3_MALFORMED_XML);
    buf_release(&xml);
    arena_release(&a);
}

static int headers_code(struct lock_headers *out, const char *mode, const char *date,
                        const char *hold)
{
    const struct http_header given[] = {{STR("x-amz-object-lock-mode"), str_z(mode)},
                                        {STR("x-amz-object-lock-retain-until-date"), str_z(date)},
                                        {STR("x-amz-object-lock-legal-hold"), str_z(hold)}};
    struct http_head head = {0};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(given); i++)
        if (given[i].value.p)
            head.headers[head.header_count++] = given[i];
    return lock_headers_read(out, &head, NOW, &err);
}

TEST(lock, headers_need_mode_and_date_together)
{
    struct lock_headers h;

    CHECK_INT(headers_code(&h, NULL, NULL, NULL), 0);
    CHECK(!h.has_retention && !h.has_hold);
    CHECK_INT(headers_code(&h, "COMPLIANCE", "2030-01-01T00:00:00Z", "ON"), 0);
    CHECK(h.has_retention && h.retention.compliance && h.has_hold && h.hold);
    CHECK_INT(headers_code(&h, "COMPLIANCE", NULL, NULL), S3_INVALID_ARGUMENT);
    CHECK_INT(headers_code(&h, NULL, "2030-01-01T00:00:00Z", NULL), S3_INVALID_ARGUMENT);
    CHECK_INT(headers_code(&h, "compliance", "2030-01-01T00:00:00Z", NULL), S3_INVALID_ARGUMENT);
    CHECK_INT(headers_code(&h, "COMPLIANCE", "2030", NULL), S3_INVALID_ARGUMENT);
    CHECK_INT(headers_code(&h, "COMPLIANCE", "2020-01-01T00:00:00Z", NULL), S3_INVALID_ARGUMENT);
    CHECK_INT(headers_code(&h, NULL, NULL, "on"), S3_INVALID_ARGUMENT);
}
