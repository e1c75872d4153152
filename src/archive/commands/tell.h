/* Texts for people, in the place of JSON objects in the tables of the archive's commands. */
#ifndef ARCHIVE_COMMANDS_TELL_H
#define ARCHIVE_COMMANDS_TELL_H

#include "command/manage.h"

/* The member "error" of an account or a repository becomes its code and its message. */
void tell_error(json_t *row);
/* The member "tokens" of a forge becomes a list of their ids and quotas. */
void tell_tokens(json_t *row);
/* Adds a member of the archive's status to a table with the columns name and value: one row for a
 * number, and one row for each item of a list. */
void tell_status(struct output *table, const char *name, const json_t *value);

#endif
