/* A local storage in the test's folder. */
#include "unit/object/local_lab.h"

#include "unit/object/local_check.h"

#include <stdio.h>

void local_lab_open(struct local_lab *l, const struct local_options *given)
{
    struct local_options o = {.part_min = 1000, .reserve_bytes = 1};
    struct db_options d = {.path = l->db_path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    struct err err = {0};

    *l = (struct local_lab){0};
    snprintf(l->db_path, sizeof(l->db_path), "%s/db", test_dir());
    snprintf(l->folder, sizeof(l->folder), "%s/storage", test_dir());
    if (given)
        o = *given;
    CHECK_OK(db_open(&l->db, &d, &err));
    o.name = "test";
    o.folder = given && given->folder ? given->folder : l->folder;
    o.db = l->db;
    o.id = 7;
    CHECK_OK(local_open(&l->lab.storage, &o, &err));
    l->lab.part_min = o.part_min;
}

void local_lab_close(struct local_lab *l)
{
    l->lab.storage->ops->close(l->lab.storage);
    db_close(l->db);
}

void local_lab_expect_whole(struct local_lab *l)
{
    struct err err = {0};

    local_collect(l->lab.storage);
    CHECK_OK(local_check_whole(l->lab.storage, &err));
}

size_t local_lab_files(struct local_lab *l)
{
    struct err err = {0};
    size_t count = 0;

    CHECK_OK(local_check_files(l->lab.storage, &count, &err));
    return count;
}
