/* The space of the lake: names of repositories, records of uploads, addresses of bodies. */
#include "base/clock.h"
#include "lake/address.h"
#include "lake/upload.h"
#include "object/overlay.h"
#include "unit/lake/front_lab.h"
#include "unit/lake/kv_spy.h"

#include <sched.h>

static bool front_has(struct front_lab *f, const char *name)
{
    const struct bucket_space *s = lake_space_buckets(f->space);

    return s->has(s->ctx, str_z(name));
}

/* --- names --- */

FRONT_TEST(lake_space, has_the_repositories_that_were_there_and_that_are_made)
{
    struct err err = {0};

    CHECK(front_has(f, "repo"));
    CHECK(!front_has(f, "later"));
    lake_lab_repo(&f->lake, "later");
    CHECK(front_has(f, "later"));
    CHECK(routes_space_of(f->lake.routes, STR("later")) == lake_space_buckets(f->space));
    CHECK_OK(lake_repo_delete(f->lake.lake, &f->lake.arena, STR("later"), false, false, &err));
    CHECK(!front_has(f, "later"));
}

FRONT_TEST(lake_space, a_name_that_a_bucket_has_is_refused_and_claims_nothing)
{
    struct bucket_info info = {.name = STR("taken"), .owner = STR("somebody")};
    struct lake_repo_options o = {.id = STR("taken"),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .space = STR("s3://" LAKE_LAB_BUCKET "/taken")};
    struct lake_repo repo;
    struct err err = {0};

    CHECK_OK(storage_create_bucket(f->lake.storage, &info, &err));
    CHECK_ERR(lake_repo_create(f->lake.lake, &f->lake.arena, &o, &repo, &err), ERR_EXISTS);
    CHECK(!front_has(f, "taken"));
    o.id = STR("free");
    CHECK_OK(lake_repo_create(f->lake.lake, &f->lake.arena, &o, &repo, &err));
}

/* Somebody makes a bucket of the name, and the answer to the next write is lost. */
static void bucket_made_beside(void *ctx)
{
    struct front_lab *f = ctx;
    struct bucket_info info = {.name = STR("raced"), .owner = STR("somebody")};
    struct err err = {0};

    CHECK_OK(storage_create_bucket(f->lake.storage, &info, &err));
    kv_spy_answer(1, ERR_TIMEOUT);
}

/* The record was made, a bucket came beside it, and it is not known whether the record is removed
 * again: nobody else may have the namespace. */
FRONT_TEST(lake_space, a_repository_that_may_be_left_keeps_its_claim)
{
    struct lake_repo_options o = {.id = STR("raced"),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .space = STR("s3://" LAKE_LAB_BUCKET "/raced")};
    struct lake_repo repo;
    struct err err = {0};

    kv_spy_begin(f->lake.lake);
    kv_spy_plan(KV_SPY_WRITE, 2, bucket_made_beside, f);
    CHECK_ERR(lake_repo_create(f->lake.lake, &f->lake.arena, &o, &repo, &err), ERR_EXISTS);
    CHECK(kv_spy_happened());
    kv_spy_end(f->lake.lake);
    o.id = STR("other");
    CHECK_ERR(lake_repo_create(f->lake.lake, &f->lake.arena, &o, &repo, &err), ERR_IN_USE);
}

/* Waits for a message to arrive. */
static bool front_learns(struct front_lab *f, const char *name, bool there)
{
    uint64_t end = clock_mono_ms() + 20 * MS_PER_S;

    while (front_has(f, name) != there && clock_mono_ms() < end)
        sched_yield();
    return front_has(f, name) == there;
}

FRONT_TEST(lake_space, learns_what_another_process_makes_and_deletes)
{
    struct lake_repo_options o = {.id = STR("theirs"),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .space = STR("s3://" LAKE_LAB_BUCKET "/theirs")};
    struct lake_space *space = NULL;
    struct kv *kv = NULL;
    struct lake_repo repo;
    bool there = true;
    struct err err = {0};

    if (f->lake.lake->kv->can & KV_ALONE)
        return; /* there is no other process */
    struct lake *second = lake_lab_open_second(&f->lake, &kv);
    struct lake_space_options s = {.lake = second, .store = f->lake.config};
    CHECK_OK(lake_space_open(&space, &s, &err));
    CHECK_OK(lake_repo_create(second, &f->lake.arena, &o, &repo, &err));
    CHECK(front_learns(f, "theirs", true));
    CHECK_OK(lake_repo_delete(second, &f->lake.arena, STR("theirs"), false, false, &err));
    CHECK_OK(routes_space_has(f->lake.routes, STR("nothing"), &there, &err));
    CHECK(!there);
    CHECK(front_learns(f, "theirs", false));
    lake_space_close(space);
    lake_close(second);
    kv_close(kv);
}

TEST(repo_names, a_change_that_was_read_too_early_is_not_taken)
{
    struct repo_names n;
    struct map loaded;

    repo_names_init(&n);
    uint64_t seen = repo_names_changes(&n);
    CHECK(repo_names_set(&n, STR("a"), true, seen));
    CHECK(!repo_names_set(&n, STR("a"), false, seen));
    CHECK(repo_names_has(&n, STR("a")));
    map_init(&loaded);
    repo_map_add(&loaded, STR("b"));
    CHECK(!repo_names_replace(&n, &loaded, seen));
    CHECK(repo_names_replace(&n, &loaded, repo_names_changes(&n)));
    CHECK(repo_names_has(&n, STR("b")) && !repo_names_has(&n, STR("a")));
    CHECK_INT(repo_names_count(&n), 1);
    repo_map_release(&loaded);
    repo_names_release(&n);
}

/* --- uploads --- */

FRONT_TEST(lake_space, a_finished_upload_is_remembered_for_a_day)
{
    struct bucket *b = front_lab_bucket(f);
    struct arena a = ARENA_INIT(0);
    struct put_options o = {0};
    struct put_result out;
    struct lake_upload record;
    struct err err = {0};
    struct upload_info u = lab_upload(b, &a, "main/k"), open = lab_upload(b, &a, "main/open");
    struct upload_part part = lab_part(b, &a, &u, 1, STR("body"));

    CHECK_OK(b->ops->upload_finish(b, &a, &u, &part, 1, &o, &out, &err));
    lake_uploads_sweep(f->space);
    CHECK_OK(b->ops->upload_finish(b, &a, &u, &part, 1, &o, &out, &err));
    CHECK_OK(lake_upload_read(&record, lake_bucket_of(b), &a, &u, &err));
    record.finished_ms = clock_wall_ms() - LAKE_UPLOAD_KEPT_MS - MS_PER_MINUTE;
    CHECK_OK(lake_upload_write(&record, lake_bucket_of(b), &a, false, &err));
    lake_uploads_sweep(f->space);
    CHECK_ERR(b->ops->upload_finish(b, &a, &u, &part, 1, &o, &out, &err), ERR_NOT_FOUND);
    lab_part(b, &a, &open, 1, STR("still open"));
    arena_release(&a);
    b->ops->unref(b);
}

/* --- addresses --- */

TEST(lake_address, newer_folders_come_first_and_ids_are_new)
{
    struct arena a = ARENA_INIT(0);
    int64_t now = clock_wall_ms();
    struct str old = lake_address_folder(&a, now - 2 * MS_PER_HOUR),
               fresh = lake_address_folder(&a, now);

    CHECK(str_cmp(fresh, old) < 0);
    CHECK(str_starts(fresh, STR("data/")));
    CHECK_INT(fresh.len, sizeof("data/01234567/") - 1);
    CHECK(!str_eq(lake_new_address(&a), lake_new_address(&a)));
    arena_release(&a);
}

TEST(lake_address, the_form_tells_the_kind_of_old_addresses)
{
    static const struct {
        struct lake_entry entry;
        bool relative;
    } cases[] = {
        {{.address = STR("data/x"), .address_type = LAKE_RELATIVE}, true},
        {{.address = STR("s3://b/k"), .address_type = LAKE_FULL}, false},
        {{.address = STR("x"), .address_type = 0}, true},
        {{.address = STR("s3://b/k"), .address_type = 0}, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK(lake_address_is_relative(&cases[i].entry) == cases[i].relative);
}
