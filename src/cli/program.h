/* The command line of the program with its rooms: one table of all commands, and the roles of `weir
 * serve`. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include "base/buf.h"
#include "command/command.h"
#include "room/room.h"

struct program {
    struct command_table table; /* for cli_main() */
    VEC(struct command) rows;
    VEC(const char *) roles; /* the values of `weir serve --only`; ends with NULL */
    struct buf roles_doc;
    struct flag serve_flags[2];
};

/* Makes the table of commands. The rooms are borrowed. The struct must not move afterwards. */
void program_init(struct program *p, const struct room *const *rooms, size_t count);
void program_release(struct program *p);

#endif
