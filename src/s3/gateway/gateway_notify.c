/* Event notifications of requests: makes the note (struct change_note) that a storage gets with a
 * change, and checks new configurations. */
#include "s3/gateway/gateway_int.h"

static struct notify_source source_of(struct call *c)
{
    char address[SOCK_ADDR_TEXT];

    sock_addr_host(http_request_peer(c->http), address);
    return (struct notify_source){.principal = c->user_id,
                                  .address = arena_str(c->a, str_z(address)),
                                  .request_id = str_z(http_request_id(c->http))};
}

static int notification_load(struct call *c, struct notification **out, struct err *err)
{
    struct notification *config = arena_new(c->a, struct notification);
    struct str text;
    int code = config ? call_document(c, c->target.bucket, "notification", &text, err)
                      : err_code(err, ERR_NO_MEMORY);

    if (code == 0 && text.len)
        code = notification_read(config, c->a, text, err);
    if (code == 0)
        *out = config;
    else if (code != ERR_NO_MEMORY)
        code = err_set(err, ERR_CORRUPT, "the bucket's notification document cannot be read");
    return code;
}

int call_note(struct call *c, enum s3_event event, struct str key, const struct change_note **out,
              struct err *err)
{
    struct notification *config = NULL;
    struct notify_event *e;
    int code = 0;

    c->event = NULL;
    *out = NULL;
    if (!c->target.info.notifies || !c->g->o.notify)
        return 0;
    if (c->notification)
        config = c->notification;
    else
        code = notification_load(c, &config, err);
    if (code < 0)
        return code;
    c->notification = config;
    e = arena_new(c->a, struct notify_event);
    if (!e)
        return err_code(err, ERR_NO_MEMORY);
    *e = (struct notify_event){.config = config,
                               .bucket = &c->target.info,
                               .key = key,
                               .event = event,
                               .source = source_of(c)};
    if (notify_event_init(e, c->g->o.notify)) {
        c->event = e;
        *out = &e->note;
    }
    return arena_error(c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

void call_told(struct call *c)
{
    if (c->event)
        notify_sent(c->event);
    c->event = NULL;
}

int notification_take(struct call *c, struct buf *kept, struct err *err)
{
    bool skip = str_ieq(http_header(c->head, "x-amz-skip-destination-validation"), STR("true"));
    struct notify *n = c->g->o.notify;
    struct notification config = {0};
    int code =
        n ? notification_read(&config, c->a, c->body, err) : s3_fail(err, S3_NOT_IMPLEMENTED);

    if (code == 0)
        code = notify_check(n, &config, err);
    if (code == 0 && config.count && !skip)
        code = notify_test(n, &config, c->target.info.name, str_z(http_request_id(c->http)), err);
    if (code == 0 && config.count)
        notification_write(kept, &config);
    return code;
}
