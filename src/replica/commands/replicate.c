/* weir replicate: shows and changes the replications of a running weir. */
#include "replica/room.h"
#include "replica/commands/replicate_watch.h"
#include "store/store.h"

#define SELECT_FLAGS                                                                               \
    {"user", FLAG_TEXT, "NAME", NULL,                                                              \
     "Only replications of this user; without a BUCKET: the user's policy."},                      \
        {"to", FLAG_TEXT, "STORAGE", NULL, "Only replications to this storage."},                  \
    {                                                                                              \
        "to-bucket", FLAG_TEXT, "BUCKET", NULL, "Only replications to a bucket of this name."      \
    }
#define WATCH_FLAG                                                                                 \
    {                                                                                              \
        "watch", FLAG_SWITCH, NULL, NULL,                                                          \
            "Show the progress until everything has been copied once."                             \
    }

static const struct flag replicate_add_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL,
     "The user whose bucket it is; default: its owner. Without a BUCKET: all buckets of the user."},
    {"from", FLAG_TEXT, "STORAGE", NULL, "The source; default: where the bucket's route leads."},
    {"to-bucket", FLAG_TEXT, "BUCKET", NULL,
     "The bucket's name at the destination, if it differs."},
    {"priority", FLAG_TEXT, "N", NULL,
     "0 to 5; changes of a higher priority are copied sooner; default: 0."},
    {"notify", FLAG_TEXT, "URL|ARN", NULL,
     "Have the source, a remote storage, report changes that go past weir: to weir's API at URL, "
     "or to a target ARN that the source has."},
    WATCH_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag replicate_list_flags[] = {SELECT_FLAGS, WATCH_FLAG, CLIENT_FLAGS, {0}};
static const struct flag replicate_select_flags[] = {SELECT_FLAGS, CLIENT_FLAGS, {0}};
static const struct flag replicate_remove_flags[] = {
    SELECT_FLAGS,
    {"with-buckets", FLAG_SWITCH, NULL, NULL,
     "With a user's policy, also remove the replications of its buckets."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column list_columns[] = {
    {"user"},
    {"bucket"},
    {"from"},
    {"to"},
    {"to_bucket"},
    {"state"},
    {"objects_done", .number = true},
    {"objects", .number = true},
    {"objects_failed", .number = true},
    {"bytes_done", .number = true},
    {"bytes", .number = true},
    {"lag", .number = true},
    {"switch"},
    {"rate"},
    {"left"},
};

static const struct output_column show_columns[] = {
    {"user"},
    {"bucket"},
    {"from"},
    {"to"},
    {"to_bucket"},
    {"priority", .number = true},
    {"notify"},
    {"state"},
    {"switch"},
    {"created"},
    {"init_done_at"},
    {"objects_done", .number = true},
    {"objects", .number = true},
    {"objects_failed", .number = true},
    {"bytes_done", .number = true},
    {"bytes", .number = true},
    {"events_done", .number = true},
    {"events", .number = true},
    {"lag", .number = true},
    {"last_change"},
    {"last_done"},
    {"rate"},
    {"left"},
};

static const struct output_column failed_columns[] = {{"object"},    {"type"},  {"error"},
                                                      {"failed_at"}, {"queue"}, {"task"}};

/* --- choosing --- */

static const char *replicate_path(struct api_client *r, const struct invocation *inv)
{
    struct buf path = BUF_INIT(64 * KIB);

    buf_append_z(&path, "/api/v1/replications");
    manage_query(&path, "bucket", inv->args.len ? inv->args.items[0] : NULL);
    manage_query(&path, "user", invocation_flag(inv, "user"));
    manage_query(&path, "to", invocation_flag(inv, "to"));
    manage_query(&path, "to_bucket", invocation_flag(inv, "to-bucket"));
    const char *copy = arena_z(&r->arena, buf_str(&path));
    buf_release(&path);
    return copy;
}

/* Returns the id of the user policy that may have made the bucket's replication:
 * "user::from:to". */
static const char *replicate_policy_id(struct api_client *r, const json_t *row)
{
    const struct str parts[] = {json_get_str(row, "user_id", STR_EMPTY), STR_EMPTY,
                                json_get_str(row, "from", STR_EMPTY),
                                json_get_str(row, "to", STR_EMPTY)};
    struct buf id = BUF_INIT(64 * KIB);

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (i)
            buf_append_char(&id, ':');
        store_key_part(&id, parts[i]);
    }
    const char *copy = arena_z(&r->arena, buf_str(&id));
    buf_release(&id);
    return copy;
}

/* Counts the different ids among the rows that the arguments choose. *id is set to one of them. */
static size_t replicate_choose(struct api_client *r, const json_t *rows, bool policy,
                               bool with_buckets, const char **id)
{
    json_t *ids = json_object();
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        bool own = policy == (json_get_str(row, "bucket", STR_EMPTY).len == 0);
        if (!own && (!with_buckets || json_get_str(row, "to_bucket", STR_EMPTY).len))
            continue;
        const char *one = own ? arena_z(&r->arena, json_get_str(row, "id", STR_EMPTY))
                              : replicate_policy_id(r, row);
        json_object_set_new(ids, one, json_null());
        *id = one;
    }
    size_t found = json_object_size(ids);
    json_decref(ids);
    return found;
}

/* Sets *id to the only replication that BUCKET and the flags choose. Without a BUCKET it is a
 * user's policy; with --with-buckets that policy may have been removed already. */
static int replicate_select(struct api_client *r, const struct invocation *inv, const char **id,
                            struct err *err)
{
    bool policy = inv->args.len == 0;
    struct manage_list list = {.name = "replications"};
    json_t *rows = NULL;
    size_t found = 0;
    int code = 0;

    if (policy && !invocation_flag(inv, "user"))
        return err_set(err, ERR_INVALID,
                       "name a BUCKET, or a user with --user to mean the user's policy");
    list.path = replicate_path(r, inv);
    code = manage_pages(r, &list, &rows, err);
    if (code < 0)
        return code;
    found = replicate_choose(r, rows, policy, false, id);
    if (policy && !found && invocation_flag(inv, "with-buckets"))
        found = replicate_choose(r, rows, policy, true, id);
    json_decref(rows);
    if (found == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no such replication; weir replicate list shows all replications");
    if (found > 1)
        return err_set(
            err, ERR_CONFLICT,
            "there are %zu such replications; choose one with --to, --to-bucket or --user", found);
    return 0;
}

/* Makes one API call for the replication that the arguments choose. */
static int replicate_change(struct api_client *r, const struct invocation *inv, const char *method,
                            const char *tail, struct err *err)
{
    const char *id = NULL;
    int code = replicate_select(r, inv, &id, err);

    if (code == 0)
        code = api_client_send(r, method, manage_path(r, "/api/v1/replications/", id, tail),
                               strcmp(method, "POST") == 0 ? "{}" : NULL, NULL, err);
    return code;
}

/* --- list and show --- */

static int replicate_list_run(struct api_client *r, const struct invocation *inv,
                              struct output *table, struct err *err)
{
    struct manage_list list = {.path = replicate_path(r, inv), .name = "replications"};
    json_t *all = NULL, *row;
    size_t i;

    if (invocation_flag(inv, "watch"))
        return replicate_watch(r, inv, list.path, err);
    int code = manage_pages(r, &list, &all, err);
    json_array_foreach(all, i, row)
    {
        replicate_describe(row);
        manage_row(table, row);
    }
    json_decref(all);
    return code;
}

/* Prints one replication. Without --json, failed objects follow as a table of their own; JSON has
 * them as a member. */
static void replicate_print(json_t *answer, const struct invocation *inv, struct output *table)
{
    const json_t *failed = json_object_get(answer, "failed"), *row;
    struct output names;
    size_t i;

    if (invocation_flag(inv, "json")) {
        manage_print_json(answer);
        return;
    }
    replicate_describe(answer);
    manage_row(table, answer);
    output_print(table, stdout);
    if (!json_array_size(failed))
        return;
    printf("\nfailed%s:\n", json_get_bool(answer, "failed_more", false) ? " (the first ones)" : "");
    output_init(&names, failed_columns, ARRAY_SIZE(failed_columns));
    json_array_foreach(failed, i, row) manage_row(&names, row);
    output_print(&names, stdout);
    output_release(&names);
}

static int replicate_show_run(struct api_client *r, const struct invocation *inv,
                              struct output *none, struct err *err)
{
    struct output table;
    const char *id = NULL;
    json_t *answer = NULL;
    int code = replicate_select(r, inv, &id, err);

    (void)none;
    if (code == 0)
        code = api_client_send(r, "GET", manage_path(r, "/api/v1/replications/", id, ""), NULL,
                               &answer, err);
    output_init(&table, show_columns, ARRAY_SIZE(show_columns));
    if (code == 0)
        replicate_print(answer, inv, &table);
    output_release(&table);
    json_decref(answer);
    return code;
}

/* --- add --- */

/* Writes the request's body. The arguments are BUCKET and STORAGE; with --user only STORAGE. */
static int replicate_fill_add(struct json_out *w, const struct invocation *inv, struct err *err)
{
    const char *priority = invocation_flag(inv, "priority");
    bool all = inv->args.len == 1;
    uint64_t number = 0;

    if (all && !invocation_flag(inv, "user"))
        return err_set(err, ERR_INVALID,
                       "name a BUCKET and a STORAGE, or give --user for all buckets of a user");
    if (priority && str_u64(str_z(priority), &number) < 0)
        return err_set(err, ERR_INVALID, "--priority takes a number from 0 to 5, not '%s'",
                       priority);
    json_out_member_str(w, "bucket", str_z(all ? "" : inv->args.items[0]));
    json_out_member_str(w, "to", str_z(inv->args.items[all ? 0 : 1]));
    json_out_member_u64(w, "priority", number);
    manage_flag(w, inv, "user", "user");
    manage_flag(w, inv, "from", "from");
    manage_flag(w, inv, "to-bucket", "to_bucket");
    manage_flag(w, inv, "notify", "notify");
    return 0;
}

/* Prints which buckets of a user cannot be replicated, and why. */
static void replicate_print_left_out(const json_t *answer)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(answer, "buckets"), i, row)
    {
        if (!json_get_bool(row, "added", true))
            complain(EXIT_DONE, "replicate add: bucket " STR_FMT " was left out: " STR_FMT,
                     STR_ARG(json_get_str(row, "bucket", STR_EMPTY)),
                     STR_ARG(json_get_str(row, "error", STR_EMPTY)));
    }
}

static const char *replicate_made_path(struct api_client *r, const json_t *made)
{
    struct buf path = BUF_INIT(64 * KIB);
    static const char *const names[] = {"user", "bucket", "from", "to", "to_bucket"};

    buf_append_z(&path, "/api/v1/replications");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        manage_query(&path, names[i], json_string_value(json_object_get(made, names[i])));
    const char *copy = arena_z(&r->arena, buf_str(&path));
    buf_release(&path);
    return copy;
}

static int replicate_add_run(struct api_client *r, const struct invocation *inv,
                             struct output *table, struct err *err)
{
    static const struct manage_call call = {"POST", "/api/v1/replications",
                                            .fill = replicate_fill_add};
    json_t *made = NULL;
    int code = manage_send(r, inv, &call, &made, err);

    if (code == 0) {
        replicate_print_left_out(made);
        if (invocation_flag(inv, "watch")) {
            code = replicate_watch(r, inv, replicate_made_path(r, made), err);
        } else {
            replicate_describe(made);
            manage_row(table, made);
        }
    }
    json_decref(made);
    return code;
}

/* --- changes --- */

static int replicate_pause_run(struct api_client *r, const struct invocation *inv,
                               struct output *table, struct err *err)
{
    (void)table;
    return replicate_change(r, inv, "PUT", "/pause", err);
}

static int replicate_resume_run(struct api_client *r, const struct invocation *inv,
                                struct output *table, struct err *err)
{
    (void)table;
    return replicate_change(r, inv, "PUT", "/resume", err);
}

static int replicate_remove_run(struct api_client *r, const struct invocation *inv,
                                struct output *table, struct err *err)
{
    (void)table;
    return replicate_change(r, inv, "DELETE",
                            invocation_flag(inv, "with-buckets") ? "?buckets=true" : "", err);
}

static int replicate_resync_run(struct api_client *r, const struct invocation *inv,
                                struct output *table, struct err *err)
{
    int code = replicate_change(r, inv, "POST", "/resync", err);

    (void)table;
    if (code == 0 && invocation_flag(inv, "watch"))
        code = replicate_watch(r, inv, replicate_path(r, inv), err);
    return code;
}

static const struct manage_call replicate_show_call = {.run = replicate_show_run};
static const struct manage_call replicate_pause_call = {.run = replicate_pause_run};
static const struct manage_call replicate_resume_call = {.run = replicate_resume_run};
static const struct manage_call replicate_remove_call = {.run = replicate_remove_run};
static const struct manage_call replicate_resync_call = {.run = replicate_resync_run};
static const struct manage_call replicate_add_call = {MANAGE_COLUMNS(list_columns),
                                                      .run = replicate_add_run};
static const struct manage_call replicate_list_call = {MANAGE_COLUMNS(list_columns),
                                                       .run = replicate_list_run};

const struct command replicate_commands[] = {
    {.name = "replicate add",
     .arguments = "[BUCKET] STORAGE",
     .min_args = 1,
     .max_args = 2,
     .flags = replicate_add_flags,
     .configured = true,
     .summary = "Replicate a bucket, or all buckets of a user, to a storage",
     .help = "Copies the objects of a bucket to STORAGE, and from then on every change. The "
             "bucket there has the same name, and is made when it is missing. The source is "
             "the storage where the bucket's route leads. A bucket may have several "
             "destinations. A destination with another name (--to-bucket) is blocked for "
             "direct use.\n\nWithout a BUCKET, with --user: replicates all buckets that the "
             "user has or will make.",
     .examples = "weir replicate add photos disk2 --watch\nweir replicate add photos ceph "
                 "--to-bucket photos-copy --priority 3\nweir replicate add ceph --user alice",
     .call = &replicate_add_call},
    {.name = "replicate list",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = replicate_list_flags,
     .configured = true,
     .summary = "List the replications and how far they are",
     .help = "Shows for each replication how much of the first copy is done, with its rate and"
             " the time left, the changes that wait to be copied (lag), and the objects that "
             "failed. States: listing, copying (the first copy), in sync, behind (changes "
             "wait), paused, archived, misrouted (clients do not use the source), policy (of a"
             " user, which makes replications).",
     .examples = "weir replicate list\nweir replicate list photos --watch\nweir replicate list "
                 "--user alice --json",
     .call = &replicate_list_call},
    {.name = "replicate show",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = replicate_select_flags,
     .configured = true,
     .summary = "Show a replication and what it could not copy",
     .help = "Shows everything about one replication, with the objects that failed for good "
             "and the reasons. `weir task run` tries one of these objects again.",
     .examples = "weir replicate show photos --to disk2",
     .call = &replicate_show_call},
    {.name = "replicate pause",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = replicate_select_flags,
     .configured = true,
     .summary = "Pause a replication",
     .help = "Pauses the replication: nothing is copied until it is resumed. Changes are still "
             "recorded, so "
             "none is missed.",
     .examples = "weir replicate pause photos --to disk2",
     .call = &replicate_pause_call},
    {.name = "replicate resume",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = replicate_select_flags,
     .configured = true,
     .summary = "Resume a replication",
     .help = "Undoes weir replicate pause.",
     .examples = "weir replicate resume photos --to disk2",
     .call = &replicate_resume_call},
    {.name = "replicate remove",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = replicate_remove_flags,
     .configured = true,
     .summary = "Remove a replication",
     .help = "Ends the replication and removes its state. What was copied stays at the "
             "destination. Without a BUCKET, with --user: removes the policy of the user. The "
             "replications that the policy made stay, unless --with-buckets is given, now or "
             "later.",
     .examples = "weir replicate remove photos --to disk2\nweir replicate remove --user alice "
                 "--with-buckets",
     .call = &replicate_remove_call},
    {.name = "replicate resync",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = replicate_list_flags,
     .configured = true,
     .summary = "Compare everything again and repair what differs",
     .help = "Lists both sides again and compares every object with its copy, whatever weir "
             "knows about it. Use it after the coordination data were lost, or when somebody "
             "changed the destination. Objects that the source does not have are removed at "
             "the destination; in a bucket of another name only those that came there since "
             "the replication was made.",
     .examples = "weir replicate resync photos --to disk2 --watch",
     .call = &replicate_resync_call},
    {0},
};
