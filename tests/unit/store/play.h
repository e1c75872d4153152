/* Plays text files of commands and expected replies into a store.
 *
 *     # a comment
 *     > SET k "two words\x00"
 *     OK
 *     > MULTI
 *     > INCR k
 *     > GET k
 *     > EXEC
 *     [(error) ERR value is not an integer or out of range, "two words\x00"]
 *
 * A line that begins with '>' is a command: words split at blanks; a word in double quotes may hold
 * blanks, \" \\ \n \r and \xHH. MULTI ... EXEC is one store_atomic(), PIPELINE ... END one
 * store_pipeline(). The line behind it is the reply as reply_print() writes it, or !NAME for a
 * negative code. Replies without an order (SMEMBERS, HGETALL, SCAN, ...) are sorted first. */
#ifndef TESTS_UNIT_STORE_PLAY_H
#define TESTS_UNIT_STORE_PLAY_H

#include "base/vec.h"
#include "store/store.h"

enum play_kind { PLAY_COMMAND, PLAY_ATOMIC, PLAY_PIPELINE };

struct play_step {
    size_t line; /* of its last command, from 1 */
    enum play_kind kind;
    VEC(struct store_args) commands; /* words in the play's arena */
    struct str want;                 /* of the text */
};

struct play {
    struct arena arena;
    VEC(struct play_step) steps;
};

/* `text` is borrowed. ERR_PARSE names the line. */
int play_parse(struct play *p, struct str text, struct err *err) MUST_CHECK;
void play_release(struct play *p);

/* Runs one step and appends what it answers. */
void play_step_run(const struct play_step *step, struct store *s, struct buf *got);

/* Runs all; mismatches are printed to stderr. Returns how many. */
size_t play_run(const struct play *p, struct store *s, const char *name);

/* The text with every expected reply replaced by what `s` answers. */
int play_record(struct str text, struct store *s, struct buf *out, struct err *err) MUST_CHECK;

/* Sorts a reply that has no order, as the command says. */
void play_sort_reply(const struct store_args *command, struct reply *r);

/* Appends a command as a line without '>', words quoted where needed. */
void play_write_command(struct buf *out, const struct store_args *command);

#endif
