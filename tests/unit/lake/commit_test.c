/* Commits: sealed tokens, no changes, empty commits, chosen paths, the cleaner. */
#include "unit/lake/hand.h"
#include "unit/lake/steps.h"

#include "lake/change.h"
#include "lake/clean.h"

#include <sys/mman.h>
#include <unistd.h>

static void seal(struct hand *h)
{
    struct lake_branch b;
    struct lake_repo repo;

    CHECK_INT(lake_seal(h->lake, &h->arena, &h->repo, STR("main"), &repo, &b, &h->err), 0);
}

static int commit_with(struct hand *h, struct lake_commit_options o, struct lake_commit *out)
{
    if (o.message.len == 0)
        o.message = STR("m");
    o.committer = STR("tester");
    h->err = (struct err){0};
    return lake_commit(h->lake, &h->arena, &h->repo, STR("main"), &o, out, &h->err);
}

LAKE_LAB_TEST(lake_commit, a_commit_is_the_whole_branch)
{
    struct hand h = hand_of(lab);
    struct str first, second;

    hand_put(&h, "main", "a", "a1");
    hand_put(&h, "main", "b", "b1");
    first = hand_commit(&h, "main", "first");
    hand_put(&h, "main", "b", "b2");
    hand_remove(&h, "main", "a");
    hand_put(&h, "main", "c", "c2");
    second = hand_commit(&h, "main", "second");
    hand_expect_list(&h, arena_z(&h.arena, first), "a b");
    hand_expect_list(&h, arena_z(&h.arena, second), "b c");
    hand_expect(&h, arena_z(&h.arena, first), "b", "b1");
    hand_expect(&h, "main", "b", "b2");
    hand_expect_list(&h, "main~1", "a b");
    CHECK_STR(hand_history(&h, "main"), STR("second|first|Repository created"));
    hand_release(&h);
}

LAKE_LAB_TEST(lake_commit, the_record_has_what_was_asked_for)
{
    struct hand h = hand_of(lab);
    struct str_pair pairs[] = {{STR("job"), STR("7")}};
    struct lake_commit_options o = {
        .message = STR("dated"), .metadata = {pairs, 1}, .created_ms = 1234567890000};
    struct lake_commit made, read;

    hand_put(&h, "main", "a", "x");
    CHECK_INT(commit_with(&h, o, &made), 0);
    CHECK_INT(lake_commit_get(h.lake, &h.arena, &h.repo, made.id, &read, &h.err), 0);
    CHECK_STR(read.message, STR("dated"));
    CHECK_STR(read.committer, STR("tester"));
    CHECK_INT(read.created_ms, 1234567890000);
    CHECK_INT(read.generation, 2);
    CHECK_INT(read.version, 1);
    CHECK_INT(read.parent_count, 1);
    CHECK_INT(read.metadata.count, 1);
    CHECK_STR(read.metadata.pairs[0].value, STR("7"));
    CHECK_STR(read.tree, made.tree);
    o.message.len = LAKE_MESSAGE_MAX + 1;
    CHECK_INT(commit_with(&h, o, &made), ERR_INVALID);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_commit, nothing_to_commit_is_no_changes)
{
    struct hand h = hand_of(lab);
    struct lake_commit c;

    CHECK_INT(hand_try_commit(&h, "main", "empty"), ERR_NOT_MODIFIED);
    CHECK_STR(str_z(h.err.text), STR("no changes"));
    hand_put(&h, "main", "a", "a1");
    hand_commit(&h, "main", "first");
    hand_put(&h, "main", "a", "a1"); /* equal content at another address */
    hand_put(&h, "main", "b", "b1");
    hand_remove(&h, "main", "b");
    CHECK_INT(hand_try_commit(&h, "main", "same"), ERR_NOT_MODIFIED);
    CHECK_INT(hand_read_branch(&h, "main").sealed_count, 0);
    CHECK_INT(commit_with(&h, (struct lake_commit_options){.allow_empty = true}, &c), 0);
    CHECK_STR(hand_history(&h, "main"), STR("m|first|Repository created"));
    hand_expect_list(&h, "main@", "a");
    CHECK_INT(hand_try_commit(&h, "unknown", "x"), ERR_NOT_FOUND);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_commit, sealed_tokens_of_a_commit_that_failed_are_committed_by_the_next)
{
    struct hand h = hand_of(lab);

    hand_put(&h, "main", "a", "a1");
    seal(&h);
    hand_put(&h, "main", "b", "b1");
    seal(&h);
    hand_put(&h, "main", "a", "a2");
    hand_commit(&h, "main", "all");
    hand_expect(&h, "main@", "a", "a2");
    hand_expect(&h, "main@", "b", "b1");
    CHECK_INT(hand_read_branch(&h, "main").sealed_count, 0);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_commit, a_storage_that_fails_leaves_the_branch_as_it_was)
{
    struct hand h = hand_of(lab);
    struct lake_branch before, after;

    hand_put(&h, "main", "a", "a1");
    before = hand_read_branch(&h, "main");
    lab->fail_write = ERR_UNAVAILABLE;
    CHECK_INT(hand_try_commit(&h, "main", "x"), ERR_UNAVAILABLE);
    lab->fail_write = 0;
    after = hand_read_branch(&h, "main");
    CHECK_STR(after.commit_id, before.commit_id);
    hand_expect(&h, "main", "a", "a1");
    hand_put(&h, "main", "b", "b1");
    hand_commit(&h, "main", "again");
    hand_expect_list(&h, "main@", "a b");
    hand_release(&h);
}

/* --- a tree as it is --- */

LAKE_LAB_TEST(lake_commit, a_tree_is_committed_to_a_clean_branch_alone)
{
    struct hand h = hand_of(lab);
    struct lake_commit first, c;

    hand_put(&h, "main", "a", "a1");
    CHECK_INT(commit_with(&h, (struct lake_commit_options){0}, &first), 0);
    hand_remove(&h, "main", "a");
    hand_put(&h, "main", "b", "b1");
    CHECK_INT(commit_with(&h, (struct lake_commit_options){.source_tree = first.tree}, &c),
              ERR_INVALID);
    hand_commit(&h, "main", "second");
    CHECK_INT(commit_with(&h, (struct lake_commit_options){.source_tree = STR("12")}, &c),
              ERR_INVALID);
    CHECK_INT(commit_with(&h, (struct lake_commit_options){.source_tree = first.tree}, &c), 0);
    hand_expect_list(&h, "main", "a");
    CHECK_INT(commit_with(&h, (struct lake_commit_options){.source_tree = first.tree}, &c),
              ERR_NOT_MODIFIED);
    hand_release(&h);
}

/* --- chosen paths --- */

LAKE_LAB_TEST(lake_commit, chosen_paths_are_committed_and_the_rest_stays_staged)
{
    struct hand h = hand_of(lab);
    struct str paths[] = {STR("dir/"), STR("a"), STR("dir/x")};
    struct lake_commit c;

    hand_put(&h, "main", "gone", "x");
    hand_put(&h, "main", "dir/gone", "x");
    hand_commit(&h, "main", "first");
    hand_put(&h, "main", "a", "a1");
    hand_put(&h, "main", "ab", "ab1");
    hand_put(&h, "main", "dir/x", "x1");
    hand_put(&h, "main", "dir/sub/y", "y1");
    hand_put(&h, "main", "dir2", "z1");
    hand_remove(&h, "main", "gone");
    hand_remove(&h, "main", "dir/gone");
    CHECK_INT(commit_with(&h, (struct lake_commit_options){.paths = paths, .path_count = 3}, &c),
              0);
    hand_expect_list(&h, "main@", "a dir/sub/y dir/x gone");
    hand_expect_list(&h, "main", "a ab dir/sub/y dir/x dir2");
    hand_expect_diff(&h, "main", "+ab +dir2 -gone");
    CHECK_INT(commit_with(&h, (struct lake_commit_options){.paths = paths, .path_count = 3}, &c),
              ERR_NOT_MODIFIED);
    hand_expect_diff(&h, "main", "+ab +dir2 -gone");
    hand_commit(&h, "main", "rest");
    hand_expect_list(&h, "main@", "a ab dir/sub/y dir/x dir2");
    CHECK_INT(hand_read_branch(&h, "main").sealed_count, 0);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_commit, choosing_all_paths_leaves_nothing_staged)
{
    struct hand h = hand_of(lab);
    struct str paths[] = {STR("a"), STR("b")};
    struct lake_commit c;

    hand_put(&h, "main", "a", "a1");
    hand_put(&h, "main", "b", "b1");
    CHECK_INT(commit_with(&h, (struct lake_commit_options){.paths = paths, .path_count = 2}, &c),
              0);
    CHECK_INT(hand_read_branch(&h, "main").sealed_count, 0);
    hand_expect_list(&h, "main@", "a b");
    hand_release(&h);
}

/* --- the cleaner: Drop, DropAsync, and what it must leave alone --- */

static bool is_clean(struct hand *h)
{
    return hand_count_rows(h, LAKE_CLEANUP) == 0;
}

LAKE_LAB_TEST(lake_clean, tokens_are_dropped_after_their_commit)
{
    struct hand h = hand_of(lab);
    struct str token = hand_read_branch(&h, "main").staging;

    hand_put(&h, "main", "a", "a1");
    hand_put(&h, "main", "b", "b1");
    CHECK_INT(hand_count_rows(&h, token), 2);
    hand_commit(&h, "main", "c");
    CHECK_SOON(is_clean(&h));
    CHECK_INT(hand_count_rows(&h, token), 0);
    hand_expect_list(&h, "main", "a b");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_clean, a_token_of_the_list_is_dropped_at_the_start)
{
    struct hand h = hand_of(lab), other;
    struct str token = STR("repo-main:left-behind");
    struct lake_tx tx;

    lake_tx_init(&tx, &h.arena);
    lake_tx_put(&tx, lake_key_staged(&h.arena, token, STR("a")), STR(""));
    lake_tx_drop_token(&tx, token);
    CHECK_INT(lake_tx_write(h.lake, &tx, NULL, &h.err), 0);
    other = hand_second(lab);
    CHECK_SOON(is_clean(&h));
    CHECK_INT(hand_count_rows(&h, token), 0);
    hand_release(&other);
    hand_release(&h);
}

/* A driver without fences may get a late row: the second drop takes it along. */
LAKE_LAB_TEST(lake_clean, a_row_that_came_late_goes_with_the_second_drop)
{
    struct hand h = hand_of(lab);
    struct str token = hand_read_branch(&h, "main").staging;
    struct kv_name late = lake_key_staged(&h.arena, token, STR("late"));

    if (lake_kv(h.lake)->can & KV_FENCES) {
        hand_release(&h);
        return;
    }
    loop_stop(&h.lake->cleaner); /* the test says when tokens are dropped */
    h.lake->o.drop_again_ms = MS_PER_HOUR;
    hand_put(&h, "main", "a", "a1");
    hand_commit(&h, "main", "c");
    CHECK_INT(lake_clean(h.lake, &h.err), 0);
    CHECK_INT(hand_count_rows(&h, token), 0);
    CHECK_INT(kv_set(lake_kv(h.lake), late, STR(""), &h.err), 0);
    CHECK_INT(lake_clean(h.lake, &h.err), 0);
    CHECK_INT(hand_count_rows(&h, token), 1);
    h.lake->o.drop_again_ms = 0;
    CHECK_INT(lake_clean(h.lake, &h.err), 0);
    CHECK(is_clean(&h));
    CHECK_INT(hand_count_rows(&h, token), 0);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_clean, a_branch_with_many_sealed_tokens_is_compacted)
{
    struct hand h = hand_of(lab);
    struct lake_branch b;

    hand_put(&h, "main", "gone", "x");
    hand_commit(&h, "main", "first");
    for (unsigned i = 0; i < 5; i++) { /* writers do not think that 4 are many */
        char path[] = {'a', (char)('0' + i), '\0'};
        hand_put(&h, "main", path, "x");
        hand_put(&h, "main", "same", path);
        if (i == 3)
            hand_remove(&h, "main", "gone");
        seal(&h);
    }
    b = hand_read_branch(&h, "main");
    CHECK_INT(b.sealed_count, 5);
    hand_put(&h, "main", "b", "x"); /* a writer notices that there are many */
    CHECK_SOON(hand_read_branch(&h, "main").sealed_count == 1);
    CHECK(hand_read_branch(&h, "main").epoch > b.epoch);
    hand_expect_list(&h, "main", "a0 a1 a2 a3 a4 b same");
    hand_expect(&h, "main", "same", "a4");
    CHECK_SOON(is_clean(&h));
    for (size_t i = 0; i < b.sealed_count; i++)
        CHECK_INT(hand_count_rows(&h, b.sealed[i]), 0);
    hand_commit(&h, "main", "second");
    hand_expect_list(&h, "main@", "a0 a1 a2 a3 a4 b same");
    hand_release(&h);
}

/* A draft that nobody finishes is dropped; one that a branch has taken cannot be. */
LAKE_LAB_TEST(lake_clean, a_draft_is_dropped_or_taken_never_both)
{
    struct hand h = hand_of(lab);
    struct lake_draft draft = {0};
    struct layers *walk;
    struct lake_branch b;

    hand_put(&h, "main", "a", "a1");
    seal(&h);
    b = hand_read_branch(&h, "main");
    struct layers_options o = {.tokens = b.sealed, .token_count = 1, .shows_tombstones = true};
    CHECK_INT(layers_open(&walk, h.lake, &o, &h.err), 0);
    CHECK_INT(draft_make(&draft, h.lake, &h.arena, &h.repo, b.id, walk, NULL, NULL, &h.err), 0);
    layers_close(walk);
    CHECK_INT(draft.count, 1);
    CHECK_INT(lake_clean(h.lake, &h.err), 0); /* it is young */
    CHECK_INT(hand_count_rows(&h, draft.token), 1);

    struct lake_draft taken = draft;
    struct branch_change c = branch_change_of(&h.repo, &b, "lake.compact");
    c.next.sealed = &taken.token;
    c.draft = &taken;
    draft_give_up(&draft, h.lake, &h.arena);
    CHECK_INT(branch_change_write(h.lake, &h.arena, &c, NULL, &h.err), ERR_AGAIN);
    CHECK_SOON(is_clean(&h));
    CHECK_INT(hand_count_rows(&h, taken.token), 0);
    hand_expect(&h, "main", "a", "a1");
    hand_release(&h);
}

/* Does what a cleaner does that finds the draft of the hand's branch, which is old. */
static void give_up_drafts(void *ctx)
{
    struct hand *h = ctx;
    struct kv_scan *scan = NULL;
    struct str key, value;
    unsigned given_up = 0;
    struct err err = {0};

    CHECK_OK(kv_scan_open(&scan, h->lake->kv, NULL, LAKE_CLEANUP, NULL, &err));
    while (kv_scan_next(scan, &key, &value, &err) == 0)
        if (str_find(key, STR("-slow:")) > 0) {
            struct str token = arena_str(&h->arena, key), row = arena_str(&h->arena, value);
            given_up += cleanup_row_set(h->lake, &h->arena, token, CLEANUP_DROP, row, &err) == 0;
        }
    kv_scan_free(scan);
    CHECK_INT(given_up, 1);
    CHECK_OK(lake_clean(h->lake, &err));
}

LAKE_LAB_TEST(lake_clean, a_reset_that_was_too_slow_for_the_cleaner_begins_again)
{
    struct hand h = hand_of(lab);
    struct lake_branch_options o = {.name = STR("slow"), .source = STR("main")};
    struct lake_branch b;
    struct err err = {0};

    hand_put(&h, "main", "a/1", "old");
    hand_commit(&h, "main", "first");
    CHECK_OK(lake_branch_create(h.lake, &h.arena, &h.repo, &o, &b, &err));
    hand_put(&h, "slow", "a/1", "new");
    hand_put(&h, "slow", "a/2", "new");
    hand_put(&h, "slow", "b", "new");
    steps_plan(STEPS_BEFORE, "lake.reset", 1, give_up_drafts, &h);
    CHECK_OK(lake_reset(h.lake, &h.arena, &h.repo, STR("slow"), LAKE_RESET_PREFIX, STR("a/"), false,
                        &err));
    CHECK_INT(steps_count("lake.reset"), 2);
    CHECK(steps_happened());
    hand_expect_list(&h, "slow", "a/1 b");
    hand_expect(&h, "slow", "a/1", "old");
    CHECK_SOON(is_clean(&h));
    hand_expect_list(&h, "slow", "a/1 b");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_clean, a_damaged_row_does_not_stop_the_cleaner)
{
    struct hand h = hand_of(lab);
    struct kv_name damaged = {LAKE_CLEANUP, STR("0-damaged")};
    struct str token = STR("1-token");
    struct kv_value row;
    struct err err = {0};

    CHECK_OK(kv_set(h.lake->kv, damaged, STR("\xff\xff"), &err));
    CHECK_OK(kv_set(h.lake->kv, (struct kv_name){STR("0-damaged"), STR("key/a")}, STR("x"), &err));
    CHECK_OK(kv_set(h.lake->kv, (struct kv_name){token, STR("key/a")}, STR("x"), &err));
    CHECK_OK(kv_set(h.lake->kv, (struct kv_name){LAKE_CLEANUP, token},
                    cleanup_row_new(&h.arena, CLEANUP_DROP), &err));
    CHECK_OK(lake_clean(h.lake, &err));
    CHECK_INT(hand_count_rows(&h, token), 0);
    CHECK_INT(hand_count_rows(&h, STR("0-damaged")), 1); /* perhaps a draft in use */
    CHECK_OK(kv_get(h.lake->kv, NULL, &h.arena, damaged, &row, &err));
    CHECK_OK(kv_remove(h.lake->kv, damaged, &err));
    hand_release(&h);
}

static size_t lines_of(int fd)
{
    char text[8 << 10];
    ssize_t len = pread(fd, text, sizeof(text), 0);
    size_t lines = 0;

    for (ssize_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Every pass logs the damaged row, so the test sees the passes. Nothing wakes the cleaner, and a
 * pass that drops no token is not followed by another one soon. */
LAKE_LAB_TEST(lake_clean, the_cleaner_looks_at_its_list_by_timer)
{
    enum { EVERY_MS = 20, PASSES = 4 };
    struct hand h = hand_of(lab);
    struct kv_name damaged = {LAKE_CLEANUP, STR("0-damaged")};
    struct str token = STR("1-token");
    struct err err = {0};
    int fd = memfd_create("log", MFD_CLOEXEC);
    struct log log = {.sink = log_sink_new(fd, LOG_ERROR, LOG_TEXT)};

    CHECK(fd >= 0);
    loop_stop(&h.lake->cleaner); /* its thread reads the options */
    h.lake->o.clean_every_ms = EVERY_MS;
    h.lake->o.log = &log;
    CHECK_OK(kv_set(h.lake->kv, damaged, STR("\xff\xff"), &err));
    CHECK_OK(lake_cleaner_start(h.lake, &err));
    CHECK_SOON(lines_of(fd) >= PASSES);
    CHECK_OK(kv_set(h.lake->kv, (struct kv_name){token, STR("key/a")}, STR("x"), &err));
    CHECK_OK(kv_set(h.lake->kv, (struct kv_name){LAKE_CLEANUP, token},
                    cleanup_row_new(&h.arena, CLEANUP_DROP), &err));
    CHECK_SOON(hand_count_rows(&h, token) == 0);
    loop_stop(&h.lake->cleaner);
    h.lake->o.log = NULL;
    CHECK_OK(kv_remove(h.lake->kv, damaged, &err));
    log_sink_free(log.sink);
    close(fd);
    hand_release(&h);
}

/* Together the rows are larger than a write may be. */
LAKE_LAB_TEST(lake_clean, a_draft_of_large_rows_is_written_in_parts)
{
    enum { ROWS = 36, ROW_BYTES = 1000 * 1000 };
    struct hand h = hand_of(lab);
    struct lake_branch b = hand_read_branch(&h, "main");
    struct lake_draft draft = {0};
    struct layers *walk;
    struct buf data = {0}, record = {0};
    struct err err = {0};

    for (size_t i = 0; i < ROW_BYTES; i++)
        buf_append_char(&data, 'x');
    lake_staged_write(&record, &(struct lake_staged){STR("identity"), buf_str(&data)});
    for (unsigned i = 0; i < ROWS; i++) {
        struct str path = arena_fmt(&h.arena, "%u", i);
        CHECK_OK(
            kv_set(h.lake->kv, lake_key_staged(&h.arena, b.staging, path), buf_str(&record), &err));
    }
    struct layers_options o = {.tokens = &b.staging, .token_count = 1, .shows_tombstones = true};
    CHECK_OK(layers_open(&walk, h.lake, &o, &err));
    CHECK_OK(draft_make(&draft, h.lake, &h.arena, &h.repo, b.id, walk, NULL, NULL, &err));
    layers_close(walk);
    CHECK_INT(draft.count, ROWS);
    CHECK_INT(hand_count_rows(&h, draft.token), ROWS);
    buf_release(&data);
    buf_release(&record);
    hand_release(&h);
}
