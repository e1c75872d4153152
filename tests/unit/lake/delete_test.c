/* Deleted repositories: what they leave behind is removed, whatever interrupts it. */
#include "lake/delete.h"
#include "lake/claim.h"
#include "lake/files.h"
#include "unit/lake/lake_lab.h"

#include "lake/place.h"

#include <stdatomic.h>

/* --- rows --- */

static size_t rows_in(struct lake_lab *lab, struct str partition)
{
    struct kv_scan *scan = NULL;
    struct str key, value;
    struct err err = {0};
    size_t count = 0;

    CHECK_OK(kv_scan_open(&scan, lab->kv_lab->kv, NULL, partition, &(struct kv_range){0}, &err));
    while (kv_scan_next(scan, &key, &value, &err) == 0)
        count++;
    kv_scan_free(scan);
    return count;
}

static bool is_listed(struct lake_lab *lab, struct str partition)
{
    struct kv_value value;
    struct err err = {0};
    int code = kv_get(lab->kv_lab->kv, NULL, &lab->arena,
                      lake_key_to_delete(&lab->arena, partition), &value, &err);

    CHECK(code == 0 || code == ERR_NOT_FOUND);
    return code == 0;
}

static void make_branches(struct lake_lab *lab, const struct lake_repo *r, int count)
{
    struct err err = {0};

    for (int i = 0; i < count; i++) {
        struct lake_branch_options o = {.name = arena_fmt(&lab->arena, "b%d", i),
                                        .source = STR("main")};
        struct lake_branch b;
        CHECK_OK(lake_branch_create(lab->lake, &lab->arena, r, &o, &b, &err));
    }
}

static void delete_repo(struct lake_lab *lab, const char *name, bool purge)
{
    struct err err = {0};

    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, str_z(name), false, purge, &err));
}

static void work(struct lake_lab *lab)
{
    struct err err = {0};

    CHECK_OK(lake_delete_work(lab->lake, NULL, NULL, &err));
}

LAKE_LAB_TEST(lake_delete, branches_partition_and_list_row_are_removed)
{
    struct lake_repo gone = lake_lab_repo(lab, "gone");
    struct err err = {0};

    make_branches(lab, &gone, 3);
    CHECK_OK(kv_set(lab->kv_lab->kv,
                    (struct kv_name){LAKE_ACTIONS, arena_fmt(&lab->arena, STR_FMT "/runs/1",
                                                             STR_ARG(gone.partition))},
                    STR("run"), &err));
    delete_repo(lab, "gone", false);
    CHECK(is_listed(lab, gone.partition));
    work(lab);
    CHECK(!is_listed(lab, gone.partition));
    CHECK_INT(rows_in(lab, gone.partition), 0);
    CHECK_INT(rows_in(lab, LAKE_ACTIONS), 0);
    CHECK_OK(lake_clean(lab->lake, &err));
    CHECK_OK(lake_clean(lab->lake, &err)); /* without fences a token is dropped twice */
    CHECK_SOON(rows_in(lab, LAKE_CLEANUP) == 0 || lake_clean(lab->lake, &err) < 0);
    CHECK_OK(lake_repo_get(lab->lake, &lab->arena, STR("repo"), &gone, &err));
}

LAKE_LAB_TEST(lake_delete, a_repository_made_again_loses_nothing)
{
    struct lake_repo old = lake_lab_repo(lab, "again");
    struct err err = {0};
    struct lake_branch b;

    delete_repo(lab, "again", false);
    struct lake_repo now = lake_lab_repo(lab, "again");
    work(lab);
    CHECK_INT(rows_in(lab, old.partition), 0);
    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &now, STR("main"), &b, &err));
}

LAKE_LAB_TEST(lake_delete, a_row_of_a_living_repository_is_dropped)
{
    struct err err = {0};
    struct lake_branch b;
    struct buf row = {0};

    proto_put_bytes(&row, 1, lab->repo.id);
    proto_put_number(&row, 3, 1);
    proto_put_bytes(&row, 4, lab->repo.space);
    CHECK_OK(kv_set(lab->kv_lab->kv, lake_key_to_delete(&lab->arena, lab->repo.partition),
                    buf_str(&row), &err));
    buf_release(&row);
    work(lab);
    CHECK(!is_listed(lab, lab->repo.partition));
    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &b, &err));
}

LAKE_LAB_TEST(lake_delete, a_damaged_row_does_not_hold_up_the_others)
{
    struct lake_repo gone = lake_lab_repo(lab, "gone");
    struct err err = {0};

    CHECK_OK(kv_set(lab->kv_lab->kv, lake_key_to_delete(&lab->arena, STR("a-damaged")),
                    STR("\x0a\xff"), &err));
    delete_repo(lab, "gone", false);
    CHECK_ERR(lake_delete_work(lab->lake, NULL, NULL, &err), ERR_CORRUPT);
    CHECK(!is_listed(lab, gone.partition));
    CHECK_INT(rows_in(lab, gone.partition), 0);
}

/* --- interruptions --- */

struct stopper {
    int left; /* how many more questions are answered with "go on" */
};

static bool stopper_ended(void *ctx)
{
    struct stopper *s = ctx;

    return s->left-- <= 0;
}

LAKE_LAB_TEST(lake_delete, work_that_is_stopped_again_and_again_comes_to_its_end)
{
    struct lake_repo gone = lake_lab_repo(lab, "gone");
    struct err err = {0};
    int code = ERR_CANCELED, rounds = 0;

    make_branches(lab, &gone, 4);
    delete_repo(lab, "gone", false);
    while (code == ERR_CANCELED && rounds < 100) {
        struct stopper s = {.left = 1};
        code = lake_delete_work(lab->lake, stopper_ended, &s, &err);
        rounds++;
    }
    CHECK_OK(code);
    CHECK(rounds > 3);
    CHECK_INT(rows_in(lab, gone.partition), 0);
    CHECK(!is_listed(lab, gone.partition));
}

/* --- files --- */

static void put_file(struct lake_lab *lab, const struct lake_repo *r, const char *key)
{
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_place_open_below(&p, lab->lake, &lab->arena, r, str_z(key), PLACE_PUT, &err));
    CHECK_OK(object_place_end(&p, object_place_put(&p, STR("body"), NULL, &err), &err));
}

static size_t count_files(struct lake_lab *lab, const struct lake_repo *r)
{
    struct lake_files files;
    struct err err = {0};

    CHECK_OK(lake_files_list(lab->lake, &lab->arena, r, STR(""), STR_EMPTY, &files, &err));
    return files.count;
}

static void begin_upload(struct lake_lab *lab, const struct lake_repo *r, const char *key)
{
    struct object_meta meta = {.owner = STR(LAKE_LAB_OWNER)};
    struct object_place p;
    struct err err = {0};
    struct str id;

    CHECK_OK(lake_place_open_below(&p, lab->lake, &lab->arena, r, str_z(key), PLACE_READ, &err));
    CHECK_OK(object_place_end(
        &p, p.bucket->ops->upload_begin(p.bucket, &lab->arena, p.key, &meta, &id, &err), &err));
}

static size_t count_uploads(struct lake_lab *lab, const struct lake_repo *r)
{
    struct list_options o = {.limit = 100};
    struct upload_list list = {0};
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_place_open_below(&p, lab->lake, &lab->arena, r, STR("x"), PLACE_READ, &err));
    CHECK_OK(object_place_end(
        &p, p.bucket->ops->list_uploads(p.bucket, &lab->arena, &o, &list, &err), &err));
    return list.count;
}

static void with_storage(void (*fn)(struct lake_lab *lab))
{
    struct kv_lab kv;
    struct lake_lab lab;

    kv_lab_open(&kv, KV_LAB_EMBEDDED);
    lake_lab_open(&lab, &kv, LAKE_LAB_STORAGE);
    fn(&lab);
    lake_lab_close(&lab);
    kv_lab_close(&kv);
}

/* Works until the files were removed a second time. */
static void purge_again(struct lake_lab *lab, const struct lake_repo *r)
{
    struct err err = {0};

    CHECK(is_listed(lab, r->partition));
    CHECK_SOON(lake_delete_work(lab->lake, NULL, NULL, &err) == 0 && !is_listed(lab, r->partition));
}

static void check_purge(struct lake_lab *lab)
{
    struct lake_repo gone = lake_lab_repo(lab, "gone"), other = lake_lab_repo(lab, "gone-too");

    put_file(lab, &gone, "data/x/1");
    put_file(lab, &gone, "data/x/2");
    put_file(lab, &gone, "_lakefs/node");
    put_file(lab, &gone, "mine.txt"); /* the lake did not put it there */
    put_file(lab, &other, "data/x/1");
    begin_upload(lab, &gone, "data/x/3");
    begin_upload(lab, &other, "data/x/3");
    delete_repo(lab, "gone", true);
    work(lab);
    CHECK_INT(count_files(lab, &gone), 2); /* the file, and the claim */
    purge_again(lab, &gone);
    CHECK_INT(count_files(lab, &gone), 1);
    CHECK_INT(count_files(lab, &other), 2);
    CHECK_INT(count_uploads(lab, &other), 1);
    lake_lab_repo(lab, "gone"); /* the namespace is free again */
}

TEST(lake_delete_storage, purge_removes_files_uploads_and_claim_of_the_namespace_alone)
{
    with_storage(check_purge);
}

static void check_kept(struct lake_lab *lab)
{
    struct lake_repo gone = lake_lab_repo(lab, "gone");

    put_file(lab, &gone, "data/x/1");
    begin_upload(lab, &gone, "data/x/3");
    delete_repo(lab, "gone", false);
    work(lab);
    CHECK_INT(count_files(lab, &gone), 2); /* the body and the claim */
    CHECK_INT(count_uploads(lab, &gone), 0);
}

TEST(lake_delete_storage, without_purge_files_stay)
{
    with_storage(check_kept);
}

/* The work died behind the removal of the claim; then another repository took the namespace. */
static void check_taken_over(struct lake_lab *lab)
{
    struct lake_repo gone = lake_lab_repo(lab, "gone");
    struct err err = {0};
    struct kv_value row;

    delete_repo(lab, "gone", true);
    struct kv_name name = lake_key_to_delete(&lab->arena, gone.partition);
    CHECK_OK(kv_get(lab->kv_lab->kv, NULL, &lab->arena, name, &row, &err));
    work(lab);
    purge_again(lab, &gone);
    struct lake_repo now = lake_lab_repo(lab, "gone");
    put_file(lab, &now, "data/x/1");
    CHECK_OK(kv_set(lab->kv_lab->kv, name, row.bytes, &err));
    work(lab);
    CHECK(!is_listed(lab, gone.partition));
    CHECK_INT(count_files(lab, &now), 2);
}

TEST(lake_delete_storage, work_that_begins_again_leaves_the_next_owner_alone)
{
    with_storage(check_taken_over);
}

static void drop_again(struct lake_lab *lab, uint64_t ms)
{
    struct err err = {0};

    loop_stop(&lab->lake->cleaner); /* its thread reads the option */
    lab->lake->o.drop_again_ms = ms;
    CHECK_OK(lake_cleaner_start(lab->lake, &err));
}

/* Files that were put by requests under way when the repository was deleted. */
static void check_late_files(struct lake_lab *lab)
{
    struct lake_repo gone = lake_lab_repo(lab, "gone");
    struct err err = {0};
    bool is_due = true;

    drop_again(lab, MS_PER_HOUR);
    put_file(lab, &gone, "data/x/1");
    delete_repo(lab, "gone", true);
    CHECK_OK(lake_delete_is_due(lab->lake, &is_due, &err));
    CHECK(is_due);
    work(lab);
    CHECK_INT(rows_in(lab, gone.partition), 0);
    CHECK_OK(lake_delete_is_due(lab->lake, &is_due, &err));
    CHECK(!is_due);
    put_file(lab, &gone, "data/x/2");
    put_file(lab, &gone, "_lakefs/node");
    work(lab); /* it is too early */
    CHECK_INT(count_files(lab, &gone), 3);
    struct lake_repo_options o = {.id = STR("early"), .owner = gone.owner, .space = gone.space};
    struct lake_repo early;
    CHECK_ERR(lake_repo_create(lab->lake, &lab->arena, &o, &early, &err), ERR_IN_USE);
    drop_again(lab, 1);
    purge_again(lab, &gone);
    CHECK_INT(count_files(lab, &gone), 0);
    CHECK_OK(lake_repo_create(lab->lake, &lab->arena, &o, &early, &err));
}

TEST(lake_delete_storage, files_that_come_behind_the_purge_are_removed_by_the_second)
{
    with_storage(check_late_files);
}
