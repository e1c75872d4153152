/* Retention: which commits a collection keeps (docs/lake-keeping.md, G2).
 *
 * The head of every branch and the commit of every tag are kept. From a head a walk goes to its
 * first parent, then to that commit's first parent, and so on. A commit is kept if its child is
 * younger than the days of the branch's rule, so that every state of the branch in those days can
 * be read. A commit that no branch leads to, because its branch was deleted or reset, is judged in
 * the same way by the default rule, as if it had a child of its own age. If several walks reach a
 * commit, the walk with the most days decides. gc_judge.c carries out the walks. */
#include "lake/gc_int.h"
#include "lake/iter.h"

enum { RETAIN_BATCH = 500 };

struct retain {
    struct gc_run *run;
    struct lake_gc_rules rules;
    bool has_rules;
    struct gc_judge *judge; /* NULL: there are no rules */
};

/* --- where walks begin --- */

static uint32_t retain_days(const struct retain *t, struct str branch)
{
    for (size_t i = 0; i < t->rules.count; i++)
        if (str_eq(t->rules.branches[i].branch, branch))
            return t->rules.branches[i].days;
    return t->rules.default_days;
}

static int retain_leaf(struct retain *t, const struct lake_item *item, struct err *err)
{
    return gc_judge_start(t->judge, item->id, GC_START_LEAF, t->rules.default_days, err);
}

static int retain_head(struct retain *t, const struct lake_item *item, struct err *err)
{
    struct str id = item->branch->commit_id;
    int code = gc_sorter_add(t->run->safe, id, err);

    return code == 0 && t->judge
               ? gc_judge_start(t->judge, id, GC_START_HEAD, retain_days(t, item->branch->id), err)
               : code;
}

static int retain_tag(struct retain *t, const struct lake_item *item, struct err *err)
{
    return gc_sorter_add(t->run->safe, item->tag->commit_id, err);
}

static int retain_commit(struct retain *t, const struct lake_item *item, struct err *err)
{
    return gc_judge_add(t->judge, item->commit, err);
}

static int retain_each(struct retain *t, struct lake_iter *it,
                       int (*fn)(struct retain *t, const struct lake_item *item, struct err *err),
                       struct err *err)
{
    struct lake_item item;
    int code = 0;

    while (code == 0 && (code = lake_iter_next(it, &item, err)) == 0) {
        code = gc_run_check(t->run, err);
        if (code == 0)
            code = fn(t, &item, err);
    }
    lake_iter_free(it);
    return code == ERR_END ? 0 : code;
}

static int retain_commits(struct retain *t, bool only_leaves, struct err *err)
{
    const struct gc_run *g = t->run;
    struct lake_iter *it = NULL;
    int code = lake_iter_commits(&it, g->lake, g->repo, only_leaves, err);

    return code < 0 ? code : retain_each(t, it, only_leaves ? retain_leaf : retain_commit, err);
}

static int retain_refs(struct retain *t, struct err *err)
{
    const struct gc_run *g = t->run;
    struct lake_iter *it = NULL;
    int code = lake_iter_branches(&it, g->lake, g->repo, true, err);

    if (code == 0)
        code = retain_each(t, it, retain_head, err);
    if (code == 0)
        code = lake_iter_tags(&it, g->lake, g->repo, err);
    if (code == 0)
        code = retain_each(t, it, retain_tag, err);
    return code < 0 ? code : gc_sorter_sort(t->run->safe, err);
}

/* Reads the commits at which walks begin, which are leaves (commits that are not the first parent
 * of another commit) and heads, and the commits of tags; and then all commits. Heads are read after
 * leaves: in the other order a commit that is published in between would be found as a leaf alone,
 * and be mistaken for a commit without a branch. All commits are read last, so that the walks find
 * every commit to which the heads lead. */
static int retain_read(struct retain *t, struct err *err)
{
    int code = t->has_rules ? retain_commits(t, true, err) : 0;

    if (code == 0)
        code = retain_refs(t, err);
    return code == 0 && t->has_rules ? retain_commits(t, false, err) : code;
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

/* Takes the next expired commit that no branch and no tag names. ERR_END: there are no more. */
static int retain_next(struct retain *t, struct gc_sorter *expired, struct str *id, struct err *err)
{
    bool is_safe = true;
    int code = 0;

    while (code == 0 && is_safe) {
        code = gc_sorter_next(expired, id, err);
        if (code == 0)
            code = gc_sorter_has(t->run->safe, *id, &is_safe, err);
    }
    return code;
}

/* Notes the expired commits for this run alone. A run that only finds dead files marks no commit,
 * because a mark stays for ever. */
static int retain_note(struct retain *t, struct gc_sorter *expired, struct err *err)
{
    struct str id;
    int code = 0;

    while (code == 0 && (code = retain_next(t, expired, &id, err)) == 0) {
        t->run->report.commits_expired++;
        code = gc_sorter_add(t->run->expired, id, err);
    }
    return code == ERR_END ? 0 : code;
}

/* Marks the expired commits. */
static int retain_mark(struct retain *t, struct gc_sorter *expired, struct err *err)
{
    char bytes[RETAIN_BATCH][LAKE_ID_LEN];
    struct str ids[RETAIN_BATCH], id;
    int code = 0;

    while (code == 0) {
        size_t count = 0;
        while (count < RETAIN_BATCH && (code = retain_next(t, expired, &id, err)) == 0) {
            memcpy(bytes[count], id.p, LAKE_ID_LEN);
            ids[count] = str_n(bytes[count], LAKE_ID_LEN);
            count++;
        }
        int marked = count && (code == 0 || code == ERR_END)
                         ? retain_mark_batch(t->run, ids, count, err)
                         : 0;
        code = marked < 0 ? marked : code;
    }
    return code == ERR_END ? 0 : code;
}

static int retain_judge(struct retain *t, struct err *err)
{
    struct gc_sorter *expired = NULL;
    int code = gc_judge_run(t->judge, &expired, err);

    if (code < 0)
        return code;
    return t->run->state.mark_only ? retain_note(t, expired, err) : retain_mark(t, expired, err);
}

/* Adds the commits that have a mark, of this run or an earlier one, to g->expired. */
static int retain_load(struct gc_run *g, struct err *err)
{
    static const char prefix[] = GC_COMMITS "/";
    struct kv_range range = {.prefix = STR(prefix)};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, g->lake->kv, NULL, g->repo->partition, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0)
        if (str_eq(value, GC_EXPIRED))
            code = gc_sorter_add(g->expired, str_skip(key, sizeof(prefix) - 1), err);
    kv_scan_free(scan);
    return code < 0 && code != ERR_END ? code : gc_sorter_sort(g->expired, err);
}

static int retain_run(struct retain *t, struct err *err)
{
    struct gc_run *g = t->run;
    int code = gc_run_sorter(g, &g->safe, GC_IDS_BYTES, err);

    if (code == 0)
        code = gc_run_sorter(g, &g->expired, GC_IDS_BYTES, err);
    if (code == 0 && t->has_rules)
        code = gc_judge_open(&t->judge, g, err);
    if (code == 0)
        code = retain_read(t, err);
    if (code == 0 && t->has_rules)
        code = retain_judge(t, err);
    gc_judge_close(t->judge);
    return code < 0 ? code : retain_load(g, err);
}

int gc_retain(struct gc_run *g, struct err *err)
{
    struct retain t = {.run = g};
    int code = lake_gc_rules_get(g->lake, g->arena, g->repo, &t.rules, err);

    t.has_rules = code == 0;
    return code == 0 || code == ERR_NOT_FOUND ? retain_run(&t, err) : code;
}
