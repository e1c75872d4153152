/* Reads and checks lifecycle configurations. */
#include "s3/lifecycle/lifecycle.h"

#include "base/clock.h"
#include "base/ids.h"
#include "meta/document.h"

#define MAX_DAYS INT64_C(2147483647)

/* Reads the number in the element `name`; *out is -1 when the element is absent. InvalidArgument:
 * the number is below `least` or too large. */
static int lifecycle_read_number(const struct xml_node *node, const char *name, int64_t least,
                                 int64_t *out, struct err *err)
{
    int code = document_i64(node, name, out, err);

    if (code < 0 || !xml_child(node, name))
        return code;
    if (*out < least)
        return err_set(err, S3_INVALID_ARGUMENT, "'%s' for " STR_FMT " action must be %s", name,
                       STR_ARG(node->name),
                       least > 0 ? "a positive integer" : "a nonnegative integer");
    if (*out > MAX_DAYS)
        return err_set(err, S3_INVALID_ARGUMENT, "'%s' is too large", name);
    return 0;
}

static int lifecycle_read_date(const struct xml_node *node, int64_t *out, struct err *err)
{
    const struct xml_node *child = xml_child(node, "Date");

    if (!child)
        return 0;
    if (clock_parse_iso(child->text, out) < 0)
        return err_set(err, S3_MALFORMED_XML, "Date is not a date of ISO 8601");
    if (*out % MS_PER_DAY != 0)
        return err_set(err, S3_INVALID_ARGUMENT, "'Date' must be at midnight GMT");
    return 0;
}

static int lifecycle_read_size(const struct xml_node *node, const char *name, int64_t *out,
                               struct err *err)
{
    int code = document_i64(node, name, out, err);

    if (code == 0 && xml_child(node, name) && *out < 0)
        code = err_set(err, S3_INVALID_ARGUMENT, "'%s' must be a nonnegative integer", name);
    return code;
}

/* Adds the tags in the node's children to *out. */
static int lifecycle_read_tags(struct tag_set *out, struct arena *a, const struct xml_node *node,
                               struct err *err)
{
    size_t count = document_count(node, "Tag");
    const struct xml_node *tag = xml_child(node, "Tag");
    struct tag *tags = arena_array(a, out->count + count, sizeof(*tags));

    if (count == 0)
        return 0;
    if (!tags)
        return err_code(err, ERR_NO_MEMORY);
    if (out->count)
        memcpy(tags, out->tags, out->count * sizeof(*tags));
    out->tags = tags;
    for (; tag; tag = xml_next(tag, "Tag")) {
        int code = document_shape(tag, "Key! Value!", err);
        struct str other;
        if (code < 0)
            return code;
        struct tag read = {xml_child(tag, "Key")->text, xml_child(tag, "Value")->text};
        code = tag_check(&read, err);
        if (code < 0)
            return code;
        if (tagging_find(out, read.key, &other))
            return err_set(err, S3_INVALID_REQUEST, "Duplicate Tag Keys are not allowed.");
        out->tags[out->count++] = read;
    }
    return 0;
}

static int lifecycle_read_prefix(struct lifecycle_filter *f, const struct xml_node *node,
                                 struct err *err)
{
    const struct xml_node *child = xml_child(node, "Prefix");
    struct str prefix = child ? child->text : STR_EMPTY;

    if (!child)
        return 0;
    if (f->has_prefix && !str_starts(f->prefix, prefix) && !str_starts(prefix, f->prefix))
        return err_set(err, S3_MALFORMED_XML, "Filter has two prefixes that exclude each other");
    if (!f->has_prefix || prefix.len > f->prefix.len)
        f->prefix = prefix;
    f->has_prefix = true;
    return 0;
}

/* Adds the predicates in the node's children (tags, prefix, sizes) to the filter. */
static int read_predicates(struct lifecycle_filter *f, struct arena *a, const struct xml_node *node,
                           struct err *err)
{
    int64_t greater = -1, less = -1;
    int code = lifecycle_read_tags(&f->tags, a, node, err);

    if (code == 0)
        code = lifecycle_read_prefix(f, node, err);
    if (code == 0)
        code = lifecycle_read_size(node, "ObjectSizeGreaterThan", &greater, err);
    if (code == 0)
        code = lifecycle_read_size(node, "ObjectSizeLessThan", &less, err);
    if (code < 0)
        return code;
    if (greater > f->size_greater)
        f->size_greater = greater;
    if (less >= 0 && (f->size_less < 0 || less < f->size_less))
        f->size_less = less;
    if (f->size_greater >= 0 && f->size_less >= 0 && f->size_greater >= f->size_less)
        return err_set(err, S3_INVALID_REQUEST,
                       "'ObjectSizeLessThan' has to be a value greater than "
                       "'ObjectSizeGreaterThan'");
    return 0;
}

static int read_and(struct lifecycle_filter *f, struct arena *a, const struct xml_node *and,
                    struct err *err)
{
    int code = document_shape(and, "Prefix? Tag* ObjectSizeGreaterThan? ObjectSizeLessThan?", err);

    if (code == 0 && !and->children)
        code = err_set(err, S3_MALFORMED_XML, "And has no predicate");
    return code == 0 ? read_predicates(f, a, and, err) : code;
}

/* Reads the filter of a rule. Several predicates without And are MalformedXML in S3. Ceph accepts
 * them, so clients send them. weir requires all of them to match, which removes the fewest objects.
 */
static int lifecycle_read_filter(struct lifecycle_filter *f, struct arena *a,
                                 const struct xml_node *rule, struct err *err)
{
    const struct xml_node *filter = xml_child(rule, "Filter"), *and;
    int code;

    if (!filter == !xml_child(rule, "Prefix"))
        return err_set(err, S3_MALFORMED_XML, "A rule must have either Filter or Prefix");
    f->old_form = !filter;
    if (f->old_form)
        return lifecycle_read_prefix(f, rule, err);
    code =
        document_shape(filter, "And? Prefix? Tag? ObjectSizeGreaterThan? ObjectSizeLessThan?", err);
    if (code == 0)
        code = read_predicates(f, a, filter, err);
    and = xml_child(filter, "And");
    f->is_and = and || (filter->children && filter->children->next);
    return code == 0 && and? read_and(f, a, and, err) : code;
}

static int read_expiration(struct lifecycle_rule *rule, const struct xml_node *node,
                           struct err *err)
{
    int code = document_shape(node, "Days? Date? ExpiredObjectDeleteMarker?", err);

    if (code == 0 && (!node->children || node->children->next))
        code = err_set(err, S3_MALFORMED_XML,
                       "Expiration must have one of Days, Date and ExpiredObjectDeleteMarker");
    if (code == 0)
        code = lifecycle_read_number(node, "Days", 1, &rule->expire_days, err);
    if (code == 0)
        code = lifecycle_read_date(node, &rule->expire_date_ms, err);
    if (code == 0)
        code = document_bool(node, "ExpiredObjectDeleteMarker", false, &rule->expire_marker, err);
    rule->has_expire_marker = xml_child(node, "ExpiredObjectDeleteMarker") != NULL;
    return code;
}

static bool is_class_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '-')
            return false;
    }
    return s.len > 0 && s.len <= 64;
}

static int read_transition(struct lifecycle_transition *t, const struct xml_node *node,
                           bool noncurrent, struct err *err)
{
    int code = document_shape(node,
                              noncurrent ? "NoncurrentDays! NewerNoncurrentVersions? StorageClass!"
                                         : "Days? Date? StorageClass!",
                              err);

    *t = (struct lifecycle_transition){.days = -1, .date_ms = -1, .newer = -1};
    if (code < 0)
        return code;
    if (!noncurrent && !xml_child(node, "Days") == !xml_child(node, "Date"))
        return err_set(err, S3_MALFORMED_XML, "Transition must have either Days or Date");
    t->storage_class = xml_child(node, "StorageClass")->text;
    if (!is_class_name(t->storage_class))
        return err_set(err, S3_MALFORMED_XML, "StorageClass is not the name of one");
    code = lifecycle_read_number(node, noncurrent ? "NoncurrentDays" : "Days", 0, &t->days, err);
    if (code == 0)
        code = lifecycle_read_date(node, &t->date_ms, err);
    if (code == 0)
        code = lifecycle_read_number(node, "NewerNoncurrentVersions", 1, &t->newer, err);
    return code;
}

static int read_transitions(struct lifecycle_transition **out, size_t *count, struct arena *a,
                            const struct xml_node *rule, const char *name, struct err *err)
{
    size_t n = document_count(rule, name);
    const struct xml_node *node = xml_child(rule, name);
    int code = 0;

    *out = arena_array(a, n, sizeof(**out));
    if (n && !*out)
        return err_code(err, ERR_NO_MEMORY);
    for (; node && code == 0; node = xml_next(node, name))
        code = read_transition(&(*out)[(*count)++], node, name[0] == 'N', err);
    return code;
}

static int read_noncurrent(struct lifecycle_rule *rule, const struct xml_node *node,
                           struct err *err)
{
    int code = document_shape(node, "NoncurrentDays! NewerNoncurrentVersions?", err);

    if (code == 0)
        code = lifecycle_read_number(node, "NoncurrentDays", 1, &rule->noncurrent_days, err);
    if (code == 0)
        code =
            lifecycle_read_number(node, "NewerNoncurrentVersions", 1, &rule->noncurrent_newer, err);
    if (code == 0 && rule->noncurrent_newer > LIFECYCLE_NEWER_MAX)
        code =
            err_set(err, S3_INVALID_ARGUMENT,
                    "'NewerNoncurrentVersions' must not be greater than %d", LIFECYCLE_NEWER_MAX);
    return code;
}

static int read_actions(struct lifecycle_rule *rule, struct arena *a, const struct xml_node *node,
                        struct err *err)
{
    const struct xml_node *expiration = xml_child(node, "Expiration");
    const struct xml_node *noncurrent = xml_child(node, "NoncurrentVersionExpiration");
    const struct xml_node *uploads = xml_child(node, "AbortIncompleteMultipartUpload");
    int code = expiration ? read_expiration(rule, expiration, err) : 0;

    if (code == 0 && noncurrent)
        code = read_noncurrent(rule, noncurrent, err);
    if (code == 0 && uploads)
        code = document_shape(uploads, "DaysAfterInitiation!", err);
    if (code == 0 && uploads)
        code = lifecycle_read_number(uploads, "DaysAfterInitiation", 1, &rule->abort_days, err);
    if (code == 0)
        code = read_transitions(&rule->transitions, &rule->transition_count, a, node, "Transition",
                                err);
    if (code == 0)
        code = read_transitions(&rule->noncurrent_transitions, &rule->noncurrent_transition_count,
                                a, node, "NoncurrentVersionTransition", err);
    if (code == 0 && !expiration && !noncurrent && !uploads && !rule->transition_count &&
        !rule->noncurrent_transition_count)
        code =
            err_set(err, S3_INVALID_REQUEST, "At least one action needs to be specified in a rule");
    return code;
}

/* Refuses parts of a rule that are allowed alone but not together. */
static int rule_check_together(const struct lifecycle_rule *rule, struct err *err)
{
    const struct lifecycle_filter *f = &rule->filter;
    bool by_size = f->size_greater >= 0 || f->size_less >= 0;

    if ((f->tags.count || by_size) && rule->abort_days > 0)
        return err_set(err, S3_INVALID_REQUEST,
                       "AbortIncompleteMultipartUpload cannot be specified with %s.",
                       by_size ? "Object Size" : "Tags");
    if ((f->tags.count || by_size) && rule->expire_marker)
        return err_set(err, S3_INVALID_REQUEST,
                       "ExpiredObjectDeleteMarker cannot be specified with %s.",
                       by_size ? "Object Size" : "Tags");
    for (size_t i = 0; i < rule->transition_count; i++) {
        const struct lifecycle_transition *t = &rule->transitions[i];
        if ((t->days >= 0 && rule->expire_date_ms >= 0) ||
            (t->date_ms >= 0 && rule->expire_days >= 0))
            return err_set(err, S3_INVALID_REQUEST,
                           "Found mixed 'Date' and 'Days' based Expiration and Transition "
                           "actions in lifecycle rule");
        if ((rule->expire_days >= 0 && t->days >= rule->expire_days) ||
            (rule->expire_date_ms >= 0 && t->date_ms >= rule->expire_date_ms))
            return err_set(err, S3_INVALID_ARGUMENT,
                           "The Expiration action must be later than the Transition action");
    }
    return 0;
}

static int read_identity(struct lifecycle_rule *rule, struct arena *a, const struct xml_node *node,
                         struct err *err)
{
    struct str status = xml_child(node, "Status")->text;
    char id[ID_HEX_LEN + 1];

    rule->id = xml_child_text(node, "ID", STR_EMPTY);
    if (rule->id.len > LIFECYCLE_ID_MAX)
        return err_set(err, S3_INVALID_ARGUMENT, "ID length should not exceed allowed limit of %d",
                       LIFECYCLE_ID_MAX);
    if (rule->id.len == 0) {
        id_hex(id);
        rule->id = arena_str(a, str_z(id));
    }
    if (!str_eq(status, STR("Enabled")) && !str_eq(status, STR("Disabled")))
        return err_set(err, S3_MALFORMED_XML, "Status is neither Enabled nor Disabled");
    rule->enabled = str_eq(status, STR("Enabled"));
    return 0;
}

static int lifecycle_read_rule(struct lifecycle_rule *rule, struct arena *a,
                               const struct xml_node *node, struct err *err)
{
    int code = document_shape(node,
                              "ID? Status! Prefix? Filter? Expiration? Transition* "
                              "NoncurrentVersionExpiration? NoncurrentVersionTransition* "
                              "AbortIncompleteMultipartUpload?",
                              err);

    *rule = (struct lifecycle_rule){.filter = {.size_greater = -1, .size_less = -1},
                                    .expire_days = -1,
                                    .expire_date_ms = -1,
                                    .noncurrent_days = -1,
                                    .noncurrent_newer = -1,
                                    .abort_days = -1};
    if (code == 0)
        code = read_identity(rule, a, node, err);
    if (code == 0)
        code = lifecycle_read_filter(&rule->filter, a, node, err);
    if (code == 0)
        code = read_actions(rule, a, node, err);
    return code == 0 ? rule_check_together(rule, err) : code;
}

static bool lifecycle_has_id(const struct lifecycle *config, struct str id)
{
    for (size_t i = 0; i < config->count; i++)
        if (str_eq(config->rules[i].id, id))
            return true;
    return false;
}

int lifecycle_read(struct lifecycle *out, struct arena *a, struct str xml, struct err *err)
{
    struct lifecycle config = {0};
    struct xml_node *root, *node;
    int code = document_read(&root, a, xml, "LifecycleConfiguration", err);
    size_t count;

    if (code == 0)
        code = document_shape(root, "Rule+", err);
    if (code < 0)
        return code;
    count = document_count(root, "Rule");
    if (count > LIFECYCLE_MAX_RULES)
        return err_set(err, S3_INVALID_REQUEST, "A lifecycle configuration has at most %d rules",
                       LIFECYCLE_MAX_RULES);
    config.rules = arena_array(a, count, sizeof(*config.rules));
    if (!config.rules)
        return err_code(err, ERR_NO_MEMORY);
    for (node = xml_child(root, "Rule"); node; node = xml_next(node, "Rule")) {
        code = lifecycle_read_rule(&config.rules[config.count], a, node, err);
        if (code < 0)
            return code;
        if (lifecycle_has_id(&config, config.rules[config.count].id))
            return err_set(err, S3_INVALID_ARGUMENT,
                           "Rule ID must be unique. Found same ID for more than one rule");
        config.count++;
    }
    *out = config;
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}
