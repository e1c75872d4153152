/* Finds where a bucket is by its name (docs/forward.md, "Which storage", has the rules). */
#include "route/resolve.h"
#include "route/route_int.h"

#include "object/overlay.h"
#include "object/part_names.h"

enum { LOOK_UP_MAX = 384 }; /* most bytes of a user's id and a bucket's name together */

/* --- policies in memory --- */

int routes_view_get(struct routes *r, struct routes_view **out, struct err *err)
{
    mutex_lock(&r->lock);
    *out = r->storages_known ? r->view : NULL;
    if (*out)
        (*out)->refs++;
    mutex_unlock(&r->lock);
    return *out ? 0 : err_set(err, ERR_UNAVAILABLE, "the routes could not be loaded yet");
}

void routes_view_put(struct routes *r, struct routes_view *view)
{
    bool last;

    if (!view)
        return;
    mutex_lock(&r->lock);
    last = --view->refs == 0;
    mutex_unlock(&r->lock);
    if (last)
        routes_view_free(view);
}

static bool needs_no_escape(struct str s)
{
    return s.len == 0 || (!memchr(s.p, ':', s.len) && !memchr(s.p, '%', s.len));
}

/* Returns the value that the map has for "<first>" or "<first>:<second>", with the parts escaped as
 * in the store's keys; NULL: none. Nearly all names need no escape. Their key is put together on
 * the stack, because each request looks up several keys. */
static const char *policy_look_up(const struct map *map, struct str first, struct str second)
{
    char plain[LOOK_UP_MAX];
    size_t len = first.len + (second.len ? 1 + second.len : 0);
    struct buf key = {0};

    if (map->len == 0 || first.len == 0)
        return NULL;
    if (len <= sizeof(plain) && needs_no_escape(first) && needs_no_escape(second)) {
        memcpy(plain, first.p, first.len);
        if (second.len) {
            plain[first.len] = ':';
            memcpy(plain + first.len + 1, second.p, second.len);
        }
        return map_get(map, str_n(plain, len));
    }
    routes_key(&key, "", first, second);
    const char *value = map_get(map, buf_str(&key));
    buf_release(&key);
    return value;
}

static bool policy_is_blocked(const struct routes_view *view, const struct storage *s,
                              struct str bucket)
{
    return bucket.len && policy_look_up(&view->blocks, s->name, bucket) != NULL;
}

/* Returns whether the bucket is blocked at the storage by a switch. Such a block ends with the
 * switch. */
static bool policy_is_switched(const struct routes_view *view, const struct storage *s,
                               struct str bucket)
{
    return policy_look_up(&view->switches, s->name, bucket) != NULL;
}

static int policy_check_block(const struct routes_view *view, const struct storage *s,
                              struct str bucket, struct err *err)
{
    if (!policy_is_blocked(view, s, bucket))
        return 0;
    if (policy_is_switched(view, s, bucket))
        return err_set(err, ERR_BUSY, "the bucket " STR_FMT " is being switched to another storage",
                       STR_ARG(bucket));
    return err_set(err, ERR_DENIED, "the bucket " STR_FMT " is blocked on storage " STR_FMT,
                   STR_ARG(bucket), STR_ARG(s->name));
}

const char *routes_copy_of(const struct routes_view *view, const struct storage *s,
                           struct str bucket)
{
    return bucket.len ? policy_look_up(&view->copies, s->name, bucket) : NULL;
}

static int policy_no_storage(const char *name, struct err *err)
{
    return err_set(err, ERR_OFFLINE, "a routing policy names the storage %s, which is not there",
                   name);
}

static int policy_no_main(struct err *err)
{
    return err_set(err, ERR_OFFLINE, "the main storage is not there");
}

/* Finds the storage that the bucket policy names, else the user policy, else the main storage. */
static int policy_storage_named(struct routes *r, const struct routes_view *view, struct str user,
                                struct str bucket, struct storage **out, struct err *err)
{
    const char *policy = bucket.len ? policy_look_up(&view->policies, user, bucket) : NULL;
    struct storage *s;

    if (!policy)
        policy = policy_look_up(&view->policies, user, STR_EMPTY);
    s = policy ? routes_storage(r, str_z(policy)) : atomic_load(&r->main);
    if (!s)
        return policy ? policy_no_storage(policy, err) : policy_no_main(err);
    *out = s;
    return 0;
}

/* If *at holds a copy of the bucket, sets *at to the storage that the route of the copy's owner
 * leads to (docs/forward.md, B1, B2). */
static int policy_leave_copy(struct routes *r, const struct routes_view *view, struct str bucket,
                             struct storage **at, struct err *err)
{
    const char *owner = routes_copy_of(view, *at, bucket);
    struct storage *s = *at;
    int code = owner ? policy_storage_named(r, view, str_z(owner), bucket, &s, err) : 0;

    if (code == 0 && owner && routes_copy_of(view, s, bucket))
        return err_set(err, ERR_UNAVAILABLE,
                       "the route of bucket " STR_FMT " leads to storage " STR_FMT
                       ", which holds a copy of it",
                       STR_ARG(bucket), STR_ARG(s->name));
    *at = s;
    return code;
}

/* Like policy_storage_named(), but if that storage holds a copy, the function follows the policies
 * of the copy's owner instead. If the bucket is blocked there, *out is set all the same and the
 * error is returned. */
static int policy_storage(struct routes *r, const struct routes_view *view, struct str user,
                          struct str bucket, struct storage **out, struct err *err)
{
    struct storage *s = NULL;
    int code = policy_storage_named(r, view, user, bucket, &s, err);

    if (code == 0)
        code = policy_leave_copy(r, view, bucket, &s, err);
    if (code < 0)
        return code;
    *out = s;
    return policy_check_block(view, s, bucket, err);
}

/* --- the question of one request --- */

/* One search for a bucket: who asks for which bucket, and where the policies of that user lead. */
struct inquiry {
    struct routes *r;
    const struct routes_view *view;
    struct str user, bucket;
    const char *own;    /* the storage of the user's policy for this bucket; NULL: none */
    const char *policy; /* `own`, else the storage of the user's general policy; NULL: the user has
                           neither */
    struct storage *leads; /* the storage that `policy` names, else the main storage; NULL: none,
                              and `code` says why */
    int code;              /* the result of policy_storage() */
};

static void inquiry_init(struct inquiry *q, struct routes *r, const struct routes_view *view,
                         const struct route_ask *ask, struct err *err)
{
    *q = (struct inquiry){.r = r, .view = view, .user = ask->user, .bucket = ask->bucket};
    q->own = q->bucket.len ? policy_look_up(&view->policies, q->user, q->bucket) : NULL;
    q->policy = q->own ? q->own : policy_look_up(&view->policies, q->user, STR_EMPTY);
    q->code = policy_storage(r, view, q->user, q->bucket, &q->leads, err);
}

/* --- remote storages, which decide about access themselves --- */

/* Returns the storage that the bucket policies of all users agree on (rule 5); NULL: none. */
static const char *storage_by_name(const struct inquiry *q)
{
    const char *name = policy_look_up(&q->view->named, q->bucket, STR_EMPTY);

    return name && *name ? name : NULL;
}

/* If the owner of the local bucket has a bucket policy for it, returns the storage that the policy
 * names; else NULL. */
static const char *storage_by_owner(const struct inquiry *q, struct storage *at)
{
    struct arena arena = {0};
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    const char *policy = NULL;

    if (!policy_look_up(&q->view->reserved, q->bucket, STR_EMPTY) ||
        storage_open_bucket(&b, at, STR_EMPTY, q->bucket, NULL) < 0)
        return NULL;
    if (b->ops->info(b, &arena, &info, NULL) == 0)
        policy = policy_look_up(&q->view->policies, info.owner, q->bucket);
    b->ops->unref(b);
    arena_release(&arena);
    return policy;
}

/* Applies rules 4 and 5, for a user whose own policies lead to no remote storage. `at` is the
 * storage that rule 3 has found, or NULL if this process does not have the main storage. */
static int resolve_by_others(const struct inquiry *q, struct storage **at, struct err *err)
{
    bool local = *at && !storage_can(*at, STORAGE_FORWARDS);
    struct storage *here = local ? routes_local_of(q->r, q->view, q->bucket, STR_EMPTY) : NULL, *s;
    const char *name = here ? storage_by_owner(q, here) : storage_by_name(q);

    if (!name && local && !here && (s = routes_local_copy(q->r, q->view, q->bucket)))
        *at = s; /* the caller's policy_leave_copy() follows the route of the copy's owner */
    if (!name)
        return *at ? 0 : policy_no_main(err);
    s = routes_storage(q->r, str_z(name));
    if (!s)
        return policy_no_storage(name, err);
    if (!here || storage_can(s, STORAGE_FORWARDS))
        *at = s;
    return 0;
}

/* Finds the remote storage that has the bucket; NULL: the bucket is not on a remote storage, so
 * weir itself decides about access to it. */
static int resolve_raw(const struct inquiry *q, struct storage **out, struct err *err)
{
    struct storage *s = q->leads;
    int code = q->code;

    *out = NULL;
    if ((code == 0 || code == ERR_OFFLINE) && !q->own && q->user.len &&
        routes_local_of(q->r, q->view, q->bucket, q->user))
        return 0; /* rule 2: the user has a local bucket of this name */
    if (code < 0 && !(code == ERR_OFFLINE && !q->policy))
        return code;
    code = 0;
    if (!q->own && !(q->policy && storage_can(s, STORAGE_FORWARDS))) {
        code = resolve_by_others(q, &s, err);
        if (code == 0)
            code = policy_leave_copy(q->r, q->view, q->bucket, &s, err);
    }
    if (code == 0)
        code = policy_check_block(q->view, s, q->bucket, err);
    if (code == 0 && storage_can(s, STORAGE_FORWARDS))
        *out = s;
    return code;
}

/* --- storages that weir serves itself --- */

/* If the bucket that was found has another owner, and that owner's route leads to a bucket
 * elsewhere, makes that bucket the target instead. */
static int resolve_by_its_owner(const struct inquiry *q, struct target *t, struct err *err)
{
    struct arena arena = {0};
    struct bucket_info info;
    struct storage *s = NULL;
    struct bucket *other = NULL;
    int code = t->bucket->ops->info(t->bucket, &arena, &info, err);
    int there = ERR_NO_BUCKET, found = code;

    if (code == 0 && !str_eq(info.owner, q->user))
        found = policy_storage(q->r, q->view, info.owner, q->bucket, &s, err);
    if (found == 0 && s && s != t->storage && !storage_can(s, STORAGE_FORWARDS))
        there = storage_open_bucket(&other, s, info.owner, q->bucket, err);
    else if (found == ERR_OFFLINE && policy_look_up(&q->view->policies, info.owner, q->bucket))
        there = found; /* the owner's policy names a storage that this process does not have */
    if (there == 0) {
        t->bucket->ops->unref(t->bucket);
        t->bucket = other;
        t->storage = s;
    }
    arena_release(&arena);
    return code == 0 && there == ERR_OFFLINE ? there : code;
}

/* Opens the bucket on t->storage, else on the first other storage that has it. */
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
        int blocked = policy_check_block(q->view, all[i], q->bucket, err);
        if (blocked == ERR_BUSY) /* the bucket is there, but a switch blocks it for a while */
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
    /* A user policy moves no buckets (rule 2). If the storage that it names is offline, the buckets
     * that the user has elsewhere can still be used. */
    if (code == ERR_OFFLINE && !q->own &&
        (t->storage = routes_local_of(q->r, q->view, q->bucket, q->user)))
        code = 0;
    if (code == 0)
        code = open_somewhere(q, t, err);
    /* The bucket policy of the user who asks comes before that of the bucket's owner. */
    if (code == 0 && q->view->policies.len && !q->own)
        code = resolve_by_its_owner(q, t, err);
    if (code == 0)
        t->kind = TARGET_HERE;
    if (code != ERR_NO_BUCKET)
        return code;
    t->storage = q->leads;
    return 0;
}

/* --- storages of both kinds --- */

/* Returns whether the bucket that the caller has open already is the answer. It is, if it is on the
 * storage where the user's own policies lead and belongs to the user (rules 1 to 3). If no policies
 * exist at all, it need not belong to the user. */
static bool inquiry_is_known(const struct inquiry *q, const struct route_ask *ask)
{
    struct str owner;

    return ask->knows && q->code == 0 && !storage_can(q->leads, STORAGE_FORWARDS) &&
           ask->knows(ask->ctx, q->leads, q->bucket, &owner) &&
           (str_eq(owner, q->user) || q->view->policies.len == 0);
}

/* Answers for a name that is reserved for parts of sharded buckets: whoever asks, there is no such
 * bucket, and none can be made (docs/sharding.md, "Names"). */
static int resolve_part(const struct inquiry *q, const struct route_ask *ask, struct target *t)
{
    t->kind = ask->make ? TARGET_TAKEN : TARGET_NONE;
    t->storage = q->leads;
    return q->code;
}

static int resolve_on_storages(const struct inquiry *q, const struct route_ask *ask,
                               struct target *t, struct err *err)
{
    struct storage *raw = NULL;
    int code = 0;

    if (inquiry_is_known(q, ask)) { /* no part is known: storage_open_bucket() opens none */
        t->kind = TARGET_HERE;
        t->storage = q->leads;
        return 0;
    }
    if (bucket_name_is_part(q->bucket))
        return resolve_part(q, ask, t);
    if (atomic_load_explicit(&q->r->any_remote, memory_order_relaxed))
        code = resolve_raw(q, &raw, err);
    if (code < 0)
        return code;
    if (!raw)
        return resolve_here(q, t, err);
    t->kind = storage_overlay_of(raw, q->bucket) ? TARGET_FOREIGN : TARGET_RAW;
    t->storage = raw;
    return 0;
}

/* Returns whether another user has a bucket policy for the name, and this user has none. Then the
 * name is reserved for the other user, whether the bucket exists or not: it may be on another
 * storage, or deleted while its replication goes on. */
static bool is_reserved(const struct inquiry *q)
{
    return !q->own && policy_look_up(&q->view->reserved, q->bucket, STR_EMPTY);
}

/* Finds where a bucket is to be made: where the policies lead, unless the bucket exists already. No
 * bucket is made on a remote storage where later requests would not find it. */
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

/* Answers a request that names no bucket: the request goes to the storage of the user's general
 * policy or, if the user has none, to the main storage. */
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

/* --- spaces --- */

const struct bucket_space *routes_space_of(struct routes *r, struct str bucket)
{
    size_t count = atomic_load_explicit(&r->space_count, memory_order_acquire);

    for (size_t i = 0; i < count; i++)
        if (r->spaces[i]->has(r->spaces[i]->ctx, bucket))
            return r->spaces[i];
    return NULL;
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
    if (ask->knows && ask->knows(ask->ctx, s, ask->bucket, &owner))
        return 0;
    if (!ask->may_wait)
        return ERR_AGAIN;
    int code = storage_open_bucket(&t->bucket, s, ask->user, ask->bucket, err);
    if (code == ERR_NO_BUCKET) /* the bucket was removed just now */
        t->kind = TARGET_NONE;
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* --- the answer --- */

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

    *out = (struct target){.generation = atomic_load(&r->generation)};
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
    bool hidden = routes_space_of(r, bucket) || routes_copy_of(view, s, bucket) ||
                  bucket_name_is_part(bucket);
    if (!hidden && routes_any_remote(r)) {
        inquiry_init(&q, r, view, &ask, err);
        code = resolve_raw(&q, &raw, err);
    }
    *out = code == 0 && !hidden && raw == (storage_can(s, STORAGE_FORWARDS) ? s : NULL);
    routes_view_put(r, view);
    return code == ERR_DENIED || code == ERR_BUSY || code == ERR_OFFLINE ? 0 : code;
}

int route_storage(struct routes *r, struct str user, struct str bucket, struct storage **out,
                  struct err *err)
{
    struct routes_view *view;
    int code = routes_view_get(r, &view, err);

    if (code == 0) {
        code = policy_storage(r, view, user, bucket, out, err);
        routes_view_put(r, view);
    }
    return code;
}

bool route_is_copy(struct routes *r, struct str storage, struct str bucket, struct str user)
{
    struct routes_view *view;
    bool is = false;

    if (routes_view_get(r, &view, NULL) == 0) {
        const char *owner = policy_look_up(&view->copies, storage, bucket);
        is = owner && (user.len == 0 || str_eq(str_z(owner), user));
        routes_view_put(r, view);
    }
    return is;
}
