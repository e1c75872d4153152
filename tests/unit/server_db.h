/* The database as a server opens it, with the families of all its parts. */
#ifndef TESTS_UNIT_SERVER_DB_H
#define TESTS_UNIT_SERVER_DB_H

#include "kv/kv.h"
#include "object/local/local.h"
#include "store/store.h"

#include <stdio.h>

/* In the folder `dir`/db. */
static inline int server_db_open(struct db **out, const char *dir, struct err *err)
{
    struct db_cf_spec families[STORE_DATABASES + LOCAL_FAMILIES + 2];
    char path[256];

    memcpy(families, store_cf_specs(), STORE_DATABASES * sizeof(families[0]));
    memcpy(families + STORE_DATABASES, local_cf_specs(), LOCAL_FAMILIES * sizeof(families[0]));
    families[STORE_DATABASES + LOCAL_FAMILIES] = (struct db_cf_spec){.name = "server"};
    families[STORE_DATABASES + LOCAL_FAMILIES + 1] = *kv_cf_spec();
    snprintf(path, sizeof(path), "%s/db", dir);
    return db_open(
        out, &(struct db_options){.path = path, .cfs = families, .cf_count = ARRAY_SIZE(families)},
        err);
}

#endif
