/* Changes of heads and of staged changes: reset, hard reset, merge, revert, cherry-pick, and the
 * differences that show them. */
#include "unit/lake/hand.h"
#include "unit/lake/steps.h"

#include "lake/change.h"

#include <stdio.h>

static int reset(struct hand *h, enum lake_reset_kind kind, const char *path)
{
    return lake_reset(h->lake, &h->arena, &h->repo, STR("main"), kind, str_z(path), false, &h->err);
}

/* main has a, dir/x, dir/y in its head; a sealed token changes a and dir/x; the staging token
 * removes dir/y and adds dir/z and e. */
static void fill_changes(struct hand *h)
{
    struct lake_branch b;
    struct lake_repo repo;

    hand_put(h, "main", "a", "a1");
    hand_put(h, "main", "dir/x", "x1");
    hand_put(h, "main", "dir/y", "y1");
    hand_commit(h, "main", "first");
    hand_put(h, "main", "a", "a2");
    hand_put(h, "main", "dir/x", "x2");
    CHECK_INT(lake_seal(h->lake, &h->arena, &h->repo, STR("main"), &repo, &b, &h->err), 0);
    hand_remove(h, "main", "dir/y");
    hand_put(h, "main", "dir/z", "z3");
    hand_put(h, "main", "e", "e3");
    hand_expect_diff(h, "main", "~a ~dir/x -dir/y +dir/z +e");
}

/* --- reset --- */

LAKE_LAB_TEST(lake_reset, everything_goes_in_one_write)
{
    struct hand h = hand_of(lab);
    struct lake_branch b;

    fill_changes(&h);
    b = hand_read_branch(&h, "main");
    CHECK_INT(reset(&h, LAKE_RESET_ALL, ""), 0);
    hand_expect_diff(&h, "main", "");
    hand_expect_list(&h, "main", "a dir/x dir/y");
    hand_expect(&h, "main", "a", "a1");
    CHECK_INT(hand_read_branch(&h, "main").epoch, b.epoch + 1);
    CHECK_SOON(hand_count_rows(&h, LAKE_CLEANUP) == 0);
    CHECK_INT(hand_count_rows(&h, b.staging), 0);
    CHECK_INT(hand_try_commit(&h, "main", "x"), ERR_NOT_MODIFIED);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_reset, a_prefix_is_undone_and_the_rest_stays)
{
    struct hand h = hand_of(lab);

    fill_changes(&h);
    CHECK_INT(reset(&h, LAKE_RESET_PREFIX, "dir/"), 0);
    hand_expect_diff(&h, "main", "~a +e");
    hand_expect(&h, "main", "dir/x", "x1");
    hand_expect(&h, "main", "dir/y", "y1");
    hand_expect_list(&h, "main", "a dir/x dir/y e");
    hand_commit(&h, "main", "second");
    hand_expect_list(&h, "main@", "a dir/x dir/y e");
    hand_expect(&h, "main@", "dir/x", "x1");
    CHECK_SOON(hand_count_rows(&h, LAKE_CLEANUP) == 0);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_reset, one_path_is_undone_and_not_those_below_it)
{
    struct hand h = hand_of(lab);

    fill_changes(&h);
    hand_put(&h, "main", "a/b", "b4");
    CHECK_INT(reset(&h, LAKE_RESET_PATH, "a"), 0);
    CHECK_INT(reset(&h, LAKE_RESET_PATH, "dir/z"), 0);
    CHECK_INT(reset(&h, LAKE_RESET_PATH, "dir"), 0);
    CHECK_INT(reset(&h, LAKE_RESET_PATH, "nowhere"), 0);
    CHECK_INT(reset(&h, LAKE_RESET_PATH, ""), ERR_INVALID);
    hand_expect_diff(&h, "main", "+a/b ~dir/x -dir/y +e");
    hand_expect(&h, "main", "a", "a1");
    hand_release(&h);
}

struct later {
    struct hand *hand;
    const char *path;
};

static void put_later(void *ctx)
{
    struct later *l = ctx;

    hand_put(l->hand, "main", l->path, "late");
}

LAKE_LAB_TEST(lake_reset, writes_behind_the_seal_of_a_reset_stay)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct later l = {&other, "dir/x"};

    fill_changes(&h);
    steps_plan(STEPS_AFTER, "lake.seal", 1, put_later, &l);
    CHECK_INT(reset(&h, LAKE_RESET_PREFIX, "dir/"), 0);
    CHECK(steps_happened());
    hand_expect(&h, "main", "dir/x", "late");
    hand_expect_diff(&h, "main", "~a ~dir/x +e");
    hand_release(&other);
    hand_release(&h);
}

/* Each reset of a path leaves two sealed tokens; compaction keeps their number small. */
LAKE_LAB_TEST(lake_reset, many_resets_do_not_pile_up_sealed_tokens)
{
    struct hand h = hand_of(lab);

    for (unsigned i = 0; i < 40; i++) {
        hand_put(&h, "main", "a", "x");
        hand_put(&h, "main", "b", "x");
        CHECK_INT(reset(&h, LAKE_RESET_PATH, "a"), 0);
        CHECK(hand_read_branch(&h, "main").sealed_count <= LAKE_SEALED_FULL);
    }
    CHECK_SOON(hand_read_branch(&h, "main").sealed_count <= LAKE_SEALED_KEPT);
    hand_expect_diff(&h, "main", "+b");
    hand_release(&h);
}

/* The cleaner does not compact a branch while a commit of it is under way. */
LAKE_LAB_TEST(lake_reset, resets_beside_a_long_commit_compact_the_branch)
{
    enum { PATHS = LAKE_SEALED_MAX + 10 };
    struct hand h = hand_of(lab);
    char path[16];

    for (int i = 0; i <= PATHS; i++) {
        snprintf(path, sizeof(path), "p%04d", i);
        hand_put(&h, "main", path, "x");
    }
    struct commit_turn *turn =
        commit_turn_take(h.lake->queue, h.repo.partition, STR("main"), LAKE_DEADLINE_MS);
    for (int i = 0; i < PATHS; i++) {
        snprintf(path, sizeof(path), "p%04d", i);
        CHECK_INT(reset(&h, LAKE_RESET_PATH, path), 0);
        CHECK(hand_read_branch(&h, "main").sealed_count <= LAKE_SEALED_FULL);
    }
    commit_turn_end(h.lake->queue, turn);
    snprintf(path, sizeof(path), "+p%04d", PATHS);
    hand_expect_diff(&h, "main", path);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_reset, a_record_with_too_many_sealed_tokens_is_not_written)
{
    struct hand h = hand_of(lab);
    struct lake_branch b = hand_read_branch(&h, "main");
    struct branch_change c = branch_change_of(&h.repo, &b, "lake.seal");
    struct str tokens[LAKE_SEALED_MAX + 1];

    for (size_t i = 0; i < ARRAY_SIZE(tokens); i++)
        tokens[i] = lake_new_token(&h.arena, &h.repo, STR("main"));
    c.next.sealed = tokens;
    c.next.sealed_count = ARRAY_SIZE(tokens);
    CHECK_INT(branch_change_write(h.lake, &h.arena, &c, NULL, &h.err), ERR_BUSY);
    hand_expect_list(&h, "main", "");
    c = branch_change_of(&h.repo, &b, "lake.seal");
    c.next.sealed = tokens;
    c.next.sealed_count = LAKE_SEALED_MAX;
    CHECK_INT(branch_change_write(h.lake, &h.arena, &c, NULL, &h.err), 0);
    hand_expect_list(&h, "main", "");
    hand_release(&h);
}

/* --- hard reset --- */

static int hard_reset(struct hand *h, const char *ref)
{
    h->err = (struct err){0};
    return lake_hard_reset(h->lake, &h->arena, &h->repo, STR("main"), str_z(ref), false, &h->err);
}

LAKE_LAB_TEST(lake_reset, a_hard_reset_moves_a_clean_branch)
{
    struct hand h = hand_of(lab);

    fill_changes(&h);
    CHECK_INT(hard_reset(&h, "main~1"), ERR_INVALID);
    CHECK_STR(str_z(h.err.text), STR("uncommitted changes (dirty branch)"));
    hand_commit(&h, "main", "second");
    hand_put(&h, "main", "a", "a2"); /* staged, but no change */
    CHECK_INT(hard_reset(&h, "main$"), ERR_INVALID);
    CHECK_INT(hard_reset(&h, "unknown"), ERR_NOT_FOUND);
    CHECK_INT(hard_reset(&h, "main~1"), 0);
    hand_expect_list(&h, "main", "a dir/x dir/y");
    hand_expect(&h, "main", "a", "a1");
    CHECK_STR(hand_history(&h, "main"), STR("first|Repository created"));
    CHECK_INT(hand_read_branch(&h, "main").sealed_count, 0);
    hand_release(&h);
}

/* --- merge --- */

/* main and side have both changed since they parted: m changes a, side changes b. */
static void part(struct hand *h)
{
    hand_put(h, "main", "a", "a1");
    hand_put(h, "main", "b", "b1");
    hand_put(h, "main", "c", "c1");
    hand_commit(h, "main", "base");
    hand_branch(h, "side", "main");
    hand_put(h, "main", "a", "a2");
    hand_commit(h, "main", "ours");
    hand_put(h, "side", "b", "b2");
    hand_put(h, "side", "d", "d2");
    hand_remove(h, "side", "c");
    hand_commit(h, "side", "theirs");
}

LAKE_LAB_TEST(lake_merge, changes_of_both_sides_are_joined)
{
    struct hand h = hand_of(lab);
    struct lake_commit c;
    struct str id, ours, theirs;

    part(&h);
    ours = hand_read_branch(&h, "main").commit_id;
    theirs = hand_read_branch(&h, "side").commit_id;
    id = hand_merge(&h, "side", "main");
    hand_expect_list(&h, "main", "a b d");
    hand_expect(&h, "main", "a", "a2");
    hand_expect(&h, "main", "b", "b2");
    CHECK_INT(lake_commit_get(h.lake, &h.arena, &h.repo, id, &c, &h.err), 0);
    CHECK_STR(c.message, STR("Merge 'side' into 'main'"));
    CHECK_INT(c.parent_count, 2);
    CHECK_STR(c.parents[0], ours);
    CHECK_STR(c.parents[1], theirs);
    CHECK_INT(c.generation, 4);
    CHECK_INT(c.metadata.count, 1);
    CHECK_STR(c.metadata.pairs[0].key, STR(".lakefs.merge.strategy"));
    CHECK_STR(c.metadata.pairs[0].value, STR("default"));
    CHECK_INT(hand_try_merge(&h, "side", "main"), ERR_NOT_MODIFIED);
    CHECK_STR(str_z(h.err.text), STR("no changes"));
    hand_merge(&h, "main", "side"); /* a fast way: side has nothing of its own */
    hand_expect_list(&h, "side", "a b d");
    hand_release(&h);
}

static int merge_with(struct hand *h, struct lake_merge_options o, struct lake_commit *out,
                      struct lake_conflicts *conflicts)
{
    o.committer = STR("tester");
    h->err = (struct err){0};
    return lake_merge(h->lake, &h->arena, &h->repo, STR("side"), STR("main"), &o, out, conflicts,
                      &h->err);
}

LAKE_LAB_TEST(lake_merge, squash_and_empty_merges_are_made_when_asked_for)
{
    struct hand h = hand_of(lab);
    struct lake_conflicts conflicts;
    struct lake_commit c;

    part(&h);
    CHECK_INT(merge_with(&h, (struct lake_merge_options){.squash = true, .message = STR("sq")}, &c,
                         &conflicts),
              0);
    CHECK_INT(c.parent_count, 1);
    CHECK_STR(c.message, STR("sq"));
    hand_expect_list(&h, "main", "a b d");
    hand_branch(&h, "other", "main");
    struct lake_merge_options empty = {.allow_empty = true}, none = {0};
    CHECK_INT(lake_merge(h.lake, &h.arena, &h.repo, STR("other"), STR("main"), &none, &c,
                         &conflicts, &h.err),
              ERR_NOT_MODIFIED);
    CHECK_INT(lake_merge(h.lake, &h.arena, &h.repo, STR("other"), STR("main"), &empty, &c,
                         &conflicts, &h.err),
              0);
    hand_release(&h);
}

static enum tree_strategy choose_path(void *ctx, struct str path)
{
    return str_eq(path, STR("a"))   ? TREE_SOURCE_WINS
           : str_eq(path, STR("b")) ? TREE_DEST_WINS
                                    : TREE_NO_STRATEGY;
}

static void conflict(struct hand *h)
{
    hand_put(h, "main", "a", "a1");
    hand_put(h, "main", "b", "b1");
    hand_put(h, "main", "c", "c1");
    hand_commit(h, "main", "base");
    hand_branch(h, "side", "main");
    hand_put(h, "main", "a", "a-main");
    hand_put(h, "main", "b", "b-main");
    hand_remove(h, "main", "c");
    hand_commit(h, "main", "ours");
    hand_put(h, "side", "a", "a-side");
    hand_put(h, "side", "b", "b-side");
    hand_put(h, "side", "c", "c-side");
    hand_commit(h, "side", "theirs");
}

LAKE_LAB_TEST(lake_merge, a_conflict_changes_nothing_and_names_its_paths)
{
    struct hand h = hand_of(lab);
    struct lake_conflicts conflicts = {0};
    struct lake_commit c;
    struct str before;

    conflict(&h);
    before = hand_read_branch(&h, "main").commit_id;
    CHECK_INT(merge_with(&h, (struct lake_merge_options){0}, &c, &conflicts), ERR_CONFLICT);
    CHECK_STR(str_z(h.err.text), STR("conflict found"));
    CHECK_INT(conflicts.count, 3);
    CHECK_STR(conflicts.paths[0], STR("a"));
    CHECK_STR(conflicts.paths[2], STR("c"));
    CHECK_STR(hand_read_branch(&h, "main").commit_id, before);
    CHECK_INT(merge_with(&h, (struct lake_merge_options){.choose = choose_path}, &c, &conflicts),
              ERR_CONFLICT);
    CHECK_INT(conflicts.count, 1);
    CHECK_STR(conflicts.paths[0], STR("c"));
    CHECK_INT(
        merge_with(&h,
                   (struct lake_merge_options){.choose = choose_path, .strategy = TREE_DEST_WINS},
                   &c, &conflicts),
        0);
    CHECK_STR(c.metadata.pairs[0].value, STR("dest-wins"));
    hand_expect(&h, "main", "a", "a-side");
    hand_expect(&h, "main", "b", "b-main");
    hand_expect(&h, "main", "c", NULL);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_merge, a_strategy_decides_every_conflict)
{
    struct hand h = hand_of(lab);
    struct lake_conflicts conflicts;
    struct lake_commit c;

    conflict(&h);
    CHECK_INT(
        merge_with(&h, (struct lake_merge_options){.strategy = TREE_SOURCE_WINS}, &c, &conflicts),
        0);
    CHECK_STR(c.metadata.pairs[0].value, STR("source-wins"));
    hand_expect(&h, "main", "a", "a-side");
    hand_expect(&h, "main", "b", "b-side");
    hand_expect(&h, "main", "c", "c-side");
    hand_release(&h);
}

/* The table of merges: what a path has in base, source and dest, and in the result; NULL is no
 * object, "" is an empty one. Of a conflict the result is that of "source wins". Each path has an
 * empty object before it, which never changes; the last row's path is the last of all. */
static const struct merge_row {
    const char *base, *source, *dest, *result;
    bool is_conflict;
} merge_rows[] = {
    {"", "", "", ""},         {"", "b", "b", "b"},        {"", "b", "c", "b", true},
    {"", "", "b", "b"},       {"", "b", "", "b"},         {"", NULL, NULL, NULL},
    {"", "b", NULL, "b", 1},  {"", NULL, "b", NULL, 1},   {"", "", NULL, NULL},
    {"", NULL, "", NULL},     {NULL, "b", "b", "b"},      {NULL, "b", "c", "b", true},
    {NULL, NULL, "b", "b"},   {NULL, "b", NULL, "b"},     {"a", "", "", ""},
    {"a", "", "c", "", true}, {"a", "", "a", ""},         {"a", "a", "", ""},
    {"a", "", NULL, "", 1},   {"a", NULL, "", NULL, 1},   {NULL, "", "", ""},
    {NULL, "", "c", "", 1},   {NULL, "c", "", "c", true}, {NULL, NULL, "", ""},
    {NULL, "", NULL, ""},
};

static const char *merge_path(struct hand *h, size_t row)
{
    return arena_fmt(&h->arena, "%02zu-row", row).p;
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Makes the path have `to` where it has `from`. */
static void merge_put(struct hand *h, const char *branch, size_t row, const char *from,
                      const char *to)
{
    if (to && !is_same(from, to))
        hand_put(h, branch, merge_path(h, row), to);
    else if (from && !to)
        hand_remove(h, branch, merge_path(h, row));
}

static void merge_rows_part(struct hand *h)
{
    for (size_t i = 0; i < ARRAY_SIZE(merge_rows); i++) {
        hand_put(h, "main", arena_fmt(&h->arena, "%02zu-before", i).p, "");
        merge_put(h, "main", i, NULL, merge_rows[i].base);
    }
    hand_commit(h, "main", "base");
    hand_branch(h, "side", "main");
    for (size_t i = 0; i < ARRAY_SIZE(merge_rows); i++) {
        merge_put(h, "side", i, merge_rows[i].base, merge_rows[i].source);
        merge_put(h, "main", i, merge_rows[i].base, merge_rows[i].dest);
    }
    hand_commit(h, "side", "source");
    hand_commit(h, "main", "dest");
}

static void expect_merge_rows(struct hand *h, const char *ref, enum tree_strategy strategy)
{
    for (size_t i = 0; i < ARRAY_SIZE(merge_rows); i++) {
        const struct merge_row *r = &merge_rows[i];
        bool is_dest =
            strategy == TREE_NO_STRATEGY || (strategy == TREE_DEST_WINS && r->is_conflict);
        hand_expect(h, ref, merge_path(h, i), is_dest ? r->dest : r->result);
        hand_expect(h, ref, arena_fmt(&h->arena, "%02zu-before", i).p, "");
    }
}

LAKE_LAB_TEST(lake_merge, each_row_of_the_table_holds_beside_empty_objects)
{
    struct hand h = hand_of(lab);
    struct lake_merge_options source_wins = {.strategy = TREE_SOURCE_WINS};
    struct lake_conflicts conflicts = {0};
    struct lake_commit c;
    size_t found = 0;

    merge_rows_part(&h);
    hand_branch(&h, "copy", "main");
    struct str head = hand_read_branch(&h, "main").commit_id;
    CHECK_INT(merge_with(&h, (struct lake_merge_options){0}, &c, &conflicts), ERR_CONFLICT);
    for (size_t i = 0; i < ARRAY_SIZE(merge_rows); i++)
        if (merge_rows[i].is_conflict) {
            CHECK(found < conflicts.count);
            CHECK_STR(conflicts.paths[found++], str_z(merge_path(&h, i)));
        }
    CHECK_INT(conflicts.count, found);
    CHECK_STR(hand_read_branch(&h, "main").commit_id, head);
    expect_merge_rows(&h, "main", TREE_NO_STRATEGY);
    CHECK_INT(
        merge_with(&h, (struct lake_merge_options){.strategy = TREE_DEST_WINS}, &c, &conflicts), 0);
    expect_merge_rows(&h, "main", TREE_DEST_WINS);
    CHECK_INT(lake_merge(h.lake, &h.arena, &h.repo, STR("side"), STR("copy"), &source_wins, &c,
                         &conflicts, &h.err),
              0);
    expect_merge_rows(&h, "copy", TREE_SOURCE_WINS);
    hand_release(&h);
}

/* Each branch has merged what the other one was before: both of those commits are bases. */
LAKE_LAB_TEST(lake_merge, a_criss_cross_joins_what_both_sides_have)
{
    struct hand h = hand_of(lab);

    hand_put(&h, "main", "a", "");
    hand_commit(&h, "main", "base");
    hand_branch(&h, "side", "main");
    hand_put(&h, "main", "b", "");
    struct str ours = hand_commit(&h, "main", "ours");
    hand_put(&h, "side", "c", "");
    hand_commit(&h, "side", "theirs");
    hand_merge(&h, "side", "main");
    hand_merge(&h, arena_z(&h.arena, ours), "side");
    hand_put(&h, "main", "d", "");
    hand_remove(&h, "main", "a");
    hand_commit(&h, "main", "ours again");
    hand_put(&h, "side", "e", "");
    hand_commit(&h, "side", "theirs again");
    hand_merge(&h, "side", "main");
    hand_expect_list(&h, "main", "b c d e");
    CHECK_INT(hand_try_merge(&h, "side", "main"), ERR_NOT_MODIFIED);
    hand_merge(&h, "main", "side");
    hand_expect_list(&h, "side", "b c d e");
    hand_expect_diff_refs(&h, "main", "side", false, "");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_merge, a_dirty_branch_is_refused_and_not_sealed)
{
    struct hand h = hand_of(lab);

    part(&h);
    hand_put(&h, "main", "x", "x");
    CHECK_INT(hand_try_merge(&h, "side", "main"), ERR_INVALID);
    CHECK_STR(str_z(h.err.text), STR("uncommitted changes (dirty branch)"));
    CHECK_INT(hand_read_branch(&h, "main").sealed_count, 0);
    CHECK_INT(hand_try_merge(&h, "unknown", "main"), ERR_INVALID);
    CHECK_INT(reset(&h, LAKE_RESET_ALL, ""), 0);
    CHECK_INT(hand_try_merge(&h, "unknown", "main"), ERR_NOT_FOUND);
    hand_put(&h, "side", "staged", "x"); /* what is staged on the source is not merged */
    hand_merge(&h, "side", "main");
    hand_expect_list(&h, "main", "a b d");
    hand_release(&h);
}

/* --- revert and cherry-pick --- */

typedef int pick_fn(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                    const struct lake_pick_options *o, struct lake_commit *out,
                    struct lake_conflicts *conflicts, struct err *err);

/* The conflicting paths must be these, with a blank between them. */
static int pick_expecting(struct hand *h, pick_fn *pick, struct lake_pick_options o,
                          struct lake_commit *out, const char *want)
{
    struct lake_conflicts conflicts = {0};
    struct buf got = {0};

    o.committer = STR("tester");
    h->err = (struct err){0};
    int code = pick(h->lake, &h->arena, &h->repo, STR("main"), &o, out, &conflicts, &h->err);
    for (size_t i = 0; i < conflicts.count; i++)
        buf_appendf(&got, "%s" STR_FMT, i ? " " : "", STR_ARG(conflicts.paths[i]));
    CHECK_STR(buf_str(&got), str_z(want));
    CHECK(!conflicts.more);
    buf_release(&got);
    return code;
}

static int revert(struct hand *h, struct lake_pick_options o, struct lake_commit *out)
{
    return pick_expecting(h, lake_revert, o, out, "");
}

static int cherry_pick(struct hand *h, struct lake_pick_options o, struct lake_commit *out)
{
    return pick_expecting(h, lake_cherry_pick, o, out, "");
}

LAKE_LAB_TEST(lake_pick, a_revert_undoes_what_one_commit_changed)
{
    struct hand h = hand_of(lab);
    struct lake_commit c;

    hand_put(&h, "main", "a", "a1");
    hand_put(&h, "main", "b", "b1");
    hand_commit(&h, "main", "one");
    hand_put(&h, "main", "a", "a2");
    hand_remove(&h, "main", "b");
    hand_put(&h, "main", "c", "c2");
    hand_commit(&h, "main", "two");
    struct str undone =
        arena_fmt(&h.arena, "Revert " STR_FMT, STR_ARG(hand_read_branch(&h, "main").commit_id));
    hand_put(&h, "main", "d", "d3");
    hand_commit(&h, "main", "three");
    CHECK_INT(revert(&h, (struct lake_pick_options){.ref = STR("main~1")}, &c), 0);
    CHECK_STR(c.message, undone);
    CHECK_INT(c.parent_count, 1);
    hand_expect_list(&h, "main", "a b d");
    hand_expect(&h, "main", "a", "a1");
    CHECK_INT(revert(&h, (struct lake_pick_options){.ref = STR("main~2")}, &c), ERR_NOT_MODIFIED);
    CHECK_INT(revert(&h, (struct lake_pick_options){.ref = STR("main~2"), .allow_empty = true}, &c),
              0);
    hand_put(&h, "main", "d", "d4");
    hand_commit(&h, "main", "four");
    /* "three" added d, which was changed since */
    struct str head = hand_read_branch(&h, "main").commit_id;
    CHECK_INT(
        pick_expecting(&h, lake_revert, (struct lake_pick_options){.ref = STR("main~3")}, &c, "d"),
        ERR_CONFLICT);
    CHECK_STR(hand_read_branch(&h, "main").commit_id, head);
    hand_put(&h, "main", "x", "x");
    CHECK_INT(revert(&h, (struct lake_pick_options){.ref = STR("main")}, &c), ERR_INVALID);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_pick, a_pick_that_conflicts_changes_nothing_and_names_its_paths)
{
    struct lake_pick_options o = {.ref = STR("side")};
    struct hand h = hand_of(lab);
    struct lake_commit c;

    conflict(&h);
    struct str head = hand_read_branch(&h, "main").commit_id;
    CHECK_INT(pick_expecting(&h, lake_cherry_pick, o, &c, "a b c"), ERR_CONFLICT);
    CHECK_STR(str_z(h.err.text), STR("conflict found"));
    CHECK_STR(hand_read_branch(&h, "main").commit_id, head);
    hand_expect(&h, "main", "a", "a-main");
    hand_expect(&h, "main", "b", "b-main");
    hand_expect(&h, "main", "c", NULL);
    /* the commit of main changed a, b and c; since then a and b were changed again */
    hand_put(&h, "main", "a", "a-again");
    hand_put(&h, "main", "b", "b-again");
    hand_commit(&h, "main", "again");
    o.ref = STR("main~1");
    CHECK_INT(pick_expecting(&h, lake_revert, o, &c, "a b"), ERR_CONFLICT);
    hand_expect(&h, "main", "a", "a-again");
    hand_expect(&h, "main", "c", NULL);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_pick, a_merge_is_reverted_by_the_number_of_its_parent)
{
    struct hand h = hand_of(lab);
    struct lake_commit c;

    part(&h);
    hand_merge(&h, "side", "main");
    CHECK_INT(revert(&h, (struct lake_pick_options){.ref = STR("main")}, &c), ERR_CONFLICT);
    CHECK_INT(cherry_pick(&h, (struct lake_pick_options){.ref = STR("main")}, &c), ERR_INVALID);
    CHECK_INT(revert(&h, (struct lake_pick_options){.ref = STR("main"), .parent = 3}, &c),
              ERR_INVALID);
    CHECK_INT(revert(&h, (struct lake_pick_options){.ref = STR("main"), .parent = 1}, &c), 0);
    hand_expect_list(&h, "main", "a b c");
    hand_expect(&h, "main", "a", "a2");
    hand_expect(&h, "main", "b", "b1");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_pick, a_picked_commit_says_where_it_comes_from)
{
    struct hand h = hand_of(lab);
    struct str_pair pairs[] = {{STR("zone"), STR("eu")}};
    struct lake_commit c;
    struct str theirs;

    part(&h);
    theirs = hand_read_branch(&h, "side").commit_id;
    CHECK_INT(
        cherry_pick(&h, (struct lake_pick_options){.ref = STR("side"), .metadata = {pairs, 1}}, &c),
        0);
    CHECK_STR(c.message, STR("theirs"));
    CHECK_INT(c.parent_count, 1);
    CHECK_INT(c.metadata.count, 3);
    CHECK_STR(c.metadata.pairs[0].key, STR("cherry-pick-committer"));
    CHECK_STR(c.metadata.pairs[0].value, STR("tester"));
    CHECK_STR(c.metadata.pairs[1].key, STR("cherry-pick-origin"));
    CHECK_STR(c.metadata.pairs[1].value, theirs);
    CHECK_STR(c.metadata.pairs[2].value, STR("eu"));
    hand_expect_list(&h, "main", "a b d");
    hand_expect(&h, "main", "a", "a2");
    CHECK_INT(cherry_pick(&h, (struct lake_pick_options){.ref = STR("side")}, &c),
              ERR_NOT_MODIFIED);
    hand_release(&h);
}

/* Fills as many pairs as a commit may have. Pairs are sorted by their keys. */
static struct str_pairs full_metadata(struct hand *h)
{
    struct str_pairs p = {arena_array(&h->arena, LAKE_METADATA_MAX, sizeof(*p.pairs)),
                          LAKE_METADATA_MAX};

    CHECK(p.pairs);
    for (size_t i = 0; i < p.count; i++)
        p.pairs[i] = (struct str_pair){arena_fmt(&h->arena, "k%03zu", i), STR_EMPTY};
    return p;
}

/* Picks and merges add keys, and must not write a commit that nobody can read. */
LAKE_LAB_TEST(lake_pick, a_commit_with_full_metadata_is_refused_before_anything_is_written)
{
    struct hand h = hand_of(lab);
    struct lake_commit_options full = {
        .message = STR("full"), .committer = STR("tester"), .metadata = full_metadata(&h)};
    struct lake_merge_options merge = {.committer = STR("tester"), .metadata = full.metadata};
    struct lake_conflicts conflicts;
    struct lake_commit c;
    struct err err = {0};

    part(&h);
    hand_put(&h, "side", "full", "1");
    CHECK_OK(lake_commit(h.lake, &h.arena, &h.repo, STR("side"), &full, &c, &err));
    struct str head = hand_read_branch(&h, "main").commit_id;
    CHECK_INT(cherry_pick(&h, (struct lake_pick_options){.ref = STR("side")}, &c), ERR_INVALID);
    CHECK(str_find(str_z(h.err.text), STR("258 keys of metadata")) >= 0);
    CHECK_ERR(lake_merge(h.lake, &h.arena, &h.repo, STR("side"), STR("main"), &merge, &c,
                         &conflicts, &err),
              ERR_INVALID);
    CHECK_STR(hand_read_branch(&h, "main").commit_id, head);
    hand_expect_list(&h, "main", "a b c");
    merge.metadata.count--;
    CHECK_OK(lake_merge(h.lake, &h.arena, &h.repo, STR("side"), STR("main"), &merge, &c, &conflicts,
                        &err));
    hand_expect(&h, "main", "full", "1");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_pick, a_write_refuses_a_commit_that_readers_would_refuse)
{
    struct hand h = hand_of(lab);
    struct lake_branch b = hand_read_branch(&h, "main");
    struct branch_change change = branch_change_of(&h.repo, &b, "lake.publish");
    struct str_pair one_more[LAKE_METADATA_MAX + 1] = {0};
    struct lake_commit c = {.id = STR("0000"),
                            .committer = STR("tester"),
                            .metadata = {one_more, ARRAY_SIZE(one_more)}};

    change.commit = &c;
    change.next.commit_id = c.id;
    CHECK_INT(branch_change_write(h.lake, &h.arena, &change, NULL, &h.err), ERR_TOO_LARGE);
    CHECK_STR(hand_read_branch(&h, "main").commit_id, b.commit_id);
    hand_release(&h);
}

/* --- differences --- */

LAKE_LAB_TEST(lake_difference, refs_differ_by_two_dots_and_by_three)
{
    struct hand h = hand_of(lab);

    part(&h);
    hand_expect_diff_refs(&h, "main", "side", false, "~a ~b -c +d");
    hand_expect_diff_refs(&h, "main", "side", true, "~b -c +d");
    hand_expect_diff_refs(&h, "side", "main", true, "~a");
    hand_expect_diff_refs(&h, "main", "main", false, "");
    hand_put(&h, "side", "a", "a-side");
    hand_put(&h, "side", "b", "b1");
    hand_put(&h, "side", "e", "e3");
    hand_remove(&h, "side", "d");
    hand_expect_diff_refs(&h, "main", "side", false, "~a ~b -c +d"); /* without staged changes */
    hand_expect_diff_refs(&h, "main", "side$", false, "~a -c +e");
    hand_expect_diff_refs(&h, "main", "side$", true, "!a -c +e");
    CHECK_INT(reset(&h, LAKE_RESET_ALL, ""), 0);
    hand_put(&h, "main", "e", "e3"); /* the same change on both sides is none */
    hand_commit(&h, "main", "same");
    hand_expect_diff_refs(&h, "main", "side$", true, "!a -c");
    hand_release(&h);
}

static void expect_diff_pages(struct hand *h, struct lake_list_options o, const char *want)
{
    struct lake_differences page;
    struct buf got = {0};

    do {
        CHECK_INT(lake_diff_branch(h->lake, &h->arena, &h->repo, STR("main"), &o, &page, &h->err),
                  0);
        CHECK(!page.more || page.count == o.limit);
        for (size_t i = 0; i < page.count; i++)
            buf_appendf(&got, "%s" STR_FMT, got.len ? " " : "", STR_ARG(page.items[i].path));
        o.after = page.next;
    } while (page.more);
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
}

LAKE_LAB_TEST(lake_difference, pages_fold_prefixes_that_changed)
{
    struct hand h = hand_of(lab);

    hand_put(&h, "main", "same/1", "x");
    hand_put(&h, "main", "gone/1", "x");
    hand_commit(&h, "main", "c");
    hand_remove(&h, "main", "gone/1");
    hand_put(&h, "main", "same/1", "x");
    hand_put(&h, "main", "new/1", "x");
    hand_put(&h, "main", "new/2", "x");
    hand_put(&h, "main", "top", "x");
    for (size_t limit = 1; limit < 6; limit++) {
        expect_diff_pages(&h, (struct lake_list_options){.limit = limit}, "gone/1 new/1 new/2 top");
        expect_diff_pages(&h, (struct lake_list_options){.limit = limit, .delimiter = STR("/")},
                          "gone/ new/ top");
        expect_diff_pages(&h, (struct lake_list_options){.limit = limit, .prefix = STR("new/")},
                          "new/1 new/2");
        expect_diff_pages(&h, (struct lake_list_options){.limit = limit, .after = STR("new/1")},
                          "new/2 top");
    }
    hand_release(&h);
}
