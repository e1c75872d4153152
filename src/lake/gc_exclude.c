/* Removes from the list of dead files those files to which a new reference was made while the list
 * was being made (docs/lake-keeping.md, G7 and G13). */
#include "lake/gc_int.h"
#include "lake/read.h"

/* --- bodies --- */

static int exclude_body(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                        struct err *err)
{
    struct str key = str_skip(name.key, sizeof(GC_KEPT_ROW "/") - 1);

    lake_tx_remove(tx, gc_key_dead(tx->arena, g, key), KV_ALWAYS, STR_EMPTY);
    return 0;
}

/* --- nodes --- */

/* A walk through trees whose nodes are kept. The nodes are looked up on the list in batches. */
struct exclusion {
    struct gc_run *run;
    struct tree_store store;
    struct arena arena;
    struct kv_name names[GC_SLICE];
    size_t count;
};

/* Removes the nodes of the batch from the list, where they are on it. */
static int exclusion_write(struct exclusion *x, struct err *err)
{
    struct kv_value rows[GC_SLICE] = {0};
    struct lake_tx tx;
    int code = x->count
                   ? kv_get_many(x->run->lake->kv, NULL, &x->arena, x->names, x->count, rows, err)
                   : 0;

    lake_tx_init(&tx, &x->arena);
    for (size_t i = 0; code == 0 && i < x->count; i++)
        if (kv_is_there(&rows[i]))
            lake_tx_remove(&tx, x->names[i], KV_ALWAYS, STR_EMPTY);
    if (code == 0 && tx.count)
        code = gc_run_write(x->run, &tx, err);
    x->count = 0;
    arena_reset(&x->arena);
    return code;
}

static int exclusion_visit(void *ctx, struct str id, unsigned level, struct err *err)
{
    struct exclusion *x = ctx;
    struct str key = arena_fmt(&x->arena, LAKE_NODES "/" STR_FMT, STR_ARG(id));

    (void)level;
    x->names[x->count++] = gc_key_dead(&x->arena, x->run, key);
    return x->count < GC_SLICE ? 0 : exclusion_write(x, err);
}

/* Begins a walk through trees. The nodes that it visits are removed from the list of dead files. */
static int exclusion_open(struct exclusion *x, struct gc_run *g, struct gc_walk **walk,
                          struct err *err)
{
    *x = (struct exclusion){.run = g};
    int code = lake_tree_store(g->lake, g->repo, &x->store, err);
    if (code < 0)
        return code;
    code = gc_walk_open(walk, g, &x->store, exclusion_visit, x, err);
    if (code < 0)
        lake_tree_store_release(g->lake, &x->store);
    return code;
}

/* Ends the walk, unless an error has ended it already (`code`). */
static int exclusion_end(struct exclusion *x, struct gc_walk *walk, int code, struct err *err)
{
    if (code == 0)
        code = gc_walk_end(walk, err);
    if (code == 0)
        code = exclusion_write(x, err);
    gc_walk_close(walk);
    lake_tree_store_release(x->run->lake, &x->store);
    arena_release(&x->arena);
    return code;
}

static int exclude_tree(void *ctx, struct str root, struct err *err)
{
    struct gc_run *g = ctx;
    struct gc_walk *walk = NULL;
    struct exclusion x;
    int code = exclusion_open(&x, g, &walk, err);

    return code < 0 ? code : exclusion_end(&x, walk, gc_walk_add(walk, root, err), err);
}

/* Adds the tree of a kept commit to the walk. The commit was made, or got a new reference, while
 * the run was marking. */
static int exclude_commit(struct gc_run *g, struct lake_tx *tx, struct kv_name name,
                          struct str value, struct err *err)
{
    struct str id = str_skip(name.key, sizeof(GC_COMMITS "/") - 1), root = STR_EMPTY;

    if (!str_eq(value, GC_KEPT))
        return 0;
    int code = lake_commit_tree(g->lake, tx->arena, g->repo, id, &root, err);
    return code < 0 ? code : gc_walk_add(g->kept, root, err);
}

static int exclude_commits(struct gc_run *g, struct err *err)
{
    struct exclusion x;
    int code = exclusion_open(&x, g, &g->kept, err);

    if (code == 0)
        code = exclusion_end(&x, g->kept, gc_each_row(g, STR(GC_COMMITS "/"), exclude_commit, err),
                             err);
    g->kept = NULL;
    return code;
}

/* The trees of the last dump are also taken off the list, because the dump may have been made while
 * the run was marking. */
int gc_exclude(struct gc_run *g, struct err *err)
{
    int code = gc_each_row(g, STR(GC_KEPT_ROW "/"), exclude_body, err);

    if (code == 0)
        code = exclude_commits(g, err);
    return code < 0 ? code : gc_dump_trees(g, exclude_tree, g, err);
}
