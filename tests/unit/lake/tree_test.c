/* Trees: reading, and that the same records give the same id by every history. */
#include "unit/lake/tree_world.h"

#include <stdlib.h>

/* The cases of lakeFS's own suite for committed storage, and the tests that have them here:
 *   CommitAdd, Replace, Delete:
 *     lake_tree.random_sets_are_read_back_and_have_one_id_by_every_history
 *   CommitOverrideNoChange:
 *     lake_tree.equal_identity_is_no_change_and_a_tombstone_of_nothing_is_nothing
 *   CommitTombstoneNoBase:
 *     lake_tree.equal_identity_is_no_change_and_a_tombstone_of_nothing_is_nothing
 *   CommitCopiesLeftoverBase: lake_tree.random_sets_are_read_back_and_have_one_id_by_every_history
 *   CommitBaseRangesWithinChanges:
 *     lake_tree.random_sets_are_read_back_and_have_one_id_by_every_history
 *   CommitChanges: lake_commit_embedded.a_commit_is_the_whole_branch
 *   Compare: lake_difference_embedded.refs_differ_by_two_dots_and_by_three
 *   Diff SameBounds: lake_diff.equal_subtrees_are_not_read
 *   Diff Seek, NextRange:
 *     lake_diff.random_sets_differ_as_their_trees_do
 *     lake_difference_embedded.pages_fold_prefixes_that_changed
 *   merge table:
 *     lake_merge.each_row_of_the_table_holds_at_first_middle_and_last_keys_of_leaves
 *     lake_merge.random_sets_merge_as_the_table_says_and_equal_sets_have_one_id
 *   merge strategies: lake_merge_embedded.a_strategy_decides_every_conflict
 *   writer, overlapping ranges:
 *     lake_tree.changes_that_are_not_sorted_or_too_large_are_refused
 *     lake_sst.ranges_that_overlap_or_end_elsewhere_are_damage
 *   WriteRange split: lake_tree_large.one_changed_key_of_a_million_writes_at_most_four_nodes
 *   value codec: lake_node.values_are_read_as_they_were_written_and_cut_ones_are_refused
 *   sstable range id vector: lake_node.the_id_of_a_file_is_that_of_lakefs
 *   pyramid eviction:
 *     lake_cache.memory_stays_within_its_bound
 *     lake_cache.the_disk_stays_within_its_bound_and_strangers_are_removed
 *   pyramid concurrent read:
 *     lake_cache.a_node_is_read_once_for_all_who_wait_and_an_error_is_not_kept
 *   retention ActiveCommits:
 *     lake_gc_embedded.commits_past_their_retention_expire_for_good
 *     lake_gc_embedded.commits_without_a_branch_live_by_the_default_rule
 *   retention StartingPointIterator:
 *     lake_gc_embedded.tags_and_branches_keep_old_commits_and_branch_rules_come_first */

static const struct tree_record one = {STR("a/key"), STR("identity"), STR("data")};

struct list_changes {
    const struct tree_record *records;
    size_t count, at;
};

static int list_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct list_changes *l = ctx;

    if (l->at == l->count)
        return ERR_END;
    *out = l->records[l->at++];
    return 0;
}

static int apply_list(struct world *w, struct str base, const struct tree_record *records,
                      size_t count, struct tree_result *out, struct err *err)
{
    struct list_changes l = {records, count, 0};
    struct tree_changes changes = {list_next, &l};

    return tree_apply(&w->store, base, &changes, NULL, out, err);
}

TEST(lake_tree, the_empty_tree_has_no_id_and_no_records)
{
    struct arena a = ARENA_INIT(1 << 16);
    struct world w;
    struct tree_result r;
    struct tree_stats stats;
    struct tree_record record;
    struct tree_iter *it;
    struct err err = {0};

    world_open(&w, 1 << 20);
    CHECK_OK(apply_list(&w, STR_EMPTY, NULL, 0, &r, &err));
    CHECK_STR(str_z(r.root), STR(""));
    CHECK_INT(w.writes, 0);
    CHECK_ERR(tree_get(&w.store, &a, STR_EMPTY, STR("x"), &record, &err), ERR_NOT_FOUND);
    CHECK_OK(tree_stats(&w.store, STR_EMPTY, &stats, &err));
    CHECK_INT(stats.height, 0);
    CHECK_OK(tree_iter_open(&it, &w.store, STR_EMPTY, &err));
    tree_iter_seek(it, STR("x"));
    CHECK_ERR(tree_iter_next(it, &record, &err), ERR_END);
    tree_iter_close(it);
    world_close(&w);
}

TEST(lake_tree, one_record_is_a_leaf_and_a_root_and_removing_it_leaves_nothing)
{
    struct arena a = ARENA_INIT(1 << 16);
    struct world w;
    struct tree_result r, gone;
    struct tree_stats stats;
    struct tree_record record, remove = {.key = one.key};
    struct err err = {0};

    world_open(&w, 1 << 20);
    CHECK_OK(apply_list(&w, STR_EMPTY, &one, 1, &r, &err));
    CHECK_INT(r.added, 1);
    CHECK_INT(r.nodes, 2);
    CHECK_OK(tree_stats(&w.store, str_z(r.root), &stats, &err));
    CHECK_INT(stats.height, 2);
    CHECK_INT(stats.objects, 1);
    CHECK_OK(tree_get(&w.store, &a, str_z(r.root), one.key, &record, &err));
    CHECK_STR(record.data, one.data);
    CHECK_ERR(tree_get(&w.store, &a, str_z(r.root), STR("a/ke"), &record, &err), ERR_NOT_FOUND);
    CHECK_ERR(tree_get(&w.store, &a, str_z(r.root), STR("a/key2"), &record, &err), ERR_NOT_FOUND);
    CHECK_OK(apply_list(&w, str_z(r.root), &remove, 1, &gone, &err));
    CHECK_INT(gone.removed, 1);
    CHECK_STR(str_z(gone.root), STR(""));
    arena_release(&a);
    world_close(&w);
}

TEST(lake_tree, changes_that_are_not_sorted_or_too_large_are_refused)
{
    const struct tree_record twice[] = {one, one};
    static char big[3 << 20];
    struct tree_record large = {one.key, one.identity, str_n(big, sizeof(big))},
                       long_key = {str_n(big, 5000), one.identity, one.data},
                       no_key = {STR_EMPTY, one.identity, one.data};
    struct tree_result r;
    struct world w;
    struct err err = {0};

    world_open(&w, 1 << 20);
    CHECK_ERR(apply_list(&w, STR_EMPTY, twice, 2, &r, &err), ERR_INVALID);
    CHECK_ERR(apply_list(&w, STR_EMPTY, &large, 1, &r, &err), ERR_TOO_LARGE);
    CHECK_ERR(apply_list(&w, STR_EMPTY, &long_key, 1, &r, &err), ERR_INVALID);
    CHECK_ERR(apply_list(&w, STR_EMPTY, &no_key, 1, &r, &err), ERR_INVALID);
    CHECK_ERR(apply_list(&w, STR("short"), &one, 1, &r, &err), ERR_INVALID);
    world_close(&w);
}

TEST(lake_tree, equal_identity_is_no_change_and_a_tombstone_of_nothing_is_nothing)
{
    const struct tree_record no_changes[] = {
        {STR("a"), STR_EMPTY, STR_EMPTY},
        {STR("a/key"), STR("identity"), STR("other data")},
        {STR("b"), STR_EMPTY, STR_EMPTY},
    };
    struct tree_result r, same;
    struct world w;
    struct err err = {0};

    world_open(&w, 1 << 20);
    CHECK_OK(apply_list(&w, STR_EMPTY, &one, 1, &r, &err));
    uint64_t writes = w.writes;
    CHECK_OK(apply_list(&w, str_z(r.root), no_changes, 3, &same, &err));
    CHECK_STR(str_z(same.root), str_z(r.root));
    CHECK_INT(same.added + same.changed + same.removed, 0);
    CHECK_INT(same.nodes, 0);
    CHECK_INT(w.writes, writes);
    world_close(&w);
}

static void small_nodes(struct world *w)
{
    w->store.leaf_bytes = 600;
    w->store.index_bytes = 500;
}

/* Each history ends with the same set; the trees must be one. */
static void check_histories(uint64_t seed)
{
    struct set goal, at, next;
    struct tree_result whole, r = {0};
    uint64_t state = seed;
    struct world w;

    world_open(&w, 1 << 20);
    small_nodes(&w);
    if (seed % 2)
        world_write_together(&w);
    set_random(&goal, &state, 5 + random_next(&state) % 90);
    set_build(&w, &goal, &whole);
    set_check(&w, str_z(whole.root), &goal);
    at = (struct set){0};
    for (int step = 0; step < 4; step++) {
        next = at;
        set_change(&next, &state, 1 + random_next(&state) % 30);
        set_apply(&w, str_z(r.root), &at, &next, &r);
        set_check(&w, str_z(r.root), &next);
        at = next;
    }
    set_apply(&w, str_z(r.root), &at, &goal, &r);
    if (!str_eq(str_z(r.root), str_z(whole.root)))
        test_fail(__FILE__, __LINE__, "seed %llu: the trees differ", (unsigned long long)seed);
    for (int step = 0; step < 6; step++) { /* single changes there and back */
        next = goal;
        set_change(&next, &state, 1);
        set_apply(&w, str_z(whole.root), &goal, &next, &r);
        set_apply(&w, str_z(r.root), &next, &goal, &r);
        CHECK_STR(str_z(r.root), str_z(whole.root));
    }
    world_close(&w);
}

TEST_TIMEOUT(lake_tree, random_sets_are_read_back_and_have_one_id_by_every_history, 1800)
{
    for (unsigned seed = 0; seed < tree_seeds(300); seed++)
        check_histories(seed);
}

TEST(lake_tree, writing_on_threads_gives_the_same_tree)
{
    struct tree_write_options o = {.writers = 4};
    struct tree_result r, threaded;
    struct set s;
    uint64_t state = 7;
    struct world w;
    struct err err = {0};

    world_open(&w, 1 << 20);
    small_nodes(&w);
    set_random(&s, &state, 90);
    set_build(&w, &s, &r);
    uint64_t writes = w.writes;
    struct tree_iter *it;
    CHECK_OK(tree_iter_open(&it, &w.store, str_z(r.root), &err));
    struct tree_changes copy = {(int (*)(void *, struct tree_record *, struct err *))tree_iter_next,
                                it};
    CHECK_OK(tree_apply(&w.store, STR_EMPTY, &copy, &o, &threaded, &err));
    tree_iter_close(it);
    CHECK_STR(str_z(threaded.root), str_z(r.root));
    CHECK_INT(threaded.nodes, writes);
    CHECK_INT(w.writes, 2 * writes); /* nodes are written also when they are there */
    CHECK(writes > 10);
    /* all but the root, which the caller waits for, and which it writes on its own thread */
    CHECK_INT(w.low_writes, writes - 1);
    world_close(&w);
}

/* Every write of a large tree, or of a small one, fails in turn. */
static void check_failing_writes(bool together, unsigned percent)
{
    struct tree_write_options o = {.writers = 4};
    struct tree_result r, failed;
    struct set s;
    uint64_t state = 9;
    struct world w;
    struct tree_iter *it;
    struct err err = {0};

    world_open(&w, 1 << 20);
    small_nodes(&w);
    if (together)
        world_write_together(&w);
    set_random(&s, &state, percent);
    set_build(&w, &s, &r);
    int writes = (int)w.writes;
    for (int at = 0; at < writes; at++) {
        CHECK_OK(tree_iter_open(&it, &w.store, str_z(r.root), &err));
        struct tree_changes copy = {
            (int (*)(void *, struct tree_record *, struct err *))tree_iter_next, it};
        w.fail_writes = at;
        CHECK_ERR(tree_apply(&w.store, STR_EMPTY, &copy, at % 2 ? &o : NULL, &failed, &err),
                  ERR_NO_SPACE);
        tree_iter_close(it);
    }
    world_close(&w);
}

TEST(lake_tree, a_write_that_fails_fails_the_whole_and_leaks_nothing)
{
    check_failing_writes(false, 90);
    check_failing_writes(true, 90);
    check_failing_writes(true, 3);
}

/* Changes some records of the set. Returns the number of calls that wrote several files. */
static uint64_t calls_of_change(struct world *w, const struct tree_result *base,
                                const struct set *s, unsigned changes, struct tree_result *out)
{
    struct set next = *s;
    uint64_t state = 5, calls = w->calls, writes = w->writes;

    set_change(&next, &state, changes);
    set_apply(w, str_z(base->root), s, &next, out);
    set_check(w, str_z(out->root), &next);
    CHECK_INT(w->writes, writes + out->nodes);
    return w->calls - calls;
}

TEST(lake_tree, the_nodes_of_a_small_change_are_written_in_one_call)
{
    struct tree_result r, few, many;
    struct set s;
    uint64_t state = 11;
    struct world w;
    struct tree_iter *it;
    struct tree_record record;
    struct err err = {0};

    world_open(&w, 1 << 20);
    small_nodes(&w);
    world_write_together(&w);
    set_random(&s, &state, 95);
    set_build(&w, &s, &r);
    CHECK_INT(w.calls, 0); /* many nodes are written at the same time instead */
    CHECK_INT(calls_of_change(&w, &r, &s, 1, &few), 1);
    CHECK(few.nodes >= 3);
    CHECK_INT(calls_of_change(&w, &r, &s, 200, &many), 0);
    /* A work that fails before its end writes nothing. */
    uint64_t writes = w.writes;
    CHECK_OK(tree_iter_open(&it, &w.store, str_z(r.root), &err));
    CHECK_OK(tree_iter_next(it, &record, &err));
    struct tree_record twice[] = {record, record};
    CHECK_ERR(apply_list(&w, str_z(r.root), twice, 2, &many, &err), ERR_INVALID);
    CHECK_INT(w.writes, writes);
    tree_iter_close(it);
    world_close(&w);
}

struct walk_counts {
    size_t nodes[4], skipped;
    uint64_t leaf_objects;
    bool skip_all_below_root;
};

static bool walk_skip(void *ctx, const struct node_visit *v)
{
    struct walk_counts *c = ctx;
    bool skip = c->skip_all_below_root && c->nodes[0] + c->nodes[1] + c->nodes[2] + c->nodes[3];

    c->skipped += skip;
    return skip;
}

static int walk_count(void *ctx, const struct node_visit *v, struct err *err)
{
    struct walk_counts *c = ctx;

    CHECK(v->level < 4);
    CHECK(!v->foreign);
    c->nodes[v->level]++;
    if (v->level == 0)
        c->leaf_objects += v->objects;
    return 0;
}

TEST(lake_tree, a_walk_visits_every_node_once_and_reads_no_leaf)
{
    struct walk_counts c = {0}, root = {.skip_all_below_root = true};
    struct tree_result r;
    struct tree_stats stats;
    struct set s;
    uint64_t state = 5;
    struct world w;
    struct err err = {0};

    world_open(&w, 1 << 20);
    small_nodes(&w);
    set_random(&s, &state, 100);
    set_build(&w, &s, &r);
    world_forget(&w);
    w.reads = 0;
    CHECK_OK(tree_walk(&w.store, str_z(r.root), walk_skip, walk_count, &c, &err));
    CHECK_INT(c.nodes[0] + c.nodes[1] + c.nodes[2] + c.nodes[3], w.writes);
    CHECK_INT(c.leaf_objects, SET_KEYS);
    CHECK_INT(w.reads, c.nodes[1] + c.nodes[2] + c.nodes[3]);
    CHECK_OK(tree_stats(&w.store, str_z(r.root), &stats, &err));
    CHECK(stats.height >= 3);
    /* A node has four children or more, unless it is the last of its level. */
    unsigned most = 2;
    for (size_t nodes = c.nodes[0]; nodes > 1; nodes /= 4)
        most++;
    CHECK(stats.height <= most);
    CHECK_INT(c.nodes[stats.height - 1], 1);
    CHECK_OK(tree_walk(&w.store, str_z(r.root), walk_skip, walk_count, &root, &err));
    CHECK(root.skipped > 0);
    CHECK_INT(root.nodes[stats.height - 1], 1);
    CHECK_INT(root.nodes[0], 0);
    world_close(&w);
}

TEST(lake_tree, a_node_that_is_gone_is_damage_that_the_error_names)
{
    struct arena a = ARENA_INIT(1 << 16);
    struct tree_result r;
    struct tree_record record;
    struct world w;
    struct err err = {0};

    world_open(&w, 1 << 20);
    CHECK_OK(apply_list(&w, STR_EMPTY, &one, 1, &r, &err));
    world_forget(&w);
    struct world_file *gone = map_remove(&w.files, str_z(r.root));
    CHECK_ERR(tree_get(&w.store, &a, str_z(r.root), one.key, &record, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), str_z(r.root)) >= 0);
    CHECK(str_find(str_z(err.text), STR("gone")) >= 0);
    buf_release(&gone->bytes);
    free(gone);
    world_close(&w);
}

static int read_records(struct world *w, struct str root, struct err *err)
{
    struct tree_iter *it = NULL;
    struct tree_record r;
    int code = tree_iter_open(&it, &w->store, root, err);

    while (code == 0)
        code = tree_iter_next(it, &r, err);
    tree_iter_close(it);
    return code == ERR_END ? 0 : code;
}

TEST(lake_tree, every_flipped_byte_of_every_node_is_noticed_and_the_error_names_the_node)
{
    struct set s = {0};
    struct tree_result r;
    struct tree_stats stats;
    size_t cursor = 0;
    struct world w;
    struct str id;
    void *value;
    struct err err = {0};

    world_open(&w, 1 << 20);
    w.store.leaf_bytes = w.store.index_bytes = 200;
    for (unsigned n = 0; n < 20; n++)
        s.versions[n * 25] = 1 + n % 3;
    set_build(&w, &s, &r);
    CHECK_OK(tree_stats(&w.store, str_z(r.root), &stats, &err));
    CHECK(stats.height >= 3); /* leaves, nodes and the root */
    CHECK_OK(read_records(&w, str_z(r.root), &err));
    while (map_next(&w.files, &cursor, &id, &value)) {
        struct buf *bytes = &((struct world_file *)value)->bytes;
        for (size_t at = 0; at < bytes->len; at++) {
            bytes->p[at] ^= 0x55;
            world_forget(&w);
            CHECK_ERR(read_records(&w, str_z(r.root), &err), ERR_CORRUPT);
            CHECK(str_find(str_z(err.text), id) >= 0);
            bytes->p[at] ^= 0x55;
        }
    }
    world_close(&w);
}
