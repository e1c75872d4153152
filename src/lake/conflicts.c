/* Merges trees and collects the conflicting paths. */
#include "lake/conflicts.h"

int conflicts_merge(struct conflict_merge *m, struct lake *l, struct arena *a,
                    struct tree_store *store, struct str *root, struct err *err)
{
    struct tree_write_options write = {.writers = l->o.writers};
    struct tree_result result = {0};

    if (m->conflicts)
        *m->conflicts = (struct lake_conflicts){0};
    m->arena = a;
    int code = tree_merge(store, &m->merge, &write, &result, err);
    if (code == ERR_CONFLICT)
        return err_set(err, ERR_CONFLICT, "conflict found");
    *root = arena_str(a, str_z(result.root));
    return code;
}

void conflicts_add(void *ctx, struct str path)
{
    struct conflict_merge *m = ctx;
    struct lake_conflicts *c = m->conflicts;

    if (!c)
        return;
    if (!c->paths)
        c->paths = arena_array(m->arena, LAKE_LIST_MAX, sizeof(*c->paths));
    if (!c->paths || c->count == LAKE_LIST_MAX) {
        c->more = true;
        return;
    }
    c->paths[c->count++] = arena_str(m->arena, path);
}
