/* A tree of many objects: what a change of one key costs, in nodes. TREE_OBJECTS says how many
 * objects; the usual number is a million. */
#include "unit/lake/tree_world.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 101, NODES_MAX = 4 };

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
