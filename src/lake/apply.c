/* Applies changes to a tree. The base tree and the changes are read side by side, in the order of
 * keys. If all keys of a node are smaller than the next change, the new tree uses the node as it
 * is. If the next change lies between the smallest and the greatest key of a node, the walk goes on
 * with the children of the node. */
#include "lake/tree_build.h"

#include <stdio.h>

struct apply {
    struct tree_spine base;
    struct tree_builder builder;
    const struct tree_changes *changes;
    struct tree_record change; /* the next change to apply */
    bool has_change;
    size_t key_len; /* length of the key of the last change */
    char key[NODE_KEY_MAX];
    struct tree_result *result;
};

static int apply_check_change(const struct apply *a, struct err *err)
{
    const struct tree_record *c = &a->change;

    if (c->key.len == 0 || c->key.len > NODE_KEY_MAX)
        return err_set(err, ERR_INVALID, "a path of %zu bytes cannot be in a tree", c->key.len);
    if (str_cmp(c->key, str_n(a->key, a->key_len)) <= 0)
        return err_set(err, ERR_INVALID, "the changes of a tree are not sorted");
    if (c->identity.len > NODE_VALUE_MAX / 2 || c->data.len > NODE_VALUE_MAX / 2)
        return err_set(err, ERR_TOO_LARGE, "the entry of '" STR_FMT "' is too large",
                       STR_ARG(str_head(c->key, 200)));
    return 0;
}

static int apply_next_change(struct apply *a, struct err *err)
{
    int code = a->changes->next(a->changes->ctx, &a->change, err);

    a->has_change = code == 0;
    if (code)
        return code == ERR_END ? 0 : code;
    code = apply_check_change(a, err);
    if (code == 0) {
        memcpy(a->key, a->change.key.p, a->change.key.len);
        a->key_len = a->change.key.len;
    }
    return code;
}

/* Applies a change whose key the base does not have. */
static int apply_new(struct apply *a, struct err *err)
{
    int code = 0;

    if (a->change.identity.len) {
        a->result->added++;
        code = tree_builder_record(&a->builder, &a->change, err);
    }
    return code ? code : apply_next_change(a, err);
}

/* Applies a change whose key the base has. */
static int apply_over(struct apply *a, struct err *err)
{
    bool same = str_eq(a->base.item.record.identity, a->change.identity);
    int code = 0;

    if (same) {
        code = tree_builder_item(&a->builder, &a->base.item, err);
    } else if (a->change.identity.len) {
        a->result->changed++;
        code = tree_builder_record(&a->builder, &a->change, err);
    } else {
        a->result->removed++;
    }
    if (code == 0)
        code = tree_spine_next(&a->base, err);
    return code ? code : apply_next_change(a, err);
}

static int apply_step(void *ctx, struct err *err)
{
    struct apply *a = ctx;
    const struct tree_item *item = &a->base.item;

    if (!a->has_change && a->base.end)
        return ERR_END;
    if (!a->has_change)
        return tree_builder_take(&a->builder, &a->base, true, err);
    if (a->base.end || str_cmp(a->change.key, item->min) < 0)
        return apply_new(a, err);
    int order = str_cmp(a->change.key, item->max);
    if (order > 0)
        return tree_builder_take(&a->builder, &a->base, false, err);
    return item->level > 0 ? tree_spine_enter(&a->base, err) : apply_over(a, err);
}

static int apply_run(struct apply *a, struct str base, struct err *err)
{
    int code = apply_next_change(a, err);

    if (code == 0)
        code = tree_work(apply_step, a, err);
    if (code == 0)
        code = tree_builder_finish(&a->builder, a->result->root, err);
    /* When no record differs, the result is the base itself. The nodes that were built may differ
     * from the base although the records are equal, because lakeFS cuts its leaves at other
     * places. */
    if (code == 0 && a->result->added + a->result->changed + a->result->removed == 0)
        snprintf(a->result->root, sizeof(a->result->root), STR_FMT, STR_ARG(base));
    return code;
}

int tree_apply(struct tree_store *t, struct str base, const struct tree_changes *changes,
               const struct tree_write_options *o, struct tree_result *out, struct err *err)
{
    struct apply *a = xzalloc(sizeof(*a));
    struct tree_result result = {0};
    int code = tree_spine_open(&a->base, t, base, err);

    a->changes = changes;
    a->result = &result;
    tree_builder_init(&a->builder, t, o);
    a->builder.sources[0] = &a->base;
    if (code == 0)
        code = apply_run(a, base, err);
    tree_builder_release(&a->builder);
    result.nodes = a->builder.written;
    tree_spine_close(&a->base);
    free(a);
    if (code == 0)
        *out = result;
    return code;
}
