/* The commands of the lake: `weir lake ...`. docs/commands.md describes them to users. */
#ifndef LAKE_COMMANDS_COMMANDS_H
#define LAKE_COMMANDS_COMMANDS_H

#include "command/command.h"

/* The tables of all commands, ended by NULL, for struct room. */
extern const struct command *const lake_commands[];

#endif
