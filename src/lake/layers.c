/* Walks over the layers of a branch in the order of paths. */
#include "lake/layers.h"

#include <stdlib.h>

/* A layer is a token's rows or a tree's records. `row` is the layer's next row, which the walk has
 * not returned yet. */
struct layer {
    struct kv_scan *scan; /* NULL: the layer is a tree */
    struct tree_iter *tree;
    struct layers_row row; /* borrowed from the scan or the iterator */
    bool is_read;          /* `row` is valid, or the layer has ended */
    bool has_ended;
};

struct layers {
    struct layer *layers; /* the newest first */
    size_t count;
    struct str prefix;
    bool shows_tombstones;
    struct arena arena;
};

enum { STAGED_KEY_LEN = sizeof(LAKE_STAGED_KEY) - 1 };

/* --- one layer --- */

/* Returns the key of a path in a token's partition. */
static struct str layer_key(struct arena *a, struct str path)
{
    return lake_key_staged(a, STR_EMPTY, path).key;
}

static int layer_read_staged(struct layer *layer, struct err *err)
{
    struct lake_staged staged;
    struct str key, value;
    int code = kv_scan_next(layer->scan, &key, &value, err);

    if (code == 0)
        code = lake_staged_read(&staged, value, err);
    if (code == 0)
        layer->row =
            (struct layers_row){str_skip(key, STAGED_KEY_LEN), staged.identity, staged.data};
    return code;
}

static int layer_read_tree(struct layer *layer, struct str prefix, struct err *err)
{
    struct tree_record record;
    int code = tree_iter_next(layer->tree, &record, err);

    if (code == 0 && !str_starts(record.key, prefix))
        code = ERR_END;
    if (code == 0)
        layer->row = (struct layers_row){record.key, record.identity, record.data};
    return code;
}

/* Reads the layer's next row, unless `row` already has it. */
static int layer_read(struct layer *layer, struct str prefix, struct err *err)
{
    if (layer->is_read)
        return 0;
    int code = layer->scan ? layer_read_staged(layer, err) : layer_read_tree(layer, prefix, err);
    layer->has_ended = code == ERR_END;
    layer->is_read = code == 0 || code == ERR_END;
    return code == ERR_END ? 0 : code;
}

/* --- the walk --- */

static int layers_open_token(struct layers *w, struct lake *l, const struct layers_options *o,
                             size_t index, struct err *err)
{
    struct kv_range range = {.prefix = layer_key(&w->arena, o->prefix),
                             .from = layer_key(&w->arena, o->from),
                             .first_page = o->first_page};

    return kv_scan_open(&w->layers[index].scan, l->kv, o->view, o->tokens[index], &range, err);
}

static int layers_open_tree(struct layers *w, const struct layers_options *o, struct err *err)
{
    struct layer *layer = &w->layers[o->token_count];
    int code = tree_iter_open(&layer->tree, o->store, o->tree, err);

    if (code == 0)
        tree_iter_seek(layer->tree, str_cmp(o->from, o->prefix) > 0 ? o->from : o->prefix);
    return code;
}

int layers_open(struct layers **out, struct lake *l, const struct layers_options *o,
                struct err *err)
{
    struct layers *w = xzalloc(sizeof(*w));
    bool has_tree = o->store && o->tree.len > 0;
    int code = 0;

    arena_init(&w->arena, 0);
    w->count = o->token_count + has_tree;
    w->layers = xcalloc(w->count ? w->count : 1, sizeof(*w->layers));
    w->prefix = arena_str(&w->arena, o->prefix);
    w->shows_tombstones = o->shows_tombstones;
    for (size_t i = 0; i < o->token_count && code == 0; i++)
        code = layers_open_token(w, l, o, i, err);
    if (code == 0 && has_tree)
        code = layers_open_tree(w, o, err);
    if (code < 0) {
        layers_close(w);
        return code;
    }
    *out = w;
    return 0;
}

/* Finds the newest layer that has the smallest path. NULL: all layers have ended. */
static struct layer *layers_smallest(struct layers *w)
{
    struct layer *best = NULL;

    for (size_t i = 0; i < w->count; i++) {
        struct layer *layer = &w->layers[i];
        if (!layer->has_ended && (!best || str_cmp(layer->row.path, best->row.path) < 0))
            best = layer;
    }
    return best;
}

/* Marks the next row of every layer that is at the path of `best` as used, so that the layer reads
 * another row later. The strings of best->row stay valid until then. */
static void layers_pass(struct layers *w, const struct layer *best)
{
    for (size_t i = 0; i < w->count; i++) {
        struct layer *layer = &w->layers[i];
        if (!layer->has_ended && str_eq(layer->row.path, best->row.path))
            layer->is_read = false;
    }
}

int layers_next(struct layers *w, struct layers_row *out, struct err *err)
{
    for (;;) {
        int code = 0;
        for (size_t i = 0; i < w->count && code == 0; i++)
            code = layer_read(&w->layers[i], w->prefix, err);
        struct layer *best = code == 0 ? layers_smallest(w) : NULL;
        if (!best)
            return code < 0 ? code : ERR_END;
        layers_pass(w, best);
        *out = best->row;
        if (out->identity.len > 0 || w->shows_tombstones)
            return 0;
    }
}

void layers_seek(struct layers *w, struct str path)
{
    struct arena a = {0};
    struct str key = layer_key(&a, path);

    for (size_t i = 0; i < w->count; i++) {
        struct layer *layer = &w->layers[i];
        if (layer->scan)
            kv_scan_seek(layer->scan, key);
        else
            tree_iter_seek(layer->tree, str_cmp(path, w->prefix) > 0 ? path : w->prefix);
        layer->is_read = layer->has_ended = false;
    }
    arena_release(&a);
}

void layers_close(struct layers *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->count; i++) {
        kv_scan_free(w->layers[i].scan);
        tree_iter_close(w->layers[i].tree);
    }
    arena_release(&w->arena);
    free(w->layers);
    free(w);
}

/* --- helpers for callers --- */

struct str *layers_tokens(struct arena *a, const struct lake_branch *b, size_t *count)
{
    struct str *tokens = arena_array(a, b->sealed_count + 1, sizeof(*tokens));

    if (!tokens)
        return NULL;
    tokens[0] = b->staging;
    if (b->sealed_count)
        memcpy(tokens + 1, b->sealed, b->sealed_count * sizeof(*tokens));
    *count = b->sealed_count + 1;
    return tokens;
}

bool layers_behind(struct arena *a, struct str prefix, struct str *out)
{
    while (prefix.len && (unsigned char)prefix.p[prefix.len - 1] == 0xff)
        prefix.len--;
    char *copy = arena_z(a, prefix);
    if (prefix.len == 0 || !copy)
        return false;
    copy[prefix.len - 1]++;
    *out = str_n(copy, prefix.len);
    return true;
}
