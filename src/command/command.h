/* The command line: commands are rows of a table. Parsing, help, the man page, completion and
 * docs/commands.md all read the table. A room that has commands includes this header and
 * command/manage.h, whose functions call the API of a running weir.
 *
 *     weir COMMAND [FLAGS] [ARGUMENTS]
 *
 * Flags are --name, --name=VALUE or --name VALUE; some are also a letter, -m VALUE. They may come
 * anywhere after the command's name; after "--" no word is a flag. Commands that load the
 * configuration also accept --config FILE, and --KEY VALUE for every key.
 *
 * The exit status is 0 for success, 1 for failure, and 2 when the command line or the configuration
 * was wrong and nothing was done. `weir serve` ends with 3 when a disk has failed and starting weir
 * again may help. */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "conf/conf.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_DISK = 3 };

enum flag_type {
    FLAG_END,
    FLAG_SWITCH, /* takes no value */
    FLAG_TEXT,
    FLAG_FILE,
    FLAG_FOLDER,
    FLAG_CHOICE,  /* one of `choices` */
    FLAG_CHOICES, /* one or more of `choices`, with commas between them */
};

struct flag {
    const char *name; /* without the dashes */
    enum flag_type type;
    const char *value; /* name of the value in the help, such as "FILE" */
    const char *const *choices;
    const char *doc; /* a full sentence */
    char letter;     /* the flag is also given as '-' and this letter; 0: it is not */
};

struct invocation;
struct room;
struct manage_call;
/* The function of a command; returns the exit status. */
typedef int command_fn(struct invocation *inv);

struct command {
    const char *name;      /* such as "serve", or in a group "user add" or "swarm user add" */
    const char *arguments; /* shown in the help, such as "DIR" or "[COMMAND]"; NULL: none */
    size_t min_args, max_args;
    const struct flag *flags; /* ends with FLAG_END; NULL: no flags */
    bool configured;          /* the command loads the configuration */
    const char *summary;      /* one line, no full stop */
    /* Paragraphs with an empty line between them, and without line breaks inside. */
    const char *help;
    const char *examples;           /* one example on each line */
    const struct manage_call *call; /* the API call that the command makes; NULL: `run` is set */
    command_fn *run;
};

struct command_table {
    const struct command *rows;
    size_t count;
    const struct room *const *rooms; /* the program's rooms (room/room.h) */
    size_t room_count;
};

struct given_flag {
    const struct flag *flag;
    const char *value; /* borrowed from argv; "" for a switch */
};

struct invocation {
    const struct command_table *table;
    const struct command *command;
    const char *const *environ;
    VEC(const char *) args;
    VEC(struct given_flag) flags;
    VEC(struct conf_flag) keys; /* configuration keys that were given as --KEY VALUE */
};

/* Finds the command, parses its flags and runs it. Returns the exit status. */
int cli_main(const struct command_table *table, int argc, char **argv, const char *const *environ);

/* Returns the flag's last value, or NULL when the flag was not given. */
const char *invocation_flag(const struct invocation *inv, const char *name);

/* Returns the command with this name, or NULL. */
const struct command *command_find(const struct command_table *table, struct str name);

/* Prints "no command '...'; did you mean ...?" on stderr. Returns EXIT_USAGE. */
int command_unknown(const struct command_table *table, struct str typed);

/* The flag --config, which every command that loads the configuration has in addition to its own
 * flags. */
extern const struct flag config_flags[];

/* Loads the configuration from flags, environment and file. Returns 0 and sets *out, a reference
 * that the caller owns. If there are problems, it prints a line for each and returns EXIT_USAGE. */
int invocation_conf(const struct invocation *inv, struct conf **out) MUST_CHECK;
void invocation_conf_input(const struct invocation *inv, struct conf_input *in);

/* Appends the bytes of the file to `out`; "-" is the standard input. */
int command_read_file(struct buf *out, const char *path, struct err *err) MUST_CHECK;

/* Prints the line "weir: ..." on stderr. Returns `status`. */
int complain(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
