/* Finds the actions that lifecycle rules ask for, and writes their document. */
#include "s3/lifecycle/lifecycle.h"

#include "base/clock.h"
#include "http/wire.h"
#include "meta/document.h"
#include "s3/documents/storage_class.h"

static bool has_tags(const struct tag_set *wanted, const struct tag_set *have)
{
    for (size_t i = 0; i < wanted->count; i++) {
        struct str value;
        if (!have || !tagging_find(have, wanted->tags[i].key, &value) ||
            !str_eq(value, wanted->tags[i].value))
            return false;
    }
    return true;
}

/* Whether the rule's filter matches the version. A delete marker has neither tags nor a size, so a
 * filter on tags or size never matches a delete marker. */
static bool filter_takes(const struct lifecycle_filter *f, const struct lifecycle_facts *o)
{
    bool by_content = f->tags.count || f->size_greater >= 0 || f->size_less >= 0;

    if (!str_starts(o->key, f->prefix) || (o->is_marker && by_content))
        return false;
    if ((f->size_greater >= 0 && o->size <= (uint64_t)f->size_greater) ||
        (f->size_less >= 0 && o->size >= (uint64_t)f->size_less))
        return false;
    return has_tags(&f->tags, o->tags);
}

/* Returns the time that is `days` after `from_ms`, in ms since 1970. If a day has 24 hours, the
 * time is rounded up to the next midnight UTC. */
static int64_t after_days(int64_t from_ms, int64_t days, int64_t day_ms)
{
    int64_t at;

    if (__builtin_mul_overflow(days, day_ms, &at) || __builtin_add_overflow(at, from_ms, &at) ||
        at > INT64_MAX - day_ms)
        return INT64_MAX;
    return day_ms == MS_PER_DAY ? (at + day_ms - 1) / day_ms * day_ms : at;
}

static void take_earlier(struct lifecycle_due *due, const struct lifecycle_rule *rule,
                         enum lifecycle_action action, int64_t at_ms)
{
    if (due->action == LIFECYCLE_NONE || at_ms < due->at_ms)
        *due = (struct lifecycle_due){action, at_ms, rule, STR_EMPTY};
}

static void consider_removal(struct lifecycle_due *due, const struct lifecycle_rule *rule,
                             const struct lifecycle_facts *o, int64_t day_ms)
{
    if (!o->is_latest) {
        if (rule->noncurrent_days > 0 && (int64_t)o->newer_noncurrent >= rule->noncurrent_newer)
            take_earlier(due, rule, LIFECYCLE_REMOVE,
                         after_days(o->noncurrent_since_ms, rule->noncurrent_days, day_ms));
        return;
    }
    if (o->is_marker) {
        if (o->is_alone && rule->expire_marker)
            take_earlier(due, rule, LIFECYCLE_REMOVE_MARKER, o->modified_ms);
        if (o->is_alone && rule->expire_days > 0)
            take_earlier(due, rule, LIFECYCLE_REMOVE_MARKER,
                         after_days(o->modified_ms, rule->expire_days, day_ms));
        return;
    }
    if (rule->expire_days > 0)
        take_earlier(due, rule, LIFECYCLE_EXPIRE,
                     after_days(o->modified_ms, rule->expire_days, day_ms));
    if (rule->expire_date_ms >= 0)
        take_earlier(due, rule, LIFECYCLE_EXPIRE, rule->expire_date_ms);
}

static void consider_transition(struct lifecycle_due *due, const struct lifecycle_rule *rule,
                                const struct lifecycle_facts *o, int64_t now_ms, int64_t day_ms)
{
    const struct lifecycle_transition *list =
        o->is_latest ? rule->transitions : rule->noncurrent_transitions;
    size_t count = o->is_latest ? rule->transition_count : rule->noncurrent_transition_count;
    int64_t from_ms = o->is_latest ? o->modified_ms : o->noncurrent_since_ms;

    for (size_t i = 0; i < count && !o->is_marker; i++) {
        const struct lifecycle_transition *t = &list[i];
        int64_t at = t->days >= 0 ? after_days(from_ms, t->days, day_ms) : t->date_ms;
        bool enough = o->is_latest || (int64_t)o->newer_noncurrent >= t->newer;
        if (enough && at <= now_ms && (due->action == LIFECYCLE_NONE || at > due->at_ms))
            *due = (struct lifecycle_due){LIFECYCLE_TRANSITION, at, rule, t->storage_class};
    }
}

struct lifecycle_due lifecycle_due(const struct lifecycle *config,
                                   const struct lifecycle_facts *facts, int64_t now_ms,
                                   int64_t day_ms)
{
    struct lifecycle_due removal = {0}, transition = {0};

    for (size_t i = 0; i < config->count; i++) {
        const struct lifecycle_rule *rule = &config->rules[i];
        if (!rule->enabled || !filter_takes(&rule->filter, facts))
            continue;
        consider_removal(&removal, rule, facts, day_ms);
        consider_transition(&transition, rule, facts, now_ms, day_ms);
    }
    if (removal.action != LIFECYCLE_NONE && removal.at_ms <= now_ms)
        return removal;
    if (transition.action != LIFECYCLE_NONE &&
        !str_eq(transition.storage_class, storage_class_shown(facts->storage_class)))
        return transition;
    return removal;
}

bool lifecycle_abort(const struct lifecycle *config, struct str key, int64_t started_ms,
                     int64_t day_ms, struct lifecycle_due *out)
{
    struct lifecycle_due due = {0};

    for (size_t i = 0; i < config->count; i++) {
        const struct lifecycle_rule *rule = &config->rules[i];
        if (rule->enabled && rule->abort_days > 0 && str_starts(key, rule->filter.prefix))
            take_earlier(&due, rule, LIFECYCLE_REMOVE,
                         after_days(started_ms, rule->abort_days, day_ms));
    }
    if (due.action == LIFECYCLE_NONE)
        return false;
    *out = due;
    return true;
}

void lifecycle_expiration_header(struct buf *out, const struct lifecycle_due *due)
{
    char date[CLOCK_HTTP_LEN + 1];

    clock_http(due->at_ms, date);
    buf_appendf(out, "expiry-date=\"%s\", rule-id=\"", date);
    url_encode(out, due->rule->id, false);
    buf_append_char(out, '"');
}

static void write_number(struct buf *out, const char *name, int64_t value)
{
    if (value >= 0)
        xml_element_u64(out, name, (uint64_t)value);
}

static void write_date(struct buf *out, int64_t date_ms)
{
    char date[CLOCK_ISO_LEN + 1];

    if (date_ms < 0)
        return;
    clock_iso(date_ms, date);
    xml_element(out, "Date", str_z(date));
}

static void lifecycle_write_filter(struct buf *out, const struct lifecycle_filter *f)
{
    if (f->old_form) {
        xml_element(out, "Prefix", f->prefix);
        return;
    }
    xml_open(out, "Filter");
    if (f->is_and)
        xml_open(out, "And");
    if (f->has_prefix)
        xml_element(out, "Prefix", f->prefix);
    for (size_t i = 0; i < f->tags.count; i++) {
        xml_open(out, "Tag");
        xml_element(out, "Key", f->tags.tags[i].key);
        xml_element(out, "Value", f->tags.tags[i].value);
        xml_close(out, "Tag");
    }
    write_number(out, "ObjectSizeGreaterThan", f->size_greater);
    write_number(out, "ObjectSizeLessThan", f->size_less);
    if (f->is_and)
        xml_close(out, "And");
    xml_close(out, "Filter");
}

static void write_expiration(struct buf *out, const struct lifecycle_rule *rule)
{
    if (rule->expire_days < 0 && rule->expire_date_ms < 0 && !rule->has_expire_marker)
        return;
    xml_open(out, "Expiration");
    write_number(out, "Days", rule->expire_days);
    write_date(out, rule->expire_date_ms);
    if (rule->has_expire_marker)
        xml_element(out, "ExpiredObjectDeleteMarker",
                    rule->expire_marker ? STR("true") : STR("false"));
    xml_close(out, "Expiration");
}

static void write_transitions(struct buf *out, const struct lifecycle_rule *rule)
{
    for (size_t i = 0; i < rule->transition_count; i++) {
        xml_open(out, "Transition");
        write_number(out, "Days", rule->transitions[i].days);
        write_date(out, rule->transitions[i].date_ms);
        xml_element(out, "StorageClass", rule->transitions[i].storage_class);
        xml_close(out, "Transition");
    }
    for (size_t i = 0; i < rule->noncurrent_transition_count; i++) {
        xml_open(out, "NoncurrentVersionTransition");
        write_number(out, "NoncurrentDays", rule->noncurrent_transitions[i].days);
        write_number(out, "NewerNoncurrentVersions", rule->noncurrent_transitions[i].newer);
        xml_element(out, "StorageClass", rule->noncurrent_transitions[i].storage_class);
        xml_close(out, "NoncurrentVersionTransition");
    }
}

static void lifecycle_write_rule(struct buf *out, const struct lifecycle_rule *rule)
{
    xml_open(out, "Rule");
    xml_element(out, "ID", rule->id);
    lifecycle_write_filter(out, &rule->filter);
    xml_element(out, "Status", rule->enabled ? STR("Enabled") : STR("Disabled"));
    write_expiration(out, rule);
    write_transitions(out, rule);
    if (rule->noncurrent_days > 0) {
        xml_open(out, "NoncurrentVersionExpiration");
        write_number(out, "NoncurrentDays", rule->noncurrent_days);
        write_number(out, "NewerNoncurrentVersions", rule->noncurrent_newer);
        xml_close(out, "NoncurrentVersionExpiration");
    }
    if (rule->abort_days > 0) {
        xml_open(out, "AbortIncompleteMultipartUpload");
        write_number(out, "DaysAfterInitiation", rule->abort_days);
        xml_close(out, "AbortIncompleteMultipartUpload");
    }
    xml_close(out, "Rule");
}

void lifecycle_write(struct buf *out, const struct lifecycle *config)
{
    document_open(out, "LifecycleConfiguration");
    for (size_t i = 0; i < config->count; i++)
        lifecycle_write_rule(out, &config->rules[i]);
    xml_close(out, "LifecycleConfiguration");
}
