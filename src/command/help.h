/* Everything that is written from the tables of commands and keys. */
#ifndef COMMAND_HELP_H
#define COMMAND_HELP_H

#include "command/command.h"

#include <stdio.h>

void help_overview(const struct command_table *table, FILE *out);
/* The commands whose names begin with `group`, such as "swarm user"; false: there are none. */
bool help_group(const struct command_table *table, struct str group, FILE *out);
void help_command(const struct command *c, FILE *out);

typedef void help_writer_fn(const struct command_table *table, FILE *out);
help_writer_fn help_man;        /* weir.1, in roff */
help_writer_fn help_completion; /* for bash */
help_writer_fn help_commands;   /* docs/commands.md */
help_writer_fn help_keys;       /* docs/config.md */
help_writer_fn help_sample;     /* a weir.yaml with every key and its default, commented out */

/* Break `text` at blanks into lines of at most `width` columns, each behind `indent` blanks. */
void help_wrap(FILE *out, const char *text, int indent, int width);
/* Does so for each paragraph of `text`, with an empty line between two. */
void help_paragraphs(FILE *out, const char *text, int width);

/* "weir serve [FLAGS]" */
void help_usage(const struct command *c, FILE *out);

/* "--only gateway,worker": a flag as it is typed. */
void help_flag_name(struct buf *out, const struct flag *flag);

#endif
