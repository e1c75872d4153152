/* Opening and closing the four databases. */
#include "unit/store/four.h"

#include "db/db.h"
#include "unit/store/redis_test.h"

#include <stdio.h>

void four_open_embedded(struct four *f)
{
    char path[256];
    struct db_options o = {.path = path, .cfs = store_cf_specs(), .cf_count = STORE_DATABASES};
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/db", test_dir());
    CHECK_OK(db_open(&f->db, &o, &err));
    for (int i = 0; i < STORE_DATABASES; i++)
        CHECK_OK(store_open_embedded(&f->stores[i], f->db, i, STORE_DURABLE, NULL, &err));
    CHECK_OK(store_join(f->stores, STORE_DATABASES, &err));
}

void four_open_redis(struct four *f)
{
    struct err err = {0};

    need_redis_server(&f->server);
    for (int i = 0; i < STORE_DATABASES; i++) {
        struct store_redis_options o = {.url = str_z(f->server.unix_url), .number = i};
        f->stores[i] = store_with(o);
    }
    CHECK_OK(store_join(f->stores, STORE_DATABASES, &err));
}

void four_close(struct four *f)
{
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(f->stores[i]);
    if (f->db)
        db_close(f->db);
    else
        redis_server_kill(&f->server);
}
