/* Whether a local storage's rows and files agree. For tests, with nobody writing meanwhile. */
#ifndef TESTS_UNIT_OBJECT_LOCAL_CHECK_H
#define TESTS_UNIT_OBJECT_LOCAL_CHECK_H

#include "object/local/local.h"

/* L1 to L3, L5, L6 and L8 hold, each blob's file is there with its size, there is no other file and
 * no row of bytes that nothing names, and no garbage (run the collector first). ERR_CORRUPT with
 * what is wrong. */
int local_check_whole(struct storage *s, struct err *err) MUST_CHECK;

/* How many files are under blobs/. */
int local_check_files(struct storage *s, size_t *count, struct err *err) MUST_CHECK;

#endif
