/* The table of commands. */
#include "cli/commands.h"
#include "command/client.h"
#include "replica/room.h"
#include "swarm/room.h"

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

static const struct command first_commands[] = {
    {.name = "serve",
     .flags = serve_flags,
     .configured = true,
     .summary = "Run weir",
     .help = "Runs weir with everything in one data folder, which is made on the first start "
             "together with the first administrator's keys (shown once, on a terminal, and kept in "
             "the file "
             "credentials; access_key and secret_key set them).\n\n"
             "SIGTERM and SIGINT let running requests finish, a second one does not wait. SIGHUP "
             "loads the configuration again.",
     .examples = "weir serve\n"
                 "weir serve --data /var/lib/weir --api.listen :9001\n"
                 "WEIR_LOG_LEVEL=debug weir serve --only gateway,worker",
     .run = command_serve},
    {.name = "status",
     .flags = client_flags,
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
     .flags = client_flags,
     .configured = true,
     .summary = "Copy all data of a running weir",
     .help = "Makes the new folder DIR, on the machine where weir runs, with a complete copy of "
             "its data as of now, while writes go on. Starting on the copy is the restore. What "
             "is in Redis is not part of it.",
     .examples = "weir backup /backup/weir-monday\n"
                 "weir serve --data /backup/weir-monday",
     .run = command_backup},
    {0},
};

static const struct command last_commands[] = {
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
     .max_args = 3,
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
    {0},
};

/* In the order of help and manual. */
static const struct command *const groups[] = {
    first_commands, user_commands,    storage_commands,   bucket_commands, webhook_commands,
    store_commands, torrent_commands, replicate_commands, switch_commands, diff_commands,
    task_commands,  swarm_commands,   last_commands,
};

static const struct room *const rooms[] = {&replica_room, &swarm_room};

int main(int argc, char **argv)
{
    static struct command rows[COMMANDS_MAX];
    struct command_table table = {.rows = rows, .rooms = rooms, .room_count = ARRAY_SIZE(rooms)};

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
        for (const struct command *c = groups[i]; c->name; c++) {
            BUG_ON(table.count == COMMANDS_MAX);
            rows[table.count++] = *c;
        }
    return cli_main(&table, argc, argv, (const char *const *)environ);
}
