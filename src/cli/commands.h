/* The commands' functions and flags, for the table in main.c. One file a command group. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/command.h"

command_fn command_serve;
command_fn command_config;
command_fn command_backup;
command_fn command_status;
command_fn command_help;
command_fn command_version;

extern const struct flag serve_flags[];

/* "no command '...'; did you mean ...?"; EXIT_USAGE. */
int command_unknown(const struct command_table *table, struct str typed);

#endif
