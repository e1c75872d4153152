/* API calls for the webhooks of event notifications. */
#include "api/api_int.h"
#include "s3/notify/notify.h"

static rest_fn webhook_list, webhook_add, webhook_remove;

/* A webhook that is to be added. */
struct webhook_form {
    struct str name, url, secret;
};

static const struct rest_row webhook_rows[] = {
    {HTTP_GET, "/api/v1/webhooks", REST_ADMIN,
     "All webhooks by name, without their secrets, with the state of their deliveries.",
     webhook_list, .quick = true, .list = "webhooks", .item = sizeof(struct webhook_info),
     .items = REST_FIELDS({"name", "The webhook's name.", REST_AT(struct webhook_info, name)},
                          {"url", "Where events are sent.", REST_AT(struct webhook_info, url)},
                          {"signed", "Are events signed with a secret?", REST_BOOLEAN,
                           REST_AT(struct webhook_info, is_signed)},
                          {"pending", "Events that wait to be delivered.", REST_INTEGER,
                           REST_AT(struct webhook_info, stats.pending)},
                          {"oldest_ms", "Age of the oldest of these, in milliseconds.",
                           REST_INTEGER, REST_AT(struct webhook_info, stats.oldest_ms)},
                          {"delivered", "Events delivered since weir started.", REST_INTEGER,
                           REST_AT(struct webhook_info, stats.delivered)},
                          {"failed", "Attempts that failed since weir started.", REST_INTEGER,
                           REST_AT(struct webhook_info, stats.failed)})},
    {HTTP_POST, "/api/v1/webhooks", REST_ADMIN, "Add a webhook, or replace the one of that name.",
     webhook_add, .status = 201, .in = sizeof(struct webhook_form),
     .out = sizeof(struct webhook_form),
     .body = REST_FIELDS(
         {"name", "The webhook's name.", .required = true, REST_AT(struct webhook_form, name)},
         {"url", "Where events are sent.", .required = true, REST_AT(struct webhook_form, url)},
         {"secret", "Events are signed with it; left out: they are not signed.", .secret = true,
          REST_AT(struct webhook_form, secret)}),
     .answer = REST_FIELDS({"name", "The webhook's name.", REST_AT(struct webhook_form, name)},
                           {"url", "Where events are sent.", REST_AT(struct webhook_form, url)})},
    {HTTP_DELETE, "/api/v1/webhooks/{name}", REST_ADMIN,
     "Remove the webhook; events that wait for it are dropped.", webhook_remove, .status = 204,
     .in_path = REST_FIELDS({"name", "The webhook's name."})},
};
const struct rest_table api_webhook_rows = {REST_ROWS(webhook_rows)};

static int webhook_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct webhook_info *list;
    size_t count;
    int code = notify_webhooks(api->o.notify, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        rest_add(c, list[i].name, &list[i]);
    return code;
}

static int webhook_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    const struct webhook_form *in = rest_in(c, struct webhook_form);
    int code = notify_add_webhook(api->o.notify, in->name, in->url, in->secret, err);

    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "webhook.added", log_s("webhook", in->name));
    return rest_give(c, in);
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
