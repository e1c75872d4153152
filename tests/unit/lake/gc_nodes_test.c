/* Nodes and the collector: a tree whose nodes are dead is made again, at every step of a run that
 * is about to remove them. */
#include "lake/dump.h"
#include "lake/files.h"
#include "lake/hooks.h"
#include "unit/lake/gc_lab.h"
#include "unit/lake/steps.h"

#include "base/clock.h"

/* Nodes are two seconds old at least, because conditions compare whole seconds. */
static void wait_for_dead_nodes(void)
{
    int64_t since = clock_wall_ms();

    CHECK_SOON(clock_wall_ms() > since + 2100);
}

static int refuse(void *ctx, struct lake *l, struct arena *a, const struct lake_hook_call *c,
                  struct err *err)
{
    return c->event == LAKE_ON_PREPARE_COMMIT ? 0 : err_set(err, ERR_PRECONDITION, "refused");
}

static void forget(void *ctx, struct lake *l, const struct lake_hook_call *c)
{
}

static const struct lake_hooks refusing = {.pre = refuse, .post = forget};

/* A repository whose staged objects were built into a tree that was not published. */
static struct hand with_dead_nodes(struct lake_lab *lab, const char *name)
{
    struct hand h = hand_of(lab);

    h.repo = lake_lab_repo(lab, name);
    gc_lab_put(&h, "main", "a", "one");
    gc_lab_put(&h, "main", "b", "two");
    h.lake->o.hooks = &refusing;
    CHECK_INT(hand_try_commit(&h, "main", "refused"), ERR_PRECONDITION);
    h.lake->o.hooks = NULL;
    CHECK(gc_lab_count_files(&h, LAKE_NODES "/") > 1); /* the claim and nodes */
    return h;
}

/* Reads the branch with another lake, which has no node in its memory. */
static void read_afresh(struct lake_lab *lab, const struct hand *h, size_t count)
{
    struct hand fresh = hand_second(lab);

    fresh.repo = h->repo;
    CHECK_INT(gc_lab_read_all(&fresh, STR("main")), count);
    hand_release(&fresh);
}

GC_PLACES_TEST(lake_gc_nodes, nodes_of_a_tree_that_was_not_published_are_removed)
{
    struct hand h = with_dead_nodes(lab, "nodes");

    wait_for_dead_nodes();
    size_t nodes = gc_lab_count_files(&h, LAKE_NODES "/") - 1;
    struct lake_gc_report report = gc_lab_collect(&h, false);
    CHECK_INT(report.nodes_dead, nodes);
    CHECK_INT(report.nodes_removed, nodes);
    CHECK_INT(gc_lab_count_files(&h, LAKE_NODES "/"), 1); /* the claim */
    CHECK_INT(gc_lab_read_all(&h, STR("main")), 2);
    hand_commit(&h, "main", "now");
    read_afresh(lab, &h, 2);
    gc_lab_collect(&h, false);
    read_afresh(lab, &h, 2);
    hand_release(&h);
}

struct again {
    struct hand *hand;
    int code;
};

static void commit_again(void *ctx)
{
    struct again *a = ctx;

    a->code = hand_try_commit(a->hand, "main", "again");
}

/* The steps of a run, in their order: it begins to mark, puts its list, closes the marks, begins to
 * remove, and removes. */
static const struct moment {
    enum steps_when when;
    const char *step;
    unsigned n;
} moments[] = {
    {STEPS_BEFORE, "lake.gc_mark", 1},   {STEPS_AFTER, "lake.gc_mark", 1},
    {STEPS_BEFORE, "lake.gc_mark", 2},   {STEPS_AFTER, "lake.gc_mark", 2},
    {STEPS_BEFORE, "lake.gc_mark", 3},   {STEPS_AFTER, "lake.gc_mark", 3},
    {STEPS_BEFORE, "lake.gc_mark", 4},   {STEPS_AFTER, "lake.gc_mark", 4},
    {STEPS_BEFORE, "lake.gc_remove", 1}, {STEPS_AFTER, "lake.gc_remove", 1},
    {STEPS_BEFORE, "lake.gc_remove", 2}, {STEPS_AFTER, "lake.gc_remove", 2},
    {STEPS_BEFORE, "lake.gc_mark", 5},   {STEPS_AFTER, "lake.gc_mark", 5},
};

/* A commit that meets a node under removal is refused for a while, and can be repeated. */
static void make_again(struct lake_lab *lab, struct hand *h, const struct moment *m)
{
    struct again a = {.hand = h, .code = -1};

    steps_plan(m->when, m->step, m->n, commit_again, &a);
    gc_lab_collect(h, false);
    CHECK(steps_happened());
    if (a.code == ERR_BUSY)
        hand_commit(h, "main", "later");
    else
        CHECK_INT(a.code, 0);
    read_afresh(lab, h, 2);
    gc_lab_collect(h, false);
    read_afresh(lab, h, 2);
}

GC_PLACES_TEST(lake_gc_nodes, nodes_made_again_at_any_step_of_a_run_are_there)
{
    struct hand hands[ARRAY_SIZE(moments)];

    lab->lake->node_wait_ms = 50;
    for (size_t i = 0; i < ARRAY_SIZE(moments); i++)
        hands[i] = with_dead_nodes(lab, arena_fmt(&lab->arena, "repo%zu", i).p);
    wait_for_dead_nodes();
    for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
        make_again(lab, &hands[i], &moments[i]);
        hand_release(&hands[i]);
    }
}

/* A run of a collector while the tree is built and before it is published. */
static void collect_beside(void *ctx)
{
    struct again *a = ctx;
    struct hand other = *a->hand;

    other.arena = (struct arena){0};
    wait_for_dead_nodes();
    CHECK(gc_lab_collect(&other, false).nodes_removed > 0);
    arena_release(&other.arena);
    a->code = 0;
}

GC_PLACES_TEST(lake_gc_nodes, a_whole_run_between_building_and_publishing_costs_a_rebuild)
{
    struct hand h = with_dead_nodes(lab, "between");
    struct again a = {.hand = &h, .code = -1};

    steps_plan(STEPS_BEFORE, "lake.publish", 1, collect_beside, &a);
    hand_commit(&h, "main", "slow");
    CHECK(steps_happened());
    CHECK_INT(a.code, 0);
    read_afresh(lab, &h, 2);
    hand_release(&h);
}

/* --- dumps --- */

static void dump_again(void *ctx)
{
    struct again *a = ctx;
    struct lake_refs refs;

    a->code = lake_dump(a->hand->lake, &a->hand->arena, &a->hand->repo, NULL, &refs, &a->hand->err);
}

/* A repository with the nodes of a dump whose manifest is gone. */
static struct hand with_dead_dump(struct lake_lab *lab, const char *name)
{
    struct hand h = hand_of(lab);
    struct again a = {.hand = &h, .code = -1};
    struct err err = {0};

    h.repo = lake_lab_repo(lab, name);
    dump_again(&a);
    CHECK_INT(a.code, 0);
    CHECK_OK(lake_files_remove(h.lake, &h.repo, STR(LAKE_NODES "/refs_manifest.json"), NULL, &err));
    CHECK(gc_lab_count_files(&h, LAKE_NODES "/") > 1);
    return h;
}

/* Reads every node of the dump that the manifest names, with another lake. */
static int visit_nothing(void *ctx, const struct node_visit *v, struct err *err)
{
    return 0;
}

static void walk_dump_afresh(struct lake_lab *lab, const struct hand *h)
{
    struct hand fresh = hand_second(lab);
    struct lake_refs refs;
    struct tree_store store;
    struct err err = {0};

    CHECK_OK(lake_manifest_read(fresh.lake, &fresh.arena, &h->repo, &refs, &err));
    CHECK_OK(lake_tree_store(fresh.lake, &h->repo, &store, &err));
    const struct str roots[] = {refs.branches, refs.tags, refs.commits};
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
        if (roots[i].len) {
            struct tree_iter *it = NULL;
            struct tree_record record;
            CHECK_OK(tree_walk(&store, roots[i], NULL, visit_nothing, NULL, &err));
            CHECK_OK(tree_iter_open(&it, &store, roots[i], &err));
            int code;
            while ((code = tree_iter_next(it, &record, &err)) == 0)
                ;
            CHECK_INT(code, ERR_END);
            tree_iter_close(it);
        }
    lake_tree_store_release(fresh.lake, &store);
    hand_release(&fresh);
}

GC_PLACES_TEST(lake_gc_nodes, a_dump_that_is_made_at_any_step_of_a_run_is_whole)
{
    struct hand hands[ARRAY_SIZE(moments)];

    lab->lake->node_wait_ms = 50;
    for (size_t i = 0; i < ARRAY_SIZE(moments); i++)
        hands[i] = with_dead_dump(lab, arena_fmt(&lab->arena, "dump%zu", i).p);
    wait_for_dead_nodes();
    for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
        struct again a = {.hand = &hands[i], .code = -1};
        steps_plan(moments[i].when, moments[i].step, moments[i].n, dump_again, &a);
        gc_lab_collect(&hands[i], false);
        CHECK(steps_happened());
        if (a.code == ERR_BUSY)
            dump_again(&a);
        CHECK_INT(a.code, 0);
        walk_dump_afresh(lab, &hands[i]);
        hand_release(&hands[i]);
    }
}

/* --- interrupted removals --- */

struct impatience {
    const char *step;
    unsigned left;
};

static bool ends_after_removals(void *ctx)
{
    struct impatience *p = ctx;

    return steps_count(p->step) >= p->left;
}

GC_PLACES_TEST(lake_gc_nodes, a_removal_of_nodes_that_is_interrupted_goes_on)
{
    struct hand h = with_dead_nodes(lab, "stopped");
    struct impatience p = {"lake.gc_remove", 1};
    struct lake_gc_report report;
    struct err err = {0};
    int code = ERR_BUSY;

    wait_for_dead_nodes();
    CHECK_OK(lake_gc_ask(h.lake, &h.arena, &h.repo, false, &report, &err));
    steps_plan(STEPS_BEFORE, "lake.none", 1, NULL, NULL); /* the count begins anew */
    CHECK_ERR(lake_gc_work(h.lake, &h.repo, ends_after_removals, &p, &err), ERR_CANCELED);
    CHECK(!steps_happened());
    CHECK_SOON((code = lake_gc_work(h.lake, &h.repo, NULL, NULL, &err)) != ERR_BUSY);
    CHECK_OK(code);
    CHECK_INT(gc_lab_count_files(&h, LAKE_NODES "/"), 1);
    hand_commit(&h, "main", "now");
    read_afresh(lab, &h, 2);
    hand_release(&h);
}
