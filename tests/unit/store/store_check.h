/* Walks every row of an embedded store and checks docs/store.md's invariants 3 to 6. */
#ifndef TESTS_UNIT_STORE_STORE_CHECK_H
#define TESTS_UNIT_STORE_STORE_CHECK_H

#include "db/db.h"

struct store_check {
    size_t rows; /* all but the settings */
    size_t keys;
    size_t expiry;  /* expiry rows */
    size_t garbage; /* garbage rows */
    size_t dead;    /* sub rows that a garbage row covers */
    size_t problems;
    char problem[256]; /* the first */
};

/* The store need not be open; nothing may write meanwhile. ERR_IO and the like. */
int store_check(struct store_check *out, struct db *db, int number, struct err *err) MUST_CHECK;

#endif
