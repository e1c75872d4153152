/* weir webhook: manages the destinations of event notifications of a running weir. */
#include "cli/commands.h"
#include "command/manage.h"

static const struct flag webhook_add_flags[] = {
    {"secret", FLAG_TEXT, "SECRET", NULL, "Sign every call with this secret."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column made_columns[] = {{"name"}, {"url"}};
static const struct output_column webhook_columns[] = {{"name"},    {"url"},       {"signed"},
                                                       {"pending"}, {"delivered"}, {"failed"}};

static int webhook_fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    (void)err;
    json_out_member_str(w, "name", str_z(inv->args.items[0]));
    json_out_member_str(w, "url", str_z(inv->args.items[1]));
    manage_flag(w, inv, "secret", "secret");
    return 0;
}

static const struct manage_call add = {"POST", "/api/v1/webhooks", MANAGE_COLUMNS(made_columns),
                                       .fill = webhook_fill};
static const struct manage_call list = {"GET", "/api/v1/webhooks", MANAGE_COLUMNS(webhook_columns),
                                        .rows = "webhooks", .pages = true};
static const struct manage_call remove_webhook = {"DELETE", "/api/v1/webhooks/{0}"};

const struct command webhook_commands[] = {
    {.name = "webhook add",
     .arguments = "NAME URL",
     .min_args = 2,
     .max_args = 2,
     .flags = webhook_add_flags,
     .configured = true,
     .summary = "Add or replace a webhook for event notifications",
     .help = "Makes NAME a destination for the notification configurations of buckets: any ARN"
             " that ends in :NAME means this webhook. With a secret every call is signed "
             "(docs/notifications.md).",
     .examples = "weir webhook add thumbs https://example.org/s3-events --secret s3cret\n"
                 "aws s3api put-bucket-notification-configuration --bucket photos "
                 "--notification-configuration '{\"TopicConfigurations\":[{\"TopicArn\":"
                 "\"arn:aws:sns:us-east-1::thumbs\",\"Events\":[\"s3:ObjectCreated:*\"]}]}'",
     .call = &add},
    {.name = "webhook list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the webhooks and what waits for them",
     .help =
         "Lists the webhooks with the numbers of events that wait, events that were delivered and "
         "calls that failed.",
     .examples = "weir webhook list",
     .call = &list},
    {.name = "webhook remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Remove a webhook",
     .help = "Removes the webhook; events that wait for it are dropped.",
     .examples = "weir webhook remove thumbs",
     .call = &remove_webhook},
    {0},
};
