/* weir bucket: shows the buckets of a running weir, and shows and sets their routes. */
#include "cli/commands.h"
#include "command/manage.h"
#include "s3/lifecycle/lifecycle_sweep.h"

static const struct flag bucket_route_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL,
     "The user whose bucket it is; default: the owner of the bucket of that name."},
    {"remove", FLAG_SWITCH, NULL, NULL,
     "Remove the policy; STORAGE is left out then. Without a BUCKET, remove the policy of --user "
     "for "
     "all buckets."},
    {"block", FLAG_SWITCH, NULL, NULL, "Refuse the bucket on STORAGE, whoever asks."},
    {"unblock", FLAG_SWITCH, NULL, NULL, "No longer refuse the bucket on STORAGE."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column columns[] = {{"name"},    {"storage"},  {"owner"},
                                               {"created"}, {"versions"}, {"object_lock"}};

static const struct output_column policy_columns[] = {
    {"user"}, {"user_id"}, {"bucket"}, {"storage"}, {"blocked"}};

/* The columns of `weir bucket show`: those of `weir bucket list`, the bucket's size, and the
 * results of the last complete sweep by lifecycle rules. */
static const struct output_column show_columns[] = {{"name"},
                                                    {"storage"},
                                                    {"owner"},
                                                    {"created"},
                                                    {"versions"},
                                                    {"object_lock"},
                                                    {"sharded"},
                                                    {"objects", true},
                                                    {"bytes", true},
                                                    {"old_versions", true},
                                                    {"old_bytes", true},
                                                    {"counted_versions", true},
                                                    {"counted_bytes", true},
                                                    {"lifecycle"},
                                                    {"swept"},
#define X(name, help) {#name, true},
                                                    LIFECYCLE_COUNTS(X)
#undef X
};

/* Adds the buckets of one storage to the table. */
static int bucket_list_storage(struct api_client *r, const char *storage, struct output *table,
                               struct err *err)
{
    struct manage_list list = {.path = manage_path(r, "/api/v1/buckets?storage=", storage, ""),
                               .name = "buckets"};
    json_t *all = NULL, *bucket;
    size_t i;
    int code = manage_pages(r, &list, &all, err);

    json_array_foreach(all, i, bucket) manage_row(table, bucket);
    json_decref(all);
    return code;
}

static int bucket_list_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    struct manage_list list = {.path = "/api/v1/storages", .name = "storages"};
    json_t *all = NULL, *storage;
    size_t i;
    int code = manage_pages(r, &list, &all, err);

    (void)inv;
    json_array_foreach(all, i, storage)
    {
        const char *name = arena_z(&r->arena, json_get_str(storage, "name", STR_EMPTY));
        code = name ? bucket_list_storage(r, name, table, err) : ERR_NO_MEMORY;
        if (code < 0)
            break;
    }
    json_decref(all);
    return code;
}

/* Returns an error if a storage could not be asked. The buckets that were found are shown
 * nevertheless. */
static int bucket_judge(const json_t *answer, struct err *err)
{
    const json_t *first = json_array_get(json_object_get(answer, "unasked"), 0);

    if (!first)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "storage " STR_FMT " cannot be asked: " STR_FMT,
                   STR_ARG(json_get_str(first, "storage", STR_EMPTY)),
                   STR_ARG(json_get_str(first, "error", STR_EMPTY)));
}

static int bucket_fill_route(struct json_out *w, const struct invocation *inv, struct err *err)
{
    bool removes = invocation_flag(inv, "remove"), blocks = invocation_flag(inv, "block");
    bool unblocks = invocation_flag(inv, "unblock");
    const char *storage = inv->args.len > 1 ? inv->args.items[1] : "";

    if (removes + blocks + unblocks > 1)
        return err_set(err, ERR_INVALID, "give only one of --remove, --block and --unblock");
    if (removes == (*storage != '\0'))
        return err_set(err, ERR_INVALID, "name a storage, or give --remove");
    json_out_member_str(w, "storage", str_z(storage));
    manage_flag(w, inv, "user", "user");
    if (blocks || unblocks)
        json_out_member_bool(w, "blocked", blocks);
    return 0;
}

static int bucket_list_policies(struct api_client *r, const struct invocation *inv,
                                struct output *table, struct err *err)
{
    static const struct manage_call call = {"GET", "/api/v1/policies",
                                            MANAGE_COLUMNS(policy_columns), .rows = "policies",
                                            .pages = true};

    if (invocation_flag(inv, "user") || invocation_flag(inv, "block") ||
        invocation_flag(inv, "unblock"))
        return err_set(err, ERR_INVALID, "name a bucket");
    return manage_ask(r, inv, &call, table, err);
}

static int bucket_fill_unroute(struct json_out *w, const struct invocation *inv, struct err *err)
{
    if (invocation_flag(inv, "block") || invocation_flag(inv, "unblock"))
        return err_set(err, ERR_INVALID, "give only one of --remove, --block and --unblock");
    if (!invocation_flag(inv, "user"))
        return err_set(err, ERR_INVALID, "name a bucket, or a user with --user");
    json_out_member_str(w, "storage", STR_EMPTY);
    return 0;
}

static const struct manage_call list = {MANAGE_COLUMNS(columns), .run = bucket_list_run};
static const struct manage_call show = {"GET", "/api/v1/buckets/{0}", MANAGE_COLUMNS(show_columns),
                                        .rows = "buckets", .judge = bucket_judge};
static const struct manage_call policies = {MANAGE_COLUMNS(policy_columns),
                                            .run = bucket_list_policies};
static const struct manage_call route = {"POST", "/api/v1/buckets/{0}/route",
                                         .fill = bucket_fill_route};

static const struct manage_call unroute = {"POST", "/api/v1/users/{user}/route",
                                           .fill = bucket_fill_unroute};

static int command_bucket_route(struct invocation *inv)
{
    if (inv->args.len)
        return manage(inv, &route);
    return manage(inv, invocation_flag(inv, "remove") ? &unroute : &policies);
}

const struct command bucket_commands[] = {
    {.name = "bucket list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the buckets of all storages",
     .help = "Lists the buckets, storage by storage.",
     .examples = "weir bucket list --json",
     .call = &list},
    {.name = "bucket show",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Show a bucket",
     .help = "Shows the bucket and what it holds, once for each storage that has a bucket of "
             "that name. A remote storage is asked with the keys of each user that has keys "
             "there, and for its own count of what the bucket holds, which not every storage "
             "has. A bucket that none of them owns is shown without an owner.",
     .examples = "weir bucket show photos",
     .call = &show},
    {.name = "bucket route",
     .arguments = "[BUCKET [STORAGE]]",
     .max_args = 2,
     .flags = bucket_route_flags,
     .configured = true,
     .summary = "Set the storage of a bucket, or list the routes",
     .help =
         "Sets the routing policy of a user's bucket. Set it before the bucket is made: a policy "
         "moves no objects. --block makes weir refuse the bucket on a storage.\n\n"
         "Without a BUCKET the command lists the policies: those of users (no bucket), those of "
         "buckets, and the blocks (no user). With --user and --remove it removes the user's policy "
         "for all buckets.",
     .examples = "weir bucket route photos disk2 --user alice\n"
                 "weir bucket route photos --remove\n"
                 "weir bucket route --user alice --remove\n"
                 "weir bucket route --json",
     .run = command_bucket_route},
    {0},
};
