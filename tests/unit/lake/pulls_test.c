/* Pull requests. */
#include "lake/pulls.h"
#include "unit/lake/lake_lab.h"
#include "unit/lake/steps.h"

static struct lake_pull pull_make_one(struct lake_lab *lab, const char *title)
{
    struct lake_pull wanted = {.title = str_z(title),
                               .author = STR("ann"),
                               .source = STR("dev"),
                               .destination = STR("main")},
                     made;
    struct err err = {0};

    CHECK_OK(lake_pull_create(lab->lake, &lab->arena, &lab->repo, &wanted, &made, &err));
    return made;
}

static void pull_make_branch(struct lake_lab *lab)
{
    struct lake_branch_options o = {.name = STR("dev"), .source = STR("main")};
    struct lake_branch branch;
    struct err err = {0};

    CHECK_OK(lake_branch_create(lab->lake, &lab->arena, &lab->repo, &o, &branch, &err));
}

static void pull_check_status(struct lake_lab *lab, struct str id, enum lake_pull_status status)
{
    struct lake_pull got;
    struct err err = {0};

    CHECK_OK(lake_pull_get(lab->lake, &lab->arena, &lab->repo, id, &got, &err));
    CHECK_INT(got.status, status);
    CHECK((got.closed_ms > 0) == (status != LAKE_PULL_OPEN));
}

LAKE_LAB_TEST(lake_pulls, pull_requests_are_listed_in_the_order_of_their_making)
{
    struct lake_pull *list, first, second, third;
    struct lake_page page = {.limit = 2};
    struct lake_pull_change close = {.status = LAKE_PULL_CLOSED};
    struct err err = {0};
    size_t count;
    bool more;

    pull_make_branch(lab);
    first = pull_make_one(lab, "one");
    second = pull_make_one(lab, "two");
    third = pull_make_one(lab, "three");
    CHECK_OK(lake_pull_update(lab->lake, &lab->arena, &lab->repo, second.id, &close, &err));
    CHECK_OK(lake_pull_list(lab->lake, &lab->arena, &lab->repo, &page, 1u << LAKE_PULL_OPEN, &list,
                            &count, &more, &err));
    CHECK_INT(count, 2);
    CHECK(!more);
    CHECK_STR(list[0].id, first.id);
    CHECK_STR(list[1].title, STR("three"));
    page.after = first.id;
    CHECK_OK(lake_pull_list(lab->lake, &lab->arena, &lab->repo, &page, 1u << LAKE_PULL_CLOSED,
                            &list, &count, &more, &err));
    CHECK_INT(count, 1);
    CHECK_STR(list[0].id, second.id);
    CHECK(str_cmp(second.id, third.id) < 0);
}

LAKE_LAB_TEST(lake_pulls, a_closed_one_opens_again_and_a_merged_one_never_does)
{
    struct lake_pull_change open = {.status = LAKE_PULL_OPEN}, close = {.status = LAKE_PULL_CLOSED};
    struct lake_merge_options o = {.committer = STR("ann"), .allow_empty = true};
    struct lake_conflicts conflicts = {0};
    struct lake_pull pull, done;
    struct lake_commit head;
    struct err err = {0};

    pull_make_branch(lab);
    pull = pull_make_one(lab, "a title");
    CHECK_OK(lake_pull_update(lab->lake, &lab->arena, &lab->repo, pull.id, &close, &err));
    pull_check_status(lab, pull.id, LAKE_PULL_CLOSED);
    CHECK_ERR(
        lake_pull_merge(lab->lake, &lab->arena, &lab->repo, pull.id, &o, &done, &conflicts, &err),
        ERR_CONFLICT);
    CHECK_OK(lake_pull_update(lab->lake, &lab->arena, &lab->repo, pull.id, &open, &err));
    pull_check_status(lab, pull.id, LAKE_PULL_OPEN);
    CHECK_OK(
        lake_pull_merge(lab->lake, &lab->arena, &lab->repo, pull.id, &o, &done, &conflicts, &err));
    pull_check_status(lab, pull.id, LAKE_PULL_MERGED);
    CHECK_STR(done.commit_id, lake_lab_head(lab, "main"));
    CHECK_OK(lake_commit_get(lab->lake, &lab->arena, &lab->repo, done.commit_id, &head, &err));
    CHECK_STR(head.message, STR("a title"));
    CHECK_ERR(lake_pull_update(lab->lake, &lab->arena, &lab->repo, pull.id, &open, &err),
              ERR_CONFLICT);
}

/* --- beside other changes --- */

static int pull_try_merge(struct lake_lab *lab, struct str id, struct lake_pull *done,
                          struct err *err)
{
    struct lake_merge_options o = {.committer = STR("ann"), .allow_empty = true};
    struct lake_conflicts conflicts = {0};

    return lake_pull_merge(lab->lake, &lab->arena, &lab->repo, id, &o, done, &conflicts, err);
}

/* Sets a rule, which changes the record of the repository. */
static void pull_protect(void *ctx)
{
    struct lake_protection_rule rule = {.pattern = STR("other"), .what = LAKE_PROTECT_COMMIT};
    struct lake_protection rules = {.rules = &rule, .count = 1};
    struct lake_lab *lab = ctx;
    struct err err = {0};

    CHECK_OK(lake_protection_set(lab->lake, &lab->arena, &lab->repo, &rules, NULL, &err));
}

LAKE_LAB_TEST(lake_pulls, one_is_made_changed_and_merged_though_the_repository_changes)
{
    struct str title = STR("another title");
    struct lake_pull_change change = {.title = &title, .status = LAKE_PULL_STATUSES};
    struct lake_pull pull, done;
    struct err err = {0};

    pull_make_branch(lab);
    pull_protect(lab); /* lab->repo has the record of before */
    pull = pull_make_one(lab, "a title");
    CHECK_OK(lake_pull_update(lab->lake, &lab->arena, &lab->repo, pull.id, &change, &err));
    steps_plan(STEPS_BEFORE, "lake.publish", 1, pull_protect, lab);
    CHECK_OK(pull_try_merge(lab, pull.id, &done, &err));
    CHECK(steps_happened());
    pull_check_status(lab, pull.id, LAKE_PULL_MERGED);
    CHECK_STR(done.commit_id, lake_lab_head(lab, "main"));
    CHECK_STR(done.title, title);
}

/* The pull request that a planned call looks at or closes. */
struct pull_at_step {
    struct lake_lab *lab;
    struct str id;
};

static void pull_look_merged(void *ctx)
{
    struct pull_at_step *at = ctx;

    pull_check_status(at->lab, at->id, LAKE_PULL_MERGED);
}

LAKE_LAB_TEST(lake_pulls, the_write_that_publishes_the_merge_also_records_it)
{
    struct pull_at_step at = {.lab = lab};
    struct lake_pull done;
    struct err err = {0};

    pull_make_branch(lab);
    at.id = pull_make_one(lab, "a title").id;
    steps_plan(STEPS_AFTER, "lake.publish", 1, pull_look_merged, &at);
    CHECK_OK(pull_try_merge(lab, at.id, &done, &err));
    CHECK(steps_happened());
}

static void pull_close(void *ctx)
{
    struct lake_pull_change close = {.status = LAKE_PULL_CLOSED};
    struct pull_at_step *at = ctx;
    struct err err = {0};

    CHECK_OK(
        lake_pull_update(at->lab->lake, &at->lab->arena, &at->lab->repo, at->id, &close, &err));
}

LAKE_LAB_TEST(lake_pulls, one_that_is_closed_before_the_publish_is_not_merged)
{
    struct pull_at_step at = {.lab = lab};
    struct lake_pull done;
    struct err err = {0};

    pull_make_branch(lab);
    at.id = pull_make_one(lab, "a title").id;
    struct str head = lake_lab_head(lab, "main");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, pull_close, &at);
    CHECK_ERR(pull_try_merge(lab, at.id, &done, &err), ERR_CONFLICT);
    CHECK(steps_happened());
    CHECK_STR(lake_lab_head(lab, "main"), head);
    pull_check_status(lab, at.id, LAKE_PULL_CLOSED);
}

LAKE_LAB_TEST(lake_pulls, branches_must_differ_and_be_there)
{
    static const struct {
        const char *title, *source, *destination;
        int code;
    } cases[] = {
        {"t", "main", "main", ERR_INVALID},
        {"", "dev", "main", ERR_INVALID},
        {"t", "none", "main", ERR_NOT_FOUND},
        {"t", "main", "none", ERR_NOT_FOUND},
    };
    struct err err = {0};

    pull_make_branch(lab);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct lake_pull wanted = {.title = str_z(cases[i].title),
                                   .source = str_z(cases[i].source),
                                   .destination = str_z(cases[i].destination)},
                         made;
        CHECK_ERR(lake_pull_create(lab->lake, &lab->arena, &lab->repo, &wanted, &made, &err),
                  cases[i].code);
    }
    CHECK_ERR(lake_pull_get(lab->lake, &lab->arena, &lab->repo, STR("none"), &(struct lake_pull){0},
                            &err),
              ERR_NOT_FOUND);
}
