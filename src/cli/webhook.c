/* weir webhook: destinations of event notifications of a running weir. */
#include "cli/commands.h"
#include "cli/manage.h"

const struct flag webhook_add_flags[] = {
    {"secret", FLAG_TEXT, "SECRET", NULL, "Sign every call with this secret."},
    REMOTE_FLAGS,
    {0},
};

static const struct output_column made_columns[] = {{"name"}, {"url"}};
static const struct output_column webhook_columns[] = {{"name"},    {"url"},       {"signed"},
                                                       {"pending"}, {"delivered"}, {"failed"}};

static int add(struct remote *r, const struct invocation *inv, struct output *table,
               struct err *err)
{
    struct buf body = {0};
    struct json_out w;
    json_t *answer = NULL;
    int code;

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "name", str_z(inv->args.items[0]));
    json_out_member_str(&w, "url", str_z(inv->args.items[1]));
    manage_flag(&w, inv, "secret", "secret");
    json_out_close(&w, '}');
    code = remote_send(r, &answer, "POST", "/api/v1/webhooks", body.p, err);
    if (code == 0)
        manage_row(table, answer);
    json_decref(answer);
    secure_zero(body.p, body.cap);
    buf_release(&body);
    return code;
}

static int list(struct remote *r, const struct invocation *inv, struct output *table,
                struct err *err)
{
    json_t *answer = NULL, *webhook;
    size_t i;
    int code = remote_send(r, &answer, "GET", "/api/v1/webhooks", NULL, err);

    (void)inv;
    if (code == 0)
        json_array_foreach(json_object_get(answer, "webhooks"), i, webhook)
            manage_row(table, webhook);
    json_decref(answer);
    return code;
}

static int remove_webhook(struct remote *r, const struct invocation *inv, struct output *table,
                          struct err *err)
{
    (void)table;
    return remote_send(r, NULL, "DELETE",
                       manage_path(r, "/api/v1/webhooks/", inv->args.items[0], ""), NULL, err);
}

int command_webhook_add(struct invocation *inv)
{
    return manage(inv, made_columns, ARRAY_SIZE(made_columns), add);
}

int command_webhook_list(struct invocation *inv)
{
    return manage(inv, webhook_columns, ARRAY_SIZE(webhook_columns), list);
}

int command_webhook_remove(struct invocation *inv)
{
    return manage(inv, NULL, 0, remove_webhook);
}
