/* A local storage in the test's folder. */
#ifndef TESTS_UNIT_OBJECT_LOCAL_LAB_H
#define TESTS_UNIT_OBJECT_LOCAL_LAB_H

#include "object/local/local_int.h"
#include "unit/object/bucket_conformance.h"

struct local_lab {
    struct lab lab;
    struct db *db;
    char db_path[128], folder[128];
};

/* With the options given (name, folder, db and id are filled in), or small defaults for NULL. */
void local_lab_open(struct local_lab *l, const struct local_options *o);
void local_lab_close(struct local_lab *l);

/* After the collector: every reference count is right, every blob's file is there with its size,
 * and there is no other file and no row of bytes that nothing names (L6, L8, P5). */
void local_lab_expect_whole(struct local_lab *l);

/* The files under blobs/. */
size_t local_lab_files(struct local_lab *l);

#endif
