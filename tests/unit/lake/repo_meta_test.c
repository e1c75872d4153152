/* The metadata of a repository. */
#include "lake/repo_meta.h"
#include "unit/lake/hand.h"
#include "unit/lake/kv_spy.h"

static struct str_pair some[] = {{{"a", 1}, {"1", 1}}, {{"c", 1}, {"3", 1}}},
                       other[] = {{{"b", 1}, {"2", 1}}, {{"c", 1}, {"4", 1}}};

static void set_pairs(struct lake_lab *lab, struct str_pair *pairs, size_t count)
{
    struct str_pairs set = {pairs, count};
    struct err err = {0};

    CHECK_OK(lake_repo_meta_change(lab->lake, &lab->arena, &lab->repo, &set, NULL, 0, &err));
}

static void check_pairs(struct lake_lab *lab, const char *expected)
{
    struct buf text = {0};
    struct str_pairs got;
    struct err err = {0};

    CHECK_OK(lake_repo_meta_get(lab->lake, &lab->arena, &lab->repo, &got, &err));
    for (size_t i = 0; i < got.count; i++)
        buf_appendf(&text, STR_FMT "=" STR_FMT ";", STR_ARG(got.pairs[i].key),
                    STR_ARG(got.pairs[i].value));
    CHECK_STR(buf_str(&text), str_z(expected));
    buf_release(&text);
}

LAKE_LAB_TEST(lake_repo_meta, keys_are_set_and_removed_one_by_one)
{
    struct str gone[] = {STR("a"), STR("x")};
    struct err err = {0};

    check_pairs(lab, "");
    set_pairs(lab, some, ARRAY_SIZE(some));
    check_pairs(lab, "a=1;c=3;");
    set_pairs(lab, other, ARRAY_SIZE(other));
    check_pairs(lab, "a=1;b=2;c=4;");
    CHECK_OK(lake_repo_meta_change(lab->lake, &lab->arena, &lab->repo, &(struct str_pairs){0}, gone,
                                   ARRAY_SIZE(gone), &err));
    check_pairs(lab, "b=2;c=4;");
}

LAKE_LAB_TEST(lake_repo_meta, a_repository_whose_record_has_changed_is_read_again)
{
    struct str_pairs set = {some, ARRAY_SIZE(some)};
    struct lake_repo old = lab->repo;
    struct err err = {0};

    old.stamp = STR("an earlier record");
    CHECK_OK(lake_repo_meta_change(lab->lake, &lab->arena, &old, &set, NULL, 0, &err));
    check_pairs(lab, "a=1;c=3;");
    old.token = STR("of another repository");
    CHECK_ERR(lake_repo_meta_change(lab->lake, &lab->arena, &old, &set, NULL, 0, &err),
              ERR_NOT_FOUND);
}

static void other_sets(void *ctx)
{
    struct hand *o = ctx;
    struct str_pairs set = {other, ARRAY_SIZE(other)};

    CHECK_INT(lake_repo_meta_change(o->lake, &o->arena, &o->repo, &set, NULL, 0, &o->err), 0);
}

/* The first change makes the row, the second one replaces it. */
LAKE_LAB_TEST(lake_repo_meta, a_change_that_lost_its_race_keeps_the_keys_of_the_other)
{
    struct str_pair late[] = {{STR("d"), STR("5")}};
    struct hand second = hand_second(lab);

    kv_spy_begin(lab->lake);
    kv_spy_plan(KV_SPY_WRITE, 1, other_sets, &second);
    set_pairs(lab, some, ARRAY_SIZE(some));
    CHECK(kv_spy_happened());
    check_pairs(lab, "a=1;b=2;c=3;");
    kv_spy_plan(KV_SPY_WRITE, 1, other_sets, &second);
    set_pairs(lab, late, ARRAY_SIZE(late));
    CHECK(kv_spy_happened());
    check_pairs(lab, "a=1;b=2;c=4;d=5;");
    kv_spy_end(lab->lake);
    hand_release(&second);
}

LAKE_LAB_TEST(lake_repo_meta, too_much_metadata_is_refused)
{
    static char value[LAKE_META_BYTES + 1];
    struct str_pair big = {STR("k"), str_n(value, sizeof(value))};
    struct str_pairs set = {&big, 1};
    struct err err = {0};

    memset(value, 'v', sizeof(value));
    CHECK_ERR(lake_repo_meta_change(lab->lake, &lab->arena, &lab->repo, &set, NULL, 0, &err),
              ERR_INVALID);
    check_pairs(lab, "");
}

LAKE_LAB_TEST(lake_repo_meta, the_metadata_goes_with_its_repository)
{
    struct err err = {0};

    set_pairs(lab, some, ARRAY_SIZE(some));
    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, lab->repo.id, false, false, &err));
    CHECK_ERR(lake_repo_meta_change(lab->lake, &lab->arena, &lab->repo,
                                    &(struct str_pairs){other, 1}, NULL, 0, &err),
              ERR_NOT_FOUND);
}
