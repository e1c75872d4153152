/* Chooses the storage for requests whose bucket is on two storages, while it is switched from one
 * to the other without downtime (docs/replication.md, "Reads during a switch"). route/sides.h says
 * what a side is. */
#include "s3/gateway/gateway_int.h"
#include "object/overlay.h"

static struct side_ask side_ask_of(const struct call *c)
{
    bool of_object = c->level == LEVEL_OBJECT && !c->is_website && c->head->method != HTTP_OPTIONS;
    struct side_ask ask = {.thing = of_object ? THING_OBJECT : THING_BUCKET,
                           .key = c->key,
                           .version = c->version,
                           .user = c->user_id};

    if (c->op && c->op->thing)
        ask.thing = c->op->thing;
    return ask;
}

/* Whether the change neither depends on the existing object nor keeps any part of it. */
static bool call_is_alone(const struct call *c)
{
    return c->op && c->op->flags & OP_WHOLE && !c->beyond && !call_is_conditional(c) &&
           !c->version.len;
}

static bool call_changes(const struct call *c)
{
    enum http_method m = c->head->method;

    return c->op && !c->beyond ? c->op->changes != 0
                               : m != HTTP_GET && m != HTTP_HEAD && m != HTTP_OPTIONS;
}

static int choose_for_write(struct call *c, const struct side_ask *ask, struct side_choice *out,
                            struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;

    return sides->write(sides->ctx, c->a, &c->target.at.sides, ask, call_is_alone(c), out, err);
}

/* Chooses the side for a request on an upload: the side where the upload was begun. */
static int choose_for_upload(struct call *c, struct str id, struct side_choice *out,
                             struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    const struct side_pair *pair = &c->target.at.sides;
    struct side_ask ask = side_ask_of(c);
    int code = sides->upload(sides->ctx, c->a, pair, &ask, id, out, err);

    if (code < 0 || !call_changes(c) || out->storage != pair->route)
        return code;
    return choose_for_write(c, &ask, out, err);
}

/* Chooses the route's side, for an operation on many keys, or on a key that does not exist yet. */
static int choose_route(struct call *c, struct side_choice *out, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    const struct side_pair *pair = &c->target.at.sides;
    struct side_ask ask = {.thing = THING_BUCKET, .user = c->user_id};
    int code = sides->read(sides->ctx, c->a, pair, &ask, out, err);

    out->storage = pair->route;
    if (code == 0 &&
        (storage_can(pair->route, STORAGE_FORWARDS) || storage_can(pair->other, STORAGE_FORWARDS)))
        out->facts = pair->route;
    return code;
}

static int choose_by_operation(struct call *c, struct side_choice *out, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct str upload = c->level == LEVEL_OBJECT ? call_param(c, "uploadId") : STR_EMPTY;
    struct side_ask ask = side_ask_of(c);

    if (upload.len)
        return choose_for_upload(c, upload, out, err);
    if (c->op && c->op->flags & (OP_AT_ROUTE | OP_MERGED))
        return choose_route(c, out, err);
    return call_changes(c) ? choose_for_write(c, &ask, out, err)
                           : sides->read(sides->ctx, c->a, &c->target.at.sides, &ask, out, err);
}

/* Makes the bucket of this side the target. Its facts are still to be read, on the side
 * t->facts_at. */
static void target_turn(struct call_target *t, const struct side_choice *side)
{
    struct bucket *b = target_take_bucket(&t->at);

    if (b)
        b->ops->unref(b);
    facts_unref(t->facts);
    t->facts = NULL;
    t->at.kind = storage_can(side->storage, STORAGE_FORWARDS) ? TARGET_RAW : TARGET_HERE;
    t->at.storage = side->storage;
    t->facts_at = side->facts;
}

int call_choose_side(struct call *c, struct err *err)
{
    struct side_choice side = {0};

    if (c->op && c->op->id == S3_OP_DeleteBucket)
        return err_set(err, S3_OPERATION_ABORTED,
                       "The bucket is being switched to another storage. Try again later.");
    int code = choose_by_operation(c, &side, err);
    if (code == 0)
        target_turn(&c->target, &side);
    return code;
}

int call_view(struct call *c, struct storage **out, struct err *err)
{
    struct str name = http_header(c->head, "x-weir-storage");
    enum http_method m = c->head->method;

    if (!http_may_block(c->http))
        return ERR_AGAIN;
    if (!c->user || !c->user->admin || (m != HTTP_GET && m != HTTP_HEAD) ||
        !auth_signs(&c->auth, STR("x-weir-storage")))
        return s3_fail(err, S3_ACCESS_DENIED);
    *out = routes_storage(c->g->o.routes, name);
    return *out && c->level != LEVEL_SERVICE
               ? 0
               : err_set(err, S3_INVALID_ARGUMENT,
                         "x-weir-storage names a storage, for a request of a bucket");
}

/* Changes the target to the bucket on the side that this key is read from; the target keeps its
 * facts. */
int call_turn(struct call *c, struct str key, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct side_ask ask = {.thing = THING_OBJECT, .key = key, .user = c->user_id};
    struct call_target *t = &c->target;
    struct side_choice side;
    struct bucket *b = NULL;

    if (!t->at.sides.route)
        return 0;
    int code = sides->read(sides->ctx, c->a, &t->at.sides, &ask, &side, err);
    if (code < 0 || side.storage == t->at.storage)
        return code;
    if (storage_can(side.storage, STORAGE_FORWARDS))
        return err_set(err, S3_NOT_IMPLEMENTED, "Websites of remote storages are not implemented");
    code = storage_open_bucket(&b, side.storage, STR_EMPTY, c->bucket_name, err);
    if (code < 0)
        return code;
    if (t->at.bucket)
        t->at.bucket->ops->unref(t->at.bucket);
    t->bucket = t->at.bucket = b;
    t->at.storage = side.storage;
    return 0;
}

int call_choose_source(struct call *c, struct copy_source *s, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct side_ask ask = {THING_OBJECT, s->key, s->version, c->user_id};
    struct side_choice side;

    if (!s->target.at.sides.route)
        return 0;
    int code = sides->read(sides->ctx, c->a, &s->target.at.sides, &ask, &side, err);
    if (code == 0)
        target_turn(&s->target, &side);
    return code;
}

/* --- changes --- */

int call_before_removals(struct call *c, const struct str *keys, size_t count, bool alone,
                         struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct side_keys all = {keys, count, c->user_id};

    if (!c->target.at.sides.route || count == 0)
        return 0;
    return sides->removals(sides->ctx, c->a, &c->target.at.sides, &all, alone, err);
}

int call_removed(struct call *c, const struct str *keys, size_t count, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;

    if (!c->target.at.sides.route || count == 0)
        return 0;
    return sides->removed(sides->ctx, c->a, &c->target.at.sides, keys, count, err);
}

int call_upload_begun(struct call *c, struct str id, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;

    return c->target.at.sides.route ? sides->begun(sides->ctx, &c->target.at.sides, c->key, id, err)
                                    : 0;
}

/* --- listings --- */

/* Opens the bucket of the other side and checks access to it. Each side decides whether its part
 * may be listed. */
static int open_other(struct call *c, struct call_target *other, struct err *err)
{
    const struct side_pair *pair = &c->target.at.sides;
    struct side_choice side = {
        pair->other, storage_can(pair->route, STORAGE_FORWARDS) ? pair->other : c->target.facts_at};

    target_turn(other, &side);
    int code = call_open(c, other, c->bucket_name, err);
    return code < 0 ? code
                    : call_need(c, other, s3_operations[c->op->id].action, STR_EMPTY, NULL, err);
}

int call_list(struct call *c, const struct list_options *o, bool versions, struct list_result *out,
              struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    const struct side_pair *pair = &c->target.at.sides;
    struct bucket *b = c->target.bucket;
    struct call_target other = {0};

    if (!pair->route)
        return versions ? b->ops->list_versions(b, c->a, o, out, err)
                        : b->ops->list(b, c->a, o, out, err);
    int code = open_other(c, &other, err);
    struct bucket *both[] = {b, other.bucket};
    if (code == 0)
        code = sides->list(sides->ctx, c->a, pair, both, o, versions, out, err);
    call_close(&other);
    return code;
}

int call_list_uploads(struct call *c, const struct list_options *o, struct upload_list *out,
                      struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    const struct side_pair *pair = &c->target.at.sides;
    struct bucket *b = c->target.bucket;
    struct call_target other = {0};

    if (!pair->route)
        return b->ops->list_uploads(b, c->a, o, out, err);
    int code = open_other(c, &other, err);
    struct bucket *both[] = {b, other.bucket};
    if (code == 0)
        code = sides->list_uploads(sides->ctx, c->a, pair, both, o, out, err);
    call_close(&other);
    return code;
}
