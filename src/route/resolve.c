/* From a bucket's name to where it is (docs/forward.md, "Which storage"). */
#include "route/resolve.h"
#include "route/route_int.h"

#include "object/overlay.h"

/* One question, and where the policies of the user who asks lead. */
struct inquiry {
    struct routes *r;
    const struct routes_view *view;
    struct str user, bucket;
    const char *own;    /* the storage of the user's policy for this bucket; NULL: none */
    const char *policy; /* that storage, else the one of the user's own policy; NULL: the user has
                           neither */
    struct storage *leads; /* where the policies lead, else the main storage; NULL: see `code` */
    int code;              /* of routes_storage_by() */
};

static void inquiry_init(struct inquiry *q, struct routes *r, const struct routes_view *view,
                         const struct route_ask *ask, struct err *err)
{
    *q = (struct inquiry){.r = r, .view = view, .user = ask->user, .bucket = ask->bucket};
    q->own = q->bucket.len ? routes_look_up(&view->policies, q->user, q->bucket) : NULL;
    q->policy = q->own ? q->own : routes_look_up(&view->policies, q->user, STR_EMPTY);
    q->code = routes_storage_by(r, view, q->user, q->bucket, &q->leads, err);
}

/* --- storages that take requests as they are --- */

/* Rule 5: the storage that the bucket policies of all users agree on; NULL: none. */
static const char *storage_by_name(const struct inquiry *q)
{
    const char *name = routes_look_up(&q->view->named, q->bucket, STR_EMPTY);

    return name && *name ? name : NULL;
}

/* The storage that the owner of a local bucket names for it by a bucket policy; NULL: none. */
static const char *storage_by_owner(const struct inquiry *q, struct storage *at)
{
    struct arena arena = {0};
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    const char *policy = NULL;

    if (!routes_look_up(&q->view->reserved, q->bucket, STR_EMPTY) ||
        storage_open_bucket(&b, at, STR_EMPTY, q->bucket, NULL) < 0)
        return NULL;
    if (b->ops->info(b, &arena, &info, NULL) == 0)
        policy = routes_look_up(&q->view->policies, info.owner, q->bucket);
    b->ops->unref(b);
    arena_release(&arena);
    return policy;
}

/* Rules 4 and 5, for a user whom no policy of their own leads to a storage that forwards. `at` is
 * the storage that rule 3 has found, or NULL where this process has no main storage. */
static int resolve_by_others(const struct inquiry *q, struct storage **at, struct err *err)
{
    bool local = *at && !storage_can(*at, STORAGE_FORWARDS);
    struct storage *here = local ? routes_local_of(q->r, q->view, q->bucket, STR_EMPTY) : NULL, *s;
    const char *name = here ? storage_by_owner(q, here) : storage_by_name(q);

    if (!name && local && !here && (s = routes_local_copy(q->r, q->view, q->bucket)))
        *at = s; /* routes_leave_copy() finds where the route of the copy's owner leads */
    if (!name)
        return *at ? 0 : routes_no_main(err);
    s = routes_storage(q->r, str_z(name));
    if (!s)
        return routes_no_storage(name, err);
    if (!here || storage_can(s, STORAGE_FORWARDS))
        *at = s;
    return 0;
}

/* The storage that the request is passed on to; NULL: weir serves the bucket itself. */
static int resolve_raw(const struct inquiry *q, struct storage **out, struct err *err)
{
    struct storage *s = q->leads;
    int code = q->code;

    *out = NULL;
    if ((code == 0 || code == ERR_OFFLINE) && !q->own && q->user.len &&
        routes_local_of(q->r, q->view, q->bucket, q->user))
        return 0; /* rule 2 */
    if (code < 0 && !(code == ERR_OFFLINE && !q->policy))
        return code;
    code = 0;
    if (!q->own && !(q->policy && storage_can(s, STORAGE_FORWARDS))) {
        code = resolve_by_others(q, &s, err);
        if (code == 0)
            code = routes_leave_copy(q->r, q->view, q->bucket, &s, err);
    }
    if (code == 0)
        code = routes_check_block(q->view, s, q->bucket, err);
    if (code == 0 && storage_can(s, STORAGE_FORWARDS))
        *out = s;
    return code;
}

/* --- storages that weir serves itself --- */

/* A bucket of another owner is used where its owner's route leads, if it is there. The target gets
 * that bucket instead then. */
static int resolve_by_its_owner(const struct inquiry *q, struct target *t, struct err *err)
{
    struct arena arena = {0};
    struct bucket_info info;
    struct storage *s = NULL;
    struct bucket *other = NULL;
    int code = t->bucket->ops->info(t->bucket, &arena, &info, err);
    int there = ERR_NO_BUCKET, found = code;

    if (code == 0 && !str_eq(info.owner, q->user))
        found = routes_storage_by(q->r, q->view, info.owner, q->bucket, &s, err);
    if (found == 0 && s && s != t->storage && !storage_can(s, STORAGE_FORWARDS))
        there = storage_open_bucket(&other, s, info.owner, q->bucket, err);
    else if (found == ERR_OFFLINE && routes_look_up(&q->view->policies, info.owner, q->bucket))
        there = found; /* its policy names a storage that this process has not */
    if (there == 0) {
        t->bucket->ops->unref(t->bucket);
        t->bucket = other;
        t->storage = s;
    }
    arena_release(&arena);
    return code == 0 && there == ERR_OFFLINE ? there : code;
}

/* Looks at t->storage first, then at all others. */
static int open_somewhere(const struct inquiry *q, struct target *t, struct err *err)
{
    struct storage *first = t->storage, *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(q->r, all, ARRAY_SIZE(all));
    int code = ERR_NO_BUCKET;

    if (!storage_can(first, STORAGE_FORWARDS))
        code = storage_open_bucket(&t->bucket, first, STR_EMPTY, q->bucket, err);
    for (size_t i = 0; i < count && code == ERR_NO_BUCKET; i++) {
        if (all[i] == first || storage_can(all[i], STORAGE_FORWARDS) ||
            routes_copy_of(q->view, all[i], q->bucket))
            continue;
        int blocked = routes_check_block(q->view, all[i], q->bucket, err);
        if (blocked == ERR_BUSY) /* a switch blocks it: the bucket is there, but not now */
            code = blocked;
        if (blocked < 0)
            continue;
        t->storage = all[i];
        code = storage_open_bucket(&t->bucket, all[i], STR_EMPTY, q->bucket, err);
    }
    return code;
}

static int resolve_here(const struct inquiry *q, struct target *t, struct err *err)
{
    int code = q->code;

    t->storage = q->leads;
    /* A user's policy moves nothing (rule 2): a storage that it names in vain costs none of the
     * buckets that the user has elsewhere. */
    if (code == ERR_OFFLINE && !q->own &&
        (t->storage = routes_local_of(q->r, q->view, q->bucket, q->user)))
        code = 0;
    if (code == 0)
        code = open_somewhere(q, t, err);
    /* The asker's own policy for the bucket comes before its owner's. */
    if (code == 0 && q->view->policies.len && !q->own)
        code = resolve_by_its_owner(q, t, err);
    if (code == 0)
        t->kind = TARGET_HERE;
    if (code != ERR_NO_BUCKET)
        return code;
    t->storage = q->leads;
    return 0;
}

/* --- both --- */

/* A bucket that the caller has open, where the user's own policies lead, is the answer if it is the
 * user's (rules 1 to 3) or if nobody has a policy. */
static bool inquiry_is_known(const struct inquiry *q, const struct route_ask *ask)
{
    struct str owner;

    return ask->knows && q->code == 0 && !storage_can(q->leads, STORAGE_FORWARDS) &&
           !storage_overlay_of(q->leads, q->bucket) &&
           ask->knows(ask->ctx, q->leads, q->bucket, &owner) &&
           (str_eq(owner, q->user) || q->view->policies.len == 0);
}

static int resolve_on_storages(const struct inquiry *q, const struct route_ask *ask,
                               struct target *t, struct err *err)
{
    struct storage *raw = NULL;
    int code = 0;

    if (inquiry_is_known(q, ask)) {
        t->kind = TARGET_HERE;
        t->storage = q->leads;
        return 0;
    }
    if (routes_any_remote(q->r))
        code = resolve_raw(q, &raw, err);
    if (code < 0)
        return code;
    if (!raw)
        return resolve_here(q, t, err);
    t->kind = storage_overlay_of(raw, q->bucket) ? TARGET_FOREIGN : TARGET_RAW;
    t->storage = raw;
    return 0;
}

/* Has another user a bucket policy for the name, and this user none? Then the name is theirs,
 * whether the bucket exists or not. It may be on another storage, or deleted while its replication
 * goes on. */
static bool is_reserved(const struct inquiry *q)
{
    return !q->own && routes_look_up(&q->view->reserved, q->bucket, STR_EMPTY);
}

/* Where a bucket is to be made: where the policies lead, unless it exists already. It is not made
 * on a remote storage where later requests would not find it. */
static int resolve_new(const struct inquiry *q, const struct route_ask *ask, struct target *t,
                       struct err *err)
{
    int code = q->code < 0 ? q->code : resolve_on_storages(q, ask, t, err);

    if (code < 0)
        return code;
    bool taken = storage_can(q->leads, STORAGE_FORWARDS)
                     ? !target_is_foreign(t) || t->storage != q->leads
                     : target_is_foreign(t) || (t->kind == TARGET_NONE && is_reserved(q));
    if (taken) {
        target_release(t);
        t->kind = TARGET_TAKEN;
    }
    return 0;
}

/* A request that names no bucket goes where the user's buckets without a policy would be made. */
static int resolve_service(const struct inquiry *q, struct target *t)
{
    t->kind = q->code == 0 && storage_can(q->leads, STORAGE_FORWARDS) ? TARGET_RAW : TARGET_NONE;
    t->storage = q->leads;
    return q->code;
}

static int resolve_by_rules(struct routes *r, const struct route_ask *ask, struct target *t,
                            struct err *err)
{
    struct routes_view *view;
    struct inquiry q;
    int code = routes_view_get(r, &view, err);

    if (code < 0)
        return code;
    inquiry_init(&q, r, view, ask, err);
    if (!ask->bucket.len)
        code = resolve_service(&q, t);
    else if (ask->make)
        code = resolve_new(&q, ask, t, err);
    else
        code = resolve_on_storages(&q, ask, t, err);
    routes_view_put(r, view);
    return code;
}

static int resolve_in_space(const struct bucket_space *space, const struct route_ask *ask,
                            struct target *t, struct err *err)
{
    struct storage *s = space->storage;
    struct str owner;

    t->kind = ask->make ? TARGET_TAKEN : TARGET_SPACE;
    t->storage = s;
    if (ask->make)
        return 0;
    if (!ask->may_wait)
        return ERR_AGAIN;
    if (ask->knows && ask->knows(ask->ctx, s, ask->bucket, &owner))
        return 0;
    int code = storage_open_bucket(&t->bucket, s, ask->user, ask->bucket, err);
    if (code == ERR_NO_BUCKET) /* removed just now */
        t->kind = TARGET_NONE;
    return code == ERR_NO_BUCKET ? 0 : code;
}

static bool may_have_sides(const struct route_ask *ask)
{
    const struct bucket_sides *sides = ask->sides;

    return sides && atomic_load_explicit(sides->any, memory_order_relaxed) && ask->bucket.len &&
           sides->may(sides->ctx, ask->bucket);
}

static int resolve_sides(const struct route_ask *ask, struct target *t, struct err *err)
{
    const struct bucket_sides *sides = ask->sides;

    if (t->kind != TARGET_HERE && !target_is_foreign(t))
        return 0;
    return sides->find(sides->ctx, ask->arena, t->storage, ask->bucket, &t->sides, err);
}

int route_resolve(struct routes *r, const struct route_ask *ask, struct target *out,
                  struct err *err)
{
    const struct bucket_space *space;
    int code;

    *out = (struct target){.generation = routes_generation(r)};
    if (ask->at) {
        out->kind = storage_can(ask->at, STORAGE_FORWARDS) ? TARGET_RAW : TARGET_HERE;
        out->storage = ask->at;
        return 0;
    }
    space = ask->bucket.len ? routes_space_of(r, ask->bucket) : NULL;
    if (space) {
        code = resolve_in_space(space, ask, out, err);
    } else {
        bool two = may_have_sides(ask);
        code = two && !ask->may_wait ? ERR_AGAIN : resolve_by_rules(r, ask, out, err);
        if (code == 0 && two)
            code = resolve_sides(ask, out, err);
    }
    if (code < 0)
        target_release(out);
    return code;
}

void target_release(struct target *t)
{
    if (t->bucket)
        t->bucket->ops->unref(t->bucket);
    *t = (struct target){.generation = t->generation};
}

struct bucket *target_take_bucket(struct target *t)
{
    struct bucket *b = t->bucket;

    t->bucket = NULL;
    return b;
}

int route_bucket(struct routes *r, struct str user, struct str bucket, struct bucket **out,
                 struct err *err)
{
    struct route_ask ask = {.user = user, .bucket = bucket, .may_wait = true};
    struct target t;
    int code = route_resolve(r, &ask, &t, err);

    if (code < 0)
        return code;
    if (t.kind == TARGET_NONE)
        return err_code(err, ERR_NO_BUCKET);
    if (target_is_foreign(&t))
        return storage_open_bucket(out, t.storage, user, bucket, err);
    *out = target_take_bucket(&t);
    return 0;
}

int route_reaches(struct routes *r, struct str user, struct str bucket, struct storage *s,
                  bool *out, struct err *err)
{
    struct route_ask ask = {.user = user, .bucket = bucket};
    struct routes_view *view;
    struct inquiry q;
    struct storage *raw = NULL;
    int code = routes_view_get(r, &view, err);

    *out = false;
    if (code < 0)
        return code;
    bool hidden = routes_space_of(r, bucket) || routes_copy_of(view, s, bucket);
    if (!hidden && routes_any_remote(r)) {
        inquiry_init(&q, r, view, &ask, err);
        code = resolve_raw(&q, &raw, err);
    }
    *out = code == 0 && !hidden && raw == (storage_can(s, STORAGE_FORWARDS) ? s : NULL);
    routes_view_put(r, view);
    return code == ERR_DENIED || code == ERR_BUSY || code == ERR_OFFLINE ? 0 : code;
}
