/* Marking: finds the files of the namespace that are dead, which means that a run may remove them
 * (docs/lake-keeping.md, G3 to G6). */
#include "lake/files.h"
#include "lake/gc_int.h"
#include "lake/iter.h"
#include "lake/names.h"
#include "lake/place.h"
#include "lake/tree_spine.h"

#include "base/clock.h"

#include <stdlib.h>

enum {
    MARK_BATCH = 500,
    MARK_TRIES = 100, /* how often the tokens of one branch are read again */
};

/* --- G3: bodies that are old enough (G10) --- */

/* Calls fn() for each file of the folder that is older than `cutoff_ms`. */
static int mark_list(struct gc_run *g, struct str folder, int64_t cutoff_ms,
                     int (*fn)(struct gc_run *g, void *ctx, const struct lake_file *f,
                               struct err *err),
                     void *ctx, struct err *err)
{
    struct buf after = {0};
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        struct arena a = {0};
        struct lake_files files = {0};
        code = gc_run_check(g, err);
        if (code == 0)
            code = lake_files_list(g->lake, &a, g->repo, folder, buf_str(&after), &files, err);
        for (size_t i = 0; code == 0 && i < files.count; i++)
            if (files.items[i].modified_ms > 0 && files.items[i].modified_ms < cutoff_ms)
                code = fn(g, ctx, &files.items[i], err);
        more = code == 0 && files.more;
        buf_reset(&after);
        if (more)
            buf_append_str(&after, files.next);
        arena_release(&a);
    }
    buf_release(&after);
    return code;
}

/* Whether the key is that of a node. */
static bool mark_is_node(struct str key)
{
    struct str folder = STR(LAKE_NODES "/");

    return str_starts(key, folder) && lake_is_commit_id(str_skip(key, folder.len));
}

/* Adds a file to the candidates, which are the files that are old enough to be removed. A
 * candidate is one string: the key, a NUL, and the size and time. NUL is the smallest byte, so
 * candidates sort by their keys. */
static int mark_candidate(struct gc_sorter *candidates, const struct lake_file *f, struct err *err)
{
    struct buf text = {0};

    buf_append_str(&text, f->key);
    buf_append_char(&text, 0);
    buf_append_u64(&text, f->size);
    buf_append_char(&text, 0);
    buf_append_i64(&text, f->modified_ms);
    int code = gc_sorter_add(candidates, buf_str(&text), err);
    buf_release(&text);
    return code;
}

static int mark_body(struct gc_run *g, void *ctx, const struct lake_file *f, struct err *err)
{
    if (memchr(f->key.p, 0, f->key.len)) /* the lake puts no body under a key with a NUL */
        return 0;
    g->report.bodies_listed++;
    return mark_candidate(ctx, f, err);
}

static int mark_node(struct gc_run *g, void *ctx, const struct lake_file *f, struct err *err)
{
    if (!mark_is_node(f->key))
        return 0;
    g->report.nodes_listed++;
    return mark_candidate(ctx, f, err);
}

static int mark_candidate_read(struct str text, struct str *key, struct gc_dead *out)
{
    struct str size, time;

    if (!str_cut(text, 0, key, &text) || !str_cut(text, 0, &size, &time) ||
        str_u64(size, &out->size) < 0)
        return ERR_CORRUPT;
    return str_i64(time, &out->modified_ms);
}

/* --- G4: bodies that tokens name --- */

static int mark_entry(struct gc_run *g, struct arena *a, struct str data, struct err *err)
{
    struct lake_entry e = {0};
    struct str key;
    int code = lake_entry_read(&e, a, data, err);

    return code == 0 && lake_entry_below(g->repo, &e, &key) ? gc_sorter_add(g->live, key, err)
                                                            : code;
}

static int mark_token(struct gc_run *g, struct str token, struct err *err)
{
    struct lake_iter *it = NULL;
    struct arena a = {0};
    struct lake_item item;
    int code = lake_iter_staged(&it, g->lake, token, err);

    while (code == 0 && (code = lake_iter_next(it, &item, err)) == 0) {
        arena_reset(&a);
        if (item.staged->identity.len)
            code = mark_entry(g, &a, item.staged->data, err);
    }
    lake_iter_free(it);
    arena_release(&a);
    return code == ERR_END ? 0 : code;
}

static int mark_tokens(struct gc_run *g, const struct lake_branch *b, struct err *err)
{
    lake_step_begin("lake.gc_tokens");
    int code = mark_token(g, b->staging, err);
    for (size_t i = 0; i < b->sealed_count && code == 0; i++)
        code = mark_token(g, b->sealed[i], err);
    lake_step_end("lake.gc_tokens");
    return code;
}

/* Reads all tokens of a branch (G15). If the branch is still the same after the last read, no token
 * was dropped meanwhile. Otherwise some rows may have moved to another token and were missed, so
 * all tokens are read again. */
static int mark_branch(struct gc_run *g, struct str name, struct err *err)
{
    struct lake_repo repo;
    int code = ERR_AGAIN;

    for (int i = 0; i < MARK_TRIES && code == ERR_AGAIN; i++) {
        struct arena a = {0};
        struct lake_branch b, now;
        code = lake_read_branch(g->lake, NULL, &a, g->repo, name, &repo, &b, err);
        if (code == 0)
            code = mark_tokens(g, &b, err);
        if (code == 0)
            code = lake_read_branch(g->lake, NULL, &a, g->repo, name, &repo, &now, err);
        if (code == 0 && !str_eq(now.stamp, b.stamp))
            code = ERR_AGAIN;
        arena_release(&a);
        int ended = gc_run_check(g, err);
        code = ended < 0 ? ended : code;
    }
    /* The branch was deleted. If the repository was deleted too, the next write of the run fails.
     */
    if (code == ERR_NOT_FOUND)
        return 0;
    return code == ERR_AGAIN
               ? err_set(err, ERR_BUSY, "branch " STR_FMT " changes all the time", STR_ARG(name))
               : code;
}

static int mark_branches(struct gc_run *g, struct err *err)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    int code = lake_iter_branches(&it, g->lake, g->repo, true, err);

    while (code == 0 && (code = lake_iter_next(it, &item, err)) == 0)
        code = mark_branch(g, item.branch->id, err);
    lake_iter_free(it);
    return code == ERR_END ? 0 : code;
}

/* --- G5: bodies that commits name, and nodes --- */

struct mark_walk {
    struct gc_run *run;
    struct tree_store store;
    bool reads_leaves;
};

static int mark_leaf_records(struct mark_walk *w, struct node_cursor *c, struct err *err)
{
    struct arena a = {0};
    struct tree_record record;
    int code = 0;

    while (code == 0 && (code = node_cursor_next(c, err)) == 0) {
        arena_reset(&a);
        code = node_record_read(&record, block_cursor_key(&c->at), c->at.value);
        if (code < 0)
            code = node_corrupt(&c->node->id, "a record is malformed", err);
        if (code == 0)
            code = mark_entry(w->run, &a, record.data, err);
    }
    arena_release(&a);
    return code == ERR_END ? 0 : code;
}

static int mark_leaf(struct mark_walk *w, struct str text, struct err *err)
{
    struct node_cursor *c = xzalloc(sizeof(*c));
    struct node_id id;
    int code = node_id_parse(&id, text, err);

    if (code == 0)
        code = node_cursor_open(c, &w->store, &id, err);
    if (code == 0)
        code = mark_leaf_records(w, c, err);
    node_cursor_release(c);
    free(c);
    return code;
}

/* Records the bodies that a leaf names as live, and then the node itself. An error ends the run, so
 * nothing relies on a node whose bodies were not all recorded. */
static int mark_visit(void *ctx, struct str id, unsigned level, struct err *err)
{
    struct mark_walk *w = ctx;
    struct buf key = {0};
    int code = gc_run_check(w->run, err);

    if (code == 0 && level == 0 && w->reads_leaves)
        code = mark_leaf(w, id, err);
    buf_appendf(&key, LAKE_NODES "/" STR_FMT, STR_ARG(id));
    if (code == 0)
        code = gc_sorter_add(w->run->live, buf_str(&key), err);
    buf_release(&key);
    return code;
}

/* Sets *out to whether the commit's bodies are live. Callers ask in the order of ids. */
static int mark_is_live(struct gc_run *g, struct str id, bool *out, struct err *err)
{
    bool is_safe = false, is_expired = false;
    int code = gc_sorter_has(g->safe, id, &is_safe, err);

    if (code == 0)
        code = gc_sorter_has(g->expired, id, &is_expired, err);
    *out = is_safe || !is_expired;
    return code;
}

/* Adds the trees of the live commits (`live`) to the walk, or else those of all other commits. */
static int mark_add_commits(struct gc_run *g, struct gc_walk *walk, bool live, struct err *err)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    bool is_live = false;
    int code = lake_iter_commits(&it, g->lake, g->repo, false, err);

    while (code == 0 && (code = lake_iter_next(it, &item, err)) == 0) {
        code = mark_is_live(g, item.id, &is_live, err);
        if (code == 0 && is_live == live)
            code = gc_walk_add(walk, item.commit->tree, err);
    }
    lake_iter_free(it);
    return code == ERR_END ? 0 : code;
}

static int mark_commits(struct mark_walk *w, bool live, struct err *err)
{
    struct gc_run *g = w->run;
    struct gc_walk *walk = NULL;
    int code = gc_walk_open(&walk, g, &w->store, mark_visit, w, err);

    w->reads_leaves = live;
    if (code == 0)
        code = gc_sorter_rewind(g->safe, err);
    if (code == 0)
        code = gc_sorter_rewind(g->expired, err);
    if (code == 0)
        code = mark_add_commits(g, walk, live, err);
    if (code == 0)
        code = gc_walk_end(walk, err);
    gc_walk_close(walk);
    return code;
}

static int mark_dump_tree(void *ctx, struct str root, struct err *err)
{
    struct mark_walk *w = ctx;
    struct gc_walk *walk = NULL;
    int code = gc_walk_open(&walk, w->run, &w->store, mark_visit, w, err);

    w->reads_leaves = false;
    if (code == 0)
        code = gc_walk_add(walk, root, err);
    if (code == 0)
        code = gc_walk_end(walk, err);
    gc_walk_close(walk);
    return code;
}

/* Walks all trees. Trees of expired commits come after the live ones: their bodies may be removed,
 * but their nodes stay, because a merge may need them as its base. */
static int mark_trees(struct gc_run *g, struct err *err)
{
    struct mark_walk w = {.run = g};
    int code = lake_tree_store(g->lake, g->repo, &w.store, err);

    if (code < 0)
        return code;
    code = mark_commits(&w, true, err);
    if (code == 0)
        code = mark_commits(&w, false, err);
    if (code == 0)
        code = gc_dump_trees(g, mark_dump_tree, &w, err);
    lake_tree_store_release(g->lake, &w.store);
    return code;
}

/* --- G6: the list --- */

/* Rows of the list of dead files that are written together. */
struct mark_batch {
    struct gc_run *run;
    struct arena arena;
    struct lake_tx tx;
};

static void mark_batch_init(struct mark_batch *b, struct gc_run *g)
{
    *b = (struct mark_batch){.run = g};
    lake_tx_init(&b->tx, &b->arena);
}

static int mark_batch_write(struct mark_batch *b, struct err *err)
{
    int code = 0;

    if (b->tx.count) {
        lake_step_begin("lake.gc_mark");
        code = gc_run_write(b->run, &b->tx, err);
        lake_step_end("lake.gc_mark");
    }
    arena_reset(&b->arena);
    lake_tx_init(&b->tx, &b->arena);
    return code;
}

static int mark_batch_add(struct mark_batch *b, struct str key, const struct gc_dead *d,
                          struct err *err)
{
    lake_tx_put(&b->tx, gc_key_dead(&b->arena, b->run, key), gc_dead_write(&b->arena, d));
    return b->tx.count < MARK_BATCH ? 0 : mark_batch_write(b, err);
}

static int mark_dead(struct mark_batch *b, struct str candidate, struct err *err)
{
    struct lake_gc_report *r = &b->run->report;
    struct gc_dead d = {0};
    struct str key;
    int code = mark_candidate_read(candidate, &key, &d);

    if (code < 0)
        return err_code(err, ERR_CORRUPT);
    bool is_node = mark_is_node(key);
    ++*(is_node ? &r->nodes_dead : &r->bodies_dead);
    *(is_node ? &r->nodes_dead_bytes : &r->bodies_dead_bytes) += d.size;
    return mark_batch_add(b, key, &d, err);
}

/* Compares the sorted candidates with the sorted keys of live files: a candidate that is not live
 * is dead. */
static int mark_compare(struct mark_batch *b, struct gc_sorter *candidates, struct err *err)
{
    struct str candidate, key = {0};
    bool is_live = false;
    int code = 0;

    while (code == 0 && (code = gc_sorter_next(candidates, &candidate, err)) == 0) {
        str_cut(candidate, 0, &key, &(struct str){0});
        code = gc_sorter_has(b->run->live, key, &is_live, err);
        if (code == 0 && !is_live)
            code = mark_dead(b, candidate, err);
    }
    return code == ERR_END ? 0 : code;
}

/* Lists the nodes that are old enough. A commit may put a dead node again at any time, because
 * nodes are named by their content; G17 says how the node is then kept. */
static int mark_list_nodes(struct gc_run *g, struct gc_sorter *candidates, struct err *err)
{
    int64_t latest = clock_wall_ms() - 2 * MS_PER_S; /* conditions compare whole seconds */

    return mark_list(g, STR(LAKE_NODES "/"),
                     g->state.cutoff_ms < latest ? g->state.cutoff_ms : latest, mark_node,
                     candidates, err);
}

static int mark_put_list(struct gc_run *g, struct gc_sorter *candidates, struct err *err)
{
    struct mark_batch b;
    int code = gc_sorter_sort(candidates, err);

    mark_batch_init(&b, g);
    if (code == 0)
        code = gc_sorter_sort(g->live, err);
    if (code == 0)
        code = mark_compare(&b, candidates, err);
    if (code == 0)
        code = mark_batch_write(&b, err);
    arena_release(&b.arena);
    return code;
}

int gc_mark(struct gc_run *g, struct err *err)
{
    struct gc_sorter *candidates = NULL;
    int code = gc_run_sorter(g, &candidates, GC_SORT_BYTES, err);

    if (code == 0)
        code = gc_run_sorter(g, &g->live, GC_SORT_BYTES, err);
    if (code == 0)
        code = gc_retain(g, err);
    if (code == 0)
        code = mark_list(g, STR(LAKE_BODIES "/"), g->state.cutoff_ms, mark_body, candidates, err);
    if (code == 0)
        code = mark_branches(g, err);
    /* The uploads are read after the tokens: the record of an upload is still there when its entry
     * has been staged, so no body is missed between the two. */
    if (code == 0)
        code = gc_mark_uploads(g, err);
    if (code == 0)
        code = mark_trees(g, err);
    if (code == 0)
        code = mark_list_nodes(g, candidates, err);
    if (code == 0)
        code = mark_put_list(g, candidates, err);
    gc_sorter_close(candidates);
    return code;
}
