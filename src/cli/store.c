/* weir store: shows whether the coordination store is the one that the running weir has used
 * before, accepts another store, and restores the configuration. */
#include "cli/commands.h"
#include "command/manage.h"

static const struct flag accept_flags[] = {
    {"empty", FLAG_SWITCH, NULL, NULL,
     "The store is empty on purpose: users, storages and replications will be made anew."},
    {"older", FLAG_SWITCH, NULL, NULL,
     "The store has an older configuration, which is right from now on."},
    {"installation", FLAG_TEXT, "ID", NULL,
     "The store belongs to the installation ID, and so does this weir from now on."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag restore_flags[] = {
    {"from", FLAG_TEXT, "FILE", NULL,
     "Use this copy and not the one in the data folder: an absolute path on the server."},
    {"replace", FLAG_SWITCH, NULL, NULL,
     "Replace the configuration that the store has, which is lost."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column columns[] = {
    {"state"},     {"installation"},  {"found"}, {"comparing"},
    {"copied_at"}, {"copied_config"}, {"why"},
};

static int store_fill_accept(struct json_out *w, const struct invocation *inv, struct err *err)
{
    bool empty = invocation_flag(inv, "empty"), older = invocation_flag(inv, "older");
    const char *id = invocation_flag(inv, "installation");

    if (empty + older + (id != NULL) != 1)
        return err_set(err, ERR_INVALID,
                       "say what the store is: --empty, --older or "
                       "--installation ID (weir store status shows it)");
    json_out_member_str(w, "what", empty ? STR("empty") : older ? STR("older") : STR("other"));
    if (id)
        json_out_member_str(w, "installation", str_z(id));
    return 0;
}

static int store_fill_restore(struct json_out *w, const struct invocation *inv, struct err *err)
{
    (void)err;
    manage_flag(w, inv, "from", "from");
    if (invocation_flag(inv, "replace"))
        json_out_member_bool(w, "replace", true);
    return 0;
}

static const struct manage_call status = {"GET", "/api/v1/store", MANAGE_COLUMNS(columns)};
static const struct manage_call accept_store = {"POST", "/api/v1/store/accept",
                                                MANAGE_COLUMNS(columns), .fill = store_fill_accept};
static const struct manage_call restore = {"POST", "/api/v1/store/restore", MANAGE_COLUMNS(columns),
                                           .fill = store_fill_restore};

const struct command store_commands[] = {
    {.name = "store status",
     .flags = client_flags,
     .configured = true,
     .summary = "Show whether the store is the one that weir knows",
     .help = "Shows the state of the coordination store (known, empty, other, older), the "
             "installation that this weir knows and the one that the store has, and whether "
             "replications are being compared because the store went back in time. Also shows when "
             "weir last copied the configuration to the data folder (copied_at), and the count of "
             "changes at that time (copied_config). While the store is not the known one, weir "
             "serves only health (docs/store-redis.md).",
     .examples = "weir store status",
     .call = &status},
    {.name = "store accept",
     .flags = accept_flags,
     .configured = true,
     .summary = "Go on with the store as it is",
     .help = "Confirms that the store is right as weir found it. The command is refused when the "
             "store is "
             "not what you say it is. --empty and --older are for every weir of the store; "
             "--installation is only for the weir that is asked. Replications are compared anew.",
     .examples = "weir store accept --empty\nweir store accept --older",
     .call = &accept_store},
    {.name = "store restore",
     .flags = restore_flags,
     .configured = true,
     .summary = "Put the configuration back from weir's own copy",
     .help =
         "Puts users, storages, routes, replications and switches back into the store, from the "
         "sealed copy in the data folder of the weir that is asked. A store that has a "
         "configuration is refused without --replace. Replications are compared anew.",
     .examples = "weir store restore\n"
                 "weir store restore --replace\n"
                 "weir store restore --from /var/lib/weir/config.sealed.before --replace",
     .call = &restore},
    {0},
};
