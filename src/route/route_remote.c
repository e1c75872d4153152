/* Which remote storage a request goes to, from memory alone (docs/forward.md, "Which storage"). */
#include "route/route_int.h"
#include "object/overlay.h"

static bool is_remote(const struct storage *s)
{
    return storage_can(s, STORAGE_FORWARDS);
}

/* An empty owner is anybody. */
static bool is_of(struct bucket *b, struct str owner)
{
    struct arena arena = {0};
    struct bucket_info info = {0};
    bool is =
        owner.len == 0 || (b->ops->info(b, &arena, &info, NULL) == 0 && str_eq(info.owner, owner));

    arena_release(&arena);
    return is;
}

/* --- names that are not here (route_int.h) --- */

/* Of all local storages, as bucket.h has it for one: 0 when one of them cannot say. */
static uint64_t generations(struct storage *const *all, size_t count, struct str bucket)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t one = 0;
        if (is_remote(all[i]))
            continue;
        if (all[i]->ops->generation)
            one = all[i]->ops->generation(all[i], bucket);
        if (one == 0)
            return 0;
        sum += one;
    }
    return sum;
}

/* What the name's slot holds while the name is known to be absent; 0: that cannot be known. */
static uint64_t absent_tag(const struct routes *r, const struct routes_view *view,
                           struct str bucket, uint64_t generation)
{
    struct hash_key key = {r->absent_key.k0 ^ view->serial, r->absent_key.k1 ^ generation};

    return generation ? hash_sip(&key, bucket) : 0;
}

static _Atomic(uint64_t) *absent_slot(struct routes *r, struct str bucket)
{
    return &r->absent[hash_xxh3(bucket, r->absent_key.k0) % ROUTES_ABSENT];
}

struct storage *routes_local_of(struct routes *r, const struct routes_view *view, struct str bucket,
                                struct str owner)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(r, all, ARRAY_SIZE(all));
    uint64_t tag = absent_tag(r, view, bucket, generations(all, count, bucket));
    _Atomic(uint64_t) *slot = absent_slot(r, bucket);
    struct storage *found = NULL;
    bool absent = true;

    if (tag && atomic_load_explicit(slot, memory_order_relaxed) == tag)
        return NULL;
    for (size_t i = 0; i < count && !found; i++) {
        struct bucket *b = NULL;
        if (is_remote(all[i]) || routes_copy_of(view, all[i], bucket))
            continue;
        int code = storage_open_bucket(&b, all[i], owner, bucket, NULL);
        absent &= code == ERR_NO_BUCKET;
        /* Of one whose disk is not there it is not asked whose it is: it must not go elsewhere. */
        if (code == ERR_OFFLINE || (code == 0 && is_of(b, owner)))
            found = all[i];
        if (code == 0)
            b->ops->unref(b);
    }
    if (absent && tag)
        atomic_store_explicit(slot, tag, memory_order_relaxed);
    return found;
}

/* Rule 5: what the bucket policies of all users agree on; NULL: nothing. */
static const char *by_name(const struct routes_view *view, struct str bucket)
{
    const char *name = routes_look_up(&view->named, bucket, STR_EMPTY);

    return name && *name ? name : NULL;
}

/* What the owner of a local bucket says of it by a bucket policy; NULL: nothing. */
static const char *by_owner(const struct routes_view *view, struct storage *at, struct str bucket)
{
    struct arena arena = {0};
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    const char *policy = NULL;

    if (!routes_look_up(&view->reserved, bucket, STR_EMPTY) ||
        storage_open_bucket(&b, at, STR_EMPTY, bucket, NULL) < 0)
        return NULL;
    if (b->ops->info(b, &arena, &info, NULL) == 0)
        policy = routes_look_up(&view->policies, info.owner, bucket);
    b->ops->unref(b);
    arena_release(&arena);
    return policy;
}

/* A local storage that holds a copy of a bucket of this name; or NULL. */
static struct storage *local_copy(struct routes *r, const struct routes_view *view,
                                  struct str bucket)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = view->copies.len ? routes_storages(r, all, ARRAY_SIZE(all)) : 0;

    for (size_t i = 0; i < count; i++)
        if (!is_remote(all[i]) && routes_copy_of(view, all[i], bucket))
            return all[i];
    return NULL;
}

/* Rules 4 and 5, of a user whom no policy of their own leads to a remote storage. `at`: what rule 3
 * has found, or NULL, where there is no main storage here. */
static int by_others(struct routes *r, const struct routes_view *view, struct str bucket,
                     struct storage **at, struct err *err)
{
    bool local = *at && !is_remote(*at);
    struct storage *here = local ? routes_local_of(r, view, bucket, STR_EMPTY) : NULL, *s;
    const char *name = here ? by_owner(view, here, bucket) : by_name(view, bucket);

    if (!name && local && !here && (s = local_copy(r, view, bucket)))
        *at = s; /* where its owner's route leads, is found from there */
    if (!name)
        return *at ? 0 : routes_no_main(err);
    s = routes_storage(r, str_z(name));
    if (!s)
        return routes_no_storage(name, err);
    if (!here || is_remote(s))
        *at = s;
    return 0;
}

int routes_remote_by(struct routes *r, const struct routes_view *view, struct str user,
                     struct str bucket, struct storage **out, struct err *err)
{
    const char *own = routes_look_up(&view->policies, user, bucket);
    const char *policy = own ? own : routes_look_up(&view->policies, user, STR_EMPTY);
    struct storage *s = NULL;
    int code = routes_storage_by(r, view, user, bucket, &s, err);

    *out = NULL;
    if ((code == 0 || code == ERR_OFFLINE) && !own && user.len &&
        routes_local_of(r, view, bucket, user))
        return 0;
    if (code < 0 && !(code == ERR_OFFLINE && !policy && !s))
        return code;
    if (!own && !(policy && is_remote(s))) {
        code = by_others(r, view, bucket, &s, err);
        if (code == 0)
            code = routes_leave_copy(r, view, bucket, &s, err);
    }
    if (code == 0)
        code = routes_check_block(view, s, bucket, err);
    if (code == 0 && is_remote(s))
        *out = s;
    return code;
}

/* Is there a bucket policy of somebody else for the name, and none of the user's own? */
static bool is_taken(const struct routes_view *view, struct str user, struct str bucket)
{
    return routes_look_up(&view->reserved, bucket, STR_EMPTY) &&
           !routes_look_up(&view->policies, user, bucket);
}

int route_check_new(struct routes *r, struct str user, struct str bucket, struct err *err)
{
    struct routes_view *view;
    int code = routes_view_get(r, &view, err);

    if (code < 0)
        return code;
    if (is_taken(view, user, bucket))
        code = err_set(err, ERR_EXISTS, "the name is led to a bucket of another user");
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
