/* Retention: which commits a collection keeps (docs/lake-keeping.md, G2).
 *
 * The head of every branch and the commit of every tag are kept. From a head a walk goes to its
 * first parent, then to that commit's first parent, and so on. A commit is kept if its child is
 * younger than the days of the branch's rule, so that every state of the branch in those days can
 * be read. A commit that no branch leads to, because its branch was deleted or reset, is judged in
 * the same way by the default rule, as if it had a child of its own age. If several walks reach a
 * commit, the walk with the most days decides. */
#include "lake/gc_int.h"
#include "lake/graph.h"
#include "lake/iter.h"

#include "base/clock.h"

#include <stdlib.h>

enum { RETAIN_REACHED = 1, RETAIN_KEPT = 2, RETAIN_BATCH = 500 };

/* A commit at which a walk begins. */
struct retain_start {
    char id[LAKE_ID_LEN];
    uint32_t days;
    bool is_head;
};

struct retain {
    struct gc_run *run;
    struct lake_gc_rules rules;
    int64_t now_ms;
    uint64_t day_ms;
    VEC(struct retain_start) starts;
    struct graph graph;
};

/* --- where walks begin --- */

static uint32_t retain_days(const struct retain *t, struct str branch)
{
    for (size_t i = 0; i < t->rules.count; i++)
        if (str_eq(t->rules.branches[i].branch, branch))
            return t->rules.branches[i].days;
    return t->rules.default_days;
}

static void retain_begin(struct retain *t, struct str id, uint32_t days, bool is_head)
{
    struct retain_start start = {.days = days, .is_head = is_head};

    if (id.len != LAKE_ID_LEN)
        return;
    memcpy(start.id, id.p, LAKE_ID_LEN);
    vec_push(&t->starts, start);
}

static void retain_leaf(struct retain *t, const struct lake_item *item)
{
    retain_begin(t, item->commit->id, t->rules.default_days, false);
}

static void retain_head(struct retain *t, const struct lake_item *item)
{
    gc_ids_add(&t->run->safe, item->branch->commit_id);
    retain_begin(t, item->branch->commit_id, retain_days(t, item->branch->id), true);
}

static void retain_tag(struct retain *t, const struct lake_item *item)
{
    gc_ids_add(&t->run->safe, item->tag->commit_id);
}

static int retain_each(struct retain *t, struct lake_iter *it,
                       void (*fn)(struct retain *t, const struct lake_item *item), struct err *err)
{
    struct lake_item item;
    int code = 0;

    while (code == 0 && (code = lake_iter_next(it, &item, err)) == 0) {
        fn(t, &item);
        code = gc_run_check(t->run, err);
    }
    lake_iter_free(it);
    return code == ERR_END ? 0 : code;
}

/* Finds the commits at which walks begin: leaves (commits that are not the first parent of another
 * commit), heads and tags. Heads are read after leaves: in the other order a commit that is
 * published in between would be found as a leaf alone, and be mistaken for a commit without a
 * branch. */
static int retain_find_starts(struct retain *t, struct err *err)
{
    const struct gc_run *g = t->run;
    struct lake_iter *it = NULL;
    int code = lake_iter_commits(&it, g->lake, g->repo, true, err);

    if (code == 0)
        code = retain_each(t, it, retain_leaf, err);
    if (code == 0)
        code = lake_iter_branches(&it, g->lake, g->repo, true, err);
    if (code == 0)
        code = retain_each(t, it, retain_head, err);
    if (code == 0)
        code = lake_iter_tags(&it, g->lake, g->repo, err);
    return code < 0 ? code : retain_each(t, it, retain_tag, err);
}

/* --- walking --- */

/* Sorts the starts by days, the most days first, so that most commits are walked over only once. */
static int retain_start_order(const void *a, const void *b)
{
    const struct retain_start *l = a, *r = b;

    return (l->days < r->days) - (l->days > r->days);
}

/* Walks from a start along first parents. The member `children` of a node has another meaning here:
 * it is 0 until a walk has gone on from the node to its parent, and then 1 + the days of the walk
 * with the most days that has done so. */
static int retain_walk(struct retain *t, const struct retain_start *start, struct err *err)
{
    int64_t threshold = t->now_ms - (int64_t)(start->days * t->day_ms);
    struct graph_node *n;
    int code = graph_get(&t->graph, str_n(start->id, LAKE_ID_LEN), &n, err);
    int64_t child_ms = code < 0 ? 0 : start->is_head ? INT64_MAX : n->created_ms;

    while (code == 0) {
        n->marks |= RETAIN_REACHED | (child_ms > threshold ? RETAIN_KEPT : 0);
        if (n->children > start->days || n->parent_count == 0)
            break;
        n->children = start->days + 1;
        child_ms = n->created_ms;
        code = graph_parent(&t->graph, n, 0, &n, err);
    }
    return code;
}

static int retain_walk_all(struct retain *t, struct err *err)
{
    int code = 0;

    if (t->starts.len)
        qsort(t->starts.items, t->starts.len, sizeof(*t->starts.items), retain_start_order);
    for (size_t i = 0; i < t->starts.len && code == 0; i++) {
        code = retain_walk(t, &t->starts.items[i], err);
        if (code == 0)
            code = gc_run_check(t->run, err);
    }
    return code;
}

/* --- marking --- */

/* Marks the commits of a batch that have no mark yet (G12). ERR_AGAIN: a writer has put a mark
 * meanwhile, so the batch must be tried again. */
static int retain_try_batch(struct gc_run *g, struct arena *a, const struct str *ids, size_t count,
                            struct err *err)
{
    struct kv_name *names = arena_array(a, count, sizeof(*names));
    struct kv_value *marks = arena_array(a, count, sizeof(*marks));
    struct lake_tx tx;
    int code = names && marks ? 0 : err_code(err, ERR_NO_MEMORY);

    for (size_t i = 0; code == 0 && i < count; i++)
        names[i] = lake_key_in(a, g->repo->partition, GC_COMMITS, ids[i]);
    if (code == 0)
        code = kv_get_many(g->lake->kv, NULL, a, names, count, marks, err);
    lake_tx_init(&tx, a);
    for (size_t i = 0; code == 0 && i < count; i++)
        if (!kv_is_there(&marks[i]))
            lake_tx_put_if(&tx, names[i], GC_EXPIRED, KV_ABSENT, STR_EMPTY);
    size_t puts = tx.count;
    if (code == 0 && puts) {
        lake_step_begin("lake.gc_mark");
        code = gc_run_write(g, &tx, err);
        lake_step_end("lake.gc_mark");
    }
    if (code == 0)
        g->report.commits_expired += puts;
    return code;
}

static int retain_mark_batch(struct gc_run *g, const struct str *ids, size_t count, struct err *err)
{
    int code = gc_run_check(g, err);

    for (bool again = true; code == 0 && again;) {
        struct arena a = {0};
        code = retain_try_batch(g, &a, ids, count, err);
        again = code == ERR_AGAIN;
        code = again ? gc_run_check(g, err) : code;
        arena_release(&a);
    }
    return code;
}

static bool retain_is_expired(const struct retain *t, const struct graph_node *n)
{
    return (n->marks & (RETAIN_REACHED | RETAIN_KEPT)) == RETAIN_REACHED &&
           !gc_ids_has(&t->run->safe, graph_id(n));
}

/* Marks the expired commits. A run that only finds dead files marks nothing, because a mark stays
 * for ever. */
static int retain_mark(struct retain *t, struct err *err)
{
    struct str ids[RETAIN_BATCH], id;
    size_t cursor = 0, count = 0;
    void *value;
    int code = 0;

    while (code == 0 && map_next(&t->graph.nodes, &cursor, &id, &value)) {
        if (!retain_is_expired(t, value))
            continue;
        if (t->run->state.mark_only) {
            t->run->report.commits_expired += gc_ids_add(&t->run->expired, id);
            continue;
        }
        ids[count++] = id;
        if (count == RETAIN_BATCH) {
            code = retain_mark_batch(t->run, ids, count, err);
            count = 0;
        }
    }
    return code == 0 && count ? retain_mark_batch(t->run, ids, count, err) : code;
}

/* Reads the commits that have expired, in this run or before. */
static int retain_load(struct gc_run *g, struct err *err)
{
    static const char prefix[] = GC_COMMITS "/";
    struct kv_range range = {.prefix = STR(prefix)};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, g->lake->kv, NULL, g->repo->partition, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0)
        if (str_eq(value, GC_EXPIRED))
            gc_ids_add(&g->expired, str_skip(key, sizeof(prefix) - 1));
    kv_scan_free(scan);
    return code == ERR_END ? 0 : code;
}

int gc_retain(struct gc_run *g, struct err *err)
{
    struct retain t = {.run = g, .now_ms = clock_wall_ms(), .day_ms = g->lake->o.gc_day_ms};
    int code = lake_gc_rules_get(g->lake, g->arena, g->repo, &t.rules, err);
    bool has_rules = code == 0;

    if (t.day_ms == 0)
        t.day_ms = MS_PER_DAY;
    if (code == ERR_NOT_FOUND)
        code = 0;
    graph_init(&t.graph, g->lake, g->repo);
    t.graph.first_parent = true;
    if (code == 0)
        code = retain_find_starts(&t, err);
    if (code == 0 && has_rules)
        code = retain_walk_all(&t, err);
    if (code == 0 && has_rules)
        code = retain_mark(&t, err);
    if (code == 0)
        code = retain_load(g, err);
    graph_release(&t.graph);
    vec_release(&t.starts);
    return code;
}
