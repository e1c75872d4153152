/* Trees of many objects, with nodes of the usual sizes: what a change of one key costs, in nodes,
 * random changes, and trees whose ids are known. TREE_OBJECTS says how many objects the tree of the
 * first test has; the usual number is a million. */
#include "unit/lake/tree_world.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS = 101,
    NODES_MAX = 4,
    FAN_OUT = 100, /* a node above the leaves has more children than this in the mean */
};

struct many {
    uint64_t at, end, step;
    uint32_t version;
    char key[64], identity[LAKE_IDENTITY_LEN], data[160];
};

/* Objects as a data set has them: partitions with numbered files. */
static void many_record(struct many *m, uint64_t n, struct tree_record *out)
{
    uint64_t state = n * 977 + m->version;

    int len = snprintf(m->key, sizeof(m->key), "table/date=%04llu/part-%09llu.parquet",
                       (unsigned long long)(n / 1000), (unsigned long long)n);
    for (size_t i = 0; i < sizeof(m->identity); i++)
        m->identity[i] = (char)random_next(&state);
    for (size_t i = 0; i < sizeof(m->data); i++)
        m->data[i] = i < 64 ? (char)random_next(&state) : (char)i;
    *out = (struct tree_record){str_n(m->key, (size_t)len), str_n(m->identity, sizeof(m->identity)),
                                str_n(m->data, 120)};
}

static int many_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct many *m = ctx;

    if (m->at >= m->end)
        return ERR_END;
    many_record(m, m->at, out);
    m->at += m->step;
    return 0;
}

/* The height of a tree of that many nodes that grows with their logarithm. */
static unsigned height_most(uint64_t nodes)
{
    unsigned height = 1;

    for (; nodes > 1; nodes /= FAN_OUT)
        height++;
    return height;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

TEST_TIMEOUT(lake_tree_large, one_changed_key_of_a_million_writes_at_most_four_nodes, 3600)
{
    const char *text = getenv("TREE_OBJECTS");
    struct tree_write_options o = {0};
    struct tree_result r, next;
    struct tree_stats stats;
    uint64_t nodes[ROUNDS], state = 1, objects = 1000 * 1000;
    struct world w;
    struct err err = {0};

    if (text)
        CHECK_INT(str_u64(str_z(text), &objects), 0);
    world_open(&w, 64 << 20);
    struct many all = {.end = objects, .step = 1};
    struct tree_changes changes = {many_next, &all};
    CHECK_OK(tree_apply(&w.store, STR_EMPTY, &changes, &o, &r, &err));
    CHECK_INT(r.added, objects);
    CHECK_OK(tree_stats(&w.store, str_z(r.root), &stats, &err));
    CHECK_INT(stats.objects, objects);
    if (stats.height > height_most(r.nodes))
        test_fail(__FILE__, __LINE__, "%llu nodes have the height %u", (unsigned long long)r.nodes,
                  stats.height);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t at = random_next(&state) % objects;
        struct many one = {.at = at, .end = at + 1, .step = 1, .version = 1};
        struct tree_changes change = {many_next, &one};
        CHECK_OK(tree_apply(&w.store, str_z(r.root), &change, &o, &next, &err));
        CHECK_INT(next.changed, 1);
        nodes[i] = next.nodes;
    }
    qsort(nodes, ROUNDS, sizeof(nodes[0]), by_number);
    CHECK(nodes[ROUNDS / 2] <= NODES_MAX);
    CHECK(nodes[ROUNDS - 1] <= 30);
    printf(
        "%llu objects: height %u, %llu nodes, a change writes %llu in the median, %llu at most\n",
        (unsigned long long)objects, stats.height, (unsigned long long)r.nodes,
        (unsigned long long)nodes[ROUNDS / 2], (unsigned long long)nodes[ROUNDS - 1]);
    world_close(&w);
}

/* The caller's own thread takes the first 10,000 steps, and one of low priority the others. Without
 * options that same thread also writes the nodes. */
TEST(lake_tree_large, the_nodes_of_long_work_are_written_at_low_priority)
{
    enum { OBJECTS = 40 * 1000 };
    struct many all = {.end = OBJECTS, .step = 1};
    struct tree_changes changes = {many_next, &all};
    struct tree_result r;
    struct world w;
    struct err err = {0};

    world_open(&w, 1 << 20);
    CHECK_OK(tree_apply(&w.store, STR_EMPTY, &changes, NULL, &r, &err));
    CHECK_INT(w.writes, r.nodes);
    CHECK(r.nodes > 50);
    CHECK(w.low_writes > r.nodes / 2);
    world_close(&w);
}

/* --- trees whose ids are known --- */

/* Numbers of docs/lake-trees.md: "The file" and "The rule of splitting". */
enum {
    GOLDEN_OBJECTS = 20000,
    GOLDEN_LEAF = 64 << 10,
    GOLDEN_INDEX = 32 << 10,
    GOLDEN_CHILDREN = 4,
    GOLDEN_LEVELS = 16,
    FOOTER_LEN = 64,
    FOOTER_RECORDS = 44,
    FOOTER_WEIGHT = 48,
    HEADER_LEVEL = 8,
};

/* The records of struct many, with a beginning before each key that makes the keys long. */
struct golden {
    struct many many;
    size_t pad;
    char key[2048];
};

static int golden_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct golden *g = ctx;
    int code = many_next(&g->many, out, err);

    if (code < 0)
        return code;
    memset(g->key, 'x', g->pad);
    memcpy(g->key + g->pad, out->key.p, out->key.len);
    out->key = str_n(g->key, g->pad + out->key.len);
    return 0;
}

/* Counts the nodes of each level. No node is larger than the rule allows, and of each level above
 * the leaves only the last node may have fewer than four children. */
static void golden_check_nodes(struct world *w, size_t record_max, unsigned levels[GOLDEN_LEVELS])
{
    unsigned narrow[GOLDEN_LEVELS] = {0};
    size_t cursor = 0;
    struct str id;
    void *value;

    while (map_next(&w->files, &cursor, &id, &value)) {
        struct str bytes = buf_str(&((const struct world_file *)value)->bytes);
        const unsigned char *footer = (const unsigned char *)bytes.p + bytes.len - FOOTER_LEN;
        unsigned level = (unsigned char)bytes.p[HEADER_LEVEL];
        size_t target = level ? GOLDEN_INDEX : GOLDEN_LEAF;
        CHECK(level < GOLDEN_LEVELS);
        CHECK(le32_read(footer + FOOTER_WEIGHT) <= 4 * target + record_max);
        levels[level]++;
        narrow[level] += level && le32_read(footer + FOOTER_RECORDS) < GOLDEN_CHILDREN;
    }
    for (unsigned i = 0; i < GOLDEN_LEVELS; i++)
        CHECK(narrow[i] <= 1);
}

/* Builds a tree, which must have this id and these numbers of nodes on its levels. A change of the
 * rule of splitting, of the hash's seeds or of a target size would give existing repositories other
 * ids, so that their next commits, diffs and merges would read and write whole trees. */
static void golden_expect(size_t objects, size_t pad, size_t record_max, const char *root,
                          const unsigned want[GOLDEN_LEVELS])
{
    struct golden *g = xzalloc(sizeof(*g));
    struct tree_changes changes = {golden_next, g};
    struct tree_write_options o = {0};
    unsigned levels[GOLDEN_LEVELS] = {0};
    struct tree_result r;
    struct world w;
    struct err err = {0};

    g->many = (struct many){.end = objects, .step = 1};
    g->pad = pad;
    world_open(&w, 1 << 20);
    CHECK_OK(tree_apply(&w.store, STR_EMPTY, &changes, &o, &r, &err));
    golden_check_nodes(&w, record_max, levels);
    for (unsigned i = 0; i < GOLDEN_LEVELS; i++)
        CHECK_INT(levels[i], want[i]);
    CHECK_STR(str_z(r.root), str_z(root));
    world_close(&w);
    free(g);
}

TEST(lake_tree_large, a_tree_has_the_id_that_it_always_had)
{
    static const unsigned levels[GOLDEN_LEVELS] = {52, 1};

    golden_expect(GOLDEN_OBJECTS, 0, 1024,
                  "e9754a45ccd51424e97168cff8ba46db78c89971551c3845f686c5ab787a2781", levels);
}

/* Nodes of long keys have few children, so this tree has more levels. */
TEST(lake_tree_large, a_tree_of_long_keys_has_the_id_that_it_always_had)
{
    static const unsigned levels[GOLDEN_LEVELS] = {590, 62, 7, 1};

    golden_expect(GOLDEN_OBJECTS, 1990, 5000,
                  "e2e84e3a6a34559e666505a246deb7f88289665ef53b6993e7c2809edb2afbc6", levels);
}

/* --- random changes --- */

enum { LARGE_KEYS = 20000, LARGE_SEEDS = 20, LARGE_LOOKUPS = 500 };

/* A set of objects: versions[n] is the version of object n; 0: the set does not have it. */
struct large {
    uint8_t versions[LARGE_KEYS];
};

/* Gives the changes from one set to another. */
struct large_changes {
    const struct large *from, *to;
    struct many many;
};

static int large_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct large_changes *c = ctx;

    while (c->many.at < LARGE_KEYS) {
        uint64_t n = c->many.at++;
        c->many.version = c->to->versions[n];
        if (c->from->versions[n] == c->many.version)
            continue;
        many_record(&c->many, n, out);
        if (c->many.version == 0)
            out->identity = out->data = STR_EMPTY;
        return 0;
    }
    return ERR_END;
}

static void large_apply(struct world *w, struct str base, const struct large *from,
                        const struct large *to, struct tree_result *out)
{
    struct tree_write_options o = {0};
    struct large_changes c = {.from = from, .to = to};
    struct tree_changes changes = {large_next, &c};
    struct err err = {0};

    CHECK_OK(tree_apply(&w->store, base, &changes, &o, out, &err));
}

/* Changes single objects, runs of them, and now and then half of all. */
static void large_change(struct large *s, uint64_t *state)
{
    for (unsigned i = random_next(state) % 12; i > 0; i--) {
        unsigned at = random_next(state) % LARGE_KEYS, run = 1;
        if (random_next(state) % 2)
            run = random_next(state) % (random_next(state) % 16 ? 2000 : LARGE_KEYS / 2);
        uint8_t version = (uint8_t)(random_next(state) % 4);
        for (unsigned n = at; n < at + run && n < LARGE_KEYS; n++)
            s->versions[n] = version;
    }
}

static void large_check_record(const struct tree_record *got, uint64_t n, uint8_t version)
{
    struct many m = {.version = version};
    struct tree_record want;

    many_record(&m, n, &want);
    CHECK_STR(got->key, want.key);
    CHECK_STR(got->identity, want.identity);
    CHECK_STR(got->data, want.data);
}

/* The difference of two trees is that of their sets. */
static void large_check_diff(struct world *w, const struct tree_result roots[2],
                             const struct large sets[2])
{
    struct tree_difference d;
    struct tree_diff *diff;
    struct err err = {0};

    CHECK_OK(tree_diff_open(&diff, &w->store, str_z(roots[0].root), str_z(roots[1].root), STR_EMPTY,
                            &err));
    for (unsigned n = 0; n < LARGE_KEYS; n++) {
        uint8_t left = sets[0].versions[n], right = sets[1].versions[n];
        if (left == right)
            continue;
        CHECK_OK(tree_diff_next(diff, &d, &err));
        CHECK_INT(d.type, left == 0 ? TREE_ADDED : right == 0 ? TREE_REMOVED : TREE_CHANGED);
        if (left)
            large_check_record(&d.left, n, left);
        if (right)
            large_check_record(&d.right, n, right);
    }
    CHECK_ERR(tree_diff_next(diff, &d, &err), ERR_END);
    tree_diff_close(diff);
}

/* The tree has the records of the set: listed in their order, and looked up one by one. */
static void large_check(struct world *w, struct str root, const struct large *s, uint64_t *state)
{
    struct arena a = ARENA_INIT(1 << 20);
    struct tree_iter *it;
    struct tree_record r;
    struct err err = {0};

    CHECK_OK(tree_iter_open(&it, &w->store, root, &err));
    for (unsigned n = 0; n < LARGE_KEYS; n++)
        if (s->versions[n]) {
            CHECK_OK(tree_iter_next(it, &r, &err));
            large_check_record(&r, n, s->versions[n]);
        }
    CHECK_ERR(tree_iter_next(it, &r, &err), ERR_END);
    tree_iter_close(it);
    for (unsigned i = 0; i < LARGE_LOOKUPS; i++) {
        struct many m = {0};
        unsigned n = random_next(state) % LARGE_KEYS;
        many_record(&m, n, &r);
        int code = tree_get(&w->store, &a, root, str_z(m.key), &r, &err);
        CHECK_INT(code, s->versions[n] ? 0 : ERR_NOT_FOUND);
        if (code == 0)
            large_check_record(&r, n, s->versions[n]);
        arena_reset(&a);
    }
    arena_release(&a);
}

/* Two branches change the base; each, and their merge, is the tree that is built from nothing. */
static void check_large(uint64_t seed)
{
    static const struct large nothing;
    struct large *sets = xcalloc(4, sizeof(*sets)), *base = &sets[0], *merged = &sets[3];
    struct tree_result roots[4], built, got;
    uint64_t state = seed;
    struct world w;
    struct err err = {0};

    world_open(&w, 1 << 20);
    for (unsigned n = 0; n < LARGE_KEYS; n++)
        base->versions[n] = random_next(&state) % 8 ? 1 : 0;
    large_apply(&w, STR_EMPTY, &nothing, base, &roots[0]);
    for (int i = 1; i < 3; i++) {
        sets[i] = *base;
        large_change(&sets[i], &state);
        large_apply(&w, str_z(roots[0].root), base, &sets[i], &roots[i]);
        large_apply(&w, STR_EMPTY, &nothing, &sets[i], &built);
        CHECK_STR(str_z(roots[i].root), str_z(built.root));
    }
    for (unsigned n = 0; n < LARGE_KEYS; n++) {
        bool changed = sets[1].versions[n] != base->versions[n];
        merged->versions[n] = sets[changed ? 1 : 2].versions[n];
    }
    large_check_diff(&w, &roots[1], &sets[1]);
    struct tree_merge m = {.base = str_z(roots[0].root),
                           .source = str_z(roots[1].root),
                           .dest = str_z(roots[2].root),
                           .strategy = TREE_SOURCE_WINS};
    CHECK_OK(tree_merge(&w.store, &m, NULL, &got, &err));
    large_apply(&w, STR_EMPTY, &nothing, merged, &built);
    CHECK_STR(str_z(got.root), str_z(built.root));
    large_check(&w, str_z(got.root), merged, &state);
    free(sets);
    world_close(&w);
}

TEST_TIMEOUT(lake_tree_large, branches_and_their_merge_are_the_trees_that_are_built_from_nothing,
             600)
{
    for (uint64_t seed = 0; seed < LARGE_SEEDS; seed++)
        check_large(seed);
}
