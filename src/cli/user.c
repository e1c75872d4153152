/* weir user: manages the users of a running weir and their keys. */
#include "cli/commands.h"
#include "command/manage.h"

static const struct flag user_add_flags[] = {
    {"id", FLAG_TEXT, "ID", NULL, "The id that owns buckets and stands in ACLs; default: random."},
    {"display-name", FLAG_TEXT, "NAME", NULL,
     "The name that S3 answers show for the user; default: NAME."},
    {"email", FLAG_TEXT, "ADDRESS", NULL,
     "The user's e-mail address, by which access lists may name the user."},
    {"admin", FLAG_SWITCH, NULL, NULL, "The user may use every bucket and the API."},
    {"access-key", FLAG_TEXT, "KEY", NULL, "The access key; default: a new one."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The secret key that goes with --access-key."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag user_key_flags[] = {
    {"access-key", FLAG_TEXT, "KEY", NULL, "The access key; default: a new one."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The secret key that goes with --access-key."},
    {"remove", FLAG_TEXT, "KEY", NULL, "Remove this access key instead."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column user_columns[] = {{"name"},  {"id"},    {"display_name"},
                                                    {"email"}, {"admin"}, {"keys"}};
static const struct output_column made_columns[] = {
    {"name"}, {"id"}, {"access_key"}, {"secret_key"}};
static const struct output_column key_columns[] = {{"access_key"}, {"secret_key"}};

static int user_fill_key(struct json_out *w, const struct invocation *inv, struct err *err)
{
    if (!invocation_flag(inv, "access-key") != !invocation_flag(inv, "secret-key"))
        return err_set(err, ERR_INVALID, "--access-key and --secret-key go together");
    manage_flag(w, inv, "access-key", "access_key");
    manage_flag(w, inv, "secret-key", "secret_key");
    return 0;
}

static int user_fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    json_out_member_str(w, "name", str_z(inv->args.items[0]));
    manage_flag(w, inv, "id", "id");
    manage_flag(w, inv, "display-name", "display_name");
    manage_flag(w, inv, "email", "email");
    json_out_member_bool(w, "admin", invocation_flag(inv, "admin") != NULL);
    return user_fill_key(w, inv, err);
}

static const struct manage_call add = {"POST", "/api/v1/users", MANAGE_COLUMNS(made_columns),
                                       .fill = user_fill};
static const struct manage_call list = {"GET", "/api/v1/users", MANAGE_COLUMNS(user_columns),
                                        .rows = "users", .pages = true};
static const struct manage_call remove_user = {"DELETE", "/api/v1/users/{0}"};
static const struct manage_call add_key = {"POST", "/api/v1/users/{0}/keys",
                                           MANAGE_COLUMNS(key_columns), .fill = user_fill_key};
static const struct manage_call remove_key = {"DELETE", "/api/v1/users/{0}/keys/{remove}"};

static int command_user_key(struct invocation *inv)
{
    return manage(inv, invocation_flag(inv, "remove") ? &remove_key : &add_key);
}

const struct command user_commands[] = {
    {.name = "user add",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = user_add_flags,
     .configured = true,
     .summary = "Add a user",
     .help = "Adds a user with an access key and shows the secret key, which is not shown "
             "again. No two users share a name, id, e-mail address or access key.",
     .examples = "weir user add alice\n"
                 "weir user add bob --display-name 'Bob B.' --email bob@example.org --json",
     .call = &add},
    {.name = "user list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the users",
     .help = "Lists the users with their access keys, the first administrator first.",
     .examples = "weir user list",
     .call = &list},
    {.name = "user remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Remove a user",
     .help = "Removes the user and its keys. Its buckets stay, and still belong to its id.",
     .examples = "weir user remove alice",
     .call = &remove_user},
    {.name = "user key",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = user_key_flags,
     .configured = true,
     .summary = "Add or remove an access key of a user",
     .help = "Adds an access key, by default a random one, and shows its secret key, which is "
             "not shown again; or removes an access key. To replace a key, add the new one "
             "first.",
     .examples = "weir user key alice\n"
                 "weir user key alice --remove AKIAEXAMPLE",
     .run = command_user_key},
    {0},
};
