/* A real PostgreSQL for tests: one server for all tests of a run of the unit tests, and a database
 * of its own for each test.
 *
 * The first test that asks for it starts a keeper, a process beside the tests. The keeper makes the
 * server's folder (initdb), starts the server on a unix socket in it, and ends it by its process id
 * when the run has ended, however it ended. */
#ifndef TESTS_UNIT_KV_POSTGRES_SERVER_H
#define TESTS_UNIT_KV_POSTGRES_SERVER_H

#include "base/base.h"

#include <sys/types.h>

/* Makes an empty database for this test and returns its URL, which is valid until the test ends.
 * Ends the test when there is no server. */
const char *postgres_shared_url(void);
/* Removes the database of this test; all connections to it must be closed. */
void postgres_shared_drop(void);

/* A server of a test's own, which it may stop and start again. */
struct postgres_server {
    char dir[64]; /* its folder, in /dev/shm or /tmp: the server's user cannot enter a test's own */
    int port;     /* names the socket; chosen at the first start */
    pid_t pid;    /* 0: not running */
    bool durable; /* fsync is on */
    char url[160];
};
/* False, with the reason printed, when it cannot be started. */
bool postgres_server_start(struct postgres_server *s);
/* SIGKILL to the server's process group: as when the machine's power fails, but for the files. */
void postgres_server_kill(struct postgres_server *s);
void postgres_server_stop(struct postgres_server *s);   /* orderly, at once (SIGINT) */
void postgres_server_remove(struct postgres_server *s); /* kills it and removes its folder */

/* Runs one statement on the server. False, with the reason printed, when it fails. */
bool postgres_run(const char *url, const char *statement);

#endif
