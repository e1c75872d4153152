/* Repositories: made, found, listed, deleted, made again. */
#include "unit/lake/lake_lab.h"

#include <stdio.h>

static struct lake_repo_options options_of(const char *id)
{
    return (struct lake_repo_options){
        .id = str_z(id), .owner = STR(LAKE_LAB_OWNER), .space = STR("s3://lake-data/x")};
}

static int make_repo(struct lake_lab *lab, const struct lake_repo_options *o, struct err *err)
{
    struct lake_repo r;

    return lake_repo_create(lab->lake, &lab->arena, o, &r, err);
}

LAKE_LAB_TEST(lake_repo, a_repository_is_found_with_all_that_it_was_made_with)
{
    struct lake_repo_options o = options_of("weather");
    struct lake_repo made, found;
    struct err err = {0};

    o.default_branch = STR("trunk");
    o.storage_id = STR("s");
    o.read_only = true;
    o.space = STR("s3://lake-data/w/");
    CHECK_OK(lake_repo_create(lab->lake, &lab->arena, &o, &made, &err));
    CHECK_OK(lake_repo_get(lab->lake, &lab->arena, STR("weather"), &found, &err));
    CHECK_STR(found.id, STR("weather"));
    CHECK_STR(found.space, STR("s3://lake-data/w"));
    CHECK_STR(found.default_branch, STR("trunk"));
    CHECK_STR(found.owner, STR(LAKE_LAB_OWNER));
    CHECK_STR(found.storage_id, STR("s"));
    CHECK(found.read_only);
    CHECK(found.created_ms > 0);
    CHECK_STR(found.partition, made.partition);
    CHECK_STR(found.stamp, made.stamp);
    CHECK(str_starts(found.partition, STR("weather-")));
}

LAKE_LAB_TEST(lake_repo, a_new_repository_has_one_commit_and_its_default_branch)
{
    struct lake_branch b;
    struct lake_commit c;
    struct err err = {0};

    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &b, &err));
    CHECK_OK(lake_commit_get(lab->lake, &lab->arena, &lab->repo, b.commit_id, &c, &err));
    CHECK_STR(c.message, STR("Repository created"));
    CHECK_STR(c.id, b.commit_id);
    CHECK_INT(c.generation, 1);
    CHECK_INT(c.parent_count, 0);
    CHECK_INT(c.tree.len, 0);
    CHECK(str_starts(b.staging, STR("repo-main:")));
    CHECK_INT(b.sealed_count, 0);
}

LAKE_LAB_TEST(lake_repo, a_bare_repository_has_no_branch)
{
    struct lake_repo_options o = options_of("bare");
    struct lake_branch b;
    struct lake_repo r;
    struct err err = {0};

    o.bare = true;
    CHECK_OK(lake_repo_create(lab->lake, &lab->arena, &o, &r, &err));
    CHECK_ERR(lake_branch_get(lab->lake, &lab->arena, &r, STR("main"), &b, &err), ERR_NOT_FOUND);
    CHECK_STR(str_z(err.text), STR("branch not found"));
}

LAKE_LAB_TEST(lake_repo, names_that_are_in_use_or_bad_are_refused)
{
    struct lake_repo_options o = options_of("repo");
    struct lake_repo r;
    struct err err = {0};

    CHECK_ERR(make_repo(lab, &o, &err), ERR_EXISTS);
    CHECK_STR(str_z(err.text), STR("repository already exists: not unique"));
    o = options_of("No");
    CHECK_ERR(make_repo(lab, &o, &err), ERR_INVALID);
    o = options_of("good");
    o.space = STR("nowhere");
    CHECK_ERR(make_repo(lab, &o, &err), ERR_INVALID);
    o = options_of("good");
    o.default_branch = STR("a/b");
    CHECK_ERR(make_repo(lab, &o, &err), ERR_INVALID);
    CHECK_ERR(lake_repo_get(lab->lake, &lab->arena, STR("good"), &r, &err), ERR_NOT_FOUND);
    CHECK_ERR(lake_repo_get(lab->lake, &lab->arena, STR("re\0po"), &r, &err), ERR_NOT_FOUND);
    CHECK_STR(str_z(err.text), STR("repository not found"));
}

/* The names of a page, with a blank between them. */
static void expect_page(struct lake_lab *lab, const char *prefix, const char *after, size_t limit,
                        const char *want, bool want_more)
{
    struct lake_page p = {str_z(prefix), str_z(after), limit};
    struct lake_repo *list = NULL;
    struct buf names = {0};
    struct err err = {0};
    size_t count = 0;
    bool more = false;

    CHECK_OK(lake_repo_list(lab->lake, &lab->arena, &p, &list, &count, &more, &err));
    for (size_t i = 0; i < count; i++)
        buf_appendf(&names, "%s" STR_FMT, i ? " " : "", STR_ARG(list[i].id));
    CHECK_STR(buf_str(&names), str_z(want));
    CHECK_INT(more, want_more);
    buf_release(&names);
}

LAKE_LAB_TEST(lake_repo, repositories_list_by_name_in_pages)
{
    lake_lab_repo(lab, "beta-2");
    lake_lab_repo(lab, "alpha");
    lake_lab_repo(lab, "beta");
    expect_page(lab, "", "", 1000, "alpha beta beta-2 repo", false);
    expect_page(lab, "", "", 2, "alpha beta", true);
    expect_page(lab, "", "beta", 2, "beta-2 repo", false);
    expect_page(lab, "beta", "", 1000, "beta beta-2", false);
    expect_page(lab, "beta", "beta", 1000, "beta-2", false);
    expect_page(lab, "beta", "zzz", 1000, "", false);
    expect_page(lab, "z", "", 1000, "", false);
    expect_page(lab, "", "", 0, "", true);
    expect_page(lab, "", "", SIZE_MAX, "alpha beta beta-2 repo", false);
}

LAKE_LAB_TEST(lake_repo, a_deleted_repository_is_gone_and_waits_on_the_list)
{
    struct lake_repo old = lab->repo;
    struct kv_value value;
    struct lake_branch b;
    struct lake_repo r;
    struct err err = {0};

    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, old.id, false, false, &err));
    CHECK_ERR(lake_repo_get(lab->lake, &lab->arena, old.id, &r, &err), ERR_NOT_FOUND);
    CHECK_ERR(lake_repo_delete(lab->lake, &lab->arena, old.id, false, false, &err), ERR_NOT_FOUND);
    CHECK_OK(kv_get(lab->kv_lab->kv, NULL, &lab->arena,
                    lake_key_to_delete(&lab->arena, old.partition), &value, &err));
    /* A caller that has the old record can do nothing any more. */
    CHECK_ERR(lake_branch_get(lab->lake, &lab->arena, &old, STR("main"), &b, &err), ERR_NOT_FOUND);
    CHECK_STR(str_z(err.text), STR("repository not found"));
    struct lake_branch_options o = {.name = STR("x"), .source = STR("main")};
    CHECK_ERR(lake_branch_create(lab->lake, &lab->arena, &old, &o, &b, &err), ERR_NOT_FOUND);
    struct lake_tag t;
    CHECK_ERR(lake_tag_create(lab->lake, &lab->arena, &old, STR("t"), STR("main"), false, &t, &err),
              ERR_NOT_FOUND);
}

LAKE_LAB_TEST(lake_repo, a_repository_that_is_made_again_shares_nothing_with_the_old_one)
{
    struct lake_repo old = lab->repo, now;
    struct lake_tag t;
    struct err err = {0};

    CHECK_OK(
        lake_tag_create(lab->lake, &lab->arena, &old, STR("v1"), STR("main"), false, &t, &err));
    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, old.id, false, false, &err));
    now = lake_lab_repo(lab, "repo");
    CHECK(!str_eq(now.partition, old.partition));
    CHECK_ERR(lake_tag_get(lab->lake, &lab->arena, &now, STR("v1"), &t, &err), ERR_NOT_FOUND);
    CHECK_ERR(
        lake_tag_create(lab->lake, &lab->arena, &old, STR("v2"), t.commit_id, false, &t, &err),
        ERR_NOT_FOUND);
    CHECK_ERR(lake_tag_delete(lab->lake, &lab->arena, &old, STR("v1"), false, &err), ERR_NOT_FOUND);
}

LAKE_LAB_TEST(lake_repo, a_read_only_repository_is_changed_only_by_force)
{
    struct lake_repo_options o = options_of("frozen");
    struct lake_branch_options b = {.name = STR("x"), .source = STR("main")};
    struct lake_branch branch;
    struct lake_repo r;
    struct lake_tag t;
    struct err err = {0};

    o.read_only = true;
    CHECK_OK(lake_repo_create(lab->lake, &lab->arena, &o, &r, &err));
    CHECK_ERR(lake_branch_create(lab->lake, &lab->arena, &r, &b, &branch, &err), ERR_DENIED);
    CHECK_STR(str_z(err.text), STR("read-only repository"));
    CHECK_ERR(lake_tag_create(lab->lake, &lab->arena, &r, STR("t"), STR("main"), false, &t, &err),
              ERR_DENIED);
    CHECK_ERR(lake_repo_delete(lab->lake, &lab->arena, r.id, false, false, &err), ERR_DENIED);
    b.force = true;
    CHECK_OK(lake_branch_create(lab->lake, &lab->arena, &r, &b, &branch, &err));
    CHECK_OK(lake_tag_create(lab->lake, &lab->arena, &r, STR("t"), STR("main"), true, &t, &err));
    CHECK_ERR(lake_branch_delete(lab->lake, &lab->arena, &r, STR("x"), false, &err), ERR_DENIED);
    CHECK_ERR(lake_tag_delete(lab->lake, &lab->arena, &r, STR("t"), false, &err), ERR_DENIED);
    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, r.id, true, false, &err));
}

/* Changes the record as a change of the bucket's documents does. */
static void touch_repo(struct lake_lab *lab)
{
    struct lake_repo r;
    struct buf record = {0};
    struct err err = {0};

    CHECK_OK(lake_repo_get(lab->lake, &lab->arena, lab->repo.id, &r, &err));
    r.documents++;
    lake_repo_write(&record, &r);
    CHECK_OK(kv_set_if(lab->kv_lab->kv, lake_key_repo(&lab->arena, r.id), buf_str(&record),
                       &r.stamp, &err));
    buf_release(&record);
}

LAKE_LAB_TEST(lake_repo, a_record_that_changed_meanwhile_is_read_again)
{
    struct lake_branch_options o = {.name = STR("x"), .source = STR("main")};
    struct lake_branch b;
    struct lake_tag t;
    struct err err = {0};

    touch_repo(lab);
    CHECK_OK(lake_branch_create(lab->lake, &lab->arena, &lab->repo, &o, &b, &err));
    CHECK_OK(
        lake_tag_create(lab->lake, &lab->arena, &lab->repo, STR("t"), STR("x"), false, &t, &err));
    touch_repo(lab);
    CHECK_OK(lake_tag_delete(lab->lake, &lab->arena, &lab->repo, STR("t"), false, &err));
    CHECK_OK(lake_branch_delete(lab->lake, &lab->arena, &lab->repo, STR("x"), false, &err));
}

/* --- many at once --- */

enum { MAKERS = 8 };

struct maker {
    struct lake_lab *lab;
    struct thread thread;
    int code;
    struct str partition;
    struct arena arena;
};

static void maker_run(void *ctx)
{
    struct maker *m = ctx;
    struct lake_repo_options o = options_of("wanted");
    struct lake_repo r = {0};
    struct err err = {0};

    m->code = lake_repo_create(m->lab->lake, &m->arena, &o, &r, &err);
    m->partition = r.partition;
}

LAKE_LAB_TEST(lake_repo, of_many_that_are_made_at_once_under_a_name_one_is_made)
{
    struct maker makers[MAKERS] = {0};
    struct lake_repo r;
    struct err err = {0};
    int made = 0;

    for (int i = 0; i < MAKERS; i++) {
        makers[i].lab = lab;
        CHECK_OK(thread_start(&makers[i].thread, "maker", 0, maker_run, &makers[i], &err));
    }
    for (int i = 0; i < MAKERS; i++)
        thread_join(&makers[i].thread);
    CHECK_OK(lake_repo_get(lab->lake, &lab->arena, STR("wanted"), &r, &err));
    for (int i = 0; i < MAKERS; i++) {
        made += makers[i].code == 0;
        if (makers[i].code == 0)
            CHECK_STR(r.partition, makers[i].partition);
        else
            CHECK_ERR(makers[i].code, ERR_EXISTS);
        arena_release(&makers[i].arena);
    }
    CHECK_INT(made, 1);
}
