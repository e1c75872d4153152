/* weir storage: manages the storages of a running weir. */
#include "cli/commands.h"
#include "command/manage.h"

static const char *const framings[] = {"plain", "trailer", NULL};

#define LIMIT_FLAGS                                                                                \
    {"requests-per-minute", FLAG_TEXT, "N", NULL,                                                  \
     "Requests a minute to the storage by replication, all workers together; 0: any number."},     \
    {                                                                                              \
        "bytes-per-second", FLAG_TEXT, "SIZE", NULL,                                               \
            "Bytes a second that replication may move, such as 64MiB; 0: any number."              \
    }

static const struct flag storage_add_flags[] = {
    {"endpoint", FLAG_TEXT, "URL", NULL, "A remote storage: http://host[:port] or https://..."},
    {"region", FLAG_TEXT, "REGION", NULL, "The remote storage's region; default: us-east-1."},
    {"virtual-host", FLAG_SWITCH, NULL, NULL,
     "Put a bucket's name into the URL as bucket.host, not as host/bucket."},
    {"ca", FLAG_FILE, "FILE", NULL,
     "File of certificates, on weir's machine, against which the endpoint is checked."},
    {"no-verify", FLAG_SWITCH, NULL, NULL, "Do not check the endpoint's certificate."},
    {"framing", FLAG_CHOICES, "KIND", framings,
     "How uploads are sent. trailer: with a checksum after the body (AWS, weir, Ceph from 20 "
     "on); default: plain."},
    {"connect-timeout", FLAG_TEXT, "TIME", NULL,
     "Longest wait for a connection, with name look-up and TLS: 100ms to 60s; default: 3s."},
    {"response-timeout", FLAG_TEXT, "TIME", NULL,
     "Longest wait until an answer begins: 1s to 1h; default: 60s."},
    {"idle-timeout", FLAG_TEXT, "TIME", NULL,
     "Longest pause in a body, either way: 1s to 1h; default: 30s."},
    {"user", FLAG_TEXT, "USER", NULL,
     "The user of weir to whom --access-key and --secret-key belong."},
    {"access-key", FLAG_TEXT, "KEY", NULL, "The user's access key on the storage."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The user's secret key on the storage."},
    {"main", FLAG_SWITCH, NULL, NULL, "Make the new storage the main storage."},
    LIMIT_FLAGS,
    CLIENT_FLAGS,
    {0},
};

static const struct flag storage_set_flags[] = {LIMIT_FLAGS, CLIENT_FLAGS, {0}};

static const struct flag storage_remove_flags[] = {
    {"force", FLAG_SWITCH, NULL, NULL,
     "Remove the storage even when policies or replications use it, or when it is local and has "
     "buckets."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag storage_key_flags[] = {
    {"access-key", FLAG_TEXT, "KEY", NULL, "The user's access key on the storage."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The user's secret key on the storage."},
    {"remove", FLAG_SWITCH, NULL, NULL, "Remove the user's keys on the storage instead."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column storage_columns[] = {{"name"},
                                                       {"kind"},
                                                       {"state"},
                                                       {"main"},
                                                       {"url"},
                                                       {"folder"},
                                                       {"region"},
                                                       {"framing"},
                                                       {"users"},
                                                       {"requests_per_minute", .number = true},
                                                       {"bytes_per_second", .number = true}};
static const struct output_column user_columns[] = {{"user"}, {"id"}};
static const struct output_column notify_columns[] = {{"name"}, {"path"}, {"token"}};
static const struct output_column test_columns[] = {{"name"}, {"ok"}, {"error"}};
static const struct output_column damage_columns[] = {
    {"damage"}, {"bucket"}, {"key"}, {"version"}, {"path"}};

/* Flags that only remote storages have, and the member of the call's body for each. NULL: other
 * code writes the member. */
static const struct {
    const char *flag, *member;
} of_remote[] = {
    {"endpoint", "url"},
    {"region", "region"},
    {"ca", "ca"},
    {"framing", "framing"},
    {"connect-timeout", "connect_timeout"},
    {"response-timeout", "response_timeout"},
    {"idle-timeout", "idle_timeout"},
    {"user", "user"},
    {"access-key", "access_key"},
    {"secret-key", "secret_key"},
    {"virtual-host", NULL},
    {"no-verify", NULL},
};

static int storage_check_folder(const struct invocation *inv, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(of_remote); i++)
        if (invocation_flag(inv, of_remote[i].flag))
            return err_set(err, ERR_INVALID,
                           "--%s is only for a storage with an --endpoint, not for a FOLDER",
                           of_remote[i].flag);
    return 0;
}

static void storage_fill_local(struct json_out *w, const struct invocation *inv)
{
    json_out_member_str(w, "kind", STR("local"));
    json_out_member_str(w, "folder", str_z(inv->args.items[1]));
}

static void storage_fill_remote(struct json_out *w, const struct invocation *inv)
{
    json_out_member_str(w, "kind", STR("remote"));
    for (size_t i = 0; i < ARRAY_SIZE(of_remote); i++)
        if (of_remote[i].member)
            manage_flag(w, inv, of_remote[i].flag, of_remote[i].member);
    if (invocation_flag(inv, "virtual-host"))
        json_out_member_str(w, "style", STR("host"));
    json_out_member_bool(w, "insecure", invocation_flag(inv, "no-verify") != NULL);
}

static int storage_fill_limits(struct json_out *w, const struct invocation *inv, struct err *err)
{
    const char *requests = invocation_flag(inv, "requests-per-minute");
    const char *bytes = invocation_flag(inv, "bytes-per-second");
    uint64_t number = 0;

    if (requests && str_u64(str_z(requests), &number) < 0)
        return err_set(err, ERR_INVALID, "--requests-per-minute takes a number, not '%s'",
                       requests);
    if (requests)
        json_out_member_u64(w, "requests_per_minute", number);
    if (bytes && str_size(str_z(bytes), &number) < 0)
        return err_set(err, ERR_INVALID, "--bytes-per-second takes a size such as 64MiB, not '%s'",
                       bytes);
    if (bytes)
        json_out_member_u64(w, "bytes_per_second", number);
    return 0;
}

static int storage_fill_set(struct json_out *w, const struct invocation *inv, struct err *err)
{
    if (!invocation_flag(inv, "requests-per-minute") && !invocation_flag(inv, "bytes-per-second"))
        return err_set(err, ERR_INVALID, "give --requests-per-minute, --bytes-per-second or both");
    return storage_fill_limits(w, inv, err);
}

static int storage_fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    bool is_remote = invocation_flag(inv, "endpoint") != NULL;
    int code = 0;

    if (inv->args.len == 2 && str_find(str_z(inv->args.items[1]), STR("://")) >= 0)
        return err_set(err, ERR_INVALID, "give an address as --endpoint %s", inv->args.items[1]);
    if (is_remote == (inv->args.len == 2))
        return err_set(err, ERR_INVALID, "give either a FOLDER or an --endpoint");
    if (!is_remote)
        code = storage_check_folder(inv, err);
    if (code < 0)
        return code;
    json_out_member_str(w, "name", str_z(inv->args.items[0]));
    json_out_member_bool(w, "main", invocation_flag(inv, "main") != NULL);
    if (is_remote)
        storage_fill_remote(w, inv);
    else
        storage_fill_local(w, inv);
    return storage_fill_limits(w, inv, err);
}

static int storage_fill_key(struct json_out *w, const struct invocation *inv, struct err *err)
{
    if (!invocation_flag(inv, "access-key") || !invocation_flag(inv, "secret-key"))
        return err_set(err, ERR_INVALID, "give --access-key and --secret-key, or --remove");
    json_out_member_str(w, "user", str_z(inv->args.items[1]));
    manage_flag(w, inv, "access-key", "access_key");
    manage_flag(w, inv, "secret-key", "secret_key");
    return 0;
}

/* Returns an error if the test failed. The error only sets the exit status, because the table
 * already says what is wrong. */
static int storage_judge_test(const json_t *answer, struct err *err)
{
    (void)err;
    return json_get_bool(answer, "ok", false) ? 0 : ERR_UNAVAILABLE;
}

static int storage_judge_scrub(const json_t *answer, struct err *err)
{
    int64_t findings = json_get_i64(answer, "findings", 0);

    return findings ? err_set(err, ERR_CORRUPT, "%jd findings", (intmax_t)findings) : 0;
}

static const struct manage_call set_key = {"POST", "/api/v1/storages/{0}/credentials",
                                           .fill = storage_fill_key};
static const struct manage_call drop_key = {"DELETE", "/api/v1/storages/{0}/credentials/{1}"};
static const struct manage_call list_keys = {"GET", "/api/v1/storages/{0}/credentials",
                                             MANAGE_COLUMNS(user_columns), .rows = "users",
                                             .pages = true};

/* Shows which users have keys on the storage. If a USER is named, changes that user's keys first.
 */
static int storage_key_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    bool removes = invocation_flag(inv, "remove");
    int code = 0;

    if (inv->args.len == 2)
        code = manage_ask(r, inv, removes ? &drop_key : &set_key, table, err);
    return code < 0 ? code : manage_ask(r, inv, &list_keys, table, err);
}

static const struct manage_call add = {"POST", "/api/v1/storages", MANAGE_COLUMNS(storage_columns),
                                       .fill = storage_fill};
static const struct manage_call set = {"POST", "/api/v1/storages/{0}/limits",
                                       MANAGE_COLUMNS(storage_columns), .fill = storage_fill_set};
static const struct manage_call list = {"GET", "/api/v1/storages", MANAGE_COLUMNS(storage_columns),
                                        .rows = "storages", .pages = true};
static const struct manage_call remove_storage = {"DELETE", "/api/v1/storages/{0}"};
static const struct manage_call remove_forced = {"DELETE", "/api/v1/storages/{0}?force=true"};
static const struct manage_call make_main = {"POST", "/api/v1/storages/{0}/main"};
static const struct manage_call key = {MANAGE_COLUMNS(user_columns), .run = storage_key_run};
static const struct manage_call claim = {"POST", "/api/v1/storages/{0}/claim"};
static const struct manage_call show_notify = {"GET", "/api/v1/storages/{0}/notify",
                                               MANAGE_COLUMNS(notify_columns)};
static const struct manage_call test = {"POST", "/api/v1/storages/{0}/test",
                                        MANAGE_COLUMNS(test_columns), .judge = storage_judge_test};
static const struct manage_call scrub = {"POST", "/api/v1/storages/{0}/scrub",
                                         MANAGE_COLUMNS(damage_columns), .rows = "damaged",
                                         .judge = storage_judge_scrub};

static int command_storage_remove(struct invocation *inv)
{
    return manage(inv, invocation_flag(inv, "force") ? &remove_forced : &remove_storage);
}

const struct command storage_commands[] = {
    {.name = "storage add",
     .arguments = "NAME [FOLDER]",
     .min_args = 1,
     .max_args = 2,
     .flags = storage_add_flags,
     .configured = true,
     .summary = "Add a storage: a folder, or any S3 service",
     .help = "Adds a storage in the folder, on the machine where weir runs: an absolute path that "
             "is empty or not there yet. With --endpoint the storage is an S3 service, and each "
             "user's requests go there with the keys that `weir storage key` gave that user.",
     .examples =
         "weir storage add disk2 /mnt/disk2/weir\n"
         "weir storage add ceph --endpoint https://s3.example.org --user alice --access-key "
         "AKIAEXAMPLE --secret-key SECRET --main",
     .call = &add},
    {.name = "storage set",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = storage_set_flags,
     .configured = true,
     .summary = "Limit what replication may ask of a storage",
     .help = "Limits the requests and bytes that replication moves on a storage; all workers "
             "share the limit and wait when it is reached. Requests of clients are not "
             "limited.",
     .examples = "weir storage set ceph --requests-per-minute 6000 --bytes-per-second 64MiB",
     .call = &set},
    {.name = "storage list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the storages",
     .help = "Lists the storages. Buckets without a routing policy are on the main storage.",
     .examples = "weir storage list",
     .call = &list},
    {.name = "storage remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = storage_remove_flags,
     .configured = true,
     .summary = "Forget a storage",
     .help = "Makes weir forget a storage; the objects on it stay where they are. A remote storage "
             "can be added again. A local storage cannot, because its folder is not empty. The "
             "main storage and the storage in the data folder cannot be removed.\n\nA storage "
             "that routing policies or replications use, or a local storage with buckets, is "
             "removed only with --force. Requests whose route leads there then get 503. The "
             "folder of a local storage stays locked until weir stops.",
     .examples = "weir storage remove ceph\n"
                 "weir storage remove disk2 --force",
     .run = command_storage_remove},
    {.name = "storage key",
     .arguments = "NAME [USER]",
     .min_args = 1,
     .max_args = 2,
     .flags = storage_key_flags,
     .configured = true,
     .summary = "Set or remove a user's keys on a remote storage",
     .help = "Sets or removes the keys that sign the user's requests to a remote storage. "
             "Then, or without a USER, lists the users that have keys there.",
     .examples = "weir storage key ceph alice --access-key AKIAEXAMPLE --secret-key SECRET\n"
                 "weir storage key ceph alice --remove",
     .call = &key},
    {.name = "storage main",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Make a storage the main one",
     .help = "Makes NAME the main storage. Buckets without a routing policy are made, and looked "
             "for, on the main storage. "
             "No bucket is moved. While the main storage is remote, the owner of a local "
             "bucket still finds it, but others need a routing policy for the bucket (weir "
             "bucket route BUCKET local --user OWNER).",
     .examples = "weir storage main ceph",
     .call = &make_main},
    {.name = "storage claim",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Take the name of a local storage over from a folder that is gone",
     .help = "For weirs that share a Redis: makes the name of the local storage mean this "
             "weir's folder, after another folder had the name. Run weir replicate resync "
             "afterwards to compare what the folder holds.",
     .examples = "weir storage claim local",
     .call = &claim},
    {.name = "storage notify",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Show where a storage may tell weir of changes",
     .help = "A storage that others write to directly can report changes of replicated buckets"
             " to weir, by S3 event notifications. The command shows the path on weir's API to"
             " POST to, and the token to show: as bearer token, as the password of any user, "
             "or in the query as token=TOKEN. `weir replicate add --notify` sets this up; "
             "MinIO also needs path and token in the configuration of its webhook.",
     .examples = "weir storage notify minio",
     .call = &show_notify},
    {.name = "storage test",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Test whether a storage is there and writable",
     .help = "Tests whether a storage is there and writable. The exit status is 1 when it is "
             "not.",
     .examples = "weir storage test local",
     .call = &test},
    {.name = "storage scrub",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Verify everything that a local storage holds",
     .help = "Reads every body and verifies its size and checksum, then looks for files that "
             "belong to no object. Corrects the counts of what buckets hold. Lists what is "
             "damaged; the exit status is 1 when there is damage.",
     .examples = "weir storage scrub local",
     .call = &scrub},
    {0},
};
