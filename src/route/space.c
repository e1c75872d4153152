/* Implements the spaces of the routes (route/space.h), and the overlay that all storages get. */
#include "route/space.h"
#include "route/route_int.h"

int routes_add_space(struct routes *r, const struct bucket_space *space, struct err *err)
{
    int code = 0;

    mutex_lock(&r->lock);
    size_t count = atomic_load(&r->space_count);
    if (count == ROUTES_SPACES_MAX)
        code = err_set(err, ERR_TOO_LARGE, "there are %d spaces already", ROUTES_SPACES_MAX);
    else
        r->spaces[count] = space;
    if (code == 0) {
        atomic_store(&r->space_count, count + 1);
        atomic_fetch_add(&r->generation, 1);
    }
    mutex_unlock(&r->lock);
    return code;
}

const struct bucket_space *routes_space_of(struct routes *r, struct str bucket)
{
    size_t count = atomic_load_explicit(&r->space_count, memory_order_acquire);

    for (size_t i = 0; i < count; i++)
        if (r->spaces[i]->has(r->spaces[i]->ctx, bucket))
            return r->spaces[i];
    return NULL;
}

size_t routes_spaces(struct routes *r, const struct bucket_space **out)
{
    size_t count = atomic_load_explicit(&r->space_count, memory_order_acquire);

    for (size_t i = 0; i < count; i++)
        out[i] = r->spaces[i];
    return count;
}

void routes_set_overlay(struct routes *r, struct overlay *overlay)
{
    mutex_lock(&r->lock);
    r->overlay = overlay;
    vec_each (&r->storages, struct storage **, s)
        atomic_store(&(*s)->overlay, overlay);
    atomic_fetch_add(&r->generation, 1);
    mutex_unlock(&r->lock);
}
