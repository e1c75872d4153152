/* Finds where the bucket of a request is, and its facts (gateway_facts.c). Asks the routes once.
 * While the bucket is being switched from one storage to another, chooses the side (route/sides.h).
 */
#include "s3/gateway/gateway_int.h"

#include "object/overlay.h"

/* --- where --- */

int call_locate(struct call *c, struct call_target *t, struct route_ask *ask, struct err *err)
{
    struct facts_search search = {.table = c->g->facts};

    ask->user = c->user_id;
    ask->may_wait = http_may_block(c->http);
    ask->arena = c->a;
    if (!ask->make) {
        ask->knows = facts_known;
        ask->ctx = &search;
    }
    int code = route_resolve(c->g->o.routes, ask, &t->at, err);
    ask->ctx = NULL;
    bool used = code == 0 && !t->at.bucket && !target_is_foreign(&t->at) && !ask->at;
    if (used)
        t->facts = search.found;
    else if (search.found) /* the facts that were found belong to another bucket */
        facts_unref(search.found);
    return code;
}

int call_resolve(struct call *c, struct storage *at, struct err *err)
{
    struct route_ask ask = {
        .bucket = c->bucket_name, .make = c->op && c->op->flags & OP_MAKES && !c->beyond, .at = at};

    ask.sides = ask.make ? NULL : c->g->o.sides;
    int code = call_locate(c, &c->target, &ask, err);
    return code == 0 && c->target.at.sides.route ? call_choose_side(c, err) : code;
}

/* Checks that the change still goes where the route leads (docs/replication.md, S5). An upload that
 * was begun on the other side may be finished there as long as that side exists. */
int call_check_route(struct call *c, struct err *err)
{
    const struct bucket_sides *sides = c->g->o.sides;
    const struct target *seen = &c->target.at;
    struct route_ask ask = {.user = c->user_id,
                            .bucket = c->bucket_name,
                            .make = c->op && c->op->flags & OP_MAKES && !c->beyond,
                            .may_wait = true};
    struct side_pair pair = {0};
    struct target now;

    int code = route_resolve(c->g->o.routes, &ask, &now, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? ERR_UNAVAILABLE : code;
    struct storage *s = now.kind == TARGET_NONE && !ask.make ? NULL : now.storage;
    target_release(&now);
    if (s && s != seen->storage && seen->sides.route)
        code = sides->find(sides->ctx, c->a, s, c->bucket_name, &pair, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? ERR_UNAVAILABLE : code;
    return s == seen->storage || pair.other == seen->storage
               ? 0
               : err_set(err, ERR_BUSY, "the bucket has moved to another storage");
}

/* --- what is known of the bucket --- */

/* Returns the owner that the client expects the bucket to have; empty: any. */
static struct str expected_owner(struct call *c, const struct call_target *t)
{
    return http_header(c->head, t == &c->target ? "x-amz-expected-bucket-owner"
                                                : "x-amz-source-expected-bucket-owner");
}

/* Opens a bucket whose storage decides about access (docs/forward.md, F2). So no documents are
 * read, and the owner is not known. */
static int open_foreign(struct call *c, struct call_target *t, struct str bucket, struct err *err)
{
    if (!http_may_block(c->http))
        return ERR_AGAIN;
    if (expected_owner(c, t).len)
        return err_set(err, S3_NOT_IMPLEMENTED,
                       "The owner of a bucket on a remote storage cannot be expected in a copy "
                       "between storages");
    int code = storage_open_bucket(&t->at.bucket, t->at.storage, c->user_id, bucket, err);
    t->bucket = t->at.bucket;
    if (code == 0 && t->at.kind == TARGET_FOREIGN) /* weir does each operation itself */
        code = t->bucket->ops->info(t->bucket, c->a, &t->info, err);
    t->info.name = bucket;
    return code;
}

/* Finds or reads facts that call_locate() did not find: those of the side whose policy and lists
 * count, else those of the bucket itself. */
static int find_facts(struct call *c, struct call_target *t, struct str bucket, struct err *err)
{
    struct storage *s = t->facts_at ? t->facts_at : t->at.storage;
    struct bucket *b = t->facts_at ? NULL : target_take_bucket(&t->at);
    int code = 0;

    if (!b)
        t->facts = facts_find(c->g->facts, s, bucket);
    if (t->facts)
        return 0;
    if (!b)
        code = storage_open_bucket(&b, s, STR_EMPTY, bucket, err);
    if (code == 0)
        code = facts_read(&t->facts, b, http_may_block(c->http), err);
    if (code == 0)
        facts_keep(c->g->facts, t->facts);
    return code;
}

/* Whether reading from the bucket may wait. */
static bool target_waits(const struct call *c, const struct call_target *t)
{
    bool reads_now = c->op && c->op->flags & OP_READS_NOW && t->bucket->ops->get_now;

    return (t->policy && policy_is_large(t->policy)) ||
           !(reads_now || bucket_can(t->bucket, STORAGE_AT_HAND));
}

static int open_here(struct call *c, struct call_target *t, struct str bucket, struct err *err)
{
    struct str expected = expected_owner(c, t);
    int code = t->facts ? 0 : find_facts(c, t, bucket, err);

    if (code < 0)
        return code;
    facts_fill(t);
    if (t->facts_at && t->facts_at != t->at.storage) {
        code = storage_open_bucket(&t->at.bucket, t->at.storage, STR_EMPTY, bucket, err);
        t->bucket = t->at.bucket;
    }
    if (code == 0 && expected.len && !str_eq(expected, t->info.owner))
        code = s3_fail(err, S3_ACCESS_DENIED);
    return code == 0 && !http_may_block(c->http) && target_waits(c, t) ? ERR_AGAIN : code;
}

int call_open(struct call *c, struct call_target *t, struct str bucket, struct err *err)
{
    if (t->at.kind == TARGET_NONE || t->at.kind == TARGET_TAKEN)
        return err_code(err, ERR_NO_BUCKET);
    return target_is_foreign(&t->at) ? open_foreign(c, t, bucket, err)
                                     : open_here(c, t, bucket, err);
}

void call_close(struct call_target *t)
{
    facts_unref(t->facts);
    target_release(&t->at);
    t->facts = NULL;
    t->bucket = NULL;
}
