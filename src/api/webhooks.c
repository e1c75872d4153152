/* Webhooks of event notifications. */
#include "api/api_int.h"
#include "s3/notify.h"

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

int api_get_webhooks(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct webhook_info *list;
    struct api_json j;
    struct err err = {0};
    size_t count;
    int code = notify_webhooks(api->o.notify, http_request_arena(req), &list, &count, &err);

    (void)params;
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "webhooks");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++)
        write_webhook(&j.w, &list[i]);
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

static int add(struct api *api, const json_t *object, struct err *err)
{
    static const char *const strings[] = {"name", "url", "secret", NULL};
    int code = api_check_strings(object, strings, err);

    return code < 0 ? code
                    : notify_add_webhook(api->o.notify, json_get_str(object, "name", STR_EMPTY),
                                         json_get_str(object, "url", STR_EMPTY),
                                         json_get_str(object, "secret", STR_EMPTY), err);
}

int api_post_webhook(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_read_json(req, &object, &code))
        return code;
    code = add(ctx, object, &err);
    if (code == 0) {
        struct str name = json_get_str(object, "name", STR_EMPTY);
        struct api_json j;
        log_info(http_request_log(req), "webhook.added", log_s("webhook", name));
        api_json_begin(&j);
        json_out_member_str(&j.w, "name", name);
        json_out_member_str(&j.w, "url", json_get_str(object, "url", STR_EMPTY));
        code = api_json_send(req, 201, &j);
    } else {
        code = api_send_failure(req, code, &err);
    }
    json_decref(object);
    return code;
}

int api_delete_webhook(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str name = route_param(params, "name");
    struct err err = {0};
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    code = notify_remove_webhook(api->o.notify, name, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "webhook.removed", log_s("webhook", name));
    return api_send_done(req);
}
