/* Makes the tree that a merge uses as its base when its two sides have several merge bases. The
 * tree is only in memory, because nothing refers to it after the merge. */
#include "lake/merge_base.h"

#include "base/map.h"
#include "base/vec.h"
#include "lake/read.h"

#include <stdlib.h>

enum {
    BASE_PATHS_MAX = 64 << 20, /* most bytes of the paths on which two bases conflict */
    BASE_MERGES_MAX = 64,      /* most merges of bases for one base tree */
};

/* The identity of a path on which two bases conflict. No object has this identity, so the merge
 * finds that both of its sides have changed the path. */
#define BASE_CONFLICT STR("\0")

/* --- nodes in memory --- */

struct base_node {
    char id[LAKE_ID_LEN];
    struct str bytes;
};

/* Where the nodes of trees are read and written while a base tree is made: the nodes of base trees
 * are in memory, and all other nodes are in `real`. One thread at a time uses it. */
struct base_nodes {
    struct node_place real;
    bool builds; /* nodes written now are part of a base tree */
    struct map nodes;
    size_t bytes, bytes_max; /* of all nodes in memory */
};

static int base_node_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    struct base_nodes *b = ctx;
    const struct base_node *n = map_get(&b->nodes, id);

    if (!n)
        return b->real.read(b->real.ctx, id, out, err);
    buf_append_str(out, n->bytes);
    return 0;
}

static int base_node_write(void *ctx, struct str id, struct str bytes, struct err *err)
{
    struct base_nodes *b = ctx;

    if (!b->builds)
        return b->real.write(b->real.ctx, id, bytes, err);
    if (map_get(&b->nodes, id))
        return 0;
    if (id.len != LAKE_ID_LEN || b->bytes + bytes.len > b->bytes_max)
        return err_set(err, ERR_TOO_LARGE, "the merge bases differ too much");
    struct base_node *n = xzalloc(sizeof(*n) + bytes.len);
    memcpy(n->id, id.p, LAKE_ID_LEN);
    memcpy(n + 1, bytes.p, bytes.len);
    n->bytes = str_n((char *)(n + 1), bytes.len);
    b->bytes += bytes.len;
    map_put(&b->nodes, str_n(n->id, LAKE_ID_LEN), n);
    return 0;
}

static void base_nodes_free(struct base_nodes *b)
{
    size_t cursor = 0;
    struct str id;
    void *node;

    if (!b)
        return;
    while (map_next(&b->nodes, &cursor, &id, &node)) {
        map_remove(&b->nodes, id);
        free(node);
    }
    map_release(&b->nodes);
    free(b);
}

/* --- merging two bases --- */

struct base_work {
    struct lake *lake;
    struct arena *arena;
    const struct lake_repo *repo;
    struct tree_store *store;
    unsigned merges;
};

/* The paths on which two bases conflict, sorted. */
struct base_paths {
    struct arena arena;
    VEC(struct str) paths;
    size_t at; /* index of the next path that base_paths_next() gives */
};

static enum tree_strategy base_note_conflict(void *ctx, struct str path)
{
    struct base_paths *p = ctx;

    vec_push(&p->paths, arena_str(&p->arena, path));
    return TREE_DEST_WINS;
}

static int base_paths_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct base_paths *p = ctx;

    if (p->at == p->paths.len)
        return ERR_END;
    *out = (struct tree_record){.key = p->paths.items[p->at++], .identity = BASE_CONFLICT};
    return 0;
}

/* Merges the trees of two merge bases; `base` is the base of this merge. Paths on which the two
 * trees conflict get the identity BASE_CONFLICT. */
static int base_merge(struct base_work *w, struct str base, struct str source, struct str *dest,
                      struct err *err)
{
    struct base_paths p = {.arena = ARENA_INIT(BASE_PATHS_MAX)};
    struct tree_changes marks = {base_paths_next, &p};
    struct tree_merge m = {
        .base = base, .source = source, .dest = *dest, .choose = base_note_conflict, .ctx = &p};
    struct tree_result merged = {0}, marked = {0};
    int code = tree_merge(w->store, &m, NULL, &merged, err);

    if (code == 0 && arena_error(&p.arena) < 0)
        code = err_set(err, ERR_TOO_LARGE, "the merge bases conflict in too many paths");
    if (code == 0)
        code = tree_apply(w->store, str_z(merged.root), &marks, NULL, &marked, err);
    *dest = arena_str(w->arena, str_z(marked.root));
    vec_release(&p.paths);
    arena_release(&p.arena);
    return code;
}

/* --- merging all bases --- */

/* Merges the trees of the bases, one after the other. Each of these merges needs a base itself,
 * which this function makes by calling itself. That base consists of commits with lower
 * generations, so the recursion ends. */
static int base_join(struct base_work *w, const struct merge_bases *bases, struct str *root,
                     struct err *err)
{
    struct merge_bases lower;
    struct str source, base;
    int code = bases->has_more ? err_set(err, ERR_TOO_LARGE, "there are too many merge bases") : 0;

    /* NOLINTBEGIN(misc-no-recursion): bounded by BASE_MERGES_MAX */
    if (code == 0)
        code = lake_commit_tree(w->lake, w->arena, w->repo, bases->ids[0], root, err);

    for (size_t i = 1; i < bases->count && code == 0; i++) {
        if (w->merges++ == BASE_MERGES_MAX)
            return err_set(err, ERR_TOO_LARGE, "the merge bases have too many bases");
        base = STR_EMPTY;
        code =
            lake_merge_bases(w->lake, w->arena, w->repo, bases->ids, i, bases->ids[i], &lower, err);
        if (code == 0)
            code = base_join(w, &lower, &base, err);
        else if (code == ERR_NOT_FOUND) /* no common ancestor: the base is the empty tree */
            code = 0;
        if (code == 0)
            code = lake_commit_tree(w->lake, w->arena, w->repo, bases->ids[i], &source, err);
        if (code == 0)
            code = base_merge(w, base, source, root, err);
    }
    /* NOLINTEND(misc-no-recursion) */
    return code;
}

/* Makes the tree of several bases. If there are too many bases, or the merged tree needs too much
 * memory, the tree of the first merge base is used alone, as in lakeFS. */
static int base_tree_join(struct base_tree *b, struct base_work *w, const struct merge_bases *bases,
                          struct err *err)
{
    struct base_nodes *nodes = xzalloc(sizeof(*nodes));

    nodes->bytes_max = w->lake->base_bytes_max;
    nodes->real = b->store.place;
    map_init(&nodes->nodes);
    b->nodes = nodes;
    b->store.place.read = base_node_read;
    b->store.place.write = base_node_write;
    b->store.place.write_all = NULL;
    b->store.place.ctx = nodes;
    nodes->builds = true;
    int code = base_join(w, bases, &b->root, err);
    nodes->builds = false;
    return code == ERR_TOO_LARGE
               ? lake_commit_tree(w->lake, w->arena, w->repo, bases->ids[0], &b->root, err)
               : code;
}

int base_tree_find(struct base_tree *out, struct tree_store *store, struct lake *l, struct arena *a,
                   const struct lake_repo *r, struct str left, struct str right, struct err *err)
{
    struct base_work w = {.lake = l, .arena = a, .repo = r, .store = &out->store};
    struct merge_bases bases;

    *out = (struct base_tree){.store = *store};
    int code = lake_merge_bases(l, a, r, &left, 1, right, &bases, err);
    if (code < 0)
        return code;
    out->first = bases.ids[0];
    if (bases.count == 1)
        return lake_commit_tree(l, a, r, bases.ids[0], &out->root, err);
    return base_tree_join(out, &w, &bases, err);
}

bool base_tree_conflicts(struct str identity)
{
    return str_eq(identity, BASE_CONFLICT);
}

void base_tree_release(struct base_tree *b)
{
    base_nodes_free(b->nodes);
    b->nodes = NULL;
}
