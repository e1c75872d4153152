/* Requests of a bucket that is on two storages, while it is switched from one to the other without
 * downtime (docs/replication.md, "Reads during a switch"). */
#include "s3/gateway/gateway_int.h"
#include "object/overlay.h"

/* What an operation reads or changes, where it is not the object or bucket itself. */
static const struct {
    enum s3_operation id;
    enum thing_kind thing;
} things[] = {
    {S3_OP_GetObjectTagging, THING_OBJECT_TAGS},    {S3_OP_PutObjectTagging, THING_OBJECT_TAGS},
    {S3_OP_DeleteObjectTagging, THING_OBJECT_TAGS}, {S3_OP_GetObjectAcl, THING_OBJECT_ACL},
    {S3_OP_PutObjectAcl, THING_OBJECT_ACL},         {S3_OP_GetBucketTagging, THING_BUCKET_TAGS},
    {S3_OP_PutBucketTagging, THING_BUCKET_TAGS},    {S3_OP_DeleteBucketTagging, THING_BUCKET_TAGS},
    {S3_OP_GetBucketAcl, THING_BUCKET_ACL},         {S3_OP_PutBucketAcl, THING_BUCKET_ACL},
};

/* They make the whole object another, whatever was there. */
static const enum s3_operation whole[] = {
    S3_OP_PutObject,    S3_OP_CopyObject,    S3_OP_PostObject,
    S3_OP_DeleteObject, S3_OP_DeleteObjects, S3_OP_CompleteMultipartUpload,
};

static bool may_be_on_two(struct call *c, struct str bucket)
{
    const struct bucket_sides *sides = c->g->o.sides;

    return sides && atomic_load_explicit(sides->any, memory_order_relaxed) && bucket.len &&
           sides->may(sides->ctx, bucket);
}

/* Where a request for the bucket would go. *out NULL: nowhere, there is none. */
static int route_of(struct call *c, struct str bucket, struct storage **out, struct err *err)
{
    static const struct side_choice none;
    struct bucket *b = NULL;
    int code = call_remote(c, &none, bucket, out, err);

    if (code < 0 || *out)
        return code;
    code = route_bucket(c->g->o.routes, call_user_id(c), bucket, &b, err);
    if (code == ERR_NO_BUCKET)
        return 0;
    if (code == 0) {
        *out = b->storage;
        b->ops->unref(b);
    }
    return code;
}

/* S5. An upload that was begun on the other side is finished there as long as there is one. */
int call_check_route(struct call *c, const struct storage *s, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct routes *routes = c->g->o.routes;
    struct storage *now = NULL;
    struct side_pair pair = {0};
    int code;

    if (routes_generation(routes) == c->routes_seen)
        return 0;
    if (c->op && c->op->id == S3_OP_CreateBucket && !c->beyond)
        code = route_storage(routes, call_user_id(c), c->bucket_name, &now, err);
    else
        code = route_of(c, c->bucket_name, &now, err);
    if (code == 0 && now && now != s && c->side.storage == s)
        code = sides->find(sides->ctx, c->a, now, c->bucket_name, &pair, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? ERR_UNAVAILABLE : code;
    return now == s || pair.other == s
               ? 0
               : err_set(err, ERR_BUSY, "the bucket has moved to another storage");
}

static int find_pair(struct call *c, struct str bucket, struct side_pair *out, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct storage *at = NULL;
    int code = route_of(c, bucket, &at, err);

    return code < 0 || !at ? code : sides->find(sides->ctx, c->a, at, bucket, out, err);
}

static struct side_ask ask_of(const struct call *c)
{
    bool of_object = c->level == LEVEL_OBJECT && !c->is_website && c->head->method != HTTP_OPTIONS;
    struct side_ask ask = {.thing = of_object ? THING_OBJECT : THING_BUCKET,
                           .key = c->key,
                           .version = c->version,
                           .user = call_user_id(c)};

    for (size_t i = 0; c->op && i < ARRAY_SIZE(things); i++)
        if (things[i].id == c->op->id)
            ask.thing = things[i].thing;
    return ask;
}

/* Does it neither look at what is there, nor leave any of it? */
static bool is_alone(const struct call *c)
{
    bool is = false;

    for (size_t i = 0; c->op && i < ARRAY_SIZE(whole); i++)
        is |= whole[i] == c->op->id;
    return is && !c->beyond && !call_is_conditional(c) && !c->version.len;
}

static bool changes(const struct call *c)
{
    enum http_method m = c->head->method;

    return c->op && !c->beyond ? c->op->changes != 0
                               : m != HTTP_GET && m != HTTP_HEAD && m != HTTP_OPTIONS;
}

/* Uploads that are begun go where writes do; one that was begun is finished there. */
static int choose_upload(struct call *c, struct str id, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct side_ask ask = ask_of(c);
    int code = sides->upload(sides->ctx, c->a, &c->pair, &ask, id, &c->side, err);

    if (code < 0 || !changes(c) || c->side.storage != c->pair.route)
        return code;
    return sides->write(sides->ctx, c->a, &c->pair, &ask, is_alone(c), &c->side, err);
}

/* What is of many keys, or of none that is there yet. */
static bool is_of_route(const struct call *c)
{
    static const enum s3_operation ids[] = {
        S3_OP_CreateMultipartUpload, S3_OP_DeleteObjects,      S3_OP_ListObjects,
        S3_OP_ListObjectsV2,         S3_OP_ListObjectVersions, S3_OP_ListMultipartUploads};

    for (size_t i = 0; c->op && i < ARRAY_SIZE(ids); i++)
        if (ids[i] == c->op->id)
            return true;
    return false;
}

static int choose_route(struct call *c, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct side_ask ask = {.thing = THING_BUCKET, .user = call_user_id(c)};
    int code = sides->read(sides->ctx, c->a, &c->pair, &ask, &c->side, err);

    c->side.storage = c->pair.route;
    if (code == 0 && (storage_can(c->pair.route, STORAGE_FORWARDS) ||
                      storage_can(c->pair.other, STORAGE_FORWARDS)))
        c->side.facts = c->pair.route;
    return code;
}

static int choose(struct call *c, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct str upload = c->level == LEVEL_OBJECT ? call_param(c, "uploadId") : STR_EMPTY;
    struct side_ask ask = ask_of(c);

    if (upload.len)
        return choose_upload(c, upload, err);
    if (is_of_route(c))
        return choose_route(c, err);
    return changes(c) ? sides->write(sides->ctx, c->a, &c->pair, &ask, is_alone(c), &c->side, err)
                      : sides->read(sides->ctx, c->a, &c->pair, &ask, &c->side, err);
}

int call_sides(struct call *c, struct err *err)
{
    enum s3_operation id = c->op ? c->op->id : S3_OPERATIONS;

    if (c->level == LEVEL_SERVICE || !may_be_on_two(c, c->bucket_name))
        return 0;
    if (!http_may_block(c->http))
        return ERR_AGAIN;
    if (!c->beyond && (id == S3_OP_CreateBucket || id == S3_OP_PostObject))
        return 0;
    int code = find_pair(c, c->bucket_name, &c->pair, err);
    if (code < 0 || !c->pair.route)
        return code;
    if (id == S3_OP_DeleteBucket)
        return err_set(err, S3_OPERATION_ABORTED,
                       "The bucket is being switched to another storage. Try again later.");
    return choose(c, err);
}

int call_view(struct call *c, struct err *err)
{
    struct str name = call_header(c, "x-weir-storage");
    enum http_method m = c->head->method;

    if (!name.p)
        return 0;
    if (!http_may_block(c->http))
        return ERR_AGAIN;
    if (!c->user || !c->user->admin || (m != HTTP_GET && m != HTTP_HEAD) ||
        !auth_signs(&c->auth, STR("x-weir-storage")))
        return s3_fail(err, S3_ACCESS_DENIED);
    struct storage *s = routes_storage(c->g->o.routes, name);
    if (!s || c->level == LEVEL_SERVICE)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "x-weir-storage names a storage, for a request of a bucket");
    c->side = (struct side_choice){s, s};
    return 0;
}

int call_sides_form(struct call *c, struct err *err)
{
    if (!may_be_on_two(c, c->bucket_name))
        return 0;
    int code = find_pair(c, c->bucket_name, &c->pair, err);

    if (code < 0 || !c->pair.route)
        return code;
    c->level = LEVEL_OBJECT;
    code = choose(c, err);
    c->level = LEVEL_BUCKET;
    return code;
}

/* The facts stay: they are the bucket's. */
int call_turn(struct call *c, struct str key, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct side_ask ask = {.thing = THING_OBJECT, .key = key, .user = call_user_id(c)};
    struct call_target *t = &c->target;
    struct side_choice side;
    struct bucket *b = NULL;

    if (!c->pair.route)
        return 0;
    int code = sides->read(sides->ctx, c->a, &c->pair, &ask, &side, err);
    if (code < 0 || side.storage == t->bucket->storage)
        return code;
    if (storage_can(side.storage, STORAGE_FORWARDS))
        return err_set(err, S3_NOT_IMPLEMENTED, "Websites of remote storages are not implemented");
    code = storage_open_bucket(&b, side.storage, STR_EMPTY, c->bucket_name, err);
    if (code < 0)
        return code;
    if (t->other)
        t->other->ops->unref(t->other);
    t->bucket = t->other = b;
    return 0;
}

int call_source_side(struct call *c, struct str bucket, struct str key, struct str version,
                     struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct side_ask ask = {THING_OBJECT, key, version, call_user_id(c)};
    struct side_pair pair = {0};

    if (c->source_side.storage || !may_be_on_two(c, bucket))
        return 0;
    int code = find_pair(c, bucket, &pair, err);
    if (code < 0 || !pair.route)
        return code;
    return sides->read(sides->ctx, c->a, &pair, &ask, &c->source_side, err);
}

/* --- changes --- */

int call_before_removals(struct call *c, const struct str *keys, size_t count, bool alone,
                         struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct side_keys all = {keys, count, call_user_id(c)};

    if (!c->pair.route || count == 0)
        return 0;
    return sides->removals(sides->ctx, c->a, &c->pair, &all, alone, err);
}

int call_removed(struct call *c, const struct str *keys, size_t count, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;

    if (!c->pair.route || count == 0)
        return 0;
    return sides->removed(sides->ctx, c->a, &c->pair, keys, count, err);
}

int call_upload_begun(struct call *c, struct str id, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;

    return c->pair.route ? sides->begun(sides->ctx, &c->pair, c->key, id, err) : 0;
}

/* --- listings --- */

/* Each side decides whether its part may be listed. */
static int open_both(struct call *c, struct bucket *out[2], struct err *err)
{
    enum s3_action action = s3_operation_action(c->op->id, false);

    c->source_side = (struct side_choice){
        c->pair.other,
        storage_can(c->pair.route, STORAGE_FORWARDS) ? c->pair.other : c->side.facts};
    int code = call_open(c, &c->other, c->bucket_name, err);
    if (code == 0)
        code = call_need(c, &c->other, action, STR_EMPTY, NULL, err);
    out[0] = c->target.bucket;
    out[1] = c->other.bucket;
    return code;
}

int call_list(struct call *c, const struct list_options *o, bool versions, struct list_result *out,
              struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct bucket *b = c->target.bucket, *both[2];

    if (!c->pair.route)
        return versions ? b->ops->list_versions(b, c->a, o, out, err)
                        : b->ops->list(b, c->a, o, out, err);
    int code = open_both(c, both, err);
    return code < 0 ? code : sides->list(sides->ctx, c->a, &c->pair, both, o, versions, out, err);
}

int call_list_uploads(struct call *c, const struct list_options *o, struct upload_list *out,
                      struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    struct bucket *b = c->target.bucket, *both[2];

    if (!c->pair.route)
        return b->ops->list_uploads(b, c->a, o, out, err);
    int code = open_both(c, both, err);
    return code < 0 ? code : sides->list_uploads(sides->ctx, c->a, &c->pair, both, o, out, err);
}
