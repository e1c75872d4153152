/* Branches and tags: made, found, changed, listed, deleted. */
#include "unit/lake/lake_lab.h"

#include <stdio.h>

static int make_branch(struct lake_lab *lab, const char *name, const char *source, bool hidden,
                       struct lake_branch *out, struct err *err)
{
    struct lake_branch_options o = {.name = str_z(name), .source = str_z(source), .hidden = hidden};

    return lake_branch_create(lab->lake, &lab->arena, &lab->repo, &o, out, err);
}

static void need_branch(struct lake_lab *lab, const char *name, bool hidden)
{
    struct lake_branch b;
    struct err err = {0};

    CHECK_OK(make_branch(lab, name, "main", hidden, &b, &err));
}

/* --- branches --- */

LAKE_LAB_TEST(lake_branch, a_branch_begins_at_its_source_with_a_token_of_its_own)
{
    struct str head = lake_lab_head(lab, "main");
    struct lake_branch made, found, main;
    struct err err = {0};

    CHECK_OK(make_branch(lab, "work", "main", false, &made, &err));
    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("work"), &found, &err));
    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &main, &err));
    CHECK_STR(found.commit_id, head);
    CHECK_STR(found.staging, made.staging);
    CHECK_STR(found.stamp, made.stamp);
    CHECK(!str_eq(found.staging, main.staging));
    CHECK(found.epoch > 0 && main.epoch > 0); /* they are random */
    CHECK(str_starts(found.staging, STR("repo-work:")));
    CHECK_ERR(make_branch(lab, "work", "main", false, &made, &err), ERR_EXISTS);
    CHECK_STR(str_z(err.text), STR("branch already exists: not unique"));
}

LAKE_LAB_TEST(lake_branch, any_ref_but_staged_changes_can_be_the_source)
{
    struct str first = lake_lab_head(lab, "main");
    struct str second = lake_lab_commit_at(lab, 1000, "second", &first, 1);
    struct lake_branch b;
    struct lake_tag t;
    struct err err = {0};
    char id[LAKE_ID_LEN + 1];

    lake_lab_set_head(lab, "main", second);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(second));
    CHECK_OK(lake_tag_create(lab->lake, &lab->arena, &lab->repo, STR("v1"), STR("main"), false, &t,
                             &err));
    CHECK_OK(make_branch(lab, "by-id", id, false, &b, &err));
    CHECK_STR(b.commit_id, second);
    CHECK_OK(make_branch(lab, "by-tag", "v1", false, &b, &err));
    CHECK_STR(b.commit_id, second);
    CHECK_OK(make_branch(lab, "by-expression", "main~1", false, &b, &err));
    CHECK_STR(b.commit_id, first);
    CHECK_OK(make_branch(lab, "by-head", "main@", false, &b, &err));
    CHECK_STR(b.commit_id, second);
    CHECK_ERR(make_branch(lab, "by-staging", "main$", false, &b, &err), ERR_INVALID);
    CHECK_ERR(make_branch(lab, "by-nothing", "nothing", false, &b, &err), ERR_NOT_FOUND);
    CHECK_ERR(make_branch(lab, "bad/name", "main", false, &b, &err), ERR_INVALID);
    CHECK_ERR(make_branch(lab, "by-old", "main~7", false, &b, &err), ERR_NOT_FOUND);
}

LAKE_LAB_TEST(lake_branch, a_change_of_a_branch_that_lost_its_race_is_refused)
{
    struct lake_branch first, second;
    struct lake_tx tx;
    struct err err = {0};
    size_t failed = 0;

    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &first, &err));
    second = first;
    lake_tx_init(&tx, &lab->arena);
    lake_tx_check_repo(&tx, &lab->repo);
    first.hidden = true;
    lake_tx_put_branch(&tx, &lab->repo, &first);
    CHECK_OK(lake_tx_write(lab->lake, &tx, &failed, &err));
    lake_tx_init(&tx, &lab->arena);
    lake_tx_check_repo(&tx, &lab->repo);
    second.epoch++;
    lake_tx_put_branch(&tx, &lab->repo, &second);
    CHECK_ERR(lake_tx_write(lab->lake, &tx, &failed, &err), ERR_PRECONDITION);
    CHECK_INT(failed, 1);
    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &second, &err));
    CHECK(second.hidden);
    CHECK_INT(second.revision, first.revision);
    CHECK_INT(second.epoch, first.epoch);
}

LAKE_LAB_TEST(lake_branch, setting_a_value_back_does_not_make_an_old_record_current)
{
    struct lake_branch old, now;
    struct lake_tx tx;
    struct err err = {0};
    struct str head = lake_lab_head(lab, "main");
    struct str other = lake_lab_commit_at(lab, 1000, "other", &head, 1);

    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &old, &err));
    lake_lab_set_head(lab, "main", other);
    lake_lab_set_head(lab, "main", head);
    lake_tx_init(&tx, &lab->arena);
    lake_tx_check_repo(&tx, &lab->repo);
    lake_tx_put_branch(&tx, &lab->repo, &old);
    CHECK_ERR(lake_tx_write(lab->lake, &tx, NULL, &err), ERR_PRECONDITION);
    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &now, &err));
    CHECK_INT(now.revision, old.revision + 1); /* the lost write has raised old's own by one */
}

enum { RACERS = 8, LAPS = 10 };

struct racer {
    struct lake_lab *lab;
    struct thread thread;
    struct arena arena;
    int lost;
};

/* Raises the epoch of "main" LAPS times, by compare-and-set. */
static void racer_run(void *ctx)
{
    struct racer *r = ctx;
    const struct lake_repo *repo = &r->lab->repo;
    struct err err = {0};

    for (int lap = 0; lap < LAPS;) {
        struct lake_branch b;
        struct lake_repo now;
        struct lake_tx tx;
        CHECK_OK(
            lake_read_branch(r->lab->lake, NULL, &r->arena, repo, STR("main"), &now, &b, &err));
        b.epoch++;
        lake_tx_init(&tx, &r->arena);
        lake_tx_check_repo(&tx, &now);
        lake_tx_put_branch(&tx, &now, &b);
        int code = lake_tx_write(r->lab->lake, &tx, NULL, &err);
        CHECK(code == 0 || code == ERR_PRECONDITION);
        lap += code == 0;
        r->lost += code < 0;
    }
}

LAKE_LAB_TEST(lake_branch, of_changes_at_the_same_time_none_is_lost)
{
    struct racer racers[RACERS] = {0};
    struct lake_branch first, b;
    struct err err = {0};

    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &first, &err));
    for (int i = 0; i < RACERS; i++) {
        racers[i].lab = lab;
        CHECK_OK(thread_start(&racers[i].thread, "racer", 0, racer_run, &racers[i], &err));
    }
    for (int i = 0; i < RACERS; i++) {
        thread_join(&racers[i].thread);
        arena_release(&racers[i].arena);
    }
    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &b, &err));
    CHECK_INT(b.epoch, first.epoch + RACERS * LAPS);
    CHECK_INT(b.revision, first.revision + RACERS * LAPS);
}

LAKE_LAB_TEST(lake_branch, a_deleted_branch_leaves_its_tokens_to_the_cleaner)
{
    struct lake_branch b;
    struct lake_repo now;
    struct lake_tx tx;
    struct err err = {0};
    struct str sealed[] = {STR("repo-work:sealed")};

    need_branch(lab, "work", false);
    CHECK_OK(
        lake_read_branch(lab->lake, NULL, &lab->arena, &lab->repo, STR("work"), &now, &b, &err));
    b.sealed = sealed;
    b.sealed_count = 1;
    lake_tx_init(&tx, &lab->arena);
    lake_tx_put_branch(&tx, &lab->repo, &b);
    CHECK_OK(lake_tx_write(lab->lake, &tx, NULL, &err));
    struct kv_name rows[] = {lake_key_staged(&lab->arena, b.staging, STR("a")),
                             lake_key_staged(&lab->arena, sealed[0], STR("b"))};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_OK(kv_set(lab->kv_lab->kv, rows[i], STR("v"), &err));
    CHECK_OK(lake_branch_delete(lab->lake, &lab->arena, &lab->repo, STR("work"), false, &err));
    CHECK_ERR(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("work"), &b, &err),
              ERR_NOT_FOUND);
    CHECK_STR(str_z(err.text), STR("branch not found"));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct kv_value value;
        CHECK_SOON(lake_clean(lab->lake, &err) == 0 &&
                   kv_get(lab->kv_lab->kv, NULL, &lab->arena, rows[i], &value, &err) ==
                       ERR_NOT_FOUND);
    }
    CHECK_ERR(lake_branch_delete(lab->lake, &lab->arena, &lab->repo, STR("work"), false, &err),
              ERR_NOT_FOUND);
}

LAKE_LAB_TEST(lake_branch, the_default_branch_stays)
{
    struct err err = {0};

    CHECK_ERR(lake_branch_delete(lab->lake, &lab->arena, &lab->repo, STR("main"), true, &err),
              ERR_DENIED);
    CHECK_STR(str_z(err.text), STR("cannot delete repository default branch"));
}

static void expect_branches(struct lake_lab *lab, struct lake_page p, bool hidden, const char *want,
                            bool want_more)
{
    struct lake_branch *list = NULL;
    struct buf names = {0};
    struct err err = {0};
    size_t count = 0;
    bool more = false;

    CHECK_OK(lake_branch_list(lab->lake, &lab->arena, &lab->repo, &p, hidden, &list, &count, &more,
                              &err));
    for (size_t i = 0; i < count; i++)
        buf_appendf(&names, "%s" STR_FMT, i ? " " : "", STR_ARG(list[i].id));
    CHECK_STR(buf_str(&names), str_z(want));
    CHECK_INT(more, want_more);
    buf_release(&names);
}

LAKE_LAB_TEST(lake_branch, branches_list_by_name_and_hidden_ones_when_asked)
{
    need_branch(lab, "b2", true);
    need_branch(lab, "b1", false);
    need_branch(lab, "b3", false);
    need_branch(lab, "z", true);
    expect_branches(lab, (struct lake_page){.limit = 10}, false, "b1 b3 main", false);
    expect_branches(lab, (struct lake_page){.limit = 10}, true, "b1 b2 b3 main z", false);
    expect_branches(lab, (struct lake_page){.limit = 2}, false, "b1 b3", true);
    expect_branches(lab, (struct lake_page){.limit = 3}, false, "b1 b3 main", false);
    expect_branches(lab, (struct lake_page){.prefix = STR("b"), .after = STR("b1"), .limit = 9},
                    true, "b2 b3", false);
    expect_branches(lab, (struct lake_page){.prefix = STR("b"), .after = STR("b1"), .limit = 9},
                    false, "b3", false);
}

/* --- tags --- */

LAKE_LAB_TEST(lake_tag, a_tag_names_a_commit_for_good)
{
    struct str first = lake_lab_head(lab, "main");
    struct str second = lake_lab_commit_at(lab, 1000, "second", &first, 1);
    struct lake_tag t;
    struct err err = {0};

    CHECK_OK(lake_tag_create(lab->lake, &lab->arena, &lab->repo, STR("v1"), STR("main"), false, &t,
                             &err));
    lake_lab_set_head(lab, "main", second);
    CHECK_OK(lake_tag_get(lab->lake, &lab->arena, &lab->repo, STR("v1"), &t, &err));
    CHECK_STR(t.commit_id, first);
    CHECK_ERR(lake_tag_create(lab->lake, &lab->arena, &lab->repo, STR("v1"), STR("main"), false, &t,
                              &err),
              ERR_EXISTS);
    CHECK_STR(str_z(err.text), STR("tag already exists: not unique"));
    CHECK_OK(lake_tag_get(lab->lake, &lab->arena, &lab->repo, STR("v1"), &t, &err));
    CHECK_STR(t.commit_id, first);
    CHECK_ERR(lake_tag_create(lab->lake, &lab->arena, &lab->repo, STR("v2"), STR("main$"), false,
                              &t, &err),
              ERR_INVALID);
    CHECK_ERR(lake_tag_create(lab->lake, &lab->arena, &lab->repo, STR("a b"), STR("main"), false,
                              &t, &err),
              ERR_INVALID);
}

LAKE_LAB_TEST(lake_tag, deleting_a_tag_that_is_absent_is_not_found)
{
    struct lake_tag t;
    struct err err = {0};

    CHECK_ERR(lake_tag_delete(lab->lake, &lab->arena, &lab->repo, STR("v1"), false, &err),
              ERR_NOT_FOUND);
    CHECK_STR(str_z(err.text), STR("tag not found"));
    CHECK_OK(lake_tag_create(lab->lake, &lab->arena, &lab->repo, STR("v1"), STR("main"), false, &t,
                             &err));
    CHECK_OK(lake_tag_delete(lab->lake, &lab->arena, &lab->repo, STR("v1"), false, &err));
    CHECK_ERR(lake_tag_get(lab->lake, &lab->arena, &lab->repo, STR("v1"), &t, &err), ERR_NOT_FOUND);
    CHECK_ERR(lake_tag_delete(lab->lake, &lab->arena, &lab->repo, STR("v1"), false, &err),
              ERR_NOT_FOUND);
}

LAKE_LAB_TEST(lake_tag, tags_list_by_name_in_pages)
{
    static const char *const names[] = {"v2", "v1", "v1.1", "\xc3\xa4"};
    struct lake_page p = {.limit = 2};
    struct lake_tag *list = NULL, t;
    struct err err = {0};
    size_t count = 0;
    bool more = false;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        CHECK_OK(lake_tag_create(lab->lake, &lab->arena, &lab->repo, str_z(names[i]), STR("main"),
                                 false, &t, &err));
    CHECK_OK(lake_tag_list(lab->lake, &lab->arena, &lab->repo, &p, &list, &count, &more, &err));
    CHECK_INT(count, 2);
    CHECK(more);
    CHECK_STR(list[0].id, STR("v1"));
    CHECK_STR(list[1].id, STR("v1.1"));
    CHECK_STR(list[1].commit_id, lake_lab_head(lab, "main"));
    p.after = STR("v1.1");
    CHECK_OK(lake_tag_list(lab->lake, &lab->arena, &lab->repo, &p, &list, &count, &more, &err));
    CHECK_INT(count, 2);
    CHECK(!more);
    CHECK_STR(list[0].id, STR("v2"));
}
