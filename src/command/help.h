/* Texts that are written from the tables of commands and keys: help, man page, completion, docs. */
#ifndef COMMAND_HELP_H
#define COMMAND_HELP_H

#include "command/command.h"

#include <stdio.h>

void help_overview(const struct command_table *table, FILE *out);
/* Whether the command's name has more words than `group`, and begins with it. */
bool help_in_group(const struct command *c, struct str group);
/* Writes a list of the commands whose names begin with `group`, such as "swarm user". Returns false
 * when there are none. */
bool help_group(const struct command_table *table, struct str group, FILE *out);
void help_command(const struct command *c, FILE *out);

typedef void help_writer_fn(const struct command_table *table, FILE *out);
help_writer_fn help_man;        /* the man page weir.1, in roff */
help_writer_fn help_completion; /* the completion script for bash */
help_writer_fn help_commands;   /* docs/commands.md */
help_writer_fn help_keys;       /* docs/config.md */
help_writer_fn help_sample;     /* a weir.yaml with every key and its default, commented out */

/* Breaks `text` at blanks into lines of at most `width` columns, each indented by `indent` blanks.
 */
void help_wrap(FILE *out, const char *text, int indent, int width);
/* Writes each paragraph of `text` with help_wrap(), with an empty line between two paragraphs. */
void help_paragraphs(FILE *out, const char *text, int width);

/* Writes the usage of a command, such as "weir serve [FLAGS]". */
void help_usage(const struct command *c, FILE *out);

/* Appends a flag with its value as a user types it: "--only gateway,worker". */
void help_flag_name(struct buf *out, const struct flag *flag);

#endif
