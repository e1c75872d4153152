/* The commands of the gateway and of the program itself, one file for each group. The rooms have
 * their own commands (room/room.h). program.c makes one table of all. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "command/command.h"

command_fn command_serve, command_status, command_backup, command_config, command_help,
    command_version;

/* The groups of commands. Each table ends with a row without a name. */
extern const struct command user_commands[], storage_commands[], bucket_commands[],
    webhook_commands[], store_commands[], task_commands[];

#endif
