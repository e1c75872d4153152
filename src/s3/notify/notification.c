/* Notification configurations: reads and writes them, and finds whether a rule matches an event. */
#include "s3/notify/notification.h"

#include "base/ids.h"
#include "meta/document.h"

static const char *const events[S3_EVENTS] = {
#define X(name, text) text,
    S3_EVENT_TABLE(X)
#undef X
};

static const struct {
    const char *element, *arn, *shape;
} targets[] = {
    [NOTIFY_TOPIC] = {"TopicConfiguration", "Topic", "Id? Topic! Event+ Filter?"},
    [NOTIFY_QUEUE] = {"QueueConfiguration", "Queue", "Id? Queue! Event+ Filter?"},
    [NOTIFY_FUNCTION] = {"CloudFunctionConfiguration", "CloudFunction",
                         "Id? CloudFunction! Event+ Filter?"},
};

const char *s3_event_name(enum s3_event event)
{
    return events[event];
}

/* Returns the bits of the events that a name in a rule stands for; 0 when the name is unknown.
 * "s3:ObjectCreated:*" stands for all events whose names begin so; a name without a star stands for
 * one event. */
static uint32_t event_bits(struct str name)
{
    bool all = str_ends(name, STR(":*"));
    uint32_t bits = 0;

    if (!str_starts(name, STR("s3:")))
        return 0;
    name = str_skip(name, 3);
    if (all)
        name = str_head(name, name.len - 1);
    for (size_t i = 0; i < S3_EVENTS; i++) {
        struct str event = str_z(events[i]);
        if (all ? str_starts(event, name) : str_eq(event, name))
            bits |= UINT32_C(1) << i;
    }
    return bits;
}

static int read_events(struct notification_rule *rule, struct arena *a, const struct xml_node *node,
                       struct err *err)
{
    const struct xml_node *event = xml_child(node, "Event");

    rule->event_names = arena_array(a, document_count(node, "Event"), sizeof(struct str));
    if (!rule->event_names)
        return err_code(err, ERR_NO_MEMORY);
    for (; event; event = xml_next(event, "Event")) {
        uint32_t bits = event_bits(event->text);
        if (!bits)
            return err_set(err, S3_INVALID_ARGUMENT,
                           "A specified event is not supported for "
                           "notifications.");
        rule->events |= bits;
        rule->event_names[rule->event_count++] = event->text;
    }
    return 0;
}

static int read_filter_rule(struct notification_rule *rule, const struct xml_node *node,
                            struct err *err)
{
    int code = document_shape(node, "Name! Value!", err);
    struct str name = xml_child_text(node, "Name", STR_EMPTY);
    bool prefix = str_ieq(name, STR("prefix")), suffix = str_ieq(name, STR("suffix"));

    if (code < 0)
        return code;
    if (!prefix && !suffix)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "filter rule name must be either prefix or suffix");
    if (prefix ? rule->has_prefix : rule->has_suffix)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Cannot specify more than one " STR_FMT " rule in a filter.", STR_ARG(name));
    *(prefix ? &rule->has_prefix : &rule->has_suffix) = true;
    *(prefix ? &rule->prefix : &rule->suffix) = xml_child(node, "Value")->text;
    return 0;
}

static int notification_read_filter(struct notification_rule *rule, const struct xml_node *filter,
                                    struct err *err)
{
    const struct xml_node *key = xml_child(filter, "S3Key"), *node;
    int code = document_shape(filter, "S3Key?", err);

    if (code < 0 || !key)
        return code;
    code = document_shape(key, "FilterRule*", err);
    for (node = xml_child(key, "FilterRule"); node && code == 0;
         node = xml_next(node, "FilterRule"))
        code = read_filter_rule(rule, node, err);
    return code;
}

static int notification_read_rule(struct notification_rule *rule, struct arena *a,
                                  const struct xml_node *node, struct err *err)
{
    const struct xml_node *filter = xml_child(node, "Filter");
    char id[ID_HEX_LEN + 1];
    int code = document_shape(node, targets[rule->target].shape, err);

    if (code < 0)
        return code;
    rule->arn = xml_child(node, targets[rule->target].arn)->text;
    if (!str_starts(rule->arn, STR("arn:")))
        return err_set(err, S3_INVALID_ARGUMENT, "The ARN is not well formed");
    rule->id = xml_child_text(node, "Id", STR_EMPTY);
    if (rule->id.len == 0) {
        id_hex(id);
        rule->id = arena_str(a, str_z(id));
    }
    code = read_events(rule, a, node, err);
    return code == 0 && filter ? notification_read_filter(rule, filter, err) : code;
}

static bool notification_has_id(const struct notification *config, struct str id)
{
    for (size_t i = 0; i < config->count; i++)
        if (str_eq(config->rules[i].id, id))
            return true;
    return false;
}

static int notification_read_rules(struct notification *config, struct arena *a,
                                   const struct xml_node *root, enum notification_target target,
                                   struct err *err)
{
    const char *name = targets[target].element;

    for (const struct xml_node *node = xml_child(root, name); node; node = xml_next(node, name)) {
        struct notification_rule *rule = &config->rules[config->count];
        int code;
        if (config->count == NOTIFICATION_MAX_RULES)
            return err_set(err, S3_INVALID_ARGUMENT, "At most %d notifications are allowed",
                           NOTIFICATION_MAX_RULES);
        rule->target = target;
        code = notification_read_rule(rule, a, node, err);
        if (code < 0)
            return code;
        if (notification_has_id(config, rule->id))
            return err_set(err, S3_INVALID_ARGUMENT,
                           "Configuration Ids must be unique within a configuration");
        config->count++;
    }
    return 0;
}

int notification_read(struct notification *out, struct arena *a, struct str xml, struct err *err)
{
    struct notification config = {0};
    struct xml_node *root;
    int code = document_read(&root, a, xml, "NotificationConfiguration", err);

    if (code == 0)
        code = document_shape(root,
                              "TopicConfiguration* QueueConfiguration* "
                              "CloudFunctionConfiguration* EventBridgeConfiguration?",
                              err);
    if (code < 0)
        return code;
    config.event_bridge = xml_child(root, "EventBridgeConfiguration") != NULL;
    config.rules = arena_array(a, NOTIFICATION_MAX_RULES, sizeof(*config.rules));
    if (!config.rules)
        return err_code(err, ERR_NO_MEMORY);
    for (int i = NOTIFY_TOPIC; i <= NOTIFY_FUNCTION && code == 0; i++)
        code = notification_read_rules(&config, a, root, (enum notification_target)i, err);
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        *out = config;
    return code;
}

static void write_filter_rule(struct buf *out, const char *name, struct str value)
{
    xml_open(out, "FilterRule");
    xml_element(out, "Name", str_z(name));
    xml_element(out, "Value", value);
    xml_close(out, "FilterRule");
}

static void notification_write_filter(struct buf *out, const struct notification_rule *rule)
{
    xml_open(out, "Filter");
    xml_open(out, "S3Key");
    if (rule->has_prefix)
        write_filter_rule(out, "prefix", rule->prefix);
    if (rule->has_suffix)
        write_filter_rule(out, "suffix", rule->suffix);
    xml_close(out, "S3Key");
    xml_close(out, "Filter");
}

void notification_write(struct buf *out, const struct notification *config)
{
    document_open(out, "NotificationConfiguration");
    for (size_t i = 0; i < config->count; i++) {
        const struct notification_rule *rule = &config->rules[i];
        xml_open(out, targets[rule->target].element);
        xml_element(out, "Id", rule->id);
        xml_element(out, targets[rule->target].arn, rule->arn);
        for (size_t k = 0; k < rule->event_count; k++)
            xml_element(out, "Event", rule->event_names[k]);
        if (rule->has_prefix || rule->has_suffix)
            notification_write_filter(out, rule);
        xml_close(out, targets[rule->target].element);
    }
    if (config->event_bridge)
        xml_element(out, "EventBridgeConfiguration", STR_EMPTY);
    xml_close(out, "NotificationConfiguration");
}

bool notification_wants(const struct notification_rule *rule, enum s3_event event, struct str key)
{
    return rule->events >> event & 1 && str_starts(key, rule->prefix) &&
           str_ends(key, rule->suffix);
}
