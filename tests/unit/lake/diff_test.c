/* Differences of trees against differences of sets. */
#include "unit/lake/tree_world.h"

static void check_difference(const struct tree_difference *d, unsigned n, uint32_t left,
                             uint32_t right)
{
    char room[SET_ROOM];

    CHECK_STR(d->key, set_key(room, n));
    CHECK_INT(d->type, left == 0 ? TREE_ADDED : right == 0 ? TREE_REMOVED : TREE_CHANGED);
    if (left)
        CHECK_STR(d->left.data, set_record(room, n, left).data);
    else
        CHECK_INT(d->left.key.len, 0);
    if (right)
        CHECK_STR(d->right.data, set_record(room, n, right).data);
    else
        CHECK_INT(d->right.key.len, 0);
}

static void check_diff_from(struct world *w, struct tree_diff *d, const struct set *l,
                            const struct set *r, unsigned from, struct str prefix)
{
    struct tree_difference got;
    struct err err = {0};
    char room[64];

    for (unsigned n = from; n < SET_KEYS; n++)
        if (l->versions[n] != r->versions[n] && str_starts(set_key(room, n), prefix)) {
            CHECK_OK(tree_diff_next(d, &got, &err));
            check_difference(&got, n, l->versions[n], r->versions[n]);
        }
    CHECK_ERR(tree_diff_next(d, &got, &err), ERR_END);
    CHECK_ERR(tree_diff_next(d, &got, &err), ERR_END);
}

static void check_diff(struct world *w, const struct tree_result roots[2], const struct set sets[2],
                       struct str prefix)
{
    struct tree_diff *d;
    struct err err = {0};
    char room[64];

    CHECK_OK(
        tree_diff_open(&d, &w->store, str_z(roots[0].root), str_z(roots[1].root), prefix, &err));
    check_diff_from(w, d, &sets[0], &sets[1], 0, prefix);
    for (unsigned from = 3; from < SET_KEYS; from += 171) {
        tree_diff_seek(d, set_key(room, from));
        check_diff_from(w, d, &sets[0], &sets[1], from, prefix);
    }
    tree_diff_close(d);
}

TEST_TIMEOUT(lake_diff, random_sets_differ_as_their_trees_do, 1800)
{
    static const struct str prefixes[] = {STR(""),    STR("folder-03"),           STR("folder-1"),
                                          STR("zzz"), STR("folder-02/file-0100"), STR("\xff")};

    for (unsigned seed = 0; seed < tree_seeds(200); seed++) {
        struct set sets[2];
        struct tree_result roots[2];
        uint64_t state = seed * 77 + 1;
        struct world w;

        world_open(&w, 1 << 20);
        w.store.leaf_bytes = 600;
        w.store.index_bytes = 500;
        set_random(&sets[0], &state, random_next(&state) % 101);
        sets[1] = sets[0];
        if (seed % 5 == 0)
            set_random(&sets[1], &state, random_next(&state) % 101);
        else
            set_change(&sets[1], &state, random_next(&state) % 12);
        set_build(&w, &sets[0], &roots[0]);
        set_build(&w, &sets[1], &roots[1]);
        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
            check_diff(&w, roots, sets, prefixes[i]);
        world_close(&w);
    }
}

TEST(lake_diff, equal_subtrees_are_not_read)
{
    struct set sets[2];
    struct tree_result roots[2];
    uint64_t state = 3;
    struct world w;

    world_open(&w, 1 << 20);
    w.store.leaf_bytes = 600;
    w.store.index_bytes = 500;
    set_random(&sets[0], &state, 100);
    sets[1] = sets[0];
    sets[1].versions[SET_KEYS / 2] = 9;
    set_build(&w, &sets[0], &roots[0]);
    set_build(&w, &sets[1], &roots[1]);
    world_forget(&w);
    w.reads = 0;
    struct tree_diff *d;
    struct tree_difference got;
    struct err err = {0};
    CHECK_OK(
        tree_diff_open(&d, &w.store, str_z(roots[0].root), str_z(roots[1].root), STR_EMPTY, &err));
    CHECK_OK(tree_diff_next(d, &got, &err));
    CHECK_ERR(tree_diff_next(d, &got, &err), ERR_END);
    tree_diff_close(d);
    CHECK(w.reads <= 2 * 5); /* one node a level on both sides, and now and then a neighbour */
    world_close(&w);
}
