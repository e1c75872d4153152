/* The API's own calls: readiness and backup. */
#include "api/api_int.h"
#include "os/file.h"
#include "route/remotes.h"
#include "unit/api/api_lab.h"

#include <stdio.h>

static int out_of_order(void *ctx, struct err *err)
{
    (void)ctx;
    return err_set(err, ERR_UNAVAILABLE, "connecting to 10.1.2.3:6379: refused");
}

TEST(api, why_a_part_is_not_ready_is_told_to_administrators_only)
{
    struct api_lab l;
    const char *const strangers[] = {NULL, "ROOTKEY:wrong", "nobody:root-secret-1234"};

    api_lab_start(&l);
    ready_add(&l.ready, (struct ready_part){"store.appDB", out_of_order, NULL});
    for (size_t i = 0; i < ARRAY_SIZE(strangers); i++) {
        api_call_as(&l, strangers[i], "GET /readyz", NULL, 503);
        CHECK_STR(json_get_str(json_object_get(l.json, "parts"), "store.appDB", STR_EMPTY),
                  STR("failed"));
        CHECK(str_find(l.answer.body, STR("10.1.2.3")) < 0);
    }
    api_call(&l, "GET /readyz", NULL, 503);
    CHECK(str_find(l.answer.body, STR("10.1.2.3")) >= 0);
    api_lab_stop(&l);
}

TEST(api, a_second_backup_beside_a_running_one_is_refused)
{
    struct api_lab l;
    char body[400], dir[300];

    api_lab_start(&l);
    snprintf(dir, sizeof(dir), "%s/backup", test_dir());
    snprintf(body, sizeof(body), "{\"dir\": \"%s\"}", dir);
    atomic_store(&l.api->backing_up, true);
    api_call(&l, "POST /api/v1/backup", body, 409);
    CHECK_STR(api_error_code(&l), STR("busy"));
    CHECK(str_find(api_error_text(&l), STR("another backup is running")) >= 0);
    CHECK(!file_exists(dir));
    atomic_store(&l.api->backing_up, false);
    api_call(&l, "POST /api/v1/backup", body, 200);
    CHECK_STR(api_text(&l, "dir"), str_z(dir));
    api_call(&l, "POST /api/v1/backup", body, 409);
    CHECK_STR(api_error_code(&l), STR("exists"));
    api_lab_stop(&l);
}

TEST(api, a_backup_has_the_local_storage_while_a_remote_one_is_the_main_one)
{
    struct remote_entry e = {.name = STR("far"), .url = STR("http://127.0.0.1:1")};
    struct api_lab l;
    struct err err = {0};
    char body[400], path[400];

    api_lab_start(&l);
    CHECK_OK(remotes_add(l.remotes, &e, &err));
    CHECK_OK(remotes_set_main(l.remotes, STR("far"), &err));
    snprintf(body, sizeof(body), "{\"dir\": \"%s/backup\"}", test_dir());
    api_call(&l, "POST /api/v1/backup", body, 200);
    snprintf(path, sizeof(path), "%s/backup/objects", test_dir());
    CHECK(file_exists(path));
    snprintf(body, sizeof(body), "{\"name\":\"disk2\",\"folder\":\"%s/disk2\"}", test_dir());
    api_call(&l, "POST /api/v1/storages", body, 201);
    snprintf(body, sizeof(body), "{\"dir\": \"%s/backup2\"}", test_dir());
    api_call(&l, "POST /api/v1/backup", body, 501);
    api_lab_stop(&l);
}
