/* BucketLoggingStatus: reads and writes the document and its stored form, and makes the names of
 * log objects. */
#include "s3/log/logging.h"

#include "base/clock.h"
#include "meta/document.h"

/* Indexed by enum logging_format: the letter in the stored form, and the PartitionDateSource. */
static const char *const letters = "sed";
static const char *const date_sources[] = {NULL, "EventTime", "DeliveryTime"};

static int read_format(enum logging_format *out, const struct xml_node *node, struct err *err)
{
    const struct xml_node *partitioned = node ? xml_child(node, "PartitionedPrefix") : NULL;
    int code = 0;

    *out = LOGGING_SIMPLE;
    if (!node)
        return 0;
    code = document_shape(node, "SimplePrefix? PartitionedPrefix?", err);
    if (code < 0)
        return code;
    if (!partitioned == !xml_child(node, "SimplePrefix"))
        return s3_fail(err, S3_MALFORMED_XML);
    if (!partitioned)
        return 0;
    code = document_shape(partitioned, "PartitionDateSource?", err);
    if (code < 0)
        return code;
    struct str source = xml_child_text(partitioned, "PartitionDateSource", STR("DeliveryTime"));
    int choice = document_choice(source, date_sources + 1, ARRAY_SIZE(date_sources) - 1);
    if (choice < 0)
        return s3_fail(err, S3_MALFORMED_XML);
    *out = choice == 0 ? LOGGING_BY_EVENT : LOGGING_BY_DELIVERY;
    return 0;
}

static int logging_read_grants(struct acl *out, struct arena *a, const struct xml_node *list,
                               const struct acl_users *users, struct err *err)
{
    int code = acl_grants_read(out, a, list, users, err);

    if (code == S3_MALFORMED_ACL_ERROR)
        code = s3_fail(err, S3_MALFORMED_XML);
    for (size_t i = 0; code == 0 && i < out->count; i++)
        if (out->grants[i].permission == ACL_READ_ACP || out->grants[i].permission == ACL_WRITE_ACP)
            code = s3_fail(err, S3_MALFORMED_XML);
    return code;
}

int logging_read(struct logging *out, bool *on, struct arena *a, struct str xml,
                 const struct acl_users *users, struct err *err)
{
    struct xml_node *root = NULL;
    const struct xml_node *node;
    struct logging config = {0};
    int code = document_read(&root, a, xml, "BucketLoggingStatus", err);

    if (code == 0)
        code = document_shape(root, "LoggingEnabled?", err);
    if (code < 0)
        return code;
    node = xml_child(root, "LoggingEnabled");
    *on = node != NULL;
    if (!node)
        return 0;
    code = document_shape(node, "TargetBucket! TargetPrefix! TargetGrants? TargetObjectKeyFormat?",
                          err);
    if (code < 0)
        return code;
    config.bucket = xml_child(node, "TargetBucket")->text;
    config.prefix = xml_child(node, "TargetPrefix")->text;
    if (!config.bucket.len || config.prefix.len > LOGGING_PREFIX_MAX)
        return s3_fail(err, S3_MALFORMED_XML);
    code = read_format(&config.format, xml_child(node, "TargetObjectKeyFormat"), err);
    if (code == 0)
        code = logging_read_grants(&config.grants, a, xml_child(node, "TargetGrants"), users, err);
    if (code == 0)
        *out = config;
    return code;
}

static void write_format(struct buf *out, enum logging_format format)
{
    xml_open(out, "TargetObjectKeyFormat");
    if (format == LOGGING_SIMPLE) {
        xml_element(out, "SimplePrefix", STR_EMPTY);
    } else {
        xml_open(out, "PartitionedPrefix");
        xml_element(out, "PartitionDateSource", str_z(date_sources[format]));
        xml_close(out, "PartitionedPrefix");
    }
    xml_close(out, "TargetObjectKeyFormat");
}

void logging_write(struct buf *out, const struct logging *config, const struct acl_users *users)
{
    document_open(out, "BucketLoggingStatus");
    if (config) {
        xml_open(out, "LoggingEnabled");
        xml_element(out, "TargetBucket", config->bucket);
        xml_element(out, "TargetPrefix", config->prefix);
        if (config->grants.count) {
            xml_open(out, "TargetGrants");
            acl_grants_write(out, &config->grants, users);
            xml_close(out, "TargetGrants");
        }
        write_format(out, config->format);
        xml_close(out, "LoggingEnabled");
    }
    xml_close(out, "BucketLoggingStatus");
}

/* Writes "m=<ms>&b=<bucket>&p=<prefix>&f=<letter>&g=<list>", URL-encoded. The time `m` comes first,
 * so that two configurations can be compared by the texts behind it. */
void logging_encode(struct buf *out, const struct logging *config)
{
    struct buf grants = BUF_INIT(0);

    acl_encode(&grants, &config->grants);
    buf_append_z(out, "m=");
    buf_append_i64(out, config->modified_ms);
    buf_append_z(out, "&b=");
    url_encode(out, config->bucket, false);
    buf_append_z(out, "&p=");
    url_encode(out, config->prefix, false);
    buf_append_z(out, "&f=");
    buf_append_char(out, letters[config->format]);
    buf_append_z(out, "&g=");
    url_encode(out, buf_str(&grants), false);
    buf_release(&grants);
}

int logging_decode(struct logging *out, struct arena *a, struct str kept, struct err *err)
{
    struct logging config = {0};
    struct str time, format = STR_EMPTY, grants = STR_EMPTY;
    const char *letter;
    int code = url_query_take(&kept, a, "m", &time);

    if (code == 0 && str_i64(time, &config.modified_ms) < 0)
        code = ERR_CORRUPT;
    if (code == 0)
        code = url_query_take(&kept, a, "b", &config.bucket);
    if (code == 0)
        code = url_query_take(&kept, a, "p", &config.prefix);
    if (code == 0)
        code = url_query_take(&kept, a, "f", &format);
    if (code == 0)
        code = url_query_take(&kept, a, "g", &grants);
    letter = format.len == 1 ? strchr(letters, format.p[0]) : NULL;
    if (code == ERR_NO_MEMORY)
        return err_code(err, code);
    if (code < 0 || !letter || !*letter)
        return err_set(err, ERR_CORRUPT, "the stored logging configuration cannot be read");
    config.format = (enum logging_format)(letter - letters);
    code = acl_decode(&config.grants, a, grants, err);
    if (code == 0)
        *out = config;
    return code;
}

void logging_key(struct buf *out, const struct logging *config, const struct logging_source *s,
                 int64_t now_ms, int64_t day, uint64_t unique)
{
    char iso[CLOCK_ISO_LEN + 1]; /* in the form 2006-01-02T15:04:05.000Z */

    clock_iso(config->format == LOGGING_BY_EVENT ? day * MS_PER_DAY : now_ms, iso);
    buf_append_str(out, config->prefix);
    if (config->format != LOGGING_SIMPLE)
        buf_appendf(out, STR_FMT "/" STR_FMT "/" STR_FMT "/%.4s/%.2s/%.2s/", STR_ARG(s->owner),
                    STR_ARG(s->region), STR_ARG(s->bucket), iso, iso + 5, iso + 8);
    buf_appendf(out, "%.10s-%.2s-%.2s-%.2s-%016llX", iso, iso + 11, iso + 14, iso + 17,
                (unsigned long long)unique);
}
