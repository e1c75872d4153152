/* What the commands that manage a running weir share: one call to its API, and a table or JSON of
 * its answer. */
#ifndef CLI_MANAGE_H
#define CLI_MANAGE_H

#include "cli/output.h"
#include "cli/remote.h"

/* A command's work between opening and closing the connection. Fills the table when it has one. */
typedef int manage_fn(struct remote *r, const struct invocation *inv, struct output *table,
                      struct err *err);

/* Loads the configuration, connects, runs `fn`, prints the table (or JSON with --json) and returns
 * the exit status. `column_count` 0: no table. */
int manage(struct invocation *inv, const struct output_column *columns, size_t column_count,
           manage_fn *fn);

/* A path with its variable part encoded, in the remote's arena: "/api/v1/users/%s/keys". */
const char *manage_path(struct remote *r, const char *before, const char *part, const char *after);

/* A row of the members that the columns name: strings as they are, true and false as yes and no,
 * arrays of strings with commas between them. */
void manage_row(struct output *table, const json_t *object);

/* Appends "name": value when the flag was given. */
void manage_flag(struct json_out *w, const struct invocation *inv, const char *flag,
                 const char *name);

#endif
