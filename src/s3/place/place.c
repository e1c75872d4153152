/* Places of objects that other parts of weir keep in ordinary buckets. Changes there are announced
 * to replication (docs/replication.md, "Capture"). */
#include "s3/place/place.h"

#include "object/overlay.h"

enum { PLACE_TRIES = 3 }; /* most attempts to find a place while its bucket is being moved */

static bool place_is_read(const struct object_place *p)
{
    return p->use == PLACE_READ || p->use == PLACE_READ_NOW || p->use == PLACE_LIST;
}

static int place_resolve(struct object_place *p, struct err *err)
{
    struct route_ask ask = {.user = p->user,
                            .bucket = p->name,
                            .may_wait = p->use != PLACE_READ_NOW,
                            .sides = p->env.sides,
                            .arena = p->arena};
    int code = route_resolve(p->env.routes, &ask, &p->target, err);

    if (code < 0)
        return code;
    if (p->target.kind == TARGET_NONE)
        return err_set(err, ERR_NO_BUCKET, "there is no bucket " STR_FMT, STR_ARG(p->name));
    if (p->target.kind == TARGET_SPACE)
        return err_set(
            err, ERR_INVALID,
            "the bucket " STR_FMT
            " is a repository of the lake, and objects of a room lie in ordinary buckets",
            STR_ARG(p->name));
    return 0;
}

/* Chooses the storage for the key when the bucket is on two storages. A listing has keys of both,
 * so neither storage is right for it. */
static int place_choose(struct object_place *p, struct storage **out, struct err *err)
{
    const struct bucket_sides *sides = p->env.sides;
    struct side_ask ask = {.thing = THING_OBJECT, .key = p->key, .user = p->user};
    struct side_choice choice = {.storage = p->target.storage};
    int code = 0;

    if (p->target.sides.route && p->use == PLACE_LIST)
        return err_set(err, ERR_BUSY,
                       "the bucket " STR_FMT
                       " is being switched to another storage, and cannot be listed meanwhile",
                       STR_ARG(p->name));
    if (p->target.sides.route && place_is_read(p))
        code = sides->read(sides->ctx, p->arena, &p->target.sides, &ask, &choice, err);
    else if (p->target.sides.route)
        code = sides->write(sides->ctx, p->arena, &p->target.sides, &ask, false, &choice, err);
    *out = choice.storage;
    return code;
}

static int place_find(struct object_place *p, struct err *err)
{
    struct storage *s = NULL;
    int code = place_resolve(p, err);

    if (code == 0)
        code = place_choose(p, &s, err);
    if (code < 0)
        return code;
    if (s == p->target.storage)
        p->bucket = target_take_bucket(&p->target);
    p->target.storage = s;
    if (p->use == PLACE_READ_NOW &&
        !(p->bucket ? bucket_can(p->bucket, STORAGE_AT_HAND) : storage_can(s, STORAGE_AT_HAND)))
        return ERR_AGAIN;
    return p->bucket ? 0 : storage_open_bucket(&p->bucket, s, p->user, p->name, err);
}

/* Checks that the route has not changed since the place was found. ERR_AGAIN: it has changed
 * (docs/replication.md, S5). */
static int place_check_route(struct object_place *p, struct err *err)
{
    struct route_ask ask = {.user = p->user, .bucket = p->name, .may_wait = true};
    struct target now;

    if (routes_generation(p->env.routes) == p->target.generation)
        return 0;
    int code = route_resolve(p->env.routes, &ask, &now, err);
    if (code < 0)
        return code;
    bool same = now.kind != TARGET_NONE && now.storage == p->target.storage;
    target_release(&now);
    return same ? 0 : ERR_AGAIN;
}

/* Announces the change, then checks the route again: a switch that began in between has not waited
 * for this change. */
static int place_announce(struct object_place *p, struct err *err)
{
    const struct change_capture *capture = p->env.capture;
    struct intended i = {.storage = p->target.storage,
                         .bucket = p->name,
                         .user = p->user,
                         .changes = p->use == PLACE_PUT ? THINGS_OF_OBJECT : THING_OBJECT,
                         .keys = &p->key,
                         .key_count = 1};
    struct err ignored = {0};

    if (!capture || place_is_read(p))
        return 0;
    int code = capture->begin(capture->ctx, &i, &p->capture, err);
    if (code < 0)
        return code;
    code = place_check_route(p, err);
    if (code < 0 && p->capture.begun) {
        int told = capture->end(capture->ctx, &p->capture, OUTCOME_REFUSED, &ignored);
        BUG_ON(told < 0); /* cannot fail, because no change was made */
        p->capture = (struct capture){0};
    }
    return code;
}

/* Releases everything that the place holds. */
static void object_place_drop(struct object_place *p)
{
    if (p->bucket)
        p->bucket->ops->unref(p->bucket);
    p->bucket = NULL;
    target_release(&p->target);
}

int object_place_open(struct object_place *out, const struct place_env *env, struct arena *a,
                      struct place_name name, enum place_use use, struct err *err)
{
    int code = ERR_AGAIN, tries = use == PLACE_READ_NOW ? 1 : PLACE_TRIES;

    *out = (struct object_place){.key = name.key,
                                 .env = *env,
                                 .arena = a,
                                 .name = name.bucket,
                                 .user = name.user,
                                 .use = use};
    if (!env->routes)
        return err_set(err, ERR_UNAVAILABLE, "there are no storages");
    for (int i = 0; i < tries && code == ERR_AGAIN; i++) {
        code = place_find(out, err);
        if (code == 0 && env->judge)
            code = env->judge(env->judge_ctx, out, err);
        if (code == 0)
            code = place_announce(out, err);
        if (code < 0)
            object_place_drop(out);
    }
    return code == ERR_AGAIN && use != PLACE_READ_NOW
               ? err_set(err, ERR_BUSY, "the bucket " STR_FMT " is moving to another storage",
                         STR_ARG(name.bucket))
               : code;
}

int object_place_may(const struct object_place *p, struct err *err)
{
    const struct change_capture *capture = p->env.capture;

    return p->capture.begun ? capture->check(capture->ctx, &p->capture, err) : 0;
}

/* Returns whether a change that ended with this code was made, was not made, or may have been
 * made. */
static enum outcome place_outcome(int code)
{
    return code == 0 ? OUTCOME_DONE : code == ERR_PRECONDITION ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
}

int object_place_end(struct object_place *p, int code, struct err *err)
{
    const struct change_capture *capture = p->env.capture;
    const struct bucket_sides *sides = p->env.sides;
    struct err late = {0}, *to = code < 0 ? &late : err;
    int told = 0;

    if (code == 0 && p->use == PLACE_REMOVE && p->target.sides.route)
        told = sides->removed(sides->ctx, p->arena, &p->target.sides, &p->key, 1, to);
    if (p->capture.begun) {
        int ended = capture->end(capture->ctx, &p->capture, place_outcome(code), to);
        told = told < 0 ? told : ended;
        p->capture = (struct capture){0};
    }
    object_place_drop(p);
    return code < 0 ? code : told;
}

/* --- listings --- */

int object_place_list(struct object_place *p, const struct list_options *o, struct list_result *out,
                      struct err *err)
{
    BUG_ON(p->use != PLACE_LIST);
    return p->bucket->ops->list(p->bucket, p->arena, o, out, err);
}

int object_place_list_uploads(struct object_place *p, const struct list_options *o,
                              struct upload_list *out, struct err *err)
{
    BUG_ON(p->use != PLACE_LIST);
    return p->bucket->ops->list_uploads(p->bucket, p->arena, o, out, err);
}

/* --- small objects --- */

/* Makes room for a body of `size` bytes, and for one byte more: the reader finds the end of the
 * body when it has room left. */
static void place_reserve(struct buf *out, uint64_t size)
{
    enum { ROOM = 256 << 10 }; /* most bytes to make room for before any byte is read */
    size_t max = out->max ? size_min(out->max, ROOM) : ROOM;

    if (out->len == 0 && size < max)
        buf_reserve(out, (size_t)size + 1);
}

int object_place_read(struct object_place *p, struct buf *out, struct object_info *info,
                      struct err *err)
{
    struct get_result got = {0};
    int code = p->bucket->ops->get(p->bucket, p->arena, p->key, STR_EMPTY, NULL, NULL, &got, err);

    if (code < 0)
        return code;
    code = object_place_unlock(p, &got, err);
    if (code == 0) {
        place_reserve(out, got.info.size);
        code = reader_read_all(got.body, out, err);
    }
    reader_close(got.body);
    if (info)
        *info = got.info;
    return code;
}

/* Fills the options of a put of a whole object. `type` must live until the put. */
static int place_put_options(struct object_place *p, struct put_options *out,
                             struct http_header *type, struct err *err)
{
    *type = (struct http_header){STR("content-type"), STR("application/octet-stream")};
    *out = (struct put_options){.meta = {.headers = type, .header_count = 1, .owner = p->user},
                                .seal = object_place_seal_key,
                                .seal_ctx = p};
    int code = object_place_seal(p, &out->meta, err);
    return code < 0 ? code : object_place_may(p, err);
}

int object_place_put(struct object_place *p, struct str bytes, const struct object_conditions *c,
                     struct err *err)
{
    struct http_header type;
    struct put_options o;
    struct put_result result;
    struct str_reader body;
    int code = place_put_options(p, &o, &type, err);

    if (c)
        o.conditions = *c;
    str_reader_init(&body, bytes);
    if (code == 0)
        code = p->bucket->ops->put(p->bucket, p->arena, p->key, &body.reader, bytes.len, &o,
                                   &result, err);
    return code;
}

/* Whether all places are in the same bucket of the same storage, so that one put_all() can put all
 * objects. While the bucket is being switched to another storage, some of the places may be on the
 * old storage and the others on the new one. */
static bool places_are_together(const struct object_place *places, size_t count)
{
    const struct bucket *first = places[0].bucket;

    if (!first->ops->put_all || !first->storage)
        return false;
    for (size_t i = 1; i < count; i++)
        if (places[i].bucket->ops != first->ops || places[i].bucket->storage != first->storage)
            return false;
    return true;
}

int object_place_put_all(struct object_place *places, const struct str *bytes, size_t count,
                         struct err *err)
{
    struct arena *a = places[0].arena;
    struct object_put *puts = arena_array(a, count, sizeof(*puts));
    struct http_header *types = arena_array(a, count, sizeof(*types));
    int code = puts && types ? 0 : err_code(err, ERR_NO_MEMORY);

    if (code == 0 && !places_are_together(places, count)) {
        for (size_t i = 0; i < count && code == 0; i++)
            code = object_place_put(&places[i], bytes[i], NULL, err);
        return code;
    }
    for (size_t i = 0; i < count && code == 0; i++) {
        puts[i] = (struct object_put){.key = places[i].key, .bytes = bytes[i]};
        code = place_put_options(&places[i], &puts[i].o, &types[i], err);
    }
    struct bucket *b = places[0].bucket;
    return code < 0 ? code : b->ops->put_all(b, a, puts, count, err);
}
