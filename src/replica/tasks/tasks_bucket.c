/* Tasks of a bucket that was made or deleted, or whose tags or ACL changed. The codes P3, P7 and V4
 * are those of docs/replication.md. */
#include "replica/tasks/tasks_int.h"

#include "object/local/local.h"
#include "replica/clean.h"
#include "replica/first.h"

enum {
    CREATE_REQUESTS = 6,
    REQUESTS = 2,
};

static int sync_all(struct job *j, struct err *err)
{
    struct copy_bucket c = job_copy_bucket(j);
    int code = copy_bucket_settings(j->run->arena, &c, err);

    if (code == 0)
        code = copy_bucket_tags(j->run->arena, &c, err);
    if (code == 0)
        code = copy_bucket_acl(j->run->arena, &c, err);
    return code;
}

/* Called when neither side has the bucket (P7). Ends the replication if a policy of the user would
 * make the same replication for a new bucket of that name. Otherwise the replication stays, so that
 * a bucket that is made again still has it. It also stays if a change was recorded after `number`
 * was read. */
static int end_replication(struct job *j, int64_t number, struct err *err)
{
    struct arena *a = j->run->arena;
    const struct replication_end e = {
        .id = j->p.id,
        .number = number,
        .then = {first_task_clean(a, &j->p.id), first_task_user(a, &j->p.id)},
        .route = j->t->o.main ? j->t->o.main(j->t->o.ctx) : STR_EMPTY,
    };
    int code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY)
                                  : replication_end(j->t->o.replications, &e, err);

    if (code == 0)
        log_info(&j->run->log, "replication.ended", log_s("bucket", j->p.id.bucket),
                 log_s("from", j->p.id.from), log_s("to", j->p.id.to));
    return code == ERR_CONFLICT ? 0 : code;
}

static int has_policy(struct job *j, bool *out, struct err *err)
{
    const struct replication_id *id = &j->p.id;
    const struct replication *const *all;
    struct replication_view *view = NULL;
    int code = replications_view(j->t->o.replications, &view, err);

    *out = false;
    for (size_t i = 0, n = code < 0 ? 0 : replication_view_user(view, id->user, id->from, &all);
         i < n; i++)
        *out |= str_eq(all[i]->id.to, id->to);
    replication_view_unref(view);
    return code;
}

static int remove_destination(struct job *j, bool recorded, struct err *err);

/* Ends a replication that a user's policy made, because its source has no bucket. The bucket may
 * have been deleted before every gateway knew the replication. Then nobody recorded the deletion,
 * and the destination may have the empty bucket that was made for it. That bucket is removed; a
 * bucket that is not empty stays. */
static int end_uncreated(struct job *j, int64_t number, struct err *err)
{
    bool policy = false;
    int code = has_policy(j, &policy, err);

    if (code < 0 || !policy)
        return code < 0 ? code : ERR_END;
    code = remove_destination(j, false, err);
    if (code == 0)
        code = end_replication(j, number, err);
    return code < 0 && code != ERR_INVALID ? code : ERR_END;
}

/* Makes the destination's bucket and copies its settings. *number is set to the source's number in
 * the bucket's version vector, as it was before anything was read. */
static int destination_create(struct job *j, int64_t *number, struct err *err)
{
    struct job_things all = {.kinds = THINGS_OF_BUCKET};
    int code = job_lock_bucket(j, err);

    if (code == 0)
        code = job_needed(j, &all, err);
    if (code == 0)
        code = job_open(j, true, err);
    *number = all.numbers[0];
    if (code == ERR_NO_BUCKET)
        return end_uncreated(j, *number, err);
    if (code == 0) {
        code = sync_all(j, err);
        if (code == ERR_NO_BUCKET)
            code = err_set(err, ERR_CONFLICT, "a bucket went away meanwhile");
    }
    return code < 0 ? code : job_confirm(j, &all, false, err);
}

/* Removes the numbers that a removed replication may have left for the destination (V4). With these
 * numbers the destination would count as up to date, although nobody has recorded the changes since
 * then. */
static int forget_before(struct job *j, struct err *err)
{
    const struct tasks_options *o = &j->t->o;
    const struct cleaner c = {o->replications, o->app, o->queue};
    bool any = false;
    int code = replication_any_removed(o->replications, j->p.id.bucket, &any, err);

    return code < 0 || !any ? code : clean_vectors(&c, j->run, &j->p.id, err);
}

/* Begins the listing, once every gateway captures the changes of the bucket (P3). */
static int begin_listing(struct job *j, int64_t number, struct err *err)
{
    const struct tasks_options *o = &j->t->o;
    int code;

    if (j->status.listing_started)
        return 0;
    code = job_need_known(j, err);
    if (code < 0)
        return code;
    /* The buckets are opened again, because their settings were copied since. */
    code = job_open(j, true, err);
    if (code < 0)
        return code == ERR_NO_BUCKET ? end_uncreated(j, number, err) : code;
    code = forget_before(j, err);
    if (code < 0)
        return code;
    struct task listing = task_of_listing(j->run->arena, &j->p.id, STR_EMPTY,
                                          j->source.versioned && j->destination.versioned);
    code = replication_list(o->replications, &j->p.id, j->run->task, &listing, err);
    if (code == 0)
        j->run->done = true;
    return code == ERR_NOT_FOUND ? ERR_END : code;
}

int task_bucket_create(struct task_run *run, struct err *err)
{
    int64_t number = 0;
    struct job j;
    int code = job_begin(&j, run, PAYLOAD_BUCKET, CREATE_REQUESTS, err);

    if (code == 0)
        code = destination_create(&j, &number, err);
    if (code == 0)
        code = begin_listing(&j, number, err);
    return job_end(&j, code, err);
}

/* --- tags and ACL --- */

static int sync_thing(struct task_run *run, enum thing_kind kind,
                      int (*fn)(struct arena *a, const struct copy_bucket *c, struct err *err),
                      struct err *err)
{
    struct job j;
    struct job_things thing = {.kinds = kind};
    int code = job_begin(&j, run, PAYLOAD_BUCKET, REQUESTS, err);

    if (code == 0)
        code = job_lock_bucket(&j, err);
    if (code == 0)
        code = job_needed(&j, &thing, err);
    if (code == 0 && thing.needed) {
        code = job_open(&j, true, err);
        if (code == 0) {
            struct copy_bucket c = job_copy_bucket(&j);
            code = fn(run->arena, &c, err);
        }
        if (code == 0)
            code = job_confirm(&j, &thing, false, err);
        else if (code == ERR_NO_BUCKET)
            code = 0; /* the task bucket:delete handles a deleted bucket */
    }
    return job_end(&j, code, err);
}

int task_bucket_tags(struct task_run *run, struct err *err)
{
    return sync_thing(run, THING_BUCKET_TAGS, copy_bucket_tags, err);
}

int task_bucket_acl(struct task_run *run, struct err *err)
{
    return sync_thing(run, THING_BUCKET_ACL, copy_bucket_acl, err);
}

/* --- a bucket that was deleted --- */

/* Turns the job, which is for a bucket, into a job for one object of the bucket, and takes the
 * object's lock. object_leave() turns it back. */
static int object_enter(struct job *j, struct str name, struct lock **bucket, struct err *err)
{
    *bucket = j->lock;
    j->p.object = name;
    j->lock = NULL;
    return job_lock_object(j, err);
}

static void object_leave(struct job *j, struct lock *bucket)
{
    lock_release(j->lock);
    j->lock = bucket;
    j->p.object = STR_EMPTY;
}

/* Removes one object from the destination, unless the source's bucket exists again. In that case
 * the object may be a copy of a new object. Copies are made under the object's lock, so nothing
 * comes between this check and the removal. */
static int remove_left(struct job *j, struct arena *a, const struct object_info *info,
                       struct err *err)
{
    struct bucket *to = j->destination.bucket;
    struct remove_options r = {.version = info->version};
    struct remove_result removed;
    struct lock *bucket;
    int code = object_enter(j, info->key, &bucket, err);

    if (code == 0)
        code = place_open(&j->source, j->t, j->from, j->p.id.user, j->p.id.bucket, true, err);
    if (code == 0)
        code = err_set(err, ERR_CONFLICT, "the bucket was made again");
    else if (code == ERR_NO_BUCKET)
        code = to->ops->remove(to, a, info->key, &r, &removed, err);
    object_leave(j, bucket);
    return code;
}

static int remove_page(struct job *j, bool *more, struct err *err)
{
    struct bucket *to = j->destination.bucket;
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct arena a = ARENA_INIT(0);
    struct list_result page;
    int code = to->ops->list_versions(to, &a, &o, &page, err);

    if (code == ERR_UNSUPPORTED)
        code = to->ops->list(to, &a, &o, &page, err);
    for (size_t i = 0; code == 0 && i < page.count; i++) {
        code = job_watch(j, 0, err);
        if (code == 0)
            code = remove_left(j, &a, &page.entries[i].info, err);
    }
    *more = code == 0 && page.count > 0;
    arena_release(&a);
    return code;
}

static int destination_abort_uploads(struct job *j, struct err *err)
{
    struct bucket *to = j->destination.bucket;
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct arena a = ARENA_INIT(0);
    struct upload_list page = {.more = true};
    int code = 0;

    while (code == 0 && page.more) {
        arena_reset(&a);
        code = to->ops->list_uploads(to, &a, &o, &page, err);
        if (code == ERR_UNSUPPORTED) { /* such a storage has no uploads that prevent the removal */
            code = 0;
            break;
        }
        for (size_t i = 0; code == 0 && i < page.count; i++)
            code = to->ops->upload_abort(to, &page.uploads[i], err);
        page.more = page.more && page.count > 0;
    }
    arena_release(&a);
    return code;
}

/* Removes all objects that the destination's bucket still has. Nothing else removes them: the tasks
 * of objects do nothing once the source's bucket is deleted. They are removed only if the deletion
 * of the bucket was recorded. It is not enough that the source suddenly has no such bucket. */
static int empty_destination(struct job *j, struct err *err)
{
    bool more = true;
    int code = place_open(&j->destination, j->t, j->to, j->p.id.user, job_to_bucket(j), true, err);

    if (code == 0)
        local_untap(j->destination.bucket);
    while (code == 0 && more)
        code = remove_page(j, &more, err);
    return code < 0 ? code : destination_abort_uploads(j, err);
}

static int remove_destination(struct job *j, bool recorded, struct err *err)
{
    int code = place_open(&j->destination, j->t, j->to, j->p.id.user, job_to_bucket(j), true, err);

    if (code == 0 && j->destination.foreign)
        return err_set(err, ERR_DENIED, "the bucket " STR_FMT " on " STR_FMT " is another user's",
                       STR_ARG(job_to_bucket(j)), STR_ARG(j->p.id.to));
    place_release(&j->destination);
    if (code == 0)
        code = local_remove_untapped(j->to, j->p.id.user, job_to_bucket(j), err);
    if (code == ERR_CONFLICT && recorded) {
        code = empty_destination(j, err);
        if (code == 0)
            code = local_remove_untapped(j->to, j->p.id.user, job_to_bucket(j), err);
    } else if (code == ERR_CONFLICT) {
        return err_set(err, ERR_INVALID,
                       "the bucket is gone at the source, and not empty at the destination; no "
                       "deletion of it was recorded");
    }
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* Compares an object that the destination has with the source, if the object has a recorded change
 * that did not reach the destination, and copies or removes it. */
static int bring_left(struct job *j, struct str name, struct err *err)
{
    struct job_things things = {.kinds = THINGS_OF_OBJECT};
    struct lock *bucket;
    int code = object_enter(j, name, &bucket, err);

    if (code == 0)
        code = job_needed(j, &things, err);
    if (code == 0 && things.numbers[0] > 0)
        code = job_bring_object(j, &things, false, err);
    object_leave(j, bucket);
    return code;
}

/* Compares all objects of the destination after the bucket was deleted and made again. Tasks of
 * objects that ran in between found no bucket and did nothing, so the destination still has the
 * objects that they should have removed. */
static int bring_all_left(struct job *j, struct err *err)
{
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct list_result page = {.more = true};
    struct arena a = ARENA_INIT(0);
    struct buf after = {0};
    int code = job_open(j, true, err);

    while (code == 0 && page.more) {
        arena_reset(&a);
        o.after = buf_str(&after);
        if (!j->destination.bucket) /* the tries of an object may have closed both buckets */
            code = job_open(j, true, err);
        struct bucket *to = j->destination.bucket;
        if (code == 0)
            code = to->ops->list(to, &a, &o, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++) {
            code = job_watch(j, 0, err);
            if (code == 0)
                code = bring_left(j, page.entries[i].info.key, err);
        }
        buf_reset(&after);
        if (code == 0)
            buf_append_str(&after, page.next);
        page.more = page.more && page.count > 0;
    }
    arena_release(&a);
    buf_release(&after);
    return code;
}

static int delete_bucket(struct job *j, struct err *err)
{
    struct job_things thing = {.kinds = THING_BUCKET};
    int code = job_lock_bucket(j, err);

    if (code == 0)
        code = job_needed(j, &thing, err);
    if (code < 0)
        return code;
    code = place_open(&j->source, j->t, j->from, j->p.id.user, j->p.id.bucket, true, err);
    if (code == 0) { /* the bucket was made again; bucket:create may have run already */
        code = bring_all_left(j, err);
        return code < 0 || !thing.needed ? code : job_confirm(j, &thing, false, err);
    }
    if (code != ERR_NO_BUCKET)
        return code;
    code = thing.needed ? remove_destination(j, thing.numbers[0] > 0, err) : 0;
    if (code == 0 && thing.needed)
        code = job_confirm(j, &thing, true, err);
    return code < 0 ? code : end_replication(j, thing.numbers[0], err);
}

int task_bucket_delete(struct task_run *run, struct err *err)
{
    struct job j;
    int code = job_begin(&j, run, PAYLOAD_BUCKET, REQUESTS, err);

    if (code == 0)
        code = delete_bucket(&j, err);
    return job_end(&j, code, err);
}
