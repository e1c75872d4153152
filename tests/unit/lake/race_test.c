/* Races of the table in docs/lake.md, each in one order, by planned steps: "h" is the operation
 * that is held, "other" works meanwhile with a lake of its own over the same rows. */
#include "unit/lake/hand.h"
#include "unit/lake/kv_spy.h"
#include "unit/lake/steps.h"

#include "lake/change.h"

/* --- what the other one does --- */

static void other_commits(void *ctx)
{
    hand_commit(ctx, "main", "other");
}

static void other_adds_and_commits(void *ctx)
{
    hand_put(ctx, "main", "theirs", "t");
    hand_commit(ctx, "main", "other");
}

static void other_cleans(struct hand *other)
{
    hand_drop_again(other, 0);
    CHECK_INT(lake_clean(other->lake, &other->err), 0);
    CHECK_INT(lake_clean(other->lake, &other->err), 0);
}

static void other_commits_and_cleans(void *ctx)
{
    hand_commit(ctx, "main", "other");
    other_cleans(ctx);
}

static void other_resets(void *ctx)
{
    struct hand *o = ctx;

    CHECK_INT(lake_reset(o->lake, &o->arena, &o->repo, STR("main"), LAKE_RESET_ALL, STR_EMPTY,
                         false, &o->err),
              0);
}

static void other_deletes_branch(void *ctx)
{
    struct hand *o = ctx;

    CHECK_INT(lake_branch_delete(o->lake, &o->arena, &o->repo, STR("work"), false, &o->err), 0);
}

static void other_makes_branch_again(void *ctx)
{
    other_deletes_branch(ctx);
    hand_branch(ctx, "work", "main");
}

static void other_deletes_repo(void *ctx)
{
    struct hand *o = ctx;

    CHECK_INT(lake_repo_delete(o->lake, &o->arena, o->repo.id, false, false, &o->err), 0);
}

static void other_makes_repo_again(void *ctx)
{
    struct hand *o = ctx;
    struct lake_repo_options options = {.id = o->repo.id,
                                        .space = STR("s3://lake-data/again"),
                                        .owner = STR(LAKE_LAB_OWNER),
                                        .claimed = true};

    other_deletes_repo(o);
    CHECK_INT(lake_repo_create(o->lake, &o->arena, &options, &o->repo, &o->err), 0);
}

/* Publishes the oldest `count` sealed tokens, as a commit that was built earlier would: the branch
 * "twin" has a tree of the same rows. */
static void publish_twin(struct hand *o, size_t count)
{
    struct lake_branch b = hand_read_branch(o, "main");
    struct branch_change c = branch_change_of(&o->repo, &b, "lake.publish");
    struct lake_commit twin, commit;
    char id[LAKE_ID_LEN + 1];

    CHECK_INT(lake_commit_get(o->lake, &o->arena, &o->repo, hand_read_branch(o, "twin").commit_id,
                              &twin, &o->err),
              0);
    commit = twin;
    commit.message = STR("older");
    commit.parents = &b.commit_id;
    lake_commit_id(id, &commit);
    commit.id = arena_str(&o->arena, str_z(id));
    c.next.commit_id = commit.id;
    c.next.sealed_count = b.sealed_count - count;
    c.commit = &commit;
    CHECK_INT(branch_change_write(o->lake, &o->arena, &c, NULL, &o->err), 0);
}

static void other_publishes_oldest(void *ctx)
{
    publish_twin(ctx, 1);
}

/* Seals main, and builds its tree, which "twin" gets. */
static void other_seals_and_builds(void *ctx)
{
    struct hand *o = ctx;
    struct lake_branch b;
    struct lake_repo repo;

    hand_branch(o, "twin", "main");
    hand_put(o, "twin", "a", "1");
    hand_put(o, "twin", "b", "1");
    hand_commit(o, "twin", "twin");
    CHECK_INT(lake_seal(o->lake, &o->arena, &o->repo, STR("main"), &repo, &b, &o->err), 0);
}

static void other_publishes_oldest_and_cleans(void *ctx)
{
    other_publishes_oldest(ctx);
    other_cleans(ctx);
}

/* main has a sealed token with "old", and "twin" has the same committed. */
static void seal_older(struct hand *h)
{
    struct lake_branch b;
    struct lake_repo repo;

    hand_branch(h, "twin", "main");
    hand_put(h, "twin", "old", "o");
    hand_commit(h, "twin", "twin");
    hand_put(h, "main", "old", "o");
    CHECK_INT(lake_seal(h->lake, &h->arena, &h->repo, STR("main"), &repo, &b, &h->err), 0);
}

/* --- two commits --- */

LAKE_LAB_TEST(lake_race, r3_a_commit_that_sealed_later_takes_the_earlier_token_along)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_AFTER, "lake.seal", 1, other_adds_and_commits, &other);
    CHECK_INT(hand_try_commit(&h, "main", "mine"), ERR_NOT_MODIFIED);
    CHECK(steps_happened());
    hand_expect_list(&h, "main@", "mine theirs");
    CHECK_STR(hand_history(&h, "main"), STR("other|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

static void other_seals(void *ctx)
{
    struct hand *o = ctx;
    struct lake_branch b;
    struct lake_repo repo;

    hand_put(o, "main", "theirs", "t");
    CHECK_INT(lake_seal(o->lake, &o->arena, &o->repo, STR("main"), &repo, &b, &o->err), 0);
}

LAKE_LAB_TEST(lake_race, r1_a_commit_that_lost_to_a_seal_is_published_with_its_tree)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    size_t written = lab->written;

    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_seals, &other);
    hand_commit(&h, "main", "mine");
    CHECK(steps_happened());
    CHECK_INT(steps_count("lake.publish"), 2);
    CHECK(lab->written - written <= 2);
    hand_expect_list(&h, "main@", "mine");
    hand_expect_list(&h, "main", "mine theirs");
    hand_commit(&other, "main", "theirs");
    hand_expect_list(&h, "main@", "mine theirs");
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, r2_a_commit_goes_on_top_of_an_older_one_with_its_tree)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    size_t written;

    seal_older(&h);
    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_publishes_oldest, &other);
    written = lab->written;
    hand_commit(&h, "main", "mine");
    CHECK(steps_happened());
    CHECK_INT(steps_count("lake.publish"), 2);
    CHECK(lab->written - written <= 2); /* a leaf and a root: the tree was built once */
    hand_expect_list(&h, "main@", "mine old");
    CHECK_STR(hand_history(&h, "main"), STR("mine|older|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

/* The older token is dropped before this commit reads it: its tree would miss those rows. */
LAKE_LAB_TEST(lake_race, r2_does_not_hold_when_tokens_were_dropped_while_they_were_read)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    seal_older(&h);
    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_AFTER, "lake.seal", 1, other_publishes_oldest_and_cleans, &other);
    hand_commit(&h, "main", "mine");
    CHECK(steps_happened());
    hand_expect_list(&h, "main@", "mine old");
    hand_expect(&h, "main@", "old", "o");
    CHECK_STR(hand_history(&h, "main"), STR("mine|older|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, r3_a_commit_whose_rows_another_one_has_says_so)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct buf want = {0};

    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_commits, &other);
    CHECK_INT(hand_try_commit(&h, "main", "mine"), ERR_NOT_MODIFIED);
    CHECK(steps_happened());
    buf_appendf(&want, "no changes: commit " STR_FMT " has them",
                STR_ARG(hand_read_branch(&h, "main").commit_id));
    CHECK_STR(str_z(h.err.text), buf_str(&want));
    CHECK_STR(hand_history(&h, "main"), STR("other|Repository created"));
    hand_expect_list(&h, "main@", "mine");
    buf_release(&want);
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, r3_an_empty_commit_goes_on_top)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct lake_commit_options o = {.message = STR("empty"), .allow_empty = true};
    struct lake_commit c;

    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_adds_and_commits, &other);
    CHECK_INT(lake_commit(h.lake, &h.arena, &h.repo, STR("main"), &o, &c, &h.err), 0);
    CHECK(steps_happened());
    hand_expect_list(&h, "main@", "mine theirs");
    CHECK_STR(hand_history(&h, "main"), STR("empty|other|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

static void other_commits_twice(void *ctx)
{
    hand_commit(ctx, "main", "other");
    hand_put(ctx, "main", "rest", "newer");
    hand_commit(ctx, "main", "newer");
}

/* The rows of the paths that were not chosen have been committed meanwhile, and changed again. */
LAKE_LAB_TEST(lake_race, r3_a_commit_of_chosen_paths_stages_no_old_rows_again)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct str path = STR("mine");
    struct lake_commit_options o = {
        .message = STR("empty"), .allow_empty = true, .paths = &path, .path_count = 1};
    struct lake_commit c;

    hand_put(&h, "main", "mine", "m");
    hand_put(&h, "main", "rest", "old");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_commits_twice, &other);
    CHECK_INT(lake_commit(h.lake, &h.arena, &h.repo, STR("main"), &o, &c, &h.err), 0);
    CHECK(steps_happened());
    CHECK_STR(hand_history(&h, "main"), STR("empty|newer|other|Repository created"));
    hand_expect(&h, "main", "rest", "newer");
    hand_expect_diff(&h, "main", "");
    hand_release(&other);
    hand_release(&h);
}

/* --- writes beside commits --- */

LAKE_LAB_TEST(lake_race, a_write_that_meets_a_commit_is_not_missed)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "first", "f");
    steps_plan(STEPS_BEFORE, "lake.stage", 1, other_commits, &other);
    hand_put(&h, "main", "mine", "m");
    CHECK(steps_happened());
    CHECK_INT(steps_count("lake.stage"), 2);
    hand_expect_list(&h, "main@", "first");
    hand_expect_list(&h, "main", "first mine");
    hand_commit(&h, "main", "second");
    hand_expect_list(&h, "main@", "first mine");
    hand_release(&other);
    hand_release(&h);
}

/* A commit has sealed the token and read its rows when the removal is written. Without the check of
 * the branch the removal would take the row out of the sealed token, and find nothing afterwards.
 */
LAKE_LAB_TEST(lake_race, a_removal_that_meets_a_commit_is_not_undone)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "a", "1");
    hand_put(&h, "main", "b", "1");
    steps_plan(STEPS_BEFORE, "lake.stage", 1, other_seals_and_builds, &other);
    hand_remove(&h, "main", "a");
    CHECK(steps_happened());
    hand_expect_list(&h, "main", "b");
    publish_twin(&other, 1);
    hand_expect_list(&h, "main@", "a b");
    hand_expect_list(&h, "main", "b");
    hand_commit(&h, "main", "removed");
    hand_expect_list(&h, "main@", "b");
    hand_release(&other);
    hand_release(&h);
}

/* The row that is removed was only staged when the removal read it, and is in the tree when the
 * removal reads again. */
LAKE_LAB_TEST(lake_race, a_removal_of_a_path_that_is_just_committed_is_made)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "a", "1");
    hand_put(&h, "main", "b", "1");
    steps_plan(STEPS_BEFORE, "lake.stage", 1, other_commits, &other);
    hand_remove(&h, "main", "a");
    CHECK(steps_happened());
    hand_expect_list(&h, "main@", "a b");
    hand_expect_list(&h, "main", "b");
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, a_write_into_a_dropped_token_leaves_nothing_there)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct str token = hand_read_branch(&h, "main").staging;

    hand_drop_again(&h, MS_PER_HOUR);
    hand_drop_again(&other, MS_PER_HOUR);
    hand_put(&h, "main", "first", "f");
    steps_plan(STEPS_BEFORE, "lake.stage", 1, other_commits, &other);
    hand_put(&h, "main", "mine", "m");
    CHECK(steps_happened());
    hand_drop_again(&h, 0); /* the write has ended, so the second drop may come */
    lake_cleaner_wake(h.lake);
    CHECK_SOON(hand_count_rows(&h, LAKE_CLEANUP) == 0);
    CHECK_INT(hand_count_rows(&h, token), 0);
    hand_expect_list(&h, "main", "first mine");
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, if_absent_beside_a_commit_is_judged_anew)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "first", "f");
    steps_plan(STEPS_BEFORE, "lake.stage", 1, other_commits, &other);
    CHECK_INT(hand_try_add(&h, "main", "mine", "m"), 0);
    CHECK(steps_happened());
    hand_expect(&h, "main", "mine", "m");
    hand_put(&h, "main", "theirs", "t");
    hand_remove(&h, "main", "theirs");
    steps_plan(STEPS_BEFORE, "lake.stage", 1, other_adds_and_commits, &other);
    CHECK_INT(hand_try_add(&h, "main", "theirs", "m"), ERR_PRECONDITION);
    CHECK(steps_happened());
    hand_expect(&h, "main", "theirs", "t");
    hand_release(&other);
    hand_release(&h);
}

/* The answer to the write was lost, and the driver made the write again. */
LAKE_LAB_TEST(lake_race, if_absent_meets_its_own_write)
{
    struct hand h = hand_of(lab);

    kv_spy_begin(h.lake);
    kv_spy_answer(1, ERR_PRECONDITION);
    CHECK_INT(hand_try_add(&h, "main", "mine", "m"), 0);
    CHECK(kv_spy_happened());
    hand_expect(&h, "main", "mine", "m");
    kv_spy_end(h.lake);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, a_publish_whose_answer_was_lost_is_found_out)
{
    struct hand h = hand_of(lab);

    kv_spy_begin(h.lake);
    hand_put(&h, "main", "mine", "m");
    kv_spy_answer(2, ERR_TIMEOUT); /* behind the seal */
    hand_commit(&h, "main", "first");
    CHECK(kv_spy_happened());
    kv_spy_end(h.lake);
    CHECK_STR(hand_history(&h, "main"), STR("first|Repository created"));
    hand_release(&h);
}

/* --- readers beside commits --- */

/* Holds a reader before its n-th call of a kind, while the other one commits and drops the tokens.
 */
static void hold_reader(struct hand *other, enum kv_spy_call call, unsigned n)
{
    kv_spy_plan(call, n, other_commits_and_cleans, other);
}

LAKE_LAB_TEST(lake_race, a_reader_that_meets_a_commit_and_its_drop_finds_the_object)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    kv_spy_begin(h.lake);
    for (unsigned n = 1; n <= 6; n++) { /* hand_expect() reads twice */
        char path[] = {'a', (char)('0' + n), '\0'};
        hand_put(&h, "main", path, "x");
        hold_reader(&other, KV_SPY_GET, n);
        hand_expect(&h, "main", path, "x");
        if (!kv_spy_happened())
            hand_commit(&h, "main", "late");
    }
    kv_spy_end(h.lake);
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, a_listing_that_meets_a_commit_and_its_drop_is_whole)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    kv_spy_begin(h.lake);
    hand_put(&h, "main", "a", "1");
    hand_put(&h, "main", "b", "1");
    hold_reader(&other, KV_SPY_SCAN, 1); /* the branch was read, its rows were not */
    hand_expect_list(&h, "main", "a b");
    CHECK(kv_spy_happened());
    hand_put(&h, "main", "c", "1");
    hold_reader(&other, KV_SPY_GET, 3);
    hand_expect_list(&h, "main", "a b c");
    if (!kv_spy_happened())
        hand_commit(&h, "main", "late");
    hand_put(&h, "main", "d", "1");
    hold_reader(&other, KV_SPY_SCAN, 1);
    hand_expect_diff(&h, "main", lake_kv(h.lake)->can & KV_MOMENTS ? "+d" : "");
    CHECK(kv_spy_happened());
    kv_spy_end(h.lake);
    hand_release(&other);
    hand_release(&h);
}

/* K2: the rows that a removal is judged by were dropped meanwhile. Nothing was written yet, so no
 * check of a write would notice. */
LAKE_LAB_TEST(lake_race, a_removal_that_meets_a_commit_and_its_drop_removes)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    kv_spy_begin(h.lake);
    hand_put(&h, "main", "a", "1");
    hand_put(&h, "main", "b", "1");
    hold_reader(&other, KV_SPY_GET, 2); /* the branch was read, the path was not */
    hand_remove(&h, "main", "a");
    CHECK(kv_spy_happened());
    hand_expect_list(&h, "main@", "a b");
    hand_expect_list(&h, "main", "b");
    kv_spy_end(h.lake);
    hand_release(&other);
    hand_release(&h);
}

/* --- commits beside other changes of the branch --- */

LAKE_LAB_TEST(lake_race, a_commit_does_not_bring_back_what_a_reset_threw_away)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_resets, &other);
    CHECK_INT(hand_try_commit(&h, "main", "mine"), ERR_NOT_MODIFIED);
    CHECK(steps_happened());
    hand_expect_list(&h, "main", "");
    CHECK_STR(hand_history(&h, "main"), STR("Repository created"));
    hand_release(&other);
    hand_release(&h);
}

static void other_resets_prefix(void *ctx)
{
    struct hand *o = ctx;

    CHECK_INT(lake_reset(o->lake, &o->arena, &o->repo, STR("main"), LAKE_RESET_PREFIX,
                         STR("undone/"), false, &o->err),
              0);
}

LAKE_LAB_TEST(lake_race, a_commit_that_meets_the_reset_of_a_prefix_builds_again)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "kept", "m");
    hand_put(&h, "main", "undone/a", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_resets_prefix, &other);
    hand_commit(&h, "main", "mine");
    CHECK(steps_happened());
    hand_expect_list(&h, "main@", "kept");
    hand_expect_list(&h, "main", "kept");
    hand_release(&other);
    hand_release(&h);
}

static void other_compacts(void *ctx)
{
    struct hand *o = ctx;
    struct lake_branch b;
    struct lake_repo repo;

    for (unsigned i = 0; i < 5; i++) {
        char path[] = {'z', (char)('0' + i), '\0'};
        hand_put(o, "main", path, "z");
        CHECK_INT(lake_seal(o->lake, &o->arena, &o->repo, STR("main"), &repo, &b, &o->err), 0);
    }
    int code; /* the cleaner's thread may be at it too */
    while ((code = lake_compact(o->lake, &o->arena, &o->repo, STR("main"), &o->err)) == ERR_AGAIN) {
    }
    CHECK_INT(code, 0);
    /* the cleaner may have compacted the first four of them before the fifth was sealed */
    CHECK(hand_read_branch(o, "main").sealed_count <= 2);
    other_cleans(o);
}

LAKE_LAB_TEST(lake_race, a_commit_that_meets_a_compaction_builds_again)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_compacts, &other);
    hand_commit(&h, "main", "mine");
    CHECK(steps_happened());
    hand_expect_list(&h, "main@", "mine z0 z1 z2 z3 z4");
    hand_release(&other);
    hand_release(&h);
}

static void other_is_refused(void *ctx)
{
    struct hand *o = ctx;

    CHECK_INT(
        lake_hard_reset(o->lake, &o->arena, &o->repo, STR("main"), STR("main~1"), false, &o->err),
        ERR_INVALID);
    CHECK_INT(hand_try_merge(o, "side", "main"), ERR_INVALID);
}

LAKE_LAB_TEST(lake_race, a_merge_and_a_hard_reset_beside_a_commit_find_a_dirty_branch)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_branch(&h, "side", "main");
    hand_put(&h, "side", "s", "s");
    hand_commit(&h, "side", "side");
    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_is_refused, &other);
    hand_commit(&h, "main", "mine");
    CHECK(steps_happened());
    CHECK_STR(hand_history(&h, "main"), STR("mine|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, a_hard_reset_resolves_its_target_from_the_head_that_it_replaces)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "a", "1");
    hand_commit(&h, "main", "one");
    hand_put(&h, "main", "b", "1");
    hand_commit(&h, "main", "two");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_adds_and_commits, &other);
    CHECK_INT(lake_hard_reset(h.lake, &h.arena, &h.repo, STR("main"), STR("main~1"), false, &h.err),
              0);
    CHECK(steps_happened());
    CHECK_STR(hand_history(&h, "main"), STR("two|one|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, a_merge_that_lost_to_a_commit_merges_into_the_new_head)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_branch(&h, "side", "main");
    hand_put(&h, "side", "s", "s");
    hand_commit(&h, "side", "side");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_adds_and_commits, &other);
    hand_merge(&h, "side", "main");
    CHECK(steps_happened());
    hand_expect_list(&h, "main", "s theirs");
    CHECK_STR(hand_history(&h, "main"), STR("Merge 'side' into 'main'|other|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

static void other_stages(void *ctx)
{
    hand_put(ctx, "main", "theirs", "t");
}

LAKE_LAB_TEST(lake_race, a_write_beside_a_merge_stays_staged)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_branch(&h, "side", "main");
    hand_put(&h, "side", "s", "s");
    hand_commit(&h, "side", "side");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_stages, &other);
    hand_merge(&h, "side", "main");
    CHECK(steps_happened());
    hand_expect_list(&h, "main@", "s");
    hand_expect_list(&h, "main", "s theirs");
    hand_release(&other);
    hand_release(&h);
}

/* --- names that go away --- */

LAKE_LAB_TEST(lake_race, a_commit_to_a_deleted_branch_writes_nothing)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    size_t rows;

    hand_branch(&h, "work", "main");
    rows = hand_count_rows(&h, h.repo.partition);
    hand_put(&h, "work", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_deletes_branch, &other);
    CHECK_INT(hand_try_commit(&h, "work", "mine"), ERR_NOT_FOUND);
    CHECK(steps_happened());
    CHECK_STR(str_z(h.err.text), STR("branch not found"));
    CHECK_INT(hand_count_rows(&h, h.repo.partition), rows - 1);
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, a_commit_to_a_branch_that_was_made_again_has_no_changes)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_branch(&h, "work", "main");
    hand_put(&h, "work", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_makes_branch_again, &other);
    CHECK_INT(hand_try_commit(&h, "work", "mine"), ERR_NOT_MODIFIED);
    CHECK(steps_happened());
    CHECK_STR(str_z(h.err.text), STR("no changes"));
    hand_expect_list(&h, "work", "");
    hand_put(&h, "work", "a", "1");
    steps_plan(STEPS_BEFORE, "lake.stage", 1, other_makes_branch_again, &other);
    hand_put(&h, "work", "b", "1");
    CHECK(steps_happened());
    hand_expect_list(&h, "work", "b");
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, writes_to_a_deleted_repository_are_not_found)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_deletes_repo, &other);
    CHECK_INT(hand_try_commit(&h, "main", "mine"), ERR_NOT_FOUND);
    CHECK(steps_happened());
    CHECK_STR(str_z(h.err.text), STR("repository not found"));
    CHECK_INT(hand_try_put(&h, "main", "x", "x"), ERR_NOT_FOUND);
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_race, a_repository_that_was_made_again_shares_nothing)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "mine", "m");
    steps_plan(STEPS_BEFORE, "lake.stage", 1, other_makes_repo_again, &other);
    CHECK_INT(hand_try_put(&h, "main", "late", "l"), ERR_NOT_FOUND);
    CHECK(steps_happened());
    CHECK_INT(hand_try_commit(&h, "main", "mine"), ERR_NOT_FOUND);
    hand_expect_list(&other, "main", "");
    hand_put(&other, "main", "new", "n");
    hand_expect_list(&other, "main", "new");
    hand_release(&other);
    hand_release(&h);
}

/* --- every race is lost --- */

/* Raises the epoch before each publish. */
static void raise_epoch(void *ctx)
{
    struct hand *o = ctx;
    struct lake_branch b = hand_read_branch(o, "main");
    struct branch_change c = branch_change_of(&o->repo, &b, "lake.compact");

    c.next.epoch++;
    CHECK_INT(branch_change_write(o->lake, &o->arena, &c, NULL, &o->err), 0);
    steps_plan(STEPS_BEFORE, "lake.publish", 1, raise_epoch, o);
}

LAKE_LAB_TEST(lake_race, a_commit_and_a_merge_that_lose_every_race_are_busy)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_branch(&h, "side", "main");
    hand_put(&h, "side", "s", "s");
    hand_commit(&h, "side", "side");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, raise_epoch, &other);
    CHECK_INT(hand_try_merge(&h, "side", "main"), ERR_BUSY);
    hand_put(&h, "main", "a", "a1");
    CHECK_INT(hand_try_commit(&h, "main", "x"), ERR_BUSY);
    steps_happened();
    CHECK_STR(hand_history(&h, "main"), STR("Repository created"));
    hand_expect(&h, "main", "a", "a1");
    hand_commit(&h, "main", "x");
    hand_release(&other);
    hand_release(&h);
}
