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

static int fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    (void)err;
    json_out_member_str(w, "name", str_z(inv->args.items[0]));
    json_out_member_str(w, "url", str_z(inv->args.items[1]));
    manage_flag(w, inv, "secret", "secret");
    return 0;
}

static const struct manage_call add = {"POST", "/api/v1/webhooks", MANAGE_COLUMNS(made_columns),
                                       .fill = fill};
static const struct manage_call list = {"GET", "/api/v1/webhooks", MANAGE_COLUMNS(webhook_columns),
                                        .rows = "webhooks"};
static const struct manage_call remove_webhook = {"DELETE", "/api/v1/webhooks/{0}"};

int command_webhook_add(struct invocation *inv)
{
    return manage(inv, &add);
}

int command_webhook_list(struct invocation *inv)
{
    return manage(inv, &list);
}

int command_webhook_remove(struct invocation *inv)
{
    return manage(inv, &remove_webhook);
}
