/* Reads and writes object lock's documents and headers. */
#include "s3/documents/lock.h"

#include "base/clock.h"
#include "meta/document.h"

static const char *const modes[] = {"GOVERNANCE", "COMPLIANCE"};

const char *lock_mode_name(bool compliance)
{
    return modes[compliance];
}

static int read_mode(const struct xml_node *node, bool *compliance, struct err *err)
{
    int choice = document_choice(xml_child(node, "Mode")->text, modes, ARRAY_SIZE(modes));

    if (choice < 0)
        return err_set(err, S3_MALFORMED_XML, "Mode is neither GOVERNANCE nor COMPLIANCE");
    *compliance = choice == 1;
    return 0;
}

static int read_period(const struct xml_node *node, const char *name, int64_t most, uint32_t *out,
                       struct err *err)
{
    int64_t value = 0;
    int code = document_i64(node, name, &value, err);

    if (code < 0 || !xml_child(node, name))
        return code;
    if (value <= 0)
        return err_set(err, S3_INVALID_RETENTION_PERIOD,
                       "Default retention period must be a positive integer value.");
    if (value > most)
        return err_set(err, S3_INVALID_RETENTION_PERIOD, "Default retention period too large");
    *out = (uint32_t)value;
    return 0;
}

static int lock_read_default(struct lock_config *config, const struct xml_node *node,
                             struct err *err)
{
    int code = document_shape(node, "Mode! Days? Years?", err);

    if (code < 0)
        return code;
    if (!xml_child(node, "Days") == !xml_child(node, "Years"))
        return err_set(err, S3_MALFORMED_XML, "DefaultRetention must have either Days or Years");
    code = read_mode(node, &config->compliance, err);
    if (code == 0)
        code = read_period(node, "Days", LOCK_MAX_DAYS, &config->days, err);
    if (code == 0)
        code = read_period(node, "Years", LOCK_MAX_YEARS, &config->years, err);
    return code;
}

int lock_config_read(struct lock_config *out, struct arena *a, struct str xml, struct err *err)
{
    struct lock_config config = {0};
    struct xml_node *root, *rule;
    int code = document_read(&root, a, xml, "ObjectLockConfiguration", err);

    if (code == 0)
        code = document_shape(root, "ObjectLockEnabled! Rule?", err);
    if (code < 0)
        return code;
    if (!str_eq(xml_child(root, "ObjectLockEnabled")->text, STR("Enabled")))
        return err_set(err, S3_MALFORMED_XML, "ObjectLockEnabled is not Enabled");
    rule = xml_child(root, "Rule");
    if (rule) {
        code = document_shape(rule, "DefaultRetention!", err);
        if (code == 0)
            code = lock_read_default(&config, xml_child(rule, "DefaultRetention"), err);
    }
    if (code == 0)
        *out = config;
    return code;
}

void lock_config_write(struct buf *out, const struct lock_config *config)
{
    document_open(out, "ObjectLockConfiguration");
    xml_element(out, "ObjectLockEnabled", STR("Enabled"));
    if (config->days || config->years) {
        xml_open(out, "Rule");
        xml_open(out, "DefaultRetention");
        xml_element(out, "Mode", str_z(modes[config->compliance]));
        if (config->days)
            xml_element_u64(out, "Days", config->days);
        else
            xml_element_u64(out, "Years", config->years);
        xml_close(out, "DefaultRetention");
        xml_close(out, "Rule");
    }
    xml_close(out, "ObjectLockConfiguration");
}

struct lock_retention lock_default(const struct lock_config *config, int64_t now_ms)
{
    int64_t days = (int64_t)config->days + INT64_C(365) * config->years;

    return (struct lock_retention){config->compliance && days,
                                   days ? now_ms + days * MS_PER_DAY : 0};
}

static int check_future(int64_t until_ms, int64_t now_ms, struct err *err)
{
    if (until_ms <= now_ms)
        return err_set(err, S3_INVALID_ARGUMENT, "The retain until date must be in the future!");
    return 0;
}

int lock_retention_read(struct lock_retention *out, struct arena *a, struct str xml, int64_t now_ms,
                        struct err *err)
{
    struct lock_retention retention = {0};
    struct xml_node *root;
    int code = document_read(&root, a, xml, "Retention", err);

    if (code == 0)
        code = document_shape(root, root->children ? "Mode! RetainUntilDate!" : "", err);
    if (code < 0)
        return code;
    if (root->children) {
        code = read_mode(root, &retention.compliance, err);
        if (code < 0)
            return code;
        if (clock_parse_iso(xml_child(root, "RetainUntilDate")->text, &retention.until_ms) < 0)
            return err_set(err, S3_MALFORMED_XML, "RetainUntilDate is not a date of ISO 8601");
        code = check_future(retention.until_ms, now_ms, err);
        if (code < 0)
            return code;
    }
    *out = retention;
    return 0;
}

void lock_retention_write(struct buf *out, const struct lock_retention *retention)
{
    char date[CLOCK_ISO_LEN + 1];

    clock_iso(retention->until_ms, date);
    document_open(out, "Retention");
    xml_element(out, "Mode", str_z(modes[retention->compliance]));
    xml_element(out, "RetainUntilDate", str_z(date));
    xml_close(out, "Retention");
}

static bool parse_hold(struct str text, bool *out)
{
    *out = str_eq(text, STR("ON"));
    return *out || str_eq(text, STR("OFF"));
}

int lock_hold_read(bool *out, struct arena *a, struct str xml, struct err *err)
{
    struct xml_node *root;
    int code = document_read(&root, a, xml, "LegalHold", err);

    if (code == 0)
        code = document_shape(root, "Status!", err);
    if (code < 0)
        return code;
    if (!parse_hold(xml_child(root, "Status")->text, out))
        return err_set(err, S3_MALFORMED_XML, "Status is neither ON nor OFF");
    return 0;
}

void lock_hold_write(struct buf *out, bool on)
{
    document_open(out, "LegalHold");
    xml_element(out, "Status", on ? STR("ON") : STR("OFF"));
    xml_close(out, "LegalHold");
}

static int retention_headers(struct lock_headers *out, struct str mode, struct str date,
                             int64_t now_ms, struct err *err)
{
    int choice = document_choice(mode, modes, ARRAY_SIZE(modes));

    if (!mode.p || !date.p)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both "
                       "be supplied");
    if (choice < 0)
        return err_set(err, S3_INVALID_ARGUMENT, "Unknown wormMode directive.");
    if (clock_parse_iso(date, &out->retention.until_ms) < 0)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "The retain until date must be provided in ISO 8601 format");
    out->retention.compliance = choice == 1;
    out->has_retention = true;
    return check_future(out->retention.until_ms, now_ms, err);
}

int lock_headers_read(struct lock_headers *out, const struct http_head *head, int64_t now_ms,
                      struct err *err)
{
    struct str mode = http_header(head, "x-amz-object-lock-mode");
    struct str date = http_header(head, "x-amz-object-lock-retain-until-date");
    struct str hold = http_header(head, "x-amz-object-lock-legal-hold");
    struct lock_headers headers = {0};
    int code = mode.p || date.p ? retention_headers(&headers, mode, date, now_ms, err) : 0;

    if (code < 0)
        return code;
    headers.has_hold = hold.p != NULL;
    if (hold.p && !parse_hold(hold, &headers.hold))
        return err_set(err, S3_INVALID_ARGUMENT, "Legal Hold must be either of 'ON' or 'OFF'");
    *out = headers;
    return 0;
}
