/* Ref expressions and commits. */
#include "unit/lake/lake_lab.h"

#include <stdio.h>

/* The cases of lakeFS's own suite for refs, and the tests that have them here. A suite that runs on
 * every driver is named without it: lake_stage is lake_stage_embedded, _redis and _postgres.
 *   GetRepository: lake_repo.a_repository_is_found_with_all_that_it_was_made_with
 *   GetRepositoryCache: lake_stage.records_in_memory_that_are_old_are_read_again
 *   ListRepositories: lake_repo.repositories_list_by_name_in_pages
 *   DeleteRepository: lake_repo.a_deleted_repository_is_gone_and_waits_on_the_list
 *   GetBranch, CreateBranch:
 *     lake_branch.a_branch_begins_at_its_source_with_a_token_of_its_own
 *     lake_branch.any_ref_but_staged_changes_can_be_the_source
 *   SetBranch: lake_branch.setting_a_value_back_does_not_make_an_old_record_current
 *   BranchUpdate: lake_branch.of_changes_at_the_same_time_none_is_lost
 *   BranchUpdateRaceCondition: lake_branch.a_change_of_a_branch_that_lost_its_race_is_refused
 *   DeleteBranch: lake_branch.a_deleted_branch_leaves_its_tokens_to_the_cleaner
 *   ListBranches (hidden): lake_branch.branches_list_by_name_and_hidden_ones_when_asked
 *   GetTag, CreateTag: lake_tag.a_tag_names_a_commit_for_good
 *   DeleteTag: lake_tag.deleting_a_tag_that_is_absent_is_not_found
 *   ListTags: lake_tag.tags_list_by_name_in_pages
 *   AddCommit: lake_commit.a_commit_comes_back_as_it_was_written
 *   Log: lake_log.a_log_has_pages_and_ends_where_it_is_told
 *   LogGraph:
 *     lake_history.a_history_is_by_time_and_has_each_commit_once
 *     lake_history.histories_of_random_graphs_are_whole_and_in_order
 *   ConsistentCommitIdentity: lake_record.commit_id_is_that_of_lakefs
 *   GetCommitByPrefix (ambiguous): lake_ref.a_prefix_of_two_commits_names_neither
 *   ListCommits: lake_iter.commits_come_in_order_and_can_be_sought_and_closed
 *   FindMergeBase: lake_merge_base.the_base_is_the_best_common_ancestor
 *   FindMergeBase Grid: lake_merge_base.bases_in_a_grid_are_the_smaller_coordinates
 *   ParseRef:
 *     lake_ref.marks_stand_alone_behind_a_branch
 *     lake_ref.what_is_not_there_is_not_found
 *   ResolveRawRef: lake_ref.a_name_is_a_commit_then_a_branch_then_a_tag_then_a_prefix
 *   ResolveRef_SameDate: lake_history.commits_of_one_moment_come_with_children_first
 *   DereferenceWithGraph: lake_ref.steps_lead_to_ancestors_as_in_git
 *   BranchByCommitIterator: lake_iter.heads_of_one_commit_come_by_name
 *   OrderedCommitIteratorGrid: lake_iter.leaves_of_a_grid_are_the_ends_of_its_rows
 *   CloseTwice, NextAfterClose:
 *     lake_iter.<kind>_come_in_order_and_can_be_sought_and_closed for each kind
 *   repository metadata CAS: lake_repo_meta.a_change_that_lost_its_race_keeps_the_keys_of_the_other
 *   expired imports: lake_import.records_go_a_day_after_their_imports_ended */

static int resolve(struct lake_lab *lab, const char *expr, struct lake_ref *out, struct err *err)
{
    return lake_ref_resolve(lab->lake, &lab->arena, &lab->repo, str_z(expr), out, err);
}

static void expect_ref(struct lake_lab *lab, const char *expr, struct str want)
{
    struct lake_ref ref;
    struct err err = {0};
    int code = resolve(lab, expr, &ref, &err);

    if (code < 0 || !str_eq(ref.commit_id, want))
        test_fail(__FILE__, __LINE__, "'%s' is %s (%s), not " STR_FMT, expr,
                  code < 0 ? err_name(code) : ref.commit_id.p, err.text, STR_ARG(want));
}

static void expect_no_ref(struct lake_lab *lab, const char *expr, int want)
{
    struct lake_ref ref;
    struct err err = {0};
    int code = resolve(lab, expr, &ref, &err);

    if (code != want)
        test_fail(__FILE__, __LINE__, "'%s' is %s, not %s", expr, err_name(code), err_name(want));
    CHECK(err.text[0]);
}

/* "<id><marks>", in the arena. */
static const char *expr_of(struct lake_lab *lab, struct str id, const char *marks)
{
    return arena_fmt(&lab->arena, STR_FMT "%s", STR_ARG(id), marks).p;
}

static void make_tag(struct lake_lab *lab, const char *name, struct str ref)
{
    struct lake_tag t;
    struct err err = {0};

    CHECK_OK(
        lake_tag_create(lab->lake, &lab->arena, &lab->repo, str_z(name), ref, false, &t, &err));
}

static void make_branch(struct lake_lab *lab, const char *name, struct str ref)
{
    struct lake_branch_options o = {.name = str_z(name), .source = ref};
    struct lake_branch b;
    struct err err = {0};

    CHECK_OK(lake_branch_create(lab->lake, &lab->arena, &lab->repo, &o, &b, &err));
}

/* --- names --- */

LAKE_LAB_TEST(lake_ref, a_name_is_a_commit_then_a_branch_then_a_tag_then_a_prefix)
{
    struct str first = lake_lab_head(lab, "main");
    struct str second = lake_lab_commit_at(lab, 1000, "second", &first, 1);
    struct str third = lake_lab_commit_at(lab, 2000, "third", &second, 1);
    struct lake_ref ref;
    struct err err = {0};

    lake_lab_set_head(lab, "main", third);
    /* A branch and a tag with the id of a commit, and a tag with the name of a branch. */
    make_branch(lab, expr_of(lab, second, ""), third);
    expect_ref(lab, expr_of(lab, second, ""), second);
    make_tag(lab, "main", first);
    expect_ref(lab, "main", third);
    /* A tag with the prefix of an id comes before that id. */
    expect_ref(lab, expr_of(lab, str_head(second, 20), ""), second);
    make_tag(lab, expr_of(lab, str_head(second, 20), ""), first);
    expect_ref(lab, expr_of(lab, str_head(second, 20), ""), first);
    expect_ref(lab, expr_of(lab, str_head(second, 21), ""), second);

    CHECK_OK(resolve(lab, "main", &ref, &err));
    CHECK_INT(ref.kind, LAKE_BRANCH);
    CHECK(ref.staged && !ref.explicit_staged);
    CHECK_STR(ref.branch.id, STR("main"));
    CHECK(ref.branch.stamp.len > 0);
    CHECK_OK(resolve(lab, expr_of(lab, second, ""), &ref, &err));
    CHECK_INT(ref.kind, LAKE_COMMIT);
    CHECK(!ref.staged);
    make_tag(lab, "v1", first);
    CHECK_OK(resolve(lab, "v1", &ref, &err));
    CHECK_INT(ref.kind, LAKE_TAG);
    CHECK(!ref.staged);
}

LAKE_LAB_TEST(lake_ref, a_commit_that_was_read_before_goes_with_its_repository)
{
    struct str first = lake_lab_head(lab, "main");
    struct str second = lake_lab_commit_at(lab, 1000, "second", &first, 1);
    struct lake_commit c;
    struct err err = {0};

    CHECK_OK(lake_commit_get(lab->lake, &lab->arena, &lab->repo, second, &c, &err));
    make_branch(lab, expr_of(lab, second, ""), first);
    expect_ref(lab, expr_of(lab, second, ""), second);
    expect_ref(lab, expr_of(lab, second, "~1"), first);
    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, lab->repo.id, false, false, &err));
    expect_no_ref(lab, expr_of(lab, second, ""), ERR_NOT_FOUND);
}

LAKE_LAB_TEST(lake_ref, what_is_not_there_is_not_found)
{
    struct lake_ref ref;
    struct err err = {0};

    expect_no_ref(lab, "", ERR_NOT_FOUND);
    expect_no_ref(lab, "nothing", ERR_NOT_FOUND);
    expect_no_ref(lab, "~1", ERR_NOT_FOUND);
    expect_no_ref(lab, "0000", ERR_NOT_FOUND);
    expect_no_ref(lab, "0000000000000000000000000000000000000000000000000000000000000000",
                  ERR_NOT_FOUND);
    CHECK_ERR(lake_ref_resolve(lab->lake, &lab->arena, &lab->repo, STR("main\0x"), &ref, &err),
              ERR_NOT_FOUND);
}

LAKE_LAB_TEST(lake_ref, a_prefix_of_two_commits_names_neither)
{
    struct str ids[40];
    struct str head = lake_lab_head(lab, "main");
    char digit[2] = "0";

    for (int i = 0; i < 40; i++) /* two of 41 ids have the same first digit */
        ids[i] = lake_lab_commit_at(lab, 1000 + i * 1000, "one of many", &head, 1);
    for (int i = 0; i < 16; i++) {
        size_t count = head.p[0] == "0123456789abcdef"[i];
        for (int k = 0; k < 40; k++)
            count += ids[k].p[0] == "0123456789abcdef"[i];
        digit[0] = "0123456789abcdef"[i];
        if (count != 1)
            expect_no_ref(lab, digit, ERR_NOT_FOUND);
    }
    for (int k = 0; k < 40; k++)
        expect_ref(lab, expr_of(lab, str_head(ids[k], 32), ""), ids[k]);
}

/* --- steps --- */

/* The graph of git's documentation of revisions:
 *
 *     G   H   I   J
 *      \ /     \ /
 *       D   E   F
 *        \  |  / \
 *         \ | /   |
 *          \|/    |
 *           B     C
 *            \   /
 *             \ /
 *              A
 */
LAKE_LAB_TEST(lake_ref, steps_lead_to_ancestors_as_in_git)
{
    struct str g = lake_lab_commit_at(lab, 1000, "G", NULL, 0);
    struct str h = lake_lab_commit_at(lab, 2000, "H", NULL, 0);
    struct str i = lake_lab_commit_at(lab, 3000, "I", NULL, 0);
    struct str j = lake_lab_commit_at(lab, 4000, "J", NULL, 0);
    struct str d = lake_lab_commit_at(lab, 5000, "D", (struct str[]){g, h}, 2);
    struct str e = lake_lab_commit_at(lab, 6000, "E", NULL, 0);
    struct str f = lake_lab_commit_at(lab, 7000, "F", (struct str[]){i, j}, 2);
    struct str b = lake_lab_commit_at(lab, 8000, "B", (struct str[]){d, e, f}, 3);
    struct str c = lake_lab_commit_at(lab, 9000, "C", &f, 1);
    struct str a = lake_lab_commit_at(lab, 10000, "A", (struct str[]){b, c}, 2);

    make_tag(lab, "A", a);
    lake_lab_set_head(lab, "main", a);
    static const char *const bases[] = {"A", "main"};
    for (size_t k = 0; k < ARRAY_SIZE(bases); k++) {
        struct {
            const char *steps;
            struct str want;
        } rows[] = {
            {"^0", a},  {"~0", a},     {"^", b},        {"^1", b},       {"~1", b},   {"~", b},
            {"^2", c},  {"^^", d},     {"^1^1", d},     {"~2", d},       {"^^2", e},  {"^^3", f},
            {"^^^", g}, {"~3", g},     {"^^^2", h},     {"~2^2", h},     {"^^3^", i}, {"^^3^2", j},
            {"^2^", f}, {"~1^3~1", i}, {"^2~1^2~0", j}, {"~0^0~0^2", c},
        };
        for (size_t n = 0; n < ARRAY_SIZE(rows); n++)
            expect_ref(lab, expr_of(lab, str_z(bases[k]), rows[n].steps), rows[n].want);
    }
    expect_ref(lab, expr_of(lab, a, "~2"), d);
    expect_ref(lab, expr_of(lab, str_head(a, 16), "~2"), d);
    expect_no_ref(lab, "A^3", ERR_NOT_FOUND);
    expect_no_ref(lab, "A~4", ERR_NOT_FOUND);
    expect_no_ref(lab, "A~100000", ERR_NOT_FOUND);
    expect_no_ref(lab, "A~100001", ERR_INVALID);
    expect_no_ref(lab, "A~0~1~100000", ERR_INVALID); /* together */
    expect_no_ref(lab, "A~99999999999999999999", ERR_INVALID);
    expect_no_ref(lab, "A~-1", ERR_INVALID);
    expect_no_ref(lab, "A^x", ERR_INVALID);
}

LAKE_LAB_TEST(lake_ref, marks_stand_alone_behind_a_branch)
{
    struct str first = lake_lab_head(lab, "main");
    struct lake_ref ref;
    struct err err = {0};

    CHECK_OK(resolve(lab, "main@", &ref, &err));
    CHECK(!ref.staged && !ref.explicit_staged);
    CHECK_STR(ref.commit_id, first);
    CHECK_OK(resolve(lab, "main$", &ref, &err));
    CHECK(ref.staged && ref.explicit_staged);
    make_tag(lab, "v1", first);
    static const char *const bad[] = {"main@@",  "main$$",  "main@$", "main$~1", "main~0$",
                                      "main~0@", "main@~1", "v1@",    "v1$",     "main$1"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        expect_no_ref(lab, bad[i], ERR_INVALID);
    expect_no_ref(lab, expr_of(lab, first, "$"), ERR_INVALID);
    CHECK_OK(resolve(lab, "main~0", &ref, &err));
    CHECK(!ref.staged);
}

LAKE_LAB_TEST(lake_ref, a_step_follows_the_first_parent_also_of_old_commits)
{
    struct str one = lake_lab_commit_at(lab, 1000, "one", NULL, 0);
    struct str two = lake_lab_commit_at(lab, 2000, "two", NULL, 0);
    struct str parents[] = {one, two};
    struct str old = lake_lab_commit(lab, &(struct lake_commit){.message = STR("old"),
                                                                .created_ms = 3000,
                                                                .parents = parents,
                                                                .parent_count = 2,
                                                                .version = 0});

    expect_ref(lab, expr_of(lab, old, "~1"), two);
    expect_ref(lab, expr_of(lab, old, "^1"), two);
    expect_ref(lab, expr_of(lab, old, "^2"), one);
}

/* --- commits --- */

LAKE_LAB_TEST(lake_commit, a_commit_comes_back_as_it_was_written)
{
    struct str head = lake_lab_head(lab, "main");
    struct str_pair pairs[] = {{STR("a"), STR("1")}, {STR("b"), STR("")}};
    struct lake_commit c = {.committer = STR("me"),
                            .message = STR("a message\nof two lines"),
                            .created_ms = 1700000000123,
                            .tree = STR("t"),
                            .metadata = {pairs, 2},
                            .parents = &head,
                            .parent_count = 1,
                            .version = 1};
    struct str id = lake_lab_commit(lab, &c);
    struct err err = {0};

    for (int i = 0; i < 2; i++) { /* from the store, then from the cache */
        struct lake_commit back;
        CHECK_OK(lake_commit_get(lab->lake, &lab->arena, &lab->repo, id, &back, &err));
        CHECK_STR(back.id, id);
        CHECK_STR(back.committer, c.committer);
        CHECK_STR(back.message, c.message);
        CHECK_STR(back.tree, c.tree);
        CHECK_INT(back.created_ms, c.created_ms);
        CHECK_INT(back.metadata.count, 2);
        CHECK_STR(back.metadata.pairs[0].value, STR("1"));
        CHECK_INT(back.parent_count, 1);
        CHECK_STR(back.parents[0], head);
        CHECK_INT(back.generation, 2);
        CHECK_INT(back.version, 1);
    }
    CHECK_STR(lake_lab_commit(lab, &c), id); /* the same commit has the same id */
    c.message = STR("another");
    CHECK(!str_eq(lake_lab_commit(lab, &c), id));
}

LAKE_LAB_TEST(lake_commit, a_commit_belongs_to_one_repository)
{
    struct lake_repo other = lake_lab_repo(lab, "other");
    struct str id = lake_lab_commit_at(lab, 1000, "mine", NULL, 0);
    struct lake_commit c;
    struct err err = {0};

    CHECK_OK(lake_commit_get(lab->lake, &lab->arena, &lab->repo, id, &c, &err));
    CHECK_ERR(lake_commit_get(lab->lake, &lab->arena, &other, id, &c, &err), ERR_NOT_FOUND);
    CHECK_STR(str_z(err.text), STR("commit not found"));
    CHECK_ERR(lake_commit_get(lab->lake, &lab->arena, &lab->repo, STR("main"), &c, &err),
              ERR_NOT_FOUND);
}

/* --- the cache of commits --- */

static struct str record_of(char *text, size_t size, int i)
{
    memset(text, 'a' + i % 26, size);
    return str_n(text, size);
}

TEST(lake_commit_cache, it_knows_the_tree_of_a_commit)
{
    struct commit_cache *c = commit_cache_new(1 << 16);
    struct lake_commit full = {.committer = STR("c"), .tree = STR("a-tree"), .version = 1},
                       none = {0};
    struct buf record = {0};
    struct arena a = {0};
    struct str tree;

    none.committer = STR("c");
    lake_commit_write(&record, &full);
    commit_cache_put(c, STR("p"), STR("full"), buf_str(&record));
    buf_reset(&record);
    lake_commit_write(&record, &none);
    commit_cache_put(c, STR("p"), STR("none"), buf_str(&record));
    commit_cache_put(c, STR("p"), STR("damaged"), STR("\xff"));
    CHECK(commit_cache_has(c, STR("p"), STR("full")));
    CHECK(!commit_cache_has(c, STR("q"), STR("full")));
    CHECK(commit_cache_tree(c, &a, STR("p"), STR("full"), &tree));
    CHECK_STR(tree, STR("a-tree"));
    CHECK(commit_cache_tree(c, &a, STR("p"), STR("none"), &tree));
    CHECK_STR(tree, STR_EMPTY);
    CHECK(commit_cache_has(c, STR("p"), STR("damaged")));
    CHECK(!commit_cache_tree(c, &a, STR("p"), STR("damaged"), &tree));
    CHECK(!commit_cache_tree(c, &a, STR("q"), STR("full"), &tree));
    commit_cache_free(c);
    buf_release(&record);
    arena_release(&a);
}

TEST(lake_commit_cache, what_was_not_used_for_longest_is_dropped_first)
{
    enum { RECORD = 1000, LIMIT = 20000 };
    struct commit_cache *c = commit_cache_new(LIMIT);
    struct arena a = {0};
    char text[LIMIT], id[16];
    struct str record;
    int kept = 0;

    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "%d", i);
        commit_cache_put(c, STR("p"), str_z(id), record_of(text, RECORD, i));
        CHECK(commit_cache_get(c, &a, STR("p"), STR("0"), &record)); /* used all the time */
        CHECK(commit_cache_bytes(c) <= LIMIT);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "%d", i);
        bool is_there = commit_cache_get(c, &a, STR("p"), str_z(id), &record);
        kept += is_there;
        if (is_there)
            CHECK_STR(record, record_of(text, RECORD, i));
        CHECK_INT(is_there, i == 0 || i > 82);
    }
    CHECK_INT(kept, 18);
    CHECK(!commit_cache_get(c, &a, STR("q"), STR("0"), &record));
    commit_cache_put(c, STR("p"), STR("0"), record_of(text, LIMIT, 0)); /* too large to be kept */
    CHECK(commit_cache_bytes(c) <= LIMIT);
    commit_cache_free(c);
    commit_cache_free(NULL);
    arena_release(&a);
}
