/* Webhooks of event notifications. */
#include "api/api_int.h"
#include "s3/notify/notify.h"

static api_fn get_webhooks, add_webhook, remove_webhook;

API_ROUTE(api_get_webhooks, get_webhooks, 200, .list = "webhooks")
API_ROUTE(api_post_webhook, add_webhook, 201, .takes_body = true)
API_ROUTE(api_delete_webhook, remove_webhook, 204, .waits = true)

static void write_webhook(struct json_out *w, const struct webhook_info *info)
{
    json_out_open(w, '{');
    json_out_member_str(w, "name", info->name);
    json_out_member_str(w, "url", info->url);
    json_out_member_bool(w, "signed", info->is_signed);
    json_out_member_u64(w, "pending", info->stats.pending);
    json_out_member_u64(w, "oldest_ms", info->stats.oldest_ms);
    json_out_member_u64(w, "delivered", info->stats.delivered);
    json_out_member_u64(w, "failed", info->stats.failed);
    json_out_close(w, '}');
}

static int get_webhooks(struct api_call *c, struct err *err)
{
    struct webhook_info *list;
    size_t count;
    int code = notify_webhooks(c->api->o.notify, http_request_arena(c->req), &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        write_webhook(c->w, &list[i]);
    return code;
}

static int add_webhook(struct api_call *c, struct err *err)
{
    static const char *const strings[] = {"name", "url", "secret", NULL};
    struct str name = json_get_str(c->body, "name", STR_EMPTY);
    struct str url = json_get_str(c->body, "url", STR_EMPTY);
    int code = api_check_strings(c->body, strings, err);

    if (code == 0)
        code = notify_add_webhook(c->api->o.notify, name, url,
                                  json_get_str(c->body, "secret", STR_EMPTY), err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "webhook.added", log_s("webhook", name));
    json_out_member_str(c->w, "name", name);
    json_out_member_str(c->w, "url", url);
    return 0;
}

static int remove_webhook(struct api_call *c, struct err *err)
{
    struct str name = route_param(c->params, "name");
    int code = notify_remove_webhook(c->api->o.notify, name, err);

    if (code == 0)
        log_info(http_request_log(c->req), "webhook.removed", log_s("webhook", name));
    return code;
}
