/* Turns a set of changed things (an object, its tags, its ACL, a bucket) into the changes that the
 * store records, each with the type of its task. Also gives new buckets their replications. The
 * code V5 is that of docs/replication.md. */
#include "object/overlay.h"
#include "replica/tap/tap_int.h"

/* Types of the tasks that copy a changed thing to the destination (docs/replication.md, "Work"). */
static const struct {
    unsigned change;
    enum thing_kind thing;
    const char *type;
} things[] = {
    {THING_OBJECT, THING_OBJECT, "object:sync"},
    {THING_OBJECT_TAGS, THING_OBJECT_TAGS, "object:sync:tags"},
    {THING_OBJECT_ACL, THING_OBJECT_ACL, "object:sync:acl"},
    {THING_BUCKET | CHANGE_BUCKET_MADE, THING_BUCKET, "bucket:create"},
    {CHANGE_BUCKET_GONE, THING_BUCKET, "bucket:delete"},
    {THING_BUCKET_TAGS, THING_BUCKET_TAGS, "bucket:sync:tags"},
    {THING_BUCKET_ACL, THING_BUCKET_ACL, "bucket:sync:acl"},
};

int changes_out_init(struct changes_out *out, struct arena *a, struct err *err)
{
    *out = (struct changes_out){.a = a};
    out->items = arena_array(a, QUEUE_BATCH_MAX, sizeof(*out->items));
    return out->items ? 0 : err_code(err, ERR_NO_MEMORY);
}

void changes_add(struct changes_out *out, unsigned changes, struct str storage, struct str bucket,
                 struct str key, uint64_t row)
{
    bool whole = (changes & THINGS_OF_OBJECT) == THINGS_OF_OBJECT;

    if (whole) /* the object's task also copies its tags and its ACL (V5) */
        changes &= ~((unsigned)THING_OBJECT_TAGS | THING_OBJECT_ACL);
    for (size_t i = 0; i < ARRAY_SIZE(things); i++) {
        if (!(things[i].change & changes))
            continue;
        BUG_ON(out->count == QUEUE_BATCH_MAX);
        out->items[out->count++] = (struct change){
            .thing = {things[i].thing, .bucket = bucket, .object = key},
            .place = {.storage = storage},
            .whole = whole && things[i].thing == THING_OBJECT,
            .type = str_z(things[i].type),
            .together = things[i].thing == THING_OBJECT,
            .row = row,
        };
    }
}

int taps_record_removal(struct taps *t, const struct storage *s, struct str bucket, struct str key,
                        struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct changes_out out;
    int code = changes_out_init(&out, &a, err);

    if (code == 0) {
        changes_add(&out, THING_OBJECT, s->name, bucket, key, 0);
        code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    }
    if (code == 0)
        code = taps_record(t, &(struct record){.changes = out.items, .count = out.count}, err);
    arena_release(&a);
    return code;
}

/* --- new buckets --- */

/* Checks that no other user has a bucket of this name at the destination, because the replication
 * would overwrite it. If this process does not have the destination's storage, the copy's task
 * makes this check later. */
static int new_bucket_check(struct taps *t, struct arena *a, const struct replication_id *id,
                            struct err *err)
{
    struct storage *s = routes_storage(t->o.routes, id->to);
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    int code = s ? storage_open_bucket(&b, s, id->user, id->bucket, err) : ERR_NO_BUCKET;

    if (code == 0) {
        code = b->ops->info(b, a, &info, err);
        b->ops->unref(b);
    }
    if (code == ERR_DENIED || (code == 0 && info.owner.len && !str_eq(info.owner, id->user)))
        return err_set(err, ERR_CONFLICT,
                       "the bucket " STR_FMT " on storage " STR_FMT " is another user's",
                       STR_ARG(id->bucket), STR_ARG(id->to));
    return code == ERR_NO_BUCKET ? 0 : code;
}

static int new_bucket_replicate(struct taps *t, struct arena *a, const struct replication *policy,
                                struct str bucket, struct err *err)
{
    struct replication_new n = {.id = policy->id, .priority = policy->priority};

    n.id.bucket = bucket;
    if (t->o.first)
        n.first = t->o.first(a, &n.id, n.priority);
    int code = new_bucket_check(t, a, &n.id, err);
    if (code == 0)
        code = replication_add(t->o.replications, &n, routes_main_name(t->o.routes), err);
    /* The error is logged, because no client waits for it. */
    if (code == ERR_CONFLICT || code == ERR_INVALID) {
        log_warn(t->o.log, "replica.bucket_not_replicated", log_s("bucket", bucket),
                 log_s("user", n.id.user), log_s("to", n.id.to), log_z("error", err->text));
        return 0;
    }
    return code == ERR_EXISTS ? 0 : code;
}

int changes_new_bucket(struct taps *t, struct arena *a, struct str storage, struct str bucket,
                       struct str user, struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *policies = NULL;
    int code = replications_view(t->o.replications, &view, err);

    if (code < 0)
        return code;
    size_t count = replication_view_user(view, user, storage, &policies);
    for (size_t i = 0; i < count && code == 0; i++)
        code = new_bucket_replicate(t, a, policies[i], bucket, err);
    replication_view_unref(view);
    return code;
}
