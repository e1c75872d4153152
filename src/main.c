/* The table of commands. */
#include "cli/commands.h"

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
