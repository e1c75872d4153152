/* Calling the hooks of the lake (docs/lake-keeping.md, H1 and H3). */
#include "lake/hooks.h"
#include "lake/lake_int.h"

int lake_hook_pre(struct lake *l, struct arena *a, const struct lake_hook_call *c, struct err *err)
{
    const struct lake_hooks *hooks = l->o.hooks;

    return hooks && hooks->pre && !c->repo->read_only ? hooks->pre(hooks->ctx, l, a, c, err) : 0;
}

void lake_hook_post(struct lake *l, const struct lake_hook_call *c)
{
    const struct lake_hooks *hooks = l->o.hooks;

    if (hooks && hooks->post && !c->repo->read_only)
        hooks->post(hooks->ctx, l, c);
}
