/* One PostgreSQL for all tests of a run of the unit tests, and a database of its own for each test.
 *
 * The first test that asks for it starts a keeper, a process beside the tests. The keeper starts
 * the server, and ends it by its process id when the run has ended, however it ended. */
#ifndef TESTS_UNIT_KV_POSTGRES_SHARED_H
#define TESTS_UNIT_KV_POSTGRES_SHARED_H

/* Makes an empty database for this test and returns its URL, which is valid until the test ends.
 * Ends the test when there is no server. */
const char *postgres_shared_url(void);
/* Removes the database of this test; connections to it are closed by the server. */
void postgres_shared_drop(void);

#endif
