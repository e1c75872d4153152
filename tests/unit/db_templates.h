/* Copies of new databases. RocksDB creates the families of a database one by one, and writes and
 * verifies a file of options for each of them. That takes more CPU time than most tests do. So the
 * first test that creates a database with certain families leaves a copy of the empty database, and
 * the tests after it begin with the copy. The linker leads the calls of db_open() here. The tests
 * of tests/unit/db create their databases themselves. */
#ifndef TESTS_UNIT_DB_TEMPLATES_H
#define TESTS_UNIT_DB_TEMPLATES_H

/* Makes the folder of the copies below `parent`. The tests that are forked later share it. */
void db_templates_begin(const char *parent);
/* Removes the folder. */
void db_templates_end(void);
/* Lets db_open() of this process alone. */
void db_templates_leave(void);

#endif
