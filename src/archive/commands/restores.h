/* Restores to git servers that the server does, for the command `weir archive restore`. */
#ifndef ARCHIVE_COMMANDS_RESTORES_H
#define ARCHIVE_COMMANDS_RESTORES_H

#include "command/manage.h"

struct restore_order {
    struct str account;
    struct str name; /* name of one bundle; empty: the whole account */
    const char *url; /* http:// or https://, perhaps with user and password */
    bool has_at, all;
    int64_t at_s;
    bool detach; /* return at once, and do not wait for the end */
};

/* Whether the server can push to this URL. */
bool restores_can(const char *url);
/* Queues the restore, and follows it to its end. Adds a row to the table: name, to, refs, bytes,
 * state. ERR_PEER: something could not be restored. */
int restores_follow(struct api_client *r, const struct restore_order *o, struct output *table,
                    struct err *err) MUST_CHECK;

#endif
