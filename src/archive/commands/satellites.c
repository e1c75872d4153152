/* The commands `weir archive satellite`: storages that hold the archive. */
#include "archive/room.h"

#include "command/manage.h"

static const struct flag satellite_add_flags[] = {
    {"access-key", FLAG_TEXT, "KEY", NULL,
     "The access key of the satellite's user on a remote storage."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The secret key there."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag satellite_flags[] = {CLIENT_FLAGS, {0}};

static const struct output_column satellite_columns[] = {{"name"},
                                                         {"slots", .number = true},
                                                         {"coming", .number = true},
                                                         {"leaving", .number = true},
                                                         {"up"},
                                                         {"ranges"}};
static const struct output_column satellite_made_columns[] = {
    {"name"}, {"user"}, {"access_key"}, {"secret_key"}};
static const struct output_column satellite_table_columns[] = {{"epoch", .number = true},
                                                               {"moving", .number = true}};

static int satellite_fill_add(struct json_out *w, const struct invocation *inv, struct err *err)
{
    bool access = invocation_flag(inv, "access-key"), secret = invocation_flag(inv, "secret-key");

    if (access != secret)
        return err_set(err, ERR_INVALID, "give both --access-key and --secret-key, or neither");
    json_out_key(w, "names");
    json_out_open(w, '[');
    for (size_t i = 0; i < inv->args.len; i++)
        json_out_str(w, str_z(inv->args.items[i]));
    json_out_close(w, ']');
    manage_flag(w, inv, "access-key", "access_key");
    manage_flag(w, inv, "secret-key", "secret_key");
    return 0;
}

static const struct manage_call add_satellites = {"POST", "/api/v1/archive/satellites",
                                                  MANAGE_COLUMNS(satellite_made_columns),
                                                  .rows = "satellites", .fill = satellite_fill_add};
static const struct manage_call list_satellites = {
    "GET", "/api/v1/archive/satellites", MANAGE_COLUMNS(satellite_columns), .rows = "satellites"};
static const struct manage_call drain_satellite = {"POST", "/api/v1/archive/satellites/{0}/drain",
                                                   MANAGE_COLUMNS(satellite_table_columns)};

const struct command archive_satellite_commands[] = {
    {.name = "archive satellite add",
     .arguments = "STORAGE...",
     .min_args = 1,
     .max_args = 64,
     .flags = satellite_add_flags,
     .configured = true,
     .summary = "Let storages hold a part of the archive",
     .help = "Satellites that are added before the archive has objects split the accounts equally, "
             "in the order of the arguments. A later one takes its share from the others, and its "
             "accounts move there while syncs and reads go on. Each satellite gets a user of the "
             "same name, who owns the archive's buckets on the storage; the user's keys are shown "
             "once. On a remote storage the user needs keys of that storage.",
     .examples = "weir storage add asia-east-1 /disks/asia\n"
                 "weir archive satellite add asia-east-1 europe-west-1 us-central-1",
     .call = &add_satellites},
    {.name = "archive satellite list",
     .flags = satellite_flags,
     .configured = true,
     .summary = "Show the satellites",
     .help = "Shows how many of the 256 slots each satellite holds, which ones, and how many are "
             "still moving. A slot is the first byte of the SHA-256 of an account's name.",
     .examples = "weir archive satellite list",
     .call = &list_satellites},
    {.name = "archive satellite drain",
     .arguments = "STORAGE",
     .min_args = 1,
     .max_args = 1,
     .flags = satellite_flags,
     .configured = true,
     .summary = "Move everything away from a satellite",
     .help =
         "The accounts of the satellite move to the others, while syncs and reads go on. Each "
         "object is verified before the old one is removed. When all have moved, the storage is "
         "no satellite any more: the policy of its user is removed. If weir has made the user, it "
         "removes the archive's buckets that have neither objects nor settings, except on remote "
         "storages, and the user, if it owns no bucket. The storage stays, and can be removed.",
     .examples = "weir archive satellite drain us-central-1\nweir storage remove us-central-1",
     .call = &drain_satellite},
    {0},
};
