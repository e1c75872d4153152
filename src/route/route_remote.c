/* Which remote storage a request goes to, from memory alone (docs/forward.md, "Which storage"). */
#include "route/route_int.h"

static bool is_remote(const struct storage *s)
{
    return s->ops->forward != NULL;
}

struct storage *routes_local_of(struct routes *r, struct str bucket, struct str owner)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(r, all, ARRAY_SIZE(all));
    struct storage *found = NULL;

    for (size_t i = 0; i < count && !found; i++) {
        struct arena arena = {0};
        struct bucket_info info = {0};
        struct bucket *b = NULL;
        if (is_remote(all[i]) || all[i]->ops->open_bucket(&b, all[i], owner, bucket, NULL) < 0)
            continue;
        if (owner.len == 0 ||
            (b->ops->info(b, &arena, &info, NULL) == 0 && str_eq(info.owner, owner)))
            found = all[i];
        b->ops->unref(b);
        arena_release(&arena);
    }
    return found;
}

/* Rule 5: what the bucket policies of all users agree on. */
static int by_name(struct routes *r, const struct routes_view *view, struct str bucket,
                   struct storage **out, struct err *err)
{
    const char *name = routes_look_up(&view->named, bucket, STR_EMPTY);
    struct storage *s = name && *name ? routes_storage(r, str_z(name)) : NULL;

    if (!s)
        return 0;
    *out = s;
    return routes_check_block(view, s, bucket, err);
}

int routes_remote_by(struct routes *r, const struct routes_view *view, struct str user,
                     struct str bucket, struct storage **out, struct err *err)
{
    const char *own = routes_look_up(&view->policies, user, bucket);
    const char *policy = own ? own : routes_look_up(&view->policies, user, STR_EMPTY);
    struct storage *s = NULL;
    int code = routes_storage_by(r, view, user, bucket, &s, err);

    *out = NULL;
    if (code < 0)
        return code;
    if (!own && user.len && routes_local_of(r, bucket, user))
        return 0;
    if (!own && !(policy && is_remote(s)) &&
        (is_remote(s) || !routes_local_of(r, bucket, STR_EMPTY)))
        code = by_name(r, view, bucket, &s, err);
    if (code == 0 && is_remote(s))
        *out = s;
    return code;
}

/* A policy that names no storage counts: only remote ones can be removed, and come back. */
static bool is_taken(struct routes *r, const struct routes_view *view, struct str user,
                     struct str bucket)
{
    struct buf escaped = {0};
    struct str key, owner, name;
    void *value;
    bool taken = false;

    if (!routes_look_up(&view->named, bucket, STR_EMPTY) ||
        routes_look_up(&view->policies, user, bucket))
        return false;
    store_key_part(&escaped, bucket);
    for (size_t at = 0; !taken && map_next(&view->policies, &at, &key, &value);) {
        if (!str_cut(key, ':', &owner, &name) || !str_eq(name, buf_str(&escaped)))
            continue;
        struct storage *s = routes_storage(r, str_z(value));
        taken = !s || is_remote(s);
    }
    buf_release(&escaped);
    return taken;
}

int route_check_new(struct routes *r, struct str user, struct str bucket, struct err *err)
{
    struct routes_view *view;
    int code = routes_view_get(r, &view, err);

    if (code < 0)
        return code;
    if (is_taken(r, view, user, bucket))
        code = err_set(err, ERR_EXISTS, "the name leads to a remote storage");
    routes_view_put(r, view);
    return code;
}

int route_remote(struct routes *r, struct str user, struct str bucket, struct storage **out,
                 struct err *err)
{
    struct routes_view *view;
    int code;

    *out = NULL;
    if (!routes_any_remote(r) && r->storages_known)
        return 0;
    code = routes_view_get(r, &view, err);
    if (code == 0) {
        code = routes_remote_by(r, view, user, bucket, out, err);
        routes_view_put(r, view);
    }
    return code;
}
