/* What the table in main.c is made of. One file a command group. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "command/command.h"

command_fn command_serve, command_status, command_backup, command_config, command_help,
    command_version;
extern const struct flag serve_flags[];

/* Of the groups, each in its own file; a row without a name is the end. */
extern const struct command user_commands[], storage_commands[], bucket_commands[],
    webhook_commands[], store_commands[], torrent_commands[], replicate_commands[],
    switch_commands[], diff_commands[], task_commands[], swarm_commands[];

#endif
