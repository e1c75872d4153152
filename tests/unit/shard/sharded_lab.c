/* A local storage whose buckets are sharded. */
#include "unit/shard/sharded_lab.h"

#include "store/store.h"
#include "unit/object/local_check.h"
#include "unit/server_db.h"

enum { LAB_CONFIG_DB = 3, LAB_PART_MIN = 1000 };

void sharded_lab_open(struct sharded_lab *l, const struct shard_layout *layout)
{
    struct err err = {0};
    char folder[256];

    *l = (struct sharded_lab){0};
    snprintf(folder, sizeof(folder), "%s/objects", test_dir());
    CHECK_OK(server_db_open(&l->db, test_dir(), &err));
    CHECK_OK(store_open_embedded(&l->store, l->db, LAB_CONFIG_DB, STORE_DURABLE, NULL, &err));
    CHECK_OK(routes_open(&l->routes, l->store, NULL, &err));
    CHECK_OK(routes_open_local(l->routes,
                               &(struct local_options){.name = "home",
                                                       .folder = folder,
                                                       .db = l->db,
                                                       .part_min = LAB_PART_MIN,
                                                       .reserve_bytes = 1},
                               &err));
    sharded_home_open(&l->home, l->routes, layout);
    l->lab = (struct lab){.storage = routes_main(l->routes), .part_min = LAB_PART_MIN};
}

void sharded_lab_close(struct sharded_lab *l)
{
    sharded_home_close(&l->home);
    routes_close(l->routes);
    store_close(l->store);
    db_close(l->db);
}

void sharded_lab_expect_whole(struct sharded_lab *l)
{
    struct err err = {0};

    local_collect(l->lab.storage);
    CHECK_OK(local_check_whole(l->lab.storage, &err));
}
