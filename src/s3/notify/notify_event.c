/* Events: finds the rules that match an event, and writes the event's record in AWS's form, and the
 * event's rows in the outbox. */
#include "s3/notify/notify_int.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json.h"
#include "http/wire.h"

/* The state of a rule for one event. */
enum rule_state {
    RULE_NO,      /* does not want the event */
    RULE_WANTS,   /* may want the event; that is known only when the change is made */
    RULE_NOWHERE, /* may want the event, but its webhook does not exist */
    RULE_TOLD,    /* a row for the event was written */
    RULE_LOST,    /* wanted the event, but its webhook does not exist: the event is lost */
};

/* The MD5 of an empty body, which S3 gives as the ETag of a delete marker. */
#define EMPTY_ETAG "d41d8cd98f00b204e9800998ecf8427e"

struct str arn_webhook(struct str arn)
{
    size_t at = arn.len;

    while (at > 0 && arn.p[at - 1] != ':')
        at--;
    return str_skip(arn, at);
}

/* --- rows --- */

struct row_log outbox_log(const struct notify *n, struct buf *prefix, struct str webhook)
{
    buf_reset(prefix);
    buf_append_str(prefix, webhook);
    buf_append_char(prefix, '\0');
    return (struct row_log){n->o.db, n->outbox, buf_str(prefix)};
}

void outbox_place(struct buf *out, const struct progress *at)
{
    buf_append_be64(out, at->storage);
    buf_append_be64(out, at->sequence);
    buf_append_char(out, (char)at->rule);
}

bool outbox_parse(struct progress *out, struct str place)
{
    if (place.len != OUTBOX_PLACE)
        return false;
    *out = (struct progress){.storage = (uint32_t)be64_read(place.p),
                             .sequence = be64_read(place.p + 8),
                             .rule = (unsigned char)place.p[16]};
    return true;
}

/* --- the record --- */

/* Writes the key encoded as in an HTML form, where a blank is '+', except that slashes stay. */
static void event_write_key(struct json_out *w, struct str key)
{
    struct buf plain = BUF_INIT(0), text = BUF_INIT(0);
    struct str rest, part;

    url_encode(&plain, key, true);
    rest = buf_str(&plain);
    for (ptrdiff_t at; (at = str_find(rest, STR("%20"))) >= 0;
         rest = str_skip(rest, (size_t)at + 3)) {
        part = str_head(rest, (size_t)at);
        buf_append_str(&text, part);
        buf_append_char(&text, '+');
    }
    buf_append_str(&text, rest);
    json_out_member_str(w, "key", buf_str(&text));
    buf_release(&plain);
    buf_release(&text);
}

static void event_write_object(struct json_out *w, const struct notify_event *e,
                               const struct change_fact *f)
{
    char sequencer[17];
    bool object_exists = !(f->changes & (CHANGE_MARKER | CHANGE_REMOVED));

    json_out_key(w, "object");
    json_out_open(w, '{');
    event_write_key(w, e->key);
    if (object_exists)
        json_out_member_u64(w, "size", f->size);
    if (object_exists)
        json_out_member_str(w, "eTag", f->etag);
    else if (f->changes & CHANGE_MARKER)
        json_out_member_str(w, "eTag", STR(EMPTY_ETAG));
    if (f->version.len)
        json_out_member_str(w, "versionId", f->version);
    for (size_t i = 0; i < 16; i++)
        sequencer[i] = "0123456789ABCDEF"[f->sequence >> (60 - 4 * i) & 15];
    json_out_member_str(w, "sequencer", str_n(sequencer, 16));
    json_out_close(w, '}');
}

static void write_principal(struct json_out *w, const char *name, struct str id)
{
    json_out_key(w, name);
    json_out_open(w, '{');
    json_out_member_str(w, "principalId", id);
    json_out_close(w, '}');
}

static void write_bucket(struct json_out *w, const struct bucket_info *bucket)
{
    struct buf arn = BUF_INIT(0);

    json_out_key(w, "bucket");
    json_out_open(w, '{');
    json_out_member_str(w, "name", bucket->name);
    write_principal(w, "ownerIdentity", bucket->owner);
    buf_appendf(&arn, "arn:aws:s3:::" STR_FMT, STR_ARG(bucket->name));
    json_out_member_str(w, "arn", buf_str(&arn));
    json_out_close(w, '}');
    buf_release(&arn);
}

/* Returns the version of the event's record; newer kinds of events have 2.3 (Amazon S3 user guide,
 * Event message structure). */
static struct str event_version(enum s3_event event)
{
    return event <= S3_EVENT_REMOVED_MARKER ? STR("2.1") : STR("2.3");
}

static void event_write_time(struct json_out *w, const char *name, int64_t ms)
{
    char text[CLOCK_ISO_LEN + 1];

    clock_iso(ms, text);
    json_out_member_str(w, name, str_z(text));
}

static void write_record(struct buf *out, const struct notify_event *e, enum s3_event event,
                         const struct notification_rule *rule, const struct change_fact *f)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "eventVersion", event_version(event));
    json_out_member_str(&w, "eventSource", STR("aws:s3"));
    json_out_member_str(&w, "awsRegion", e->n->o.region);
    event_write_time(&w, "eventTime", f->time_ms);
    json_out_member_str(&w, "eventName", str_z(s3_event_name(event)));
    write_principal(&w, "userIdentity",
                    e->source.principal.len ? e->source.principal : STR("Anonymous"));
    json_out_key(&w, "requestParameters");
    json_out_open(&w, '{');
    json_out_member_str(&w, "sourceIPAddress", e->source.address);
    json_out_close(&w, '}');
    json_out_key(&w, "responseElements");
    json_out_open(&w, '{');
    json_out_member_str(&w, "x-amz-request-id", e->source.request_id);
    json_out_member_str(&w, "x-amz-id-2", e->source.request_id);
    json_out_close(&w, '}');
    json_out_key(&w, "s3");
    json_out_open(&w, '{');
    json_out_member_str(&w, "s3SchemaVersion", STR("1.0"));
    json_out_member_str(&w, "configurationId", rule->id);
    write_bucket(&w, e->bucket);
    event_write_object(&w, e, f);
    json_out_close(&w, '}');
    json_out_close(&w, '}');
}

/* --- events --- */

/* Writes the event's rows. The storage calls this inside the commit of the change
 * (docs/notifications.md, N1). */
static void notify_tell(void *ctx, const struct change_fact *f, struct outbox *out)
{
    struct notify_event *e = ctx;
    enum s3_event event = f->changes & CHANGE_MARKER ? e->event + 1 : e->event;
    struct buf prefix = BUF_INIT(0), place = BUF_INIT(0), value = BUF_INIT(0);

    for (size_t i = 0; i < e->config->count; i++) {
        const struct notification_rule *rule = &e->config->rules[i];
        bool somewhere = e->rules[i] == RULE_WANTS || e->rules[i] == RULE_TOLD;
        if (e->rules[i] == RULE_NO || !notification_wants(rule, event, e->key))
            continue;
        e->rules[i] = somewhere ? RULE_TOLD : RULE_LOST;
        if (!somewhere)
            continue;
        struct progress at = {f->storage, f->sequence, (unsigned char)i};
        struct row_log log = outbox_log(e->n, &prefix, arn_webhook(rule->arn));
        buf_reset(&place);
        buf_reset(&value);
        outbox_place(&place, &at);
        buf_append_char(&value, OUTBOX_RECORD);
        write_record(&value, e, event, rule, f);
        out->put(out, log.prefix, buf_str(&place), buf_str(&value));
    }
    buf_release(&prefix);
    buf_release(&place);
    buf_release(&value);
}

/* Whether the rule may want the event that the change will have. Only the commit knows whether a
 * removal creates a delete marker, so for a removal the rule is asked about both events. */
static bool may_want(const struct notify_event *e, const struct notification_rule *rule)
{
    bool removes = e->event == S3_EVENT_REMOVED_DELETE || e->event == S3_EVENT_EXPIRED_DELETE;

    return notification_wants(rule, e->event, e->key) ||
           (removes && notification_wants(rule, e->event + 1, e->key));
}

static bool webhook_exists(struct notify *n, struct str name)
{
    mutex_lock(&n->lock);
    /* Until the webhooks were first loaded, every name counts as a webhook (docs/notifications.md,
     * N5). */
    bool there = !n->is_known || notify_find(n, name);
    mutex_unlock(&n->lock);
    return there;
}

bool notify_event_init(struct notify_event *e, struct notify *n)
{
    bool any = false;

    BUG_ON(e->config->count > ARRAY_SIZE(e->rules));
    e->n = n;
    e->note = (struct change_note){notify_tell, e};
    for (size_t i = 0; i < e->config->count; i++) {
        const struct notification_rule *rule = &e->config->rules[i];
        e->rules[i] = RULE_NO;
        if (!may_want(e, rule))
            continue;
        e->rules[i] = webhook_exists(n, arn_webhook(rule->arn)) ? RULE_WANTS : RULE_NOWHERE;
        any = true;
    }
    return any;
}

void notify_sent(struct notify_event *e)
{
    for (size_t i = 0; i < e->config->count; i++) {
        struct str name = arn_webhook(e->config->rules[i].arn);
        if (e->rules[i] == RULE_TOLD) {
            notify_wake(e->n, name);
        } else if (e->rules[i] == RULE_LOST) {
            atomic_fetch_add(&e->n->dropped, 1);
            log_warn(e->n->o.log, "notify.no_webhook", log_s("webhook", name),
                     log_s("bucket", e->bucket->name));
        }
    }
}

int notify_event_own(struct notify_event *e, struct notify *n, struct arena *a, struct bucket *b,
                     bool *wanted, struct err *err)
{
    struct notification *config = arena_new(a, struct notification);
    struct str text;
    int code;

    *wanted = false;
    if (!e->bucket->notifies)
        return 0;
    code = config ? b->ops->get_document(b, a, "notification", &text, err)
                  : err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        code = notification_read(config, a, text, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    e->config = config;
    e->source = (struct notify_source){STR("s3.amazonaws.com"), STR("s3.amazonaws.com"), STR_EMPTY};
    *wanted = notify_event_init(e, n);
    return 0;
}

/* --- configurations --- */

int notify_check(struct notify *n, const struct notification *config, struct err *err)
{
    if (config->event_bridge)
        return err_set(err, S3_NOT_IMPLEMENTED, "EventBridge is not implemented");
    for (size_t i = 0; i < config->count; i++)
        if (!webhook_exists(n, arn_webhook(config->rules[i].arn)))
            return err_set(err, S3_INVALID_ARGUMENT,
                           "Unable to validate the following destination configurations");
    return 0;
}

struct test_change {
    struct notify *n;
    const struct notification *config;
    struct str body;
};

static bool is_repeated(const struct notification *config, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (str_eq(arn_webhook(config->rules[k].arn), arn_webhook(config->rules[i].arn)))
            return true;
    return false;
}

static int test_run(struct db_tx *tx, void *ctx, struct err *err)
{
    struct test_change *t = ctx;
    uint64_t now = (uint64_t)db_tx_now_ms(tx) * US_PER_MS;
    struct buf prefix = BUF_INIT(0), place = BUF_INIT(0);

    (void)err;
    t->n->test_sequence = now > t->n->test_sequence ? now : t->n->test_sequence + 1;
    for (size_t i = 0; i < t->config->count; i++) {
        struct progress at = {0, t->n->test_sequence, (unsigned char)i};
        if (is_repeated(t->config, i))
            continue;
        struct row_log log = outbox_log(t->n, &prefix, arn_webhook(t->config->rules[i].arn));
        buf_reset(&place);
        outbox_place(&place, &at);
        row_log_put(&log, tx, buf_str(&place), t->body);
    }
    buf_release(&prefix);
    buf_release(&place);
    return 0;
}

int notify_test(struct notify *n, const struct notification *config, struct str bucket,
                struct str request_id, struct err *err)
{
    struct buf body = BUF_INIT(0);
    struct json_out w;
    int code;

    buf_append_char(&body, OUTBOX_TEST);
    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "Service", STR("Amazon S3"));
    json_out_member_str(&w, "Event", STR("s3:TestEvent"));
    event_write_time(&w, "Time", clock_wall_ms());
    json_out_member_str(&w, "Bucket", bucket);
    json_out_member_str(&w, "RequestId", request_id);
    json_out_member_str(&w, "HostId", request_id);
    json_out_close(&w, '}');
    struct test_change t = {n, config, buf_str(&body)};
    code = db_apply(n->o.db, DB_DURABLE, test_run, &t, err);
    for (size_t i = 0; i < config->count && code == 0; i++)
        if (!is_repeated(config, i))
            notify_wake(n, arn_webhook(config->rules[i].arn));
    buf_release(&body);
    return code;
}
