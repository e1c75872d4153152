/* weir bucket: buckets of a running weir, and where they are. */
#include "cli/commands.h"
#include "command/manage.h"
#include "s3/lifecycle/lifecycle_sweep.h"

static const struct flag bucket_route_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL, "Whose bucket; default: the owner of the one there is."},
    {"remove", FLAG_SWITCH, NULL, NULL, "Remove the policy; STORAGE is left out then."},
    {"block", FLAG_SWITCH, NULL, NULL, "Refuse the bucket on STORAGE, whoever asks."},
    {"unblock", FLAG_SWITCH, NULL, NULL, "Refuse it no longer."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column columns[] = {{"name"},    {"storage"},  {"owner"},
                                               {"created"}, {"versions"}, {"object_lock"}};

static const struct output_column policy_columns[] = {
    {"user"}, {"user_id"}, {"bucket"}, {"storage"}, {"blocked"}};

/* With what it holds, and what lifecycle rules did in the last whole sweep. */
static const struct output_column show_columns[] = {{"name"},
                                                    {"storage"},
                                                    {"owner"},
                                                    {"created"},
                                                    {"versions"},
                                                    {"object_lock"},
                                                    {"objects", true},
                                                    {"bytes", true},
                                                    {"old_versions", true},
                                                    {"old_bytes", true},
                                                    {"lifecycle"},
                                                    {"swept"},
#define X(name, help) {#name, true},
                                                    LIFECYCLE_COUNTS(X)
#undef X
};

static int list_storage(struct api_client *r, const char *storage, struct output *table,
                        struct err *err)
{
    const char *after = "";
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        json_t *answer = NULL, *bucket;
        size_t i;
        const char *before = manage_path(r, "/api/v1/buckets?storage=", storage, "&after=");
        code = api_client_send(r, &answer, "GET", manage_path(r, before, after, ""), NULL, err);
        if (code == 0) {
            more = json_get_bool(answer, "more", false);
            json_array_foreach(json_object_get(answer, "buckets"), i, bucket)
            {
                manage_row(table, bucket);
                after = arena_z(&r->arena, json_get_str(bucket, "name", STR_EMPTY));
            }
        }
        json_decref(answer);
    }
    return code;
}

static int list_all(struct api_client *r, const struct invocation *inv, struct output *table,
                    struct err *err)
{
    json_t *answer = NULL, *storage;
    size_t i;
    int code = api_client_send(r, &answer, "GET", "/api/v1/storages", NULL, err);

    (void)inv;
    if (code == 0)
        json_array_foreach(json_object_get(answer, "storages"), i, storage)
        {
            code = list_storage(r, arena_z(&r->arena, json_get_str(storage, "name", STR_EMPTY)),
                                table, err);
            if (code < 0)
                break;
        }
    json_decref(answer);
    return code;
}

/* What was found is shown all the same. */
static int judge_show(const json_t *answer, struct err *err)
{
    const json_t *first = json_array_get(json_object_get(answer, "unasked"), 0);

    if (!first)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "storage " STR_FMT " cannot be asked: " STR_FMT,
                   STR_ARG(json_get_str(first, "storage", STR_EMPTY)),
                   STR_ARG(json_get_str(first, "error", STR_EMPTY)));
}

static int fill_route(struct json_out *w, const struct invocation *inv, struct err *err)
{
    bool removes = invocation_flag(inv, "remove"), blocks = invocation_flag(inv, "block");
    bool unblocks = invocation_flag(inv, "unblock");
    const char *storage = inv->args.len > 1 ? inv->args.items[1] : "";

    if (removes + blocks + unblocks > 1)
        return err_set(err, ERR_INVALID, "--remove, --block and --unblock exclude each other");
    if (removes == (*storage != '\0'))
        return err_set(err, ERR_INVALID, "name a storage, or give --remove");
    json_out_member_str(w, "storage", str_z(storage));
    manage_flag(w, inv, "user", "user");
    if (blocks || unblocks)
        json_out_member_bool(w, "blocked", blocks);
    return 0;
}

static int list_policies(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    static const struct manage_call call = {"GET", "/api/v1/policies",
                                            MANAGE_COLUMNS(policy_columns), .rows = "policies"};

    if (invocation_flag(inv, "user") || invocation_flag(inv, "remove") ||
        invocation_flag(inv, "block") || invocation_flag(inv, "unblock"))
        return err_set(err, ERR_INVALID, "name a bucket");
    return manage_ask(r, inv, table, &call, err);
}

static const struct manage_call list = {MANAGE_COLUMNS(columns), .run = list_all};
static const struct manage_call show = {"GET", "/api/v1/buckets/{0}", MANAGE_COLUMNS(show_columns),
                                        .rows = "buckets", .judge = judge_show};
static const struct manage_call policies = {MANAGE_COLUMNS(policy_columns), .run = list_policies};
static const struct manage_call route = {"POST", "/api/v1/buckets/{0}/route", .fill = fill_route};

static int command_bucket_list(struct invocation *inv)
{
    return manage(inv, &list);
}

static int command_bucket_show(struct invocation *inv)
{
    return manage(inv, &show);
}

static int command_bucket_route(struct invocation *inv)
{
    return manage(inv, inv->args.len == 0 ? &policies : &route);
}

const struct command bucket_commands[] = {
    {.name = "bucket list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the buckets of all storages",
     .help = "Lists the buckets, storage by storage.",
     .examples = "weir bucket list --json",
     .run = command_bucket_list},
    {.name = "bucket show",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Show a bucket",
     .help =
         "Shows the bucket and what it holds, once for each storage that has one of the name. A "
         "remote storage is asked with the keys of each user that has some there; a bucket that "
         "none of them owns is shown without an owner, and what it holds is not told.",
     .examples = "weir bucket show photos",
     .run = command_bucket_show},
    {.name = "bucket route",
     .arguments = "[BUCKET [STORAGE]]",
     .max_args = 2,
     .flags = bucket_route_flags,
     .configured = true,
     .summary = "Say on which storage a bucket is, or list what was said",
     .help = "Sets the routing policy of a user's bucket, before it is made: a policy moves "
             "nothing. --block makes weir refuse the bucket on a storage.\n\n"
             "Without a bucket it lists the policies that are set: of users (no bucket), of their "
             "buckets, and the blocks (no user).",
     .examples = "weir bucket route photos disk2 --user alice\n"
                 "weir bucket route photos --remove\n"
                 "weir bucket route --json",
     .run = command_bucket_route},
    {0},
};
