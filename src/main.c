/* The table of commands. */
#include "cli/commands.h"
#include "cli/remote.h"

#include <unistd.h>

static const struct flag json_flags[] = {
    {"json", FLAG_SWITCH, NULL, NULL, "Write JSON for programs instead of a table for people."},
    {0},
};

static const struct flag help_flags[] = {
    {"man", FLAG_SWITCH, NULL, NULL, "Write the man page (roff)."},
    {"completion", FLAG_SWITCH, NULL, NULL, "Write the completion script for bash."},
    {"commands", FLAG_SWITCH, NULL, NULL, "Write docs/commands.md."},
    {"keys", FLAG_SWITCH, NULL, NULL, "Write docs/config.md."},
    {"sample", FLAG_SWITCH, NULL, NULL, "Write a configuration file with every key."},
    {0},
};

static const struct command commands[] = {
    {.name = "serve",
     .flags = serve_flags,
     .configured = true,
     .summary = "Run weir",
     .help = "Runs weir with everything in one data folder, which is made on the first start "
             "together with the first administrator's keys (shown once, kept in the file "
             "credentials; access_key and secret_key set them).\n\n"
             "SIGTERM and SIGINT let running requests finish, a second one does not wait. SIGHUP "
             "loads the configuration again.",
     .examples = "weir serve\n"
                 "weir serve --data /var/lib/weir --api.listen :9001\n"
                 "WEIR_LOG_LEVEL=debug weir serve --only gateway,worker",
     .run = command_serve},
    {.name = "status",
     .flags = remote_flags,
     .configured = true,
     .summary = "Show how a running weir is",
     .help = "Asks the running weir whether its parts are ready, and for a few numbers. The exit "
             "status is 1 when it is not running or not ready.",
     .examples = "weir status\n"
                 "weir status --url https://weir.example.org:9001 --json",
     .run = command_status},
    {.name = "backup",
     .arguments = "DIR",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Copy all data of a running weir",
     .help = "Makes the new folder DIR, on the machine where weir runs, with a complete copy of "
             "its data as of now, while writes go on. Starting on the copy is the restore. What "
             "is in Redis is not part of it.",
     .examples = "weir backup /backup/weir-monday\n"
                 "weir serve --data /backup/weir-monday",
     .run = command_backup},
    {.name = "user add",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = user_add_flags,
     .configured = true,
     .summary = "Add a user",
     .help = "Adds a user with an access key and shows its secret key, which is not shown again. "
             "Name, id, e-mail address and access key belong to one user each.",
     .examples = "weir user add alice\n"
                 "weir user add bob --display-name 'Bob B.' --email bob@example.org --json",
     .run = command_user_add},
    {.name = "user list",
     .flags = remote_flags,
     .configured = true,
     .summary = "List the users",
     .help = "Lists the users with their access keys, the first administrator first.",
     .examples = "weir user list",
     .run = command_user_list},
    {.name = "user remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Remove a user",
     .help = "Removes the user and its keys. Buckets that it owns stay, and stay its id's.",
     .examples = "weir user remove alice",
     .run = command_user_remove},
    {.name = "user key",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = user_key_flags,
     .configured = true,
     .summary = "Add or remove an access key of a user",
     .help = "Adds an access key, by default a new one, and shows its secret key, which is not "
             "shown again; or removes one. To replace a key add the new one first.",
     .examples = "weir user key alice\n"
                 "weir user key alice --remove AKIAEXAMPLE",
     .run = command_user_key},
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
     .run = command_storage_add},
    {.name = "storage set",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = storage_set_flags,
     .configured = true,
     .summary = "Limit what replication may ask of a storage",
     .help =
         "Workers wait, all of them together, so that a storage is asked no more often and moves "
         "no more bytes than it may. What clients do through the gateway is not held back.",
     .examples = "weir storage set ceph --requests-per-minute 6000 --bytes-per-second 64MiB",
     .run = command_storage_set},
    {.name = "storage list",
     .flags = remote_flags,
     .configured = true,
     .summary = "List the storages",
     .help = "Lists the storages; buckets without a routing policy are on the main one.",
     .examples = "weir storage list",
     .run = command_storage_list},
    {.name = "storage remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Forget a remote storage",
     .help = "What it holds stays there. Neither the main storage nor a local one can be removed.",
     .examples = "weir storage remove ceph",
     .run = command_storage_remove},
    {.name = "storage key",
     .arguments = "NAME [USER]",
     .min_args = 1,
     .max_args = 2,
     .flags = storage_key_flags,
     .configured = true,
     .summary = "Set or remove a user's keys on a remote storage",
     .help = "Sets what the user's requests are signed with there, or removes it; then, or without "
             "a user, lists who has keys there.",
     .examples = "weir storage key ceph alice --access-key AKIAEXAMPLE --secret-key SECRET\n"
                 "weir storage key ceph alice --remove",
     .run = command_storage_key},
    {.name = "storage main",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Make a storage the main one",
     .help =
         "Buckets without a routing policy are made, and looked for, on the main storage. "
         "Nothing is moved. While that is a remote storage, a local bucket is found by its owner, "
         "and by others only with a bucket policy (weir bucket route BUCKET local --user OWNER).",
     .examples = "weir storage main ceph",
     .run = command_storage_main},
    {.name = "storage notify",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Show where a storage may tell weir of changes",
     .help = "A storage that others write to beside weir can tell weir of changes of replicated "
             "buckets by S3 event notifications: POST to PATH on weir's API, with TOKEN as bearer "
             "token, as password of any user, or in the query as token=TOKEN. `weir replicate add "
             "--notify` sets that up; a MinIO needs it in the configuration of its webhook.",
     .examples = "weir storage notify minio",
     .run = command_storage_notify},
    {.name = "storage test",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Test whether a storage is there and writable",
     .help = "The exit status is 1 when it is not.",
     .examples = "weir storage test local",
     .run = command_storage_test},
    {.name = "storage scrub",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Verify everything that a local storage holds",
     .help = "Reads every body and verifies its size and checksum, then looks for files that "
             "nothing names. Counts of what buckets hold are put right. Lists what is damaged; "
             "the exit status is 1 when something is.",
     .examples = "weir storage scrub local",
     .run = command_storage_scrub},
    {.name = "bucket list",
     .flags = remote_flags,
     .configured = true,
     .summary = "List the buckets of all storages",
     .help = "Lists the buckets, storage by storage.",
     .examples = "weir bucket list --json",
     .run = command_bucket_list},
    {.name = "bucket show",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
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
    {.name = "webhook add",
     .arguments = "NAME URL",
     .min_args = 2,
     .max_args = 2,
     .flags = webhook_add_flags,
     .configured = true,
     .summary = "Add or replace a webhook for event notifications",
     .help = "Makes NAME a destination of buckets' notification configurations, as any ARN that "
             "ends in :NAME. With a secret every call is signed (docs/notifications.md).",
     .examples = "weir webhook add thumbs https://example.org/s3-events --secret s3cret\n"
                 "aws s3api put-bucket-notification-configuration --bucket photos "
                 "--notification-configuration '{\"TopicConfigurations\":[{\"TopicArn\":"
                 "\"arn:aws:sns:us-east-1::thumbs\",\"Events\":[\"s3:ObjectCreated:*\"]}]}'",
     .run = command_webhook_add},
    {.name = "webhook list",
     .flags = remote_flags,
     .configured = true,
     .summary = "List the webhooks and what waits for them",
     .help = "Lists the webhooks: events that wait, that were delivered, calls that failed.",
     .examples = "weir webhook list",
     .run = command_webhook_list},
    {.name = "webhook remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Remove a webhook",
     .help = "Removes the webhook; events that wait for it are given up.",
     .examples = "weir webhook remove thumbs",
     .run = command_webhook_remove},
    {.name = "replicate add",
     .arguments = "[BUCKET] STORAGE",
     .min_args = 1,
     .max_args = 2,
     .flags = replicate_add_flags,
     .configured = true,
     .summary = "Replicate a bucket, or all buckets of a user, to a storage",
     .help = "Copies what the bucket holds to STORAGE, into a bucket of the same name that is made "
             "when it is missing, and from then on every change. The source is where the route of "
             "the bucket leads. A bucket may have several destinations; one with another name "
             "there (--to-bucket) is blocked for direct use.\n\nWithout a BUCKET, with --user: all "
             "buckets that the user has or will make.",
     .examples = "weir replicate add photos disk2 --watch\nweir replicate add photos ceph "
                 "--to-bucket photos-copy --priority 3\nweir replicate add ceph --user alice",
     .run = command_replicate_add},
    {.name = "replicate list",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = replicate_list_flags,
     .configured = true,
     .summary = "List the replications and how far they are",
     .help = "Shows for each what was copied of what was listed, changes that wait (lag), objects "
             "that failed, and while the first copy goes on its rate and the time left. States: "
             "listing, copying (the first copy), in sync, behind (changes wait), paused, archived, "
             "policy (of a user, which makes replications).",
     .examples = "weir replicate list\nweir replicate list photos --watch\nweir replicate list "
                 "--user alice --json",
     .run = command_replicate_list},
    {.name = "replicate show",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = replicate_select_flags,
     .configured = true,
     .summary = "Show a replication and what it could not copy",
     .help = "Shows everything about one replication, and the objects that failed for good by name "
             "with the reason; weir task run tries one again.",
     .examples = "weir replicate show photos --to disk2",
     .run = command_replicate_show},
    {.name = "replicate pause",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = replicate_select_flags,
     .configured = true,
     .summary = "Pause a replication",
     .help =
         "Nothing is copied until it is resumed. Changes are still recorded, so nothing is missed.",
     .examples = "weir replicate pause photos --to disk2",
     .run = command_replicate_pause},
    {.name = "replicate resume",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = replicate_select_flags,
     .configured = true,
     .summary = "Go on with a replication",
     .help = "Undoes weir replicate pause.",
     .examples = "weir replicate resume photos --to disk2",
     .run = command_replicate_resume},
    {.name = "replicate remove",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = replicate_remove_flags,
     .configured = true,
     .summary = "Remove a replication",
     .help = "Ends it, and removes all that weir keeps about it. What was copied stays at the "
             "destination. Without a BUCKET, with --user: the policy of the user; replications "
             "that it made stay unless --with-buckets is given.",
     .examples = "weir replicate remove photos --to disk2\nweir replicate remove --user alice "
                 "--with-buckets",
     .run = command_replicate_remove},
    {.name = "replicate resync",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = replicate_list_flags,
     .configured = true,
     .summary = "Compare everything again and repair what differs",
     .help =
         "Lists both sides again and compares every object with its copy, whatever is known about "
         "it: after the coordination data were lost, or when somebody changed the destination. "
         "What the source does not have is removed at the destination; in a bucket of another name "
         "only what came there since the replication was made.",
     .examples = "weir replicate resync photos --to disk2 --watch",
     .run = command_replicate_resync},
    {.name = "switch start",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_start_flags,
     .configured = true,
     .summary = "Switch a bucket to the storage that it is replicated to, without downtime",
     .help = "Clients go on all the time: what they write goes to the new storage, what they read "
             "comes from the one that has it, uploads that were begun are finished where they were "
             "begun and copied over. It is done when nothing is left to copy.\n\nThe bucket has "
             "one replication, under the same name, whose first copy is done. weir switch abort "
             "goes back at any time and loses nothing.",
     .examples = "weir switch start photos --watch\nweir switch start photos --continue "
                 "--multipart-ttl 6h",
     .run = command_switch_start},
    {.name = "switch plan",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_plan_flags,
     .configured = true,
     .summary = "Switch a bucket to the storage that it is replicated to, with downtime",
     .help =
         "When it begins the bucket is blocked for all clients (503), until every change has "
         "gone over and both buckets have been compared. If they differ, or it takes too long "
         "(--max-duration), everything is as before, and weir switch show tells why.\n\nWithout "
         "--start-at, --cron and --on-init-done it begins at once. A plan that has not begun, "
         "has failed or was skipped is changed by planning again.",
     .examples = "weir switch plan photos --watch\nweir switch plan photos --cron \"0 3 * * 6\" "
                 "--max-duration 30m --max-event-lag 1000 --continue",
     .run = command_switch_plan},
    {.name = "switch list",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = switch_list_flags,
     .configured = true,
     .summary = "List the switches and where they are",
     .help =
         "States: not_started, in_progress, check_in_progress (both buckets are compared), done, "
         "error, skipped (not everything was there at its time), going_back (it was given up). "
         "Lag is how many changes have not gone over.",
     .examples = "weir switch list\nweir switch list --json",
     .run = command_switch_list},
    {.name = "switch show",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_select_flags,
     .configured = true,
     .summary = "Show a switch and its history",
     .help = "Shows everything about the switch of a bucket, and what happened to it so far.",
     .examples = "weir switch show photos\nweir switch show photos --watch",
     .run = command_switch_show},
    {.name = "switch abort",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_select_flags,
     .configured = true,
     .summary = "Give a switch up",
     .help =
         "Without downtime it goes back: clients use the old storage again, and what was written "
         "to the new one is copied there. With downtime the block is taken away. One that has "
         "not begun or has ended is forgotten, and nothing else happens.",
     .examples = "weir switch abort photos --watch",
     .run = command_switch_abort},
    {.name = "diff check",
     .arguments = "STORAGE:BUCKET STORAGE:BUCKET...",
     .min_args = 2,
     .max_args = 8,
     .flags = diff_check_flags,
     .configured = true,
     .summary = "Compare two or more buckets",
     .help =
         "Compares names, sizes and ETags, and of buckets that all keep versions every version. "
         "ETags of objects that were made of parts say nothing of each other: then checksums "
         "decide, or the bytes. Runs in the background; weir diff report shows what was found. "
         "The same locations are the same check.",
     .examples = "weir diff check local:photos disk2:photos --watch\nweir diff check local:photos "
                 "ceph:photos-copy --contents",
     .run = command_diff_check},
    {.name = "diff list",
     .flags = remote_flags,
     .configured = true,
     .summary = "List the checks and how far they are",
     .help = "States: checking, ready, fixing, failed.",
     .examples = "weir diff list",
     .run = command_diff_list},
    {.name = "diff report",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = diff_report_flags,
     .configured = true,
     .summary = "Show what a check has found",
     .help =
         "Shows the check and its differences: missing (not at every location), marker (deleted "
         "here, not there), size, etag, content, unknown (with the reason). The first 10,000 "
         "are kept, all are counted.",
     .examples = "weir diff report 5f0c1d2e3a4b5c6d\nweir diff report 5f0c1d2e3a4b5c6d --skip 100 "
                 "--json",
     .run = command_diff_report},
    {.name = "diff fix",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = diff_fix_flags,
     .configured = true,
     .summary = "Make all locations of a check equal to one of them",
     .help = "Copies what the others lack or have otherwise, and removes what only they have; each "
             "object is looked at again before. Then checks again.",
     .examples = "weir diff fix 5f0c1d2e3a4b5c6d --source local:photos --watch",
     .run = command_diff_fix},
    {.name = "diff recheck",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = diff_watch_flags,
     .configured = true,
     .summary = "Check again",
     .help = "Begins the check again from the beginning, whatever it is doing.",
     .examples = "weir diff recheck 5f0c1d2e3a4b5c6d --watch",
     .run = command_diff_recheck},
    {.name = "diff purge",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Forget a check",
     .help =
         "Removes the report; what is at work for it ends. Reports that nobody touches go after "
         "30 days by themselves.",
     .examples = "weir diff purge 5f0c1d2e3a4b5c6d",
     .run = command_diff_purge},
    {.name = "task list",
     .flags = task_list_flags,
     .configured = true,
     .summary = "List the tasks of the work queue",
     .help = "Lists what background work waits, runs, waits for its next try (retry), or was given "
             "up (archived), with the error of the last try, when it is due, and what it is about.",
     .examples =
         "weir task list --state archived\nweir task list --queue events1 --limit 20 --json",
     .run = command_task_list},
    {.name = "task show",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = remote_flags,
     .configured = true,
     .summary = "Show a task",
     .help = "Shows everything about one task.",
     .examples = "weir task show events1 0a1b2c3d",
     .run = command_task_show},
    {.name = "task run",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = remote_flags,
     .configured = true,
     .summary = "Run a task now",
     .help = "Makes a task that waits for its time or its next try, or that was given up, the next "
             "one to run.",
     .examples = "weir task run events1 0a1b2c3d",
     .run = command_task_run},
    {.name = "task cancel",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = remote_flags,
     .configured = true,
     .summary = "Give up a task that is running",
     .help = "Asks the worker that runs the task to give it up; it is archived then, and weir task "
             "run begins it again.",
     .examples = "weir task cancel api 0a1b2c3d",
     .run = command_task_cancel},
    {.name = "task delete",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = remote_flags,
     .configured = true,
     .summary = "Delete a task",
     .help = "Deletes a task that is not running. What it was to do is not done.",
     .examples = "weir task delete events1 0a1b2c3d",
     .run = command_task_delete},
    {.name = "task queues",
     .flags = remote_flags,
     .configured = true,
     .summary = "List the queues",
     .help = "Lists the queues with the number of tasks in each state, how many were processed and "
             "failed in all, and the age of the oldest task that waits for a worker.",
     .examples = "weir task queues",
     .run = command_task_queues},
    {.name = "task pause",
     .arguments = "QUEUE",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Take no more tasks from a queue",
     .help = "Tasks that run go on; others wait until the queue is resumed.",
     .examples = "weir task pause migrate_obj_copy1",
     .run = command_task_pause},
    {.name = "task resume",
     .arguments = "QUEUE",
     .min_args = 1,
     .max_args = 1,
     .flags = remote_flags,
     .configured = true,
     .summary = "Take tasks from a queue again",
     .help = "Undoes weir task pause.",
     .examples = "weir task resume migrate_obj_copy1",
     .run = command_task_resume},
    {.name = "config",
     .flags = json_flags,
     .configured = true,
     .summary = "Show the configuration and where each value came from",
     .help = "Prints every configuration key with the value in force and its source: the built-in "
             "default, a line of the file, the environment or a flag. Secrets are masked.",
     .examples = "weir config\n"
                 "weir config --config /etc/weir/weir.yaml --json",
     .run = command_config},
    {.name = "help",
     .arguments = "[COMMAND]",
     .max_args = 2,
     .flags = help_flags,
     .summary = "Show the commands, or one of them",
     .help = "Lists the commands, or says all about one. The flags write what is made from the "
             "same tables.",
     .examples = "weir help\n"
                 "weir help config\n"
                 "weir help --man | man -l -",
     .run = command_help},
    {.name = "version",
     .summary = "Show the version",
     .help = "Prints the version of this program.",
     .run = command_version},
};

int main(int argc, char **argv)
{
    static const struct command_table table = {commands, ARRAY_SIZE(commands)};

    return cli_main(&table, argc, argv, (const char *const *)environ);
}
