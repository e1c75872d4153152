/* What the redis engine's tests share: a server, a store on it, and one-line checks. */
#ifndef TESTS_UNIT_STORE_REDIS_TEST_H
#define TESTS_UNIT_STORE_REDIS_TEST_H

#include "store/store.h"
#include "unit/store/redis_server.h"
#include "unit/test.h"

/* Started in the test's folder; ends the test when it cannot be. */
void need_redis_server(struct redis_server *s);

struct store *store_at(const char *url);
struct store *store_with(struct store_redis_options o);

/* Sends a command line (words split at blanks) and returns its code; 0: *printed is the reply in
 * its printed form, in a buffer of its own until the next call of this thread. */
int ask(struct store *s, const char *line, const char **printed);

/* The command answers exactly this. */
void check_reply(struct store *s, const char *line, const char *want);
void check_code(struct store *s, const char *line, int code);
/* Repeats the command until it is answered: a Redis that is coming back. */
void wait_reply(struct store *s, const char *line, const char *want);

#endif
