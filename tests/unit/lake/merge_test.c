/* Merges: the table, its places in leaves, and random sets against a reference. */
#include "unit/lake/tree_world.h"

struct choices {
    enum tree_strategy by_key; /* for even keys */
    unsigned conflicts[SET_KEYS], count;
};

static unsigned key_number(struct str key)
{
    uint64_t n;
    CHECK_INT(str_u64(str_skip(key, key.len - 4), &n), 0);
    return (unsigned)n;
}

static enum tree_strategy choose_even(void *ctx, struct str key)
{
    const struct choices *c = ctx;
    return key_number(key) % 2 == 0 ? c->by_key : TREE_NO_STRATEGY;
}

static void note_conflict(void *ctx, struct str key)
{
    struct choices *c = ctx;
    c->conflicts[c->count++] = key_number(key);
}

/* What the table says of one key. Returns false for a conflict that nothing decides. */
static bool want_key(const struct set *b, const struct set *s, const struct set *d, unsigned n,
                     enum tree_strategy strategy, uint32_t *out)
{
    uint32_t base = b->versions[n], source = s->versions[n], dest = d->versions[n];

    *out = dest;
    if (source == base || source == dest)
        return true;
    *out = source;
    if (dest == base)
        return true;
    *out = strategy == TREE_SOURCE_WINS ? source : dest;
    return strategy != TREE_NO_STRATEGY;
}

/* Merges three sets as trees and compares with the table, key by key. */
static void check_merge(struct world *w, const struct set sets[3], enum tree_strategy strategy,
                        enum tree_strategy by_key)
{
    struct choices c = {.by_key = by_key};
    struct tree_result roots[3], got, want_tree;
    struct set want;
    unsigned conflicts[SET_KEYS], count = 0;
    struct err err = {0};

    for (int i = 0; i < 3; i++)
        set_build(w, &sets[i], &roots[i]);
    for (unsigned n = 0; n < SET_KEYS; n++) {
        enum tree_strategy by = n % 2 == 0 && by_key ? by_key : strategy;
        if (!want_key(&sets[0], &sets[1], &sets[2], n, by, &want.versions[n]))
            conflicts[count++] = n;
    }
    struct tree_merge m = {.base = str_z(roots[0].root),
                           .source = str_z(roots[1].root),
                           .dest = str_z(roots[2].root),
                           .strategy = strategy,
                           .choose = choose_even,
                           .conflict = note_conflict,
                           .ctx = &c};
    int code = tree_merge(&w->store, &m, NULL, &got, &err);
    CHECK_INT(c.count, count);
    for (unsigned i = 0; i < count; i++)
        CHECK_INT(c.conflicts[i], conflicts[i]);
    if (count) {
        CHECK_INT(code, ERR_CONFLICT);
        return;
    }
    CHECK_INT(code, 0);
    set_build(w, &want, &want_tree);
    CHECK_STR(str_z(got.root), str_z(want_tree.root));
    set_check(w, str_z(got.root), &want);
}

static void merge_world(struct world *w)
{
    world_open(w, 1 << 20);
    w->store.leaf_bytes = 600;
    w->store.index_bytes = 500;
}

/* Each row: versions of base, source, dest; 0: absent. */
static const uint32_t table[][3] = {
    {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {1, 0, 0}, {1, 0, 1}, {1, 0, 2},
    {1, 1, 0}, {1, 2, 0}, {1, 1, 1}, {1, 1, 2}, {1, 2, 1}, {1, 2, 2}, {1, 2, 3},
};

/* --- places of leaves --- */

enum { LEAVES_MAX = SET_KEYS, LEAF_PLACES = 9 };

/* The leaves of a tree that has every key: leaf i has the keys from starts[i] to starts[i + 1]. */
struct leaf_starts {
    unsigned starts[LEAVES_MAX + 1], count;
};

static int leaf_note(void *ctx, const struct node_visit *v, struct err *err)
{
    struct leaf_starts *l = ctx;

    if (v->level == 0) {
        l->starts[l->count + 1] = l->starts[l->count] + (unsigned)v->objects;
        l->count++;
    }
    return 0;
}

static void set_fill(struct set *s, uint32_t version)
{
    for (unsigned n = 0; n < SET_KEYS; n++)
        s->versions[n] = version;
}

/* First, middle and last keys of the first leaf, of one in the middle, and of the last. */
static void leaf_places(unsigned out[LEAF_PLACES])
{
    struct leaf_starts l = {0};
    struct tree_result tree;
    struct world w;
    struct set all;
    struct err err = {0};

    merge_world(&w);
    set_fill(&all, 1);
    set_build(&w, &all, &tree);
    CHECK_OK(tree_walk(&w.store, str_z(tree.root), NULL, leaf_note, &l, &err));
    CHECK_INT(l.starts[l.count], SET_KEYS);
    CHECK(l.count > 2);
    const unsigned leaves[] = {0, l.count / 2, l.count - 1};
    for (unsigned i = 0; i < LEAF_PLACES; i++) {
        unsigned first = l.starts[leaves[i / 3]], last = l.starts[leaves[i / 3] + 1] - 1;
        out[i] = i % 3 == 0 ? first : i % 3 == 1 ? (first + last) / 2 : last;
    }
    world_close(&w);
}

/* Neighbours have equal identities, so a comparison by identity alone would be seen. */
static void check_row(const uint32_t row[3], unsigned place, enum tree_strategy strategy)
{
    struct set sets[3];
    struct world w;

    for (int i = 0; i < 3; i++) {
        set_fill(&sets[i], 1);
        sets[i].versions[place] = row[i];
    }
    sets[1].versions[300] = 4; /* so that no shortcut is taken */
    sets[2].versions[200] = 5;
    merge_world(&w);
    check_merge(&w, sets, strategy, TREE_NO_STRATEGY);
    world_close(&w);
}

TEST(lake_merge, each_row_of_the_table_holds_at_first_middle_and_last_keys_of_leaves)
{
    unsigned places[LEAF_PLACES];

    leaf_places(places);
    for (size_t row = 0; row < ARRAY_SIZE(table); row++)
        for (size_t i = 0; i < LEAF_PLACES; i++)
            for (int s = TREE_NO_STRATEGY; s <= TREE_DEST_WINS; s++)
                check_row(table[row], places[i], (enum tree_strategy)s);
}

TEST_TIMEOUT(lake_merge, random_sets_merge_as_the_table_says_and_equal_sets_have_one_id, 1800)
{
    for (unsigned seed = 0; seed < tree_seeds(300); seed++) {
        struct set sets[3];
        uint64_t state = seed * 31 + 7;
        struct world w;

        merge_world(&w);
        set_random(&sets[0], &state, random_next(&state) % 101);
        for (int i = 1; i < 3; i++) {
            sets[i] = sets[0];
            set_change(&sets[i], &state, random_next(&state) % 10);
        }
        if (seed % 16 == 0)
            set_random(&sets[1], &state, 50);
        check_merge(&w, sets, (enum tree_strategy)(random_next(&state) % 3),
                    (enum tree_strategy)(random_next(&state) % 3));
        check_merge(&w, sets, TREE_SOURCE_WINS, TREE_NO_STRATEGY);
        world_close(&w);
    }
}

TEST(lake_merge, shortcuts_read_nothing)
{
    struct set s;
    struct tree_result a, b, got;
    uint64_t state = 1;
    struct world w;
    struct err err = {0};

    merge_world(&w);
    set_random(&s, &state, 50);
    set_build(&w, &s, &a);
    s.versions[7] = 9;
    set_build(&w, &s, &b);
    struct str one = str_z(a.root), two = str_z(b.root);
    const struct tree_merge merges[] = {
        {.base = one, .source = two, .dest = one},
        {.base = one, .source = one, .dest = two},
        {.base = one, .source = two, .dest = two},
    };
    world_forget(&w);
    w.reads = w.writes = 0;
    for (size_t i = 0; i < ARRAY_SIZE(merges); i++) {
        CHECK_OK(tree_merge(&w.store, &merges[i], NULL, &got, &err));
        CHECK_STR(str_z(got.root), two);
    }
    CHECK_INT(w.reads + w.writes, 0);
    world_close(&w);
}

TEST(lake_merge, changes_in_different_folders_are_taken_over_by_node)
{
    struct set sets[3];
    struct tree_result roots[3], got;
    uint64_t state = 4;
    struct world w;
    struct err err = {0};

    merge_world(&w);
    set_random(&sets[0], &state, 100);
    sets[1] = sets[2] = sets[0];
    for (unsigned n = 0; n < 150; n++)
        sets[1].versions[n] = 7;
    for (unsigned n = 300; n < 500; n++)
        sets[2].versions[n] = 8;
    for (int i = 0; i < 3; i++)
        set_build(&w, &sets[i], &roots[i]);
    world_forget(&w);
    w.reads = w.writes = 0;
    struct tree_merge m = {
        .base = str_z(roots[0].root), .source = str_z(roots[1].root), .dest = str_z(roots[2].root)};
    CHECK_OK(tree_merge(&w.store, &m, NULL, &got, &err));
    for (unsigned n = 0; n < 150; n++)
        sets[2].versions[n] = 7;
    CHECK(w.writes <= 8); /* nodes above the leaves, and leaves at the seams */
    set_check(&w, str_z(got.root), &sets[2]);
    world_close(&w);
}
