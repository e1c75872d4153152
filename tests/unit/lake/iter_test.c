/* Iterators: every kind does what lake/iter.h says of all, then each kind for itself. */
#include "lake/gc.h"
#include "lake/iter.h"
#include "unit/lake/lake_lab.h"

#include <malloc.h>
#include <stdlib.h>

/* --- what is there --- */

enum { ITEMS = 5 };

/* The ids that an iterator must give, in their order. */
struct expected {
    struct str ids[ITEMS];
};

static int compare_ids(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void make_branch_at(struct lake_lab *lab, const char *name, struct str commit, bool hidden)
{
    struct lake_branch_options o = {.name = str_z(name), .source = commit, .hidden = hidden};
    struct lake_branch b;
    struct err err = {0};

    CHECK_OK(lake_branch_create(lab->lake, &lab->arena, &lab->repo, &o, &b, &err));
}

static void fill_repos(struct lake_lab *lab, struct expected *e)
{
    static const char *const names[] = {"aaa", "bbb", "bbb-1", "ccc"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        lake_lab_repo(lab, names[i]);
        e->ids[i] = str_z(names[i]);
    }
    e->ids[4] = STR("repo");
}

static void fill_branches(struct lake_lab *lab, struct expected *e)
{
    static const char *const names[] = {"a", "a-b", "a.b", "b", "main"};

    for (size_t i = 0; i < ITEMS; i++) {
        e->ids[i] = str_z(names[i]);
        if (i < 4)
            make_branch_at(lab, names[i], STR("main"), false);
    }
    make_branch_at(lab, "aa", STR("main"), true); /* is not shown */
}

static void fill_tags(struct lake_lab *lab, struct expected *e)
{
    static const char *const names[] = {"v1", "v1.0", "v10", "v2", "w"};
    struct lake_tag t;
    struct err err = {0};

    for (size_t i = 0; i < ITEMS; i++) {
        e->ids[i] = str_z(names[i]);
        CHECK_OK(lake_tag_create(lab->lake, &lab->arena, &lab->repo, e->ids[i], STR("main"), false,
                                 &t, &err));
    }
}

/* A chain of commits from the repository's first one on; `ids` are in the order of the chain. */
static void fill_chain(struct lake_lab *lab, struct str ids[ITEMS])
{
    ids[0] = lake_lab_head(lab, "main");
    for (int i = 1; i < ITEMS; i++)
        ids[i] = lake_lab_commit_at(lab, 1900000000000 + i * 1000, "chain", &ids[i - 1], 1);
}

static void fill_commits(struct lake_lab *lab, struct expected *e)
{
    fill_chain(lab, e->ids);
    qsort(e->ids, ITEMS, sizeof(e->ids[0]), compare_ids);
}

/* Commits beside each other on the first one are leaves; it is not. */
static void fill_leaves(struct lake_lab *lab, struct expected *e)
{
    struct str head = lake_lab_head(lab, "main");

    for (int i = 0; i < ITEMS; i++)
        e->ids[i] = lake_lab_commit_at(lab, 1000 * (i + 1), "leaf", &head, 1);
    qsort(e->ids, ITEMS, sizeof(e->ids[0]), compare_ids);
}

static void fill_heads(struct lake_lab *lab, struct expected *e)
{
    fill_chain(lab, e->ids);
    for (int i = 1; i < ITEMS; i++)
        make_branch_at(lab, (const char *[]){"", "d", "c", "b", "a"}[i], e->ids[i], i == 2);
    qsort(e->ids, ITEMS, sizeof(e->ids[0]), compare_ids);
}

static void fill_history(struct lake_lab *lab, struct expected *e)
{
    struct str chain[ITEMS];

    fill_chain(lab, chain);
    for (int i = 0; i < ITEMS; i++)
        e->ids[i] = chain[ITEMS - 1 - i];
}

#define TOKEN STR("repo-main:token")

static void fill_staged(struct lake_lab *lab, struct expected *e)
{
    static const char *const paths[] = {"a", "a/b", "b", "b\xff", "c"};
    struct err err = {0};

    for (size_t i = 0; i < ITEMS; i++) {
        struct lake_staged row = {.identity = i == 2 ? STR_EMPTY : STR("identity"),
                                  .data = STR("data")};
        struct buf record = {0};
        e->ids[i] = str_z(paths[i]);
        lake_staged_write(&record, &row);
        CHECK_OK(kv_set(lab->kv_lab->kv, lake_key_staged(&lab->arena, TOKEN, e->ids[i]),
                        buf_str(&record), &err));
        buf_release(&record);
    }
}

/* --- every kind --- */

static int open_repos(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                      struct err *err)
{
    return lake_iter_repos(out, lab->lake, err);
}

static int open_branches(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                         struct err *err)
{
    return lake_iter_branches(out, lab->lake, &lab->repo, false, err);
}

static int open_tags(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                     struct err *err)
{
    return lake_iter_tags(out, lab->lake, &lab->repo, err);
}

static int open_commits(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                        struct err *err)
{
    return lake_iter_commits(out, lab->lake, &lab->repo, false, err);
}

static int open_leaves(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                       struct err *err)
{
    return lake_iter_commits(out, lab->lake, &lab->repo, true, err);
}

static int open_heads(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                      struct err *err)
{
    return lake_iter_heads(out, lab->lake, &lab->repo, err);
}

static int open_history(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                        struct err *err)
{
    return lake_iter_history(out, lab->lake, &lab->repo, &(struct lake_history){.from = e->ids[0]},
                             err);
}

static int open_staged(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                       struct err *err)
{
    return lake_iter_staged(out, lab->lake, TOKEN, err);
}

/*     name; seeking finds the id itself or nothing */
#define ITER_KINDS(X)                                                                              \
    X(repos, false)                                                                                \
    X(branches, false)                                                                             \
    X(tags, false)                                                                                 \
    X(commits, false)                                                                              \
    X(leaves, false)                                                                               \
    X(heads, false)                                                                                \
    X(history, true)                                                                               \
    X(staged, false)

struct iter_kind {
    const char *name;
    void (*fill)(struct lake_lab *lab, struct expected *e);
    int (*open)(struct lake_iter **out, struct lake_lab *lab, const struct expected *e,
                struct err *err);
    bool is_exact;
};

/* The iterator gives the expected ids from `from` on, then ends. */
static void expect_rest(struct lake_iter *it, const struct expected *e, size_t from,
                        const char *kind)
{
    struct lake_item item;
    struct err err = {0};

    for (size_t i = from; i < ITEMS; i++) {
        CHECK_OK(lake_iter_next(it, &item, &err));
        if (!str_eq(item.id, e->ids[i]))
            test_fail(__FILE__, __LINE__, "%s: item %zu is " STR_FMT ", not " STR_FMT, kind, i,
                      STR_ARG(item.id), STR_ARG(e->ids[i]));
    }
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_END);
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_END);
}

static void check_seeks(struct lake_lab *lab, struct lake_iter *it, const struct expected *e,
                        const struct iter_kind *kind)
{
    struct lake_item item;
    struct err err = {0};

    for (size_t i = 0; i < ITEMS; i++) { /* forward, and back again */
        size_t at = i % 2 ? ITEMS - 1 - i : i;
        lake_iter_seek(it, e->ids[at]);
        expect_rest(it, e, at, kind->name);
    }
    lake_iter_seek(it, e->ids[2]); /* before the end was reached */
    CHECK_OK(lake_iter_next(it, &item, &err));
    lake_iter_seek(it, e->ids[1]);
    expect_rest(it, e, 1, kind->name);
    lake_iter_seek(it, STR("\xff\xff"));
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_END);
    if (kind->is_exact)
        return;
    lake_iter_seek(it, STR(""));
    expect_rest(it, e, 0, kind->name);
    for (size_t i = 0; i + 1 < ITEMS; i++) { /* between two */
        lake_iter_seek(it, arena_fmt(&lab->arena, STR_FMT " ", STR_ARG(e->ids[i])));
        expect_rest(it, e, i + 1, kind->name);
    }
}

/* A closed iterator gives nothing and can be closed again; one that is not closed is by the free.
 */
static void check_closes(struct lake_lab *lab, const struct expected *e,
                         const struct iter_kind *kind)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err err = {0};

    CHECK_OK(kind->open(&it, lab, e, &err));
    CHECK_OK(lake_iter_next(it, &item, &err));
    lake_iter_close(it);
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_CLOSED);
    lake_iter_seek(it, e->ids[0]);
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_CLOSED);
    lake_iter_close(it);
    lake_iter_free(it);
    CHECK_OK(kind->open(&it, lab, e, &err));
    lake_iter_free(it);
    lake_iter_free(NULL);
}

static void check_kind(struct lake_lab *lab, const struct iter_kind *kind)
{
    struct lake_iter *it = NULL;
    struct expected e;
    struct err err = {0};

    kind->fill(lab, &e);
    CHECK_OK(kind->open(&it, lab, &e, &err));
    expect_rest(it, &e, 0, kind->name);
    check_seeks(lab, it, &e, kind);
    lake_iter_free(it);
    check_closes(lab, &e, kind);
}

#define X(kind, is_exact)                                                                          \
    LAKE_LAB_TEST(lake_iter, kind##_come_in_order_and_can_be_sought_and_closed)                    \
    {                                                                                              \
        check_kind(lab, &(struct iter_kind){#kind, fill_##kind, open_##kind, is_exact});           \
    }
ITER_KINDS(X)
#undef X

/* --- what each kind gives --- */

LAKE_LAB_TEST(lake_iter, items_have_the_records)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct expected e;
    struct err err = {0};

    CHECK_OK(lake_iter_repos(&it, lab->lake, &err));
    CHECK_OK(lake_iter_next(it, &item, &err));
    CHECK_STR(item.repo->partition, lab->repo.partition);
    lake_iter_free(it);
    fill_staged(lab, &e);
    CHECK_OK(lake_iter_staged(&it, lab->lake, TOKEN, &err));
    for (int i = 0; i < ITEMS; i++) {
        CHECK_OK(lake_iter_next(it, &item, &err));
        CHECK_STR(item.staged->data, STR("data"));
        CHECK_INT(item.staged->identity.len == 0, i == 2);
    }
    lake_iter_free(it);
    fill_branches(lab, &e);
    CHECK_OK(lake_iter_branches(&it, lab->lake, &lab->repo, true, &err));
    lake_iter_seek(it, STR("a.c"));
    CHECK_OK(lake_iter_next(it, &item, &err));
    CHECK_STR(item.branch->id, STR("aa"));
    CHECK(item.branch->hidden);
    CHECK_STR(item.branch->commit_id, lake_lab_head(lab, "main"));
    lake_iter_free(it);
}

LAKE_LAB_TEST(lake_iter, heads_of_one_commit_come_by_name)
{
    static const char *const names[] = {"a", "b", "c", "main"};
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err err = {0};

    make_branch_at(lab, "c", STR("main"), false);
    make_branch_at(lab, "a", STR("main"), true);
    make_branch_at(lab, "b", STR("main"), false);
    CHECK_OK(lake_iter_heads(&it, lab->lake, &lab->repo, &err));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CHECK_OK(lake_iter_next(it, &item, &err));
        CHECK_STR(item.branch->id, str_z(names[i]));
        CHECK_STR(item.id, lake_lab_head(lab, "main"));
    }
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_END);
    lake_iter_free(it);
}

LAKE_LAB_TEST(lake_iter, an_iterator_of_a_store_with_moments_shows_its_moment)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct expected e;
    struct err err = {0};

    if (!(lab->kv_lab->kv->can & KV_MOMENTS))
        return;
    fill_leaves(lab, &e);
    CHECK_OK(lake_iter_commits(&it, lab->lake, &lab->repo, true, &err));
    for (int i = 0; i < ITEMS; i++) /* none of them is a leaf any more */
        lake_lab_commit_at(lab, 1000, "above", &e.ids[i], 1);
    expect_rest(it, &e, 0, "leaves");
    lake_iter_free(it);
    CHECK_OK(lake_iter_commits(&it, lab->lake, &lab->repo, true, &err));
    for (int i = 0; i < ITEMS; i++) {
        CHECK_OK(lake_iter_next(it, &item, &err));
        CHECK_STR(item.commit->message, STR("above"));
    }
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_END);
    lake_iter_free(it);
}

/* --- leaves against a model --- */

enum { GRID = 6 };

/* A grid of commits: each has the one before it in its row as first parent, and the one above it as
 * second parent. So the leaves by first parents are the last commits of all rows. */
LAKE_LAB_TEST(lake_iter, leaves_of_a_grid_are_the_ends_of_its_rows)
{
    struct str grid[GRID][GRID], want[GRID];
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err err = {0};

    for (int y = 0; y < GRID; y++)
        for (int x = 0; x < GRID; x++) {
            struct str parents[2];
            size_t count = 0;
            if (x > 0)
                parents[count++] = grid[y][x - 1];
            else
                parents[count++] = lake_lab_head(lab, "main");
            if (y > 0)
                parents[count++] = grid[y - 1][x];
            grid[y][x] = lake_lab_commit_at(lab, 1000 * (y + x), (char[]){'a' + y, 'a' + x, 0},
                                            parents, count);
        }
    for (int y = 0; y < GRID; y++)
        want[y] = grid[y][GRID - 1];
    qsort(want, GRID, sizeof(want[0]), compare_ids);
    CHECK_OK(lake_iter_commits(&it, lab->lake, &lab->repo, true, &err));
    for (int y = 0; y < GRID; y++) {
        CHECK_OK(lake_iter_next(it, &item, &err));
        CHECK_STR(item.id, want[y]);
    }
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_END);
    lake_iter_free(it);
}

/* --- bounds --- */

LAKE_LAB_TEST(lake_iter, heads_that_need_too_much_memory_are_refused)
{
    enum { FEW_BRANCHES = 4, MANY_BRANCHES = 40, HEADS_BYTES = 4 << 10 };
    struct lake_iter *it = NULL;
    struct err err = {0};

    lab->lake->heads_bytes = HEADS_BYTES;
    for (int i = 0; i < MANY_BRANCHES; i++) {
        if (i == FEW_BRANCHES) {
            CHECK_OK(lake_iter_heads(&it, lab->lake, &lab->repo, &err));
            lake_iter_free(it);
        }
        make_branch_at(lab, arena_fmt(&lab->arena, "b%d", i).p, STR("main"), false);
    }
    it = NULL;
    CHECK_ERR(lake_iter_heads(&it, lab->lake, &lab->repo, &err), ERR_NO_MEMORY);
    CHECK(str_find(str_z(err.text), STR("4096 bytes")) >= 0);
    CHECK(!it);
    lab->lake->heads_bytes = LAKE_HEADS_BYTES;
    CHECK_OK(lake_iter_heads(&it, lab->lake, &lab->repo, &err));
    lake_iter_free(it);
}

/* --- many commits --- */

/* A set of first parents would take 32 bytes for each commit, so more than HELD_MAX for FEW. */
enum { BATCH = 1000, CHAINS = 10, FEW = 20000, HELD_MAX = 1 << 19, READINGS = 20 };

/* Bytes of the heap that are in use. Under sanitizers this is not known, and 0. */
static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* Writes `count` commits in CHAINS chains. */
static void write_chains(struct lake_lab *lab, size_t count, struct str ends[CHAINS])
{
    char ids[CHAINS][LAKE_ID_LEN + 1] = {{0}};
    struct err err = {0};

    for (size_t i = 0; i < count;) {
        struct arena a = {0};
        struct lake_tx tx;
        lake_tx_init(&tx, &a);
        for (size_t k = 0; k < BATCH && i < count; k++, i++) {
            char *id = ids[i % CHAINS];
            struct str parent = arena_str(&a, str_z(id));
            struct lake_commit c = {.committer = STR("m"),
                                    .message = arena_fmt(&a, "%zu", i),
                                    .created_ms = (int64_t)i * 1000,
                                    .parents = &parent,
                                    .parent_count = parent.len > 0,
                                    .version = 1,
                                    .generation = (int32_t)(i / CHAINS + 1)};
            lake_commit_id(id, &c);
            c.id = arena_str(&a, str_z(id));
            lake_tx_put_commit(&tx, &lab->repo, &c);
        }
        CHECK_OK(lake_tx_write(lab->lake, &tx, NULL, &err));
        arena_release(&a);
    }
    for (int i = 0; i < CHAINS; i++)
        ends[i] = arena_str(&lab->arena, str_z(ids[i]));
}

/* Reads all leaves, which must be these, and returns how much the heap had grown at the last one.
 */
static size_t read_leaves(struct lake_lab *lab, const struct str *want, size_t count)
{
    size_t before = heap_bytes(), now;
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err err = {0};

    CHECK_OK(lake_iter_commits(&it, lab->lake, &lab->repo, true, &err));
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(lake_iter_next(it, &item, &err));
        CHECK_STR(item.id, want[i]);
    }
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_END);
    now = heap_bytes();
    lake_iter_free(it);
    return now > before ? now - before : 0;
}

/* 20,000 commits here; with LAKE_MANY_COMMITS=1000000 as many as that, on the embedded driver. The
 * first reading fills the caches of the database, and its threads may still tidy up beside the
 * next ones; so the reading that held least shows the iterator alone. */
KV_LAB_TEST(lake_many, leaves_of_many_commits_need_little_memory)
{
    const char *many = getenv("LAKE_MANY_COMMITS");
    struct str want[CHAINS + 1];
    struct lake_lab lake;
    uint64_t count = FEW;

    if (many && lab->driver == KV_LAB_EMBEDDED)
        CHECK_INT(str_u64(str_z(many), &count), 0);
    lake_lab_open(&lake, lab, LAKE_LAB_MEMORY);
    write_chains(&lake, count, want);
    want[CHAINS] = lake_lab_head(&lake, "main");
    qsort(want, CHAINS + 1, sizeof(want[0]), compare_ids);
    size_t held = SIZE_MAX;
    for (int i = 0; i < READINGS && held > HELD_MAX; i++)
        held = read_leaves(&lake, want, CHAINS + 1);
    if (held > HELD_MAX)
        test_fail(__FILE__, __LINE__, "the iterator held %zu bytes", held);
    lake_lab_close(&lake);
}

/* --- collections of many commits --- */

enum {
    BASE = 2000,
    COLLECT_BYTES = 256 << 10, /* memory of each list of the collection */
    /* How much more memory a collection of all commits may need than one of BASE of them: buffers
     * of lists on disk. A graph of FEW commits in memory needs 6 MiB. */
    GROWN_MAX = 2 << 20,
    GROWN_MAX_MANY = 24 << 20,
};

/* Samples the heap at every step of a collection. */
struct heap_peak {
    size_t before, most;
};

static bool heap_peak_note(void *ctx)
{
    struct heap_peak *p = ctx;
    size_t now = heap_bytes();

    if (now > p->before && now - p->before > p->most)
        p->most = now - p->before;
    return false;
}

/* Collects, and returns the most memory that was needed. No commit is marked, so that the next
 * collection does the same work again. */
static size_t collect_many(struct lake_lab *lab, size_t commits)
{
    struct arena a = {0};
    struct lake_gc_report report;
    struct heap_peak peak = {.before = heap_bytes()};
    struct err err = {0};

    CHECK_OK(lake_gc_ask(lab->lake, &a, &lab->repo, true, &report, &err));
    CHECK_OK(lake_gc_work(lab->lake, &lab->repo, heap_peak_note, &peak, &err));
    CHECK_OK(lake_gc_report(lab->lake, &a, &lab->repo, &report, &err));
    CHECK_INT(report.stage, LAKE_GC_DONE);
    CHECK_INT(report.commits_expired, commits);
    arena_release(&a);
    return peak.most;
}

/* The chains end in no branch, and are from 1970, so all of their commits have expired. */
KV_LAB_TEST(lake_many, a_collection_of_many_commits_needs_little_memory)
{
    const char *many = getenv("LAKE_MANY_COMMITS");
    struct lake_gc_rules rules = {.default_days = 1};
    struct str ends[CHAINS];
    struct lake_lab lake;
    uint64_t count = FEW;
    struct err err = {0};

    if (many && lab->driver == KV_LAB_EMBEDDED)
        CHECK_INT(str_u64(str_z(many), &count), 0);
    lake_lab_open(&lake, lab, LAKE_LAB_STORAGE);
    lake.lake->o.folder = test_dir();
    lake.lake->o.gc_bytes = COLLECT_BYTES;
    CHECK_OK(lake_gc_rules_set(lake.lake, &lake.arena, &lake.repo, &rules, &err));
    write_chains(&lake, BASE, ends);
    size_t base = SIZE_MAX, most = SIZE_MAX;
    for (int i = 0; i < 3; i++)
        base = size_min(base, collect_many(&lake, BASE));
    write_chains(&lake, count, ends); /* the first commits are the same again */
    size_t limit = base + (count > FEW ? GROWN_MAX_MANY : GROWN_MAX);
    for (int i = 0; i < READINGS && most > limit; i++)
        most = size_min(most, collect_many(&lake, count));
    if (most > limit)
        test_fail(__FILE__, __LINE__, "the collection held %zu bytes; of %d commits, %zu", most,
                  (int)BASE, base);
    lake_lab_close(&lake);
}
