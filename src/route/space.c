/* Implements the spaces of the routes (route/space.h), and the overlay that all storages get. */
#include "route/space.h"
#include "route/route_int.h"

#include "object/overlay.h"

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

int routes_space_has(struct routes *r, struct str bucket, bool *out, struct err *err)
{
    const struct bucket_space *spaces[ROUTES_SPACES_MAX];
    size_t count = routes_spaces(r, spaces);
    int code = 0;

    *out = false;
    for (size_t i = 0; i < count && code == 0 && !*out; i++) {
        *out = spaces[i]->has(spaces[i]->ctx, bucket);
        if (!*out && spaces[i]->look)
            code = spaces[i]->look(spaces[i]->ctx, bucket, out, err);
    }
    return code;
}

/* Whether the storage has the bucket. The bucket's info is read too, because opening a bucket of a
 * remote storage does not ask that storage. */
static int storage_has(struct storage *s, struct str user, struct str bucket, bool *out,
                       struct err *err)
{
    struct arena a = {0};
    struct bucket_info info;
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, user, bucket, err);

    if (code == 0)
        code = b->ops->info(b, &a, &info, err);
    if (b)
        b->ops->unref(b);
    arena_release(&a);
    *out = code == 0 || code == ERR_OFFLINE; /* the bucket is there, but its disk is not */
    return code == ERR_NO_BUCKET || code == ERR_OFFLINE ? 0 : code;
}

int routes_storage_has(struct routes *r, struct str user, struct str bucket, bool *out,
                       struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX], *leads = NULL;
    size_t count = routes_storages(r, all, ROUTES_STORAGES_MAX);
    int code = 0;

    *out = false;
    for (size_t i = 0; i < count && code == 0 && !*out; i++)
        if (!storage_can(all[i], STORAGE_FORWARDS))
            code = storage_has(all[i], user, bucket, out, err);
    if (code == 0 && !*out && routes_any_remote(r))
        code = route_storage(r, user, bucket, &leads, err);
    if (code == 0 && leads && storage_can(leads, STORAGE_FORWARDS))
        code = storage_has(leads, user, bucket, out, err);
    return code;
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
