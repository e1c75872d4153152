/* Decides which side of a switch a request goes to. The codes D1 to D8, S4, S8 and V5 are those of
 * docs/replication.md. */
#include "replica/switch/sides.h"
#include "object/overlay.h"

#include "base/clock.h"
#include "os/thread.h"
#include "replica/switch/side_list.h"
#include "replica/tap/tap.h"

#include <stdlib.h>

enum {
    WAIT_MS = 15 * MS_PER_S,
    LOOK_MS = 10, /* wait between two reads of the vectors; doubles each time, up to LOOK_MAX_MS */
    LOOK_MAX_MS = 200,
};

struct sides {
    struct sides_options o;
    struct bucket_sides ops;
    struct mutex lock; /* class "replica.sides"; used only to wait for `pause` */
    struct cond pause; /* never signalled; a thread that sleeps waits for it */
};

/* Turns any error into ERR_UNAVAILABLE: the client gets 503 and may try again. */
static int sides_unavailable(struct err *err)
{
    return err_wrap(err, ERR_UNAVAILABLE, "the sides of a switch");
}

/* --- finding both sides --- */

static bool sides_may(void *ctx, struct str bucket)
{
    const struct sides *s = ctx;

    return taps_may_switch(s->o.taps, bucket);
}

static int storage_named(struct sides *s, struct str name, struct storage **out, struct err *err)
{
    *out = routes_storage(s->o.routes, name);
    if (*out && !taps_owns(s->o.taps, *out))
        *out = NULL;
    return *out ? 0 : err_set(err, ERR_UNAVAILABLE, "there is no storage " STR_FMT, STR_ARG(name));
}

/* Fills in both sides of the bucket. The route may be older or newer than the view (the policies in
 * memory). This does no harm, because changes of both sides were recorded even before the route
 * changed (S4). */
static int fill_pair(struct sides *s, const struct replication *r, struct side_pair *out,
                     struct err *err)
{
    struct storage *from = NULL, *to = NULL, *route = NULL;
    int code = storage_named(s, r->id.from, &from, err);

    if (code == 0)
        code = storage_named(s, r->id.to, &to, err);
    if (code == 0)
        code = route_storage(s->o.routes, r->id.user, r->id.bucket, &route, err);
    if (code < 0)
        return code;
    out->route = route == from || route == to ? route : r->announced ? from : to;
    out->other = out->route == from ? to : from;
    out->route_only = out->route == from;
    out->begun = r->aborted ? from : to;
    return 0;
}

static int sides_find(void *ctx, struct arena *a, const struct storage *at, struct str bucket,
                      struct side_pair *out, struct err *err)
{
    struct sides *s = ctx;
    struct replication_view *view = NULL;
    int code = replications_view(s->o.replications, &view, err);

    *out = (struct side_pair){0};
    if (code < 0)
        return sides_unavailable(err);
    const struct replication *r = replication_view_switch(view, at->name, bucket);
    /* A process that has not read the policies yet does not know of the switch. It would answer a
     * change before the change is recorded, and nobody could tell later which side is newer. */
    if (r && taps_epoch(s->o.taps) < 0)
        code = err_set(err, ERR_UNAVAILABLE, "the policies are being read");
    else if (r)
        code = fill_pair(s, r, out, err);
    if (code == 0 && r) {
        out->user = arena_str(a, r->id.user);
        out->bucket = arena_str(a, bucket);
    }
    replication_view_unref(view);
    return code == ERR_NOT_FOUND ? ERR_UNAVAILABLE : code;
}

/* Whether a switch with downtime that leaves the bucket is in progress. */
static bool view_blocks_source(const struct replication_view *view, struct str storage,
                               struct str bucket)
{
    const struct replication *const *from;
    size_t count = replication_view_from(view, storage, bucket, &from);

    for (size_t i = 0; i < count; i++)
        if (from[i]->blocked)
            return true;
    return false;
}

bool sides_has(struct sides *s, const struct storage *at, struct str bucket)
{
    struct replication_view *view = NULL;

    if (replications_view(s->o.replications, &view, NULL) < 0)
        return true;
    bool has = replication_view_switch(view, at->name, bucket) ||
               replication_view_blocked(view, at->name, bucket) ||
               view_blocks_source(view, at->name, bucket);
    replication_view_unref(view);
    return has;
}

/* --- reading --- */

/* The side that has the newest state of a thing, and the side that has the newest state of the
 * bucket. */
struct known {
    enum side thing, bucket;
};

static bool is_of_object(enum thing_kind thing)
{
    return thing & THINGS_OF_OBJECT;
}

static enum side side_in(const struct side_pair *p, const struct vector *v)
{
    return side_of(v, p->route->name, p->other->name);
}

static int sides_look(struct sides *s, struct arena *a, const struct side_pair *p,
                      const struct side_ask *ask, struct known *out, struct err *err)
{
    const struct thing things[] = {
        {.kind = ask->thing, .bucket = p->bucket, .object = ask->key},
        {.kind = THING_OBJECT, .bucket = p->bucket, .object = ask->key},
        {.kind = THING_BUCKET, .bucket = p->bucket},
    };
    struct vector vectors[ARRAY_SIZE(things)];
    int code = version_read_many(s->o.app, a, things, ARRAY_SIZE(things), vectors, err);

    if (code < 0)
        return sides_unavailable(err);
    enum side object = side_in(p, &vectors[1]);
    *out = (struct known){side_in(p, &vectors[0]), side_in(p, &vectors[2])};
    if (is_of_object(ask->thing) && (object == SIDE_OTHER || out->thing == SIDE_EITHER))
        /* If the other side has the newer object, it also has the newer tags and ACL, because a put
         * of an object changes them too (V5). Without a vector of their own they are where the
         * object is. */
        out->thing = object;
    return 0;
}

/* Sets *has to whether the storage has the key. A current delete marker counts, because it is a
 * state of the key too. */
static int side_holds(struct arena *a, struct storage *s, const struct side_pair *p,
                      const struct side_ask *ask, bool *has, struct err *err)
{
    static const struct object_conditions none;
    struct get_result got = {0};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, ask->user, p->bucket, err);

    if (code == 0) {
        code = b->ops->head(b, a, ask->key, ask->version, &none, &got, err);
        b->ops->unref(b);
    }
    *has = code == 0 || (code == ERR_NOT_FOUND && got.info.is_marker);
    if (code == ERR_NOT_FOUND || code == ERR_NO_BUCKET)
        return 0;
    /* The storage does not let the user see the object, so the object may exist. The storage will
     * refuse the request itself. */
    *has |= code == ERR_DENIED;
    return code == 0 || code == ERR_DENIED ? 0 : sides_unavailable(err);
}

static int side_of_object(struct arena *a, const struct side_pair *p, const struct side_ask *ask,
                          struct storage **out, struct err *err)
{
    bool has = false;

    *out = p->route;
    if (p->route_only)
        return 0;
    int code = side_holds(a, p->route, p, ask, &has, err);
    if (code < 0 || has)
        return code;
    code = side_holds(a, p->other, p, ask, &has, err);
    if (has)
        *out = p->other;
    return code;
}

/* Sets *side to the side that knows the version's id. *side is the object's side before the call.
 * If neither side knows the id, *side does not change, and that side answers that there is no such
 * version. */
static int side_of_version(struct arena *a, const struct side_pair *p, const struct side_ask *ask,
                           struct storage **side, struct err *err)
{
    struct storage *second = *side == p->route ? p->other : p->route;
    bool has = false;
    int code = side_holds(a, *side, p, ask, &has, err);

    if (code < 0 || has)
        return code;
    code = side_holds(a, second, p, ask, &has, err);
    if (has)
        *side = second;
    return code;
}

static struct storage *facts_of(const struct side_pair *p, const struct known *k,
                                struct storage *side)
{
    if (storage_can(p->route, STORAGE_FORWARDS) || storage_can(p->other, STORAGE_FORWARDS))
        return side;
    return k->bucket == SIDE_OTHER ? p->other : p->route;
}

static int sides_choose(struct sides *s, struct arena *a, const struct side_pair *p,
                        const struct side_ask *ask, struct side_choice *out, struct err *err)
{
    struct known k;
    int code = sides_look(s, a, p, ask, &k, err);

    if (code < 0)
        return code;
    struct storage *side = k.thing == SIDE_OTHER ? p->other : p->route;
    if (is_of_object(ask->thing) && ask->version.len)
        code = side_of_version(a, p, ask, &side, err);
    else if (is_of_object(ask->thing) && k.thing == SIDE_EITHER)
        code = side_of_object(a, p, ask, &side, err);
    *out = (struct side_choice){side, facts_of(p, &k, side)};
    return code;
}

static int sides_read(void *ctx, struct arena *a, const struct side_pair *p,
                      const struct side_ask *ask, struct side_choice *out, struct err *err)
{
    return sides_choose(ctx, a, p, ask, out, err);
}

/* --- writing --- */

static int is_versioned(struct arena *a, const struct side_pair *p, struct str user, bool *out,
                        struct err *err)
{
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, p->route, user, p->bucket, err);

    if (code == 0) {
        code = b->ops->info(b, a, &info, err);
        b->ops->unref(b);
    }
    *out = info.versions != VERSIONS_NEVER;
    return code < 0 && code != ERR_NO_BUCKET ? sides_unavailable(err) : 0;
}

/* Waits while the other side has a newer state, which a task has yet to copy. A change that did not
 * wait would not see the newer state, or would prevent it from being copied (D5). */
static int wait_for_task(struct sides *s, struct arena *a, const struct side_pair *p,
                         const struct side_ask *ask, struct known *k, struct err *err)
{
    uint64_t until = clock_mono_ns() + (s->o.wait_ms ? s->o.wait_ms : WAIT_MS) * NS_PER_MS;
    uint64_t pause_ms = LOOK_MS;
    int code = 0;

    while (code == 0 && k->thing == SIDE_OTHER) {
        struct arena scratch = ARENA_INIT(64 * KIB);
        if (clock_mono_ns() > until)
            return err_set(err, ERR_BUSY,
                           "the newest state has yet to be brought from the other storage");
        mutex_lock(&s->lock);
        cond_wait_until(&s->pause, &s->lock, clock_mono_ns() + pause_ms * NS_PER_MS);
        mutex_unlock(&s->lock);
        pause_ms = pause_ms * 2 < LOOK_MAX_MS ? pause_ms * 2 : LOOK_MAX_MS;
        code = sides_look(s, &scratch, p, ask, k, err);
        arena_release(&scratch);
    }
    return code;
}

static int sides_write(void *ctx, struct arena *a, const struct side_pair *p,
                       const struct side_ask *ask, bool alone, struct side_choice *out,
                       struct err *err)
{
    struct sides *s = ctx;
    bool versioned = false;
    struct known k;
    int code = sides_look(s, a, p, ask, &k, err);

    if (code == 0 && k.thing == SIDE_OTHER && alone && storage_can(p->route, STORAGE_TELLS_CHANGES))
        code = is_versioned(a, p, ask->user, &versioned, err);
    if (code == 0 && (!alone || versioned || !storage_can(p->route, STORAGE_TELLS_CHANGES)))
        code = wait_for_task(s, a, p, ask, &k, err);
    if (code == 0)
        *out = (struct side_choice){p->route, facts_of(p, &k, p->route)};
    return code;
}

/* Sets *out to the sides of several objects, in the arena. All version vectors are read at the same
 * moment. */
static int sides_look_many(struct sides *s, struct arena *a, const struct side_pair *p,
                           const struct side_keys *k, enum side **out, struct err *err)
{
    struct thing *things = arena_array(a, k->count, sizeof(*things));
    struct vector *vectors = arena_array(a, k->count, sizeof(*vectors));

    *out = arena_array(a, k->count, sizeof(**out));
    if (!things || !vectors || !*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < k->count; i++)
        things[i] = (struct thing){.kind = THING_OBJECT, .bucket = p->bucket, .object = k->keys[i]};
    int code = version_read_many(s->o.app, a, things, k->count, vectors, err);
    for (size_t i = 0; i < k->count && code == 0; i++)
        (*out)[i] = side_in(p, &vectors[i]);
    return code < 0 ? sides_unavailable(err) : 0;
}

/* Like sides_write() for each key, but all version vectors are read at once. Most keys have nothing
 * to wait for. */
static int sides_removals(void *ctx, struct arena *a, const struct side_pair *p,
                          const struct side_keys *k, bool alone, struct err *err)
{
    bool waits = !alone || !storage_can(p->route, STORAGE_TELLS_CHANGES);
    struct side_choice ignored;
    enum side *at = NULL;
    int code = waits ? 0 : is_versioned(a, p, k->user, &waits, err);

    if (code == 0 && waits)
        code = sides_look_many(ctx, a, p, k, &at, err);
    for (size_t i = 0; i < k->count && waits && code == 0; i++) {
        struct side_ask ask = {.thing = THING_OBJECT, .key = k->keys[i], .user = k->user};
        if (at[i] == SIDE_OTHER)
            code = sides_write(ctx, a, p, &ask, alone, &ignored, err);
    }
    return code;
}

/* Records the removal of a key that the other side has. A local storage records nothing by itself
 * when it had nothing to remove. */
static int removed_one(struct sides *s, struct arena *a, const struct side_pair *p, struct str key,
                       enum side at, struct err *err)
{
    struct side_ask ask = {.thing = THING_OBJECT, .key = key, .user = p->user};
    bool seen = at == SIDE_OTHER;
    int code = 0;

    if (at == SIDE_EITHER && !p->route_only)
        code = side_holds(a, p->other, p, &ask, &seen, err);
    if (code < 0 || !seen)
        return code;
    code = taps_record_removal(s->o.taps, p->route, p->bucket, key, err);
    return code < 0 ? sides_unavailable(err) : 0;
}

static int sides_removed(void *ctx, struct arena *a, const struct side_pair *p,
                         const struct str *keys, size_t count, struct err *err)
{
    const struct side_keys k = {keys, count, p->user};
    enum side *at = NULL;

    /* A remote storage has an intent for the removal, which is recorded in any case. */
    if (!storage_can(p->route, STORAGE_TELLS_CHANGES))
        return 0;
    int code = sides_look_many(ctx, a, p, &k, &at, err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = removed_one(ctx, a, p, keys[i], at[i], err);
    return code;
}

/* --- uploads --- */

static struct str uploads_key(struct arena *a, const struct side_pair *p)
{
    struct buf key = {0};

    buf_append_z(&key, "s:up:");
    store_key_part(&key, p->user);
    buf_append_char(&key, ':');
    store_key_part(&key, p->bucket);
    struct str kept = arena_str(a, buf_str(&key));
    buf_release(&key);
    return kept;
}

static struct str upload_member(struct arena *a, struct str key, struct str id)
{
    struct buf member = {0};

    store_key_part(&member, key);
    buf_append_char(&member, ':');
    store_key_part(&member, id);
    struct str kept = arena_str(a, buf_str(&member));
    buf_release(&member);
    return kept;
}

/* Sets *out to whether the upload is open at the storage. */
static int has_upload(struct arena *a, struct storage *s, const struct side_pair *p,
                      const struct upload_info *upload, struct str user, bool *out, struct err *err)
{
    struct part_list parts = {0};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, user, p->bucket, err);

    if (code == 0) {
        code = b->ops->list_parts(b, a, upload, 0, 1, &parts, err);
        b->ops->unref(b);
    }
    *out = code == 0 || code == ERR_DENIED;
    if (code == ERR_NOT_FOUND || code == ERR_NO_BUCKET || code == ERR_INVALID)
        return 0;
    return *out ? 0 : sides_unavailable(err);
}

static int is_remembered(struct sides *s, struct arena *a, const struct side_pair *p,
                         const struct upload_info *upload, bool *out, struct err *err)
{
    struct reply *reply;
    int code = store_call(s->o.app, a, &reply, err, STR("SISMEMBER"), uploads_key(a, p),
                          upload_member(a, upload->key, upload->id));

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    *out = code == 0 && reply->integer == 1;
    return code < 0 ? sides_unavailable(err) : 0;
}

/* Chooses the storage of an upload. Uploads that were begun during the switch are in the set `s:up`
 * until it expires. For any other upload the old storage is asked. If the old storage does not have
 * the upload, the request goes to the new side of the switch, which may have finished it. */
static int sides_upload(void *ctx, struct arena *a, const struct side_pair *p,
                        const struct side_ask *ask, struct str id, struct side_choice *out,
                        struct err *err)
{
    struct sides *s = ctx;
    struct upload_info upload = {.key = ask->key, .id = id};
    struct storage *old = p->begun == p->route ? p->other : p->route;
    bool remembered = false, there = false;
    struct known k;
    int code = is_remembered(s, a, p, &upload, &remembered, err);

    if (code == 0 && !remembered)
        code = has_upload(a, old, p, &upload, ask->user, &there, err);
    if (code == 0)
        code = sides_look(s, a, p, &(struct side_ask){.thing = THING_BUCKET}, &k, err);
    if (code < 0)
        return code;
    out->storage = there ? old : p->begun;
    out->facts = facts_of(p, &k, out->storage);
    return 0;
}

/* Sets *out to the lifetime of the set `s:up` in seconds, which is as long as the switch waits for
 * uploads (S8). */
static int upload_life(struct sides *s, struct arena *a, const struct side_pair *p, struct str *out,
                       struct err *err)
{
    struct buf key = {0};
    struct reply *reply;
    int64_t ns = 0;

    buf_append_z(&key, "p:switch:");
    store_key_part(&key, p->user);
    buf_append_char(&key, ':');
    store_key_part(&key, p->bucket);
    int code =
        store_call(s->o.config, a, &reply, err, STR("HGET"), buf_str(&key), STR("multipartTTL"));
    buf_release(&key);
    if (code == 0 && (reply->type != REPLY_BULK || str_i64(reply->str, &ns) < 0))
        ns = 0; /* the switch has ended, so nobody needs the set any more */
    *out = arena_fmt(a, "%lld", (long long)ns / 1000000000 + 1);
    return code;
}

static int sides_begun(void *ctx, const struct side_pair *p, struct str key, struct str id,
                       struct err *err)
{
    struct sides *s = ctx;
    struct arena a = ARENA_INIT(64 * KIB);
    struct str life = STR_EMPTY;
    struct reply *reply;
    int code = 0;

    if (p->route != p->begun)
        return 0;
    code = upload_life(s, &a, p, &life, err);
    struct str set = uploads_key(&a, p);
    const struct str add[] = {STR("SADD"), set, upload_member(&a, key, id)};
    const struct str expire[] = {STR("EXPIRE"), set, life};
    const struct store_args commands[] = {{add, ARRAY_SIZE(add)}, {expire, ARRAY_SIZE(expire)}};
    if (code == 0)
        code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY)
                                   : store_atomic(s->o.app, &a, &reply, commands, 2, err);
    if (code == 0)
        code = reply_expect(&reply->items[0], REPLY_INTEGER, err);
    arena_release(&a);
    return code < 0 ? sides_unavailable(err) : 0;
}

/* --- listing --- */

static struct side_list side_list_of(const struct sides *s, const struct side_pair *p,
                                     struct bucket *buckets[2])
{
    return (struct side_list){.sides = {buckets[0], buckets[1]},
                              .storages = {p->route->name, p->other->name},
                              .route_only = p->route_only,
                              .app = s->o.app,
                              .bucket = p->bucket};
}

/* NOLINTNEXTLINE(readability-function-size): as route/sides.h has it */
static int sides_list(void *ctx, struct arena *a, const struct side_pair *p,
                      struct bucket *buckets[2], const struct list_options *o, bool versions,
                      struct list_result *out, struct err *err)
{
    struct side_list l = side_list_of(ctx, p, buckets);

    return side_list(&l, a, o, versions, out, err);
}

static int sides_list_uploads(void *ctx, struct arena *a, const struct side_pair *p,
                              struct bucket *buckets[2], const struct list_options *o,
                              struct upload_list *out, struct err *err)
{
    struct side_list l = side_list_of(ctx, p, buckets);

    return side_list_uploads(&l, a, o, out, err);
}

/* --- opening and closing --- */

struct sides *sides_new(const struct sides_options *o)
{
    struct sides *s = xcalloc(1, sizeof(*s));

    s->o = *o;
    mutex_init(&s->lock, "replica.sides");
    cond_init(&s->pause);
    s->ops = (struct bucket_sides){.any = taps_switching(o->taps),
                                   .may = sides_may,
                                   .find = sides_find,
                                   .read = sides_read,
                                   .upload = sides_upload,
                                   .write = sides_write,
                                   .removals = sides_removals,
                                   .removed = sides_removed,
                                   .begun = sides_begun,
                                   .list = sides_list,
                                   .list_uploads = sides_list_uploads,
                                   .ctx = s};
    return s;
}

void sides_free(struct sides *s)
{
    if (!s)
        return;
    cond_release(&s->pause);
    mutex_release(&s->lock);
    free(s);
}

const struct bucket_sides *sides_of_buckets(struct sides *s)
{
    return &s->ops;
}
