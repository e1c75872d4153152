/* One PostgreSQL for all tests of a run of the unit tests, and a database of its own for each test.
 *
 * The first test that asks for it starts a keeper, a process beside the tests. The keeper starts
 * the server, and ends it by its process id when the run has ended, however it ended. */
#ifndef TESTS_UNIT_KV_POSTGRES_SHARED_H
#define TESTS_UNIT_KV_POSTGRES_SHARED_H

/* Makes an empty database for this test and returns its URL, which is valid until the test ends.
 * Ends the test when there is no server. */
const char *postgres_shared_url(void);
/* The same with the tables of `fill`, which are empty. The first test of a run that asks for them
 * calls fill() with the URL of a database, and the databases of all tests are copies of that one:
 * the hundred tables of a key-value store take longer to make than most tests do. fill() must close
 * its connections. */
const char *postgres_shared_copy_url(void (*fill)(const char *url));
/* Removes the database of this test; connections to it are closed by the server. */
void postgres_shared_drop(void);

#endif
