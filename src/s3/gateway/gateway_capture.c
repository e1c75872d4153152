/* Announces changes to replication before they are made (docs/replication.md, R1, R5). */
#include "s3/gateway/gateway_int.h"

/* Returns the most that a request with this method on this level (object, bucket or service) can
 * change, as a set of enum thing_kind. weir assumes this for requests that only a remote storage
 * understands, such as Ceph's "?append". */
static unsigned most_changes(const struct call *c)
{
    enum http_method m = c->head->method;

    if (m == HTTP_GET || m == HTTP_HEAD || m == HTTP_OPTIONS)
        return 0;
    return c->level == LEVEL_OBJECT   ? THINGS_OF_OBJECT
           : c->level == LEVEL_BUCKET ? THING_BUCKET
                                      : 0;
}

/* Returns what the request may change, as a set of enum thing_kind. For a request with an unknown
 * parameter the set has the changes of the plain operation and those of most_changes(): "DELETE
 * /bucket?new" removes the bucket on a storage that ignores "new", and only a part of it on a
 * storage that knows "new". */
static unsigned call_changes_of(const struct call *c)
{
    return (c->op ? c->op->changes : 0) | (!c->op || c->beyond ? most_changes(c) : 0);
}

/* Announces the request's change. Does nothing for buckets of spaces (route/space.h), which are not
 * replicated, and for a bucket that cannot be made. */
int call_capture(struct call *c, const struct str *keys, size_t count, struct err *err)
{
    const struct change_capture *capture = c->g->o.capture;
    const struct target *to = &c->target.at;
    struct intended i = {.storage = to->storage, .bucket = c->bucket_name, .user = c->user_id};

    if (!capture || c->capture.begun || to->kind == TARGET_SPACE || to->kind == TARGET_TAKEN)
        return 0;
    i.changes = call_changes_of(c);
    if (i.changes == 0)
        return 0;
    i.keys = keys ? keys : &c->key;
    i.key_count = keys ? count : c->key.len > 0;
    i.ends_upload = c->op && c->op->id == S3_OP_CompleteMultipartUpload;
    int code = capture->begin(capture->ctx, &i, &c->capture, err);
    if (code < 0)
        return code;
    if (routes_generation(c->g->o.routes) != to->generation)
        code = call_check_route(c, err);
    if (code < 0)
        call_not_captured(c);
    return code;
}

int call_may_send(struct call *c, struct err *err)
{
    const struct change_capture *capture = c->g->o.capture;

    return c->capture.begun ? capture->check(capture->ctx, &c->capture, err) : 0;
}

int call_captured(struct call *c, enum outcome outcome, struct err *err)
{
    const struct change_capture *capture = c->g->o.capture;

    if (!c->capture.begun)
        return 0;
    int code = capture->end(capture->ctx, &c->capture, outcome, err);
    c->capture = (struct capture){0};
    return code;
}

void call_not_captured(struct call *c)
{
    struct err err = {0};
    int code = call_captured(c, OUTCOME_REFUSED, &err);

    BUG_ON(code < 0); /* cannot fail, because no change was made */
}
