/* Collections beside everything else: threads of two lakes over the same rows, as two processes
 * would be, write, remove, commit, merge, copy, branch, tag, reset and delete, while a collector
 * with no retention runs again and again. Trees that were not
 * published are built again when their nodes have just become old enough to be removed. Afterwards
 * every live object is read in full, by a lake that has nothing in memory, and no dead body and no
 * dead node is left. */
#include "base/clock.h"
#include "base/ids.h"
#include "lake/hooks.h"
#include "lake/iter.h"
#include "unit/lake/gc_lab.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    STORM_MS = 5000,
    STORM_GRACE_MS = 2500, /* longer than a put waits for its stage, also on a loaded machine */
    STORM_PATHS = 6,
    STORM_THREADS = 7,
    REFUSED_MAX = 64, /* trees that wait for their second commit at a time */
};

struct gc_storm {
    uint64_t ends_ms; /* of clock_mono_ms() */
    _Atomic(unsigned) writes, copies, merges, branches, runs, removed, remade;
};

struct gc_storm_thread {
    struct gc_storm *storm;
    struct hand hand;
    struct thread thread;
    void (*fn)(struct gc_storm_thread *t);
};

static const char *const storm_branches[] = {"main", "side"};

static const char *any_branch(void)
{
    return storm_branches[random_below(ARRAY_SIZE(storm_branches))];
}

static const char *any_path(struct hand *h)
{
    return arena_fmt(&h->arena, "p%llu", (unsigned long long)random_below(STORM_PATHS)).p;
}

/* Every operation may lose a race or meet a dirty branch; it must not fail in another way. */
static bool is_fine(int code)
{
    static const int fine[] = {0,        ERR_NOT_FOUND,    ERR_EXISTS,   ERR_INVALID, ERR_BUSY,
                               ERR_GONE, ERR_NOT_MODIFIED, ERR_CONFLICT, ERR_DENIED};

    for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
        if (code == fine[i])
            return true;
    return false;
}

static int try_commit_any(struct hand *h, const char *branch)
{
    struct lake_commit_options o = {.message = STR("storm"), .committer = STR("tester")};
    struct lake_commit c;

    return lake_commit(h->lake, &h->arena, &h->repo, str_z(branch), &o, &c, &h->err);
}

static void storm_write(struct gc_storm_thread *t)
{
    struct hand *h = &t->hand;
    const char *branch = any_branch();

    if (random_below(4) == 0) {
        struct lake_put put = {str_z(any_path(h)), NULL};
        CHECK(is_fine(
            lake_stage(h->lake, &h->arena, &h->repo, str_z(branch), &put, 1, NULL, &h->err)));
    } else {
        char id[ID_TIME_LEN + 1];
        id_time(id);
        gc_lab_put(h, branch, any_path(h), id);
        t->storm->writes++;
    }
    if (random_below(3) == 0)
        CHECK(is_fine(try_commit_any(h, branch)));
    if (random_below(20) == 0)
        CHECK(is_fine(lake_reset(h->lake, &h->arena, &h->repo, str_z(branch), LAKE_RESET_PREFIX,
                                 STR("p"), false, &h->err)));
}

static void storm_copy(struct gc_storm_thread *t)
{
    struct hand *h = &t->hand;
    struct lake_object o;
    struct lake_keep keep;
    struct err err = {0};

    CHECK_OK(lake_keep_begin(&keep, h->lake, &h->arena, &h->repo, &err));
    int code = lake_stat(h->lake, &h->arena, &h->repo, str_z(any_branch()), str_z(any_path(h)), &o,
                         &h->err);
    if (code == 0) {
        code = gc_lab_stage(h, any_branch(), any_path(h), &o.entry, &keep);
        t->storm->copies += code == 0;
    }
    CHECK(is_fine(code));
}

static void storm_merge(struct gc_storm_thread *t)
{
    struct lake_merge_options o = {.committer = STR("tester"), .strategy = TREE_SOURCE_WINS};
    struct lake_pick_options pick = {.ref = STR("main~1"), .committer = STR("tester")};
    struct hand *h = &t->hand;
    struct lake_conflicts conflicts;
    struct lake_commit c;
    int code = lake_merge(h->lake, &h->arena, &h->repo, STR("main"), STR("side"), &o, &c,
                          &conflicts, &h->err);

    t->storm->merges += code == 0;
    CHECK(is_fine(code));
    CHECK(is_fine(lake_cherry_pick(h->lake, &h->arena, &h->repo, STR("side"), &pick, &c, &conflicts,
                                   &h->err)));
    CHECK(is_fine(
        lake_revert(h->lake, &h->arena, &h->repo, STR("side"), &pick, &c, &conflicts, &h->err)));
}

static void storm_refs(struct gc_storm_thread *t)
{
    struct hand *h = &t->hand;
    struct str name = arena_fmt(&h->arena, "b%llu", (unsigned long long)random_below(5));
    struct str label = arena_fmt(&h->arena, "t%llu", (unsigned long long)random_below(5));
    struct lake_branch_options o = {.name = name, .source = STR("main~1")};
    struct lake_branch b;
    struct lake_tag tag;
    int code = lake_branch_create(h->lake, &h->arena, &h->repo, &o, &b, &h->err);

    t->storm->branches += code == 0;
    CHECK(is_fine(code));
    CHECK(is_fine(
        lake_tag_create(h->lake, &h->arena, &h->repo, label, STR("side~2"), false, &tag, &h->err)));
    if (random_below(2))
        CHECK(is_fine(lake_branch_delete(h->lake, &h->arena, &h->repo, name, false, &h->err)));
    if (random_below(2))
        CHECK(is_fine(lake_tag_delete(h->lake, &h->arena, &h->repo, label, false, &h->err)));
    if (random_below(4) == 0)
        CHECK(is_fine(lake_hard_reset(h->lake, &h->arena, &h->repo, STR("side"), STR("main~1"),
                                      false, &h->err)));
}

/* --- nodes that are made again --- */

static _Thread_local bool refuses; /* commits of this thread are refused when their tree is built */

static int hook_refuse(void *ctx, struct lake *l, struct arena *a, const struct lake_hook_call *c,
                       struct err *err)
{
    return refuses && c->event == LAKE_ON_COMMIT ? err_set(err, ERR_PRECONDITION, "refused") : 0;
}

static void hook_ignore(void *ctx, struct lake *l, const struct lake_hook_call *c)
{
}

static const struct lake_hooks storm_hooks = {.pre = hook_refuse, .post = hook_ignore};

/* When the tree of branch `again<n>` was refused. Branches are committed in this order. */
struct refused {
    uint64_t at_ms[REFUSED_MAX];
    unsigned made, ended;
};

static const char *refused_branch(struct hand *h, unsigned n)
{
    return arena_fmt(&h->arena, "again%u", n).p;
}

/* Leaves the nodes of a tree behind that no commit has. */
static void storm_refuse(struct hand *h, struct refused *r)
{
    const char *branch = refused_branch(h, r->made);
    struct lake_branch_options o = {.name = str_z(branch), .source = STR("main")};
    struct lake_branch b;
    int code = lake_branch_create(h->lake, &h->arena, &h->repo, &o, &b, &h->err);

    CHECK(code == 0 || code == ERR_BUSY);
    if (code < 0)
        return;
    gc_lab_put(h, branch, branch, branch);
    refuses = true;
    code = try_commit_any(h, branch);
    refuses = false;
    CHECK(code == ERR_PRECONDITION || code == ERR_BUSY);
    r->at_ms[r->made++ % REFUSED_MAX] = clock_mono_ms();
}

/* Builds the tree again, about when a collector finds its nodes old enough. */
static void storm_remake(struct gc_storm_thread *t)
{
    static _Thread_local struct refused r;
    struct hand *h = &t->hand;

    if (r.made - r.ended < REFUSED_MAX)
        storm_refuse(h, &r);
    if (r.made == r.ended || clock_mono_ms() - r.at_ms[r.ended % REFUSED_MAX] < STORM_GRACE_MS)
        return;
    int code = try_commit_any(h, refused_branch(h, r.ended));
    CHECK(code == 0 || code == ERR_BUSY);
    t->storm->remade += code == 0;
    r.ended += code == 0;
}

static void storm_collect(struct gc_storm_thread *t)
{
    struct hand *h = &t->hand;
    struct lake_gc_report report;
    struct err err = {0};

    CHECK(is_fine(lake_gc_ask(h->lake, &h->arena, &h->repo, false, &report, &err)));
    int code = lake_gc_work(h->lake, &h->repo, NULL, NULL, &err);
    if (!is_fine(code))
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_OK(lake_gc_report(h->lake, &h->arena, &h->repo, &report, &err));
    t->storm->runs += code == 0;
    t->storm->removed += (unsigned)report.bodies_removed;
}

static void storm_thread_main(void *ctx)
{
    struct gc_storm_thread *t = ctx;

    while (clock_mono_ms() < t->storm->ends_ms) {
        t->fn(t);
        arena_reset(&t->hand.arena);
    }
}

/* --- afterwards --- */

static void note_live(struct hand *h, struct gc_sorter *live, struct str ref)
{
    struct lake_list_options o = {.limit = LAKE_LIST_MAX};
    struct lake_objects page;
    struct err err = {0};

    CHECK_OK(lake_list(h->lake, &h->arena, &h->repo, ref, &o, &page, &err));
    for (size_t i = 0; i < page.count; i++)
        CHECK_OK(gc_sorter_add(live, page.items[i].entry.address, &err));
}

/* The bodies that refs have are all that is there. */
static size_t count_live(struct hand *h)
{
    struct lake_page page = {.limit = LAKE_LIST_MAX};
    struct gc_sorter *live = NULL;
    struct lake_branch *branches;
    struct lake_tag *tags;
    struct err err = {0};
    struct str address;
    size_t count, total = 0;
    bool more;

    CHECK_OK(gc_sorter_open(&live, test_dir(), GC_SORT_BYTES, &err));
    CHECK_OK(lake_branch_list(h->lake, &h->arena, &h->repo, &page, true, &branches, &count, &more,
                              &err));
    for (size_t i = 0; i < count; i++)
        note_live(h, live, branches[i].id);
    CHECK_OK(lake_tag_list(h->lake, &h->arena, &h->repo, &page, &tags, &count, &more, &err));
    for (size_t i = 0; i < count; i++)
        note_live(h, live, tags[i].id);
    CHECK_OK(gc_sorter_sort(live, &err));
    while (gc_sorter_next(live, &address, &err) == 0)
        total++;
    gc_sorter_close(live);
    return total;
}

static int note_node(void *ctx, const struct node_visit *v, struct err *err)
{
    return gc_sorter_add(ctx, v->id, err);
}

/* The number of nodes that commits have, expired ones too. */
static size_t count_nodes(struct hand *h)
{
    struct gc_sorter *nodes = NULL;
    struct lake_iter *it = NULL;
    struct tree_store store;
    struct lake_item item;
    struct err err = {0};
    struct str id;
    size_t total = 0;

    CHECK_OK(gc_sorter_open(&nodes, test_dir(), GC_SORT_BYTES, &err));
    CHECK_OK(lake_tree_store(h->lake, &h->repo, &store, &err));
    CHECK_OK(lake_iter_commits(&it, h->lake, &h->repo, false, &err));
    while (lake_iter_next(it, &item, &err) == 0)
        if (item.commit->tree.len)
            CHECK_OK(tree_walk(&store, item.commit->tree, NULL, note_node, nodes, &err));
    lake_iter_free(it);
    lake_tree_store_release(h->lake, &store);
    CHECK_OK(gc_sorter_sort(nodes, &err));
    while (gc_sorter_next(nodes, &id, &err) == 0)
        total++;
    gc_sorter_close(nodes);
    return total;
}

/* Everything that is live is there, and nothing else. Another lake has no node in its memory. */
static void check_storm_end(struct lake_lab *lab)
{
    struct hand h = hand_of(lab), fresh = hand_second(lab);
    int64_t since = clock_wall_ms();

    CHECK_SOON(clock_wall_ms() > since + 2100); /* conditions on nodes compare whole seconds */
    gc_lab_collect(&h, false);
    gc_lab_read_refs(&fresh);
    CHECK_INT(gc_lab_count_files(&fresh, "data/"), count_live(&fresh));
    CHECK_INT(gc_lab_count_files(&fresh, LAKE_NODES "/") - 1, count_nodes(&fresh)); /* the claim */
    hand_release(&fresh);
    hand_release(&h);
}

static void reset_all(struct hand *h)
{
    struct lake_page page = {.limit = LAKE_LIST_MAX};
    struct lake_branch *branches;
    struct err err = {0};
    size_t count;
    bool more;

    CHECK_OK(lake_branch_list(h->lake, &h->arena, &h->repo, &page, true, &branches, &count, &more,
                              &err));
    for (size_t i = 0; i < count; i++)
        CHECK_OK(lake_reset(h->lake, &h->arena, &h->repo, branches[i].id, LAKE_RESET_ALL, STR_EMPTY,
                            false, &err));
}

GC_PLACES_TEST(lake_gc_storm, collections_beside_everything_lose_nothing_and_leave_nothing)
{
    static void (*const work[])(struct gc_storm_thread * t) = {
        storm_write, storm_write, storm_copy, storm_merge, storm_refs, storm_remake, storm_collect};
    struct gc_storm storm = {.ends_ms = clock_mono_ms() + STORM_MS};
    struct gc_storm_thread threads[STORM_THREADS];
    struct hand h = hand_of(lab), second = hand_second(lab);
    struct err err = {0};

    lab->lake->o.gc_grace_ms = STORM_GRACE_MS;
    lab->lake->o.hooks = &storm_hooks;
    second.lake->o.folder = lab->lake->o.folder;
    second.lake->o.gc_grace_ms = STORM_GRACE_MS;
    second.lake->o.hooks = &storm_hooks;
    hand_branch(&h, "side", "main");
    gc_lab_rules(&h, 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        threads[i] = (struct gc_storm_thread){&storm, hand_of(lab), .fn = work[i]};
        if (i % 2) /* the lakes take turns */
            threads[i].hand.lake = second.lake;
        CHECK_OK(
            thread_start(&threads[i].thread, "storm", 0, storm_thread_main, &threads[i], &err));
    }
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        thread_join(&threads[i].thread);
        hand_release(&threads[i].hand);
    }
    gc_lab_read_refs(&h);
    CHECK(storm.writes > 0 && storm.copies > 0 && storm.runs > 1 && storm.removed > 0);
    CHECK(storm.branches > 0 && storm.remade > 0);
    reset_all(&h); /* rows that newer tokens hide name bodies too */
    hand_release(&second);
    lab->lake->o.gc_grace_ms = 1;
    check_storm_end(lab);
    hand_release(&h);
}
