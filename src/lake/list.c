/* Lists the paths of a ref. */
#include "lake/keep.h"
#include "lake/layers.h"
#include "lake/page.h"
#include "lake/read.h"

/* A page that is being filled. */
struct listing {
    struct arena *arena;
    struct layers *walk;
    struct layers_row row; /* the row that the walk returned last */
    struct lake_objects *out;
};

static int listing_next(void *ctx, struct str *path, struct err *err)
{
    struct listing *g = ctx;
    int code = layers_next(g->walk, &g->row, err);

    *path = g->row.path;
    return code;
}

static void listing_seek(void *ctx, struct str path)
{
    layers_seek(((struct listing *)ctx)->walk, path);
}

static int listing_add(void *ctx, struct str path, bool is_prefix, struct err *err)
{
    struct listing *g = ctx;
    struct lake_object *item = &g->out->items[g->out->count++];
    struct str identity, data;

    if (is_prefix) {
        *item = (struct lake_object){.path = path, .is_prefix = true};
        return 0;
    }
    identity = arena_str(g->arena, g->row.identity);
    data = arena_str(g->arena, g->row.data);
    int code = arena_error(g->arena);
    return code < 0 ? err_code(err, code)
                    : lake_object_read(item, g->arena, path, identity, data, err);
}

static int listing_fill(struct lake *l, struct arena *a, const struct layers_options *layers,
                        const struct lake_list_options *o, struct lake_objects *out,
                        struct err *err)
{
    struct listing g = {.arena = a, .out = out};
    struct page_source source = {listing_next, listing_seek, listing_add, &g};

    *out = (struct lake_objects){.items = arena_array(a, page_limit(o) + 1, sizeof(*out->items))};
    if (!out->items)
        return err_code(err, ERR_NO_MEMORY);
    int code = layers_open(&g.walk, l, layers, err);
    if (code == 0)
        code = page_fill(a, o, &source, &out->more, &out->next, err);
    layers_close(g.walk);
    return code;
}

/* Lists the branch at the moment `m`, or the commit if `m` is NULL. */
static int listing_run(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct lake_moment *m, struct str commit_id,
                       const struct lake_list_options *o, struct lake_objects *out, struct err *err)
{
    struct layers_options layers = {.prefix = o->prefix, .first_page = page_limit(o) + 1};
    struct head_tree tree = {0};
    int code = page_start(a, o, &layers.from, err);

    if (code == 0 && m) {
        layers.view = m->view;
        layers.tokens = layers_tokens(a, &m->branch, &layers.token_count);
        code = layers.tokens ? 0 : err_code(err, ERR_NO_MEMORY);
    }
    if (code == 0)
        code = head_tree_open(&tree, l, a, r, commit_id, err);
    layers.store = &tree.store;
    layers.tree = tree.root;
    if (code == 0)
        code = listing_fill(l, a, &layers, o, out, err);
    head_tree_release(&tree, l);
    return code == ERR_END ? 0 : code;
}

static int listing_of_branch(struct lake *l, struct arena *a, const struct lake_repo *r,
                             struct str branch, const struct lake_list_options *o,
                             struct lake_objects *out, struct err *err)
{
    uint64_t deadline = clock_mono_ms() + LAKE_DEADLINE_MS;
    struct lake_moment m;
    int code;

    do {
        code = moment_open(&m, l, a, r, branch, err);
        if (code < 0)
            return code;
        code = listing_run(l, a, r, &m, m.branch.commit_id, o, out, err);
        if (code == 0)
            code = moment_check(&m, l, a, err);
        moment_close(&m, l);
    } while (code == ERR_AGAIN && clock_mono_ms() < deadline);
    return code == ERR_AGAIN ? err_code(err, ERR_BUSY) : code;
}

int lake_list(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
              const struct lake_list_options *o, struct lake_objects *out, struct err *err)
{
    struct lake_ref at;
    int code = lake_ref_resolve(l, a, r, ref, &at, err);

    *out = (struct lake_objects){.next = o->after};
    if (code == 0 && !at.staged)
        code = lake_check_expired(l, a, r, &at, err);
    if (code < 0)
        return code;
    return at.staged ? listing_of_branch(l, a, r, at.branch.id, o, out, err)
                     : listing_run(l, a, r, NULL, at.commit_id, o, out, err);
}
