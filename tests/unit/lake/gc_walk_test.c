/* Walks over the trees of many commits: each node is visited once, with little memory. */
#include "lake/gc_int.h"
#include "unit/lake/lake_lab.h"

#include <stdio.h>

enum { RECORDS = 4000, TREES = 6, LEVELS = 8 };

/* Changes of some records, so that trees share nodes. */
struct walk_changes {
    unsigned at, step, version;
    char path[16], identity[LAKE_IDENTITY_LEN];
};

static int walk_change_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct walk_changes *c = ctx;

    if (c->at >= RECORDS)
        return ERR_END;
    int len = snprintf(c->path, sizeof(c->path), "p/%05u", c->at);
    memset(c->identity, (char)c->version, sizeof(c->identity));
    *out = (struct tree_record){str_n(c->path, (size_t)len),
                                str_n(c->identity, sizeof(c->identity)), STR("data")};
    c->at += c->step;
    return 0;
}

/* What a walk has seen: how often each node. */
struct seen {
    struct lake_lab *lab;
    struct map counts; /* id to struct seen_node */
    size_t levels[LEVELS];
};

struct seen_node {
    char id[LAKE_ID_LEN];
    unsigned level, count;
};

static int seen_visit(void *ctx, struct str id, unsigned level, struct err *err)
{
    struct seen *s = ctx;
    struct seen_node *n = map_get(&s->counts, id);

    if (!n) {
        n = arena_new(&s->lab->arena, struct seen_node);
        memcpy(n->id, id.p, LAKE_ID_LEN);
        n->level = level;
        map_put(&s->counts, str_n(n->id, LAKE_ID_LEN), n);
    }
    CHECK(level < LEVELS);
    CHECK_INT(n->level, level);
    s->levels[level]++;
    n->count++;
    return 0;
}

/* The same by a walk over one tree. */
static int seen_tree(void *ctx, const struct node_visit *v, struct err *err)
{
    return seen_visit(ctx, v->id, v->level, err);
}

static void make_trees(struct tree_store *store, struct tree_result roots[TREES])
{
    struct err err = {0};

    for (unsigned i = 0; i < TREES; i++) {
        struct walk_changes c = {.step = i ? RECORDS / (4 * i) : 1, .version = i};
        struct tree_changes changes = {walk_change_next, &c};
        struct str base = i ? str_z(roots[0].root) : STR_EMPTY;
        CHECK_OK(tree_apply(store, base, &changes, NULL, &roots[i], &err));
    }
}

static void check_same(const struct seen *got, const struct seen *want)
{
    size_t cursor = 0;
    struct str id;
    void *value;

    CHECK_INT(got->counts.len, want->counts.len);
    while (map_next(&want->counts, &cursor, &id, &value)) {
        const struct seen_node *w = value, *g = map_get(&got->counts, id);
        CHECK(g);
        CHECK_INT(g->level, w->level);
        CHECK_INT(g->count, 1);
    }
}

static void check_walk(struct lake_lab *lab, struct tree_store *store,
                       const struct tree_result *roots, const struct seen *want)
{
    struct gc_run run = {.lake = lab->lake, .repo = &lab->repo};
    struct seen got = {.lab = lab};
    struct gc_walk *w = NULL;
    struct err err = {0};

    map_init(&got.counts);
    CHECK_OK(gc_walk_open(&w, &run, store, seen_visit, &got, &err));
    CHECK_OK(gc_walk_add(w, STR_EMPTY, &err));
    for (unsigned i = 0; i < TREES; i++)
        CHECK_OK(gc_walk_add(w, str_z(roots[i].root), &err));
    CHECK_OK(gc_walk_end(w, &err));
    gc_walk_close(w);
    check_same(&got, want);
    map_release(&got.counts);
}

LAKE_LAB_TEST(lake_gc_walk, every_node_of_many_trees_is_visited_once)
{
    struct tree_result roots[TREES];
    struct seen want = {.lab = lab};
    struct tree_store store;
    struct err err = {0};

    map_init(&want.counts);
    CHECK_OK(lake_tree_store(lab->lake, &lab->repo, &store, &err));
    store.leaf_bytes = 600; /* many nodes, on many levels */
    store.index_bytes = 500;
    make_trees(&store, roots);
    for (unsigned i = 0; i < TREES; i++)
        CHECK_OK(tree_walk(&store, str_z(roots[i].root), NULL, seen_tree, &want, &err));
    CHECK(want.levels[3] > 0); /* four levels or more */
    CHECK(want.counts.len > 300);
    lab->lake->o.folder = test_dir();
    check_walk(lab, &store, roots, &want);
    lab->lake->o.gc_bytes = 1; /* so that lists are written to disk */
    check_walk(lab, &store, roots, &want);
    lake_tree_store_release(lab->lake, &store);
    map_release(&want.counts);
}

LAKE_LAB_TEST(lake_gc_walk, a_node_that_is_gone_ends_the_walk_and_is_named)
{
    struct gc_run run = {.lake = lab->lake, .repo = &lab->repo};
    struct tree_result roots[TREES];
    struct seen all = {.lab = lab};
    struct tree_store store;
    struct gc_walk *w = NULL;
    struct err err = {0};
    struct str id, gone = STR_EMPTY;
    size_t cursor = 0;
    void *value;

    map_init(&all.counts);
    CHECK_OK(lake_tree_store(lab->lake, &lab->repo, &store, &err));
    store.leaf_bytes = 600;
    store.index_bytes = 500;
    make_trees(&store, roots);
    CHECK_OK(tree_walk(&store, str_z(roots[0].root), NULL, seen_tree, &all, &err));
    while (map_next(&all.counts, &cursor, &id, &value))
        if (((struct seen_node *)value)->level == 1)
            gone = id;
    lake_tree_store_release(lab->lake, &store);
    lake_lab_lose_node(lab, gone);
    struct kv *kv = NULL;
    struct lake *cold = lake_lab_open_second(lab, &kv); /* its cache does not have the node */
    cold->o.folder = test_dir();
    run.lake = cold;
    CHECK_OK(lake_tree_store(cold, &lab->repo, &store, &err));
    CHECK_OK(gc_walk_open(&w, &run, &store, seen_visit, &all, &err));
    CHECK_OK(gc_walk_add(w, str_z(roots[0].root), &err));
    CHECK_ERR(gc_walk_end(w, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), gone) >= 0);
    gc_walk_close(w);
    lake_tree_store_release(cold, &store);
    lake_close(cold);
    kv_close(kv);
    map_release(&all.counts);
}
