/* API calls for the webhooks of event notifications. */
#include "api/api_int.h"
#include "s3/notify/notify.h"

static rest_fn webhook_list, webhook_add, webhook_remove;

static const struct rest_row webhook_rows[] = {
    {HTTP_GET, "/api/v1/webhooks", REST_ADMIN,
     "All webhooks by name, without their secrets, with the state of their deliveries.",
     webhook_list, .quick = true, .list = "webhooks",
     .items =
         REST_FIELDS({"name", "The webhook's name."}, {"url", "Where events are sent."},
                     {"signed", "Are events signed with a secret?", REST_BOOLEAN},
                     {"pending", "Events that wait to be delivered.", REST_INTEGER},
                     {"oldest_ms", "Age of the oldest of these, in milliseconds.", REST_INTEGER},
                     {"delivered", "Events delivered since weir started.", REST_INTEGER},
                     {"failed", "Attempts that failed since weir started.", REST_INTEGER})},
    {HTTP_POST, "/api/v1/webhooks", REST_ADMIN, "Add a webhook, or replace the one of that name.",
     webhook_add, .status = 201,
     .body = REST_FIELDS(
         {"name", "The webhook's name.", .required = true},
         {"url", "Where events are sent.", .required = true},
         {"secret", "Events are signed with it; left out: they are not signed.", .secret = true}),
     .answer = REST_FIELDS({"name", "The webhook's name."}, {"url", "Where events are sent."})},
    {HTTP_DELETE, "/api/v1/webhooks/{name}", REST_ADMIN,
     "Remove the webhook; events that wait for it are dropped.", webhook_remove, .status = 204,
     .in_path = REST_FIELDS({"name", "The webhook's name."})},
};
const struct rest_table api_webhook_rows = {REST_ROWS(webhook_rows)};

static void webhook_write(struct json_out *w, const struct webhook_info *info)
{
    json_out_member_str(w, "name", info->name);
    json_out_member_str(w, "url", info->url);
    json_out_member_bool(w, "signed", info->is_signed);
    json_out_member_u64(w, "pending", info->stats.pending);
    json_out_member_u64(w, "oldest_ms", info->stats.oldest_ms);
    json_out_member_u64(w, "delivered", info->stats.delivered);
    json_out_member_u64(w, "failed", info->stats.failed);
}

static int webhook_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct webhook_info *list;
    size_t count;
    int code = notify_webhooks(api->o.notify, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (rest_item(c, list[i].name)) {
            webhook_write(c->w, &list[i]);
            rest_item_end(c);
        }
    return code;
}

static int webhook_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name"), url = rest_text(c, "url");
    int code = notify_add_webhook(api->o.notify, name, url, rest_text(c, "secret"), err);

    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "webhook.added", log_s("webhook", name));
    json_out_member_str(c->w, "name", name);
    json_out_member_str(c->w, "url", url);
    return 0;
}

static int webhook_remove(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name");
    int code = notify_remove_webhook(api->o.notify, name, err);

    if (code == 0)
        log_info(http_request_log(c->req), "webhook.removed", log_s("webhook", name));
    return code;
}
