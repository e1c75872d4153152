/* Tasks of one object: the object itself, its tags, its ACL. The code V5 is that of
 * docs/replication.md. */
#include "copy/compare.h"
#include "copy/copy.h"
#include "replica/tasks/tasks_int.h"

enum { TRIES = 3, SYNC_REQUESTS = 3, META_REQUESTS = 2 };

struct object_run;

/* The work that a task does under the object's lock, and which of the object's things (the object
 * itself, its tags, its ACL) the task copies. A task for the object itself copies all three
 * (V5). */
struct object_work {
    unsigned kinds; /* the things: a set of enum thing_kind */
    int (*fn)(struct object_run *r, struct err *err);
    unsigned requests; /* number of requests to each side */
};

struct object_run {
    struct job *j;
    struct job_things things;
    bool absent; /* a listing did not see the object at the destination */
    bool gone;   /* the source does not have the object */
};

/* Does the work. Repeats it immediately, a few times, if the object changes meanwhile or the copy
 * breaks off. If a bucket that was kept open has been deleted, the buckets are opened again.
 * ERR_NO_BUCKET: the source does not have the bucket, as was checked just now. */
static int with_tries(struct object_run *r, const struct object_work *w, struct err *err)
{
    struct job *j = r->j;
    int code = j->source.bucket ? 0 : job_open(j, false, err), last = 0;

    for (int i = 0; i < TRIES && code == 0; i++) {
        r->gone = false;
        code = w->fn(r, err);
        if (code != ERR_CONFLICT && code != ERR_CLOSED && code != ERR_NO_BUCKET)
            return code;
        last = code == ERR_NO_BUCKET ? ERR_CONFLICT : code;
        code = task_ended(j->run) ? last : job_open(j, code == ERR_NO_BUCKET, err);
    }
    return code < 0 ? code : last;
}

static int run_needed(struct object_run *r, const struct object_work *w, struct err *err)
{
    int code = with_tries(r, w, err);

    if (code == ERR_NO_BUCKET) /* the task bucket:delete handles a source without the bucket */
        return 0;
    return code < 0 ? code : job_confirm(r->j, &r->things, r->gone, err);
}

static int run_locked(struct object_run *r, const struct object_work *w, struct err *err)
{
    int code = job_lock_object(r->j, err);

    r->things = (struct job_things){.kinds = w->kinds};
    if (code == 0)
        code = job_needed(r->j, &r->things, err);
    if (code < 0 || !job_lacks(&r->things))
        return code;
    return run_needed(r, w, err);
}

static int run_object(struct task_run *run, enum task_payload_kind kind,
                      const struct object_work *w, struct err *err)
{
    struct job j;
    struct object_run r = {.j = &j};
    int code = job_begin(&j, run, kind, w->requests, err);

    if (code == 0)
        code = run_locked(&r, w, err);
    return job_end(&j, code, err);
}

/* --- the object --- */

static int sync_versions(struct job *j, struct copy_result *out, struct err *err)
{
    struct copy c = job_copy(j);

    return copy_versions(out, j->run->arena, &c, err);
}

static int sync_current(struct object_run *r, struct copy_result *out, struct err *err)
{
    struct job *j = r->j;
    struct copy c = job_copy(j);

    c.absent = r->absent;
    r->absent = false; /* another try does not rely on the listing */
    int code = copy_object(out, j->run->arena, &c, err);

    if (code < 0 || out->outcome != COPY_ABSENT)
        return code;
    code = copy_removal(out, j->run->arena, &c, err);
    if (code == 0 && out->outcome == COPY_SAME)
        code = err_set(err, ERR_CONFLICT, "the object came back meanwhile");
    return code;
}

static int sync_object(struct object_run *r, struct err *err)
{
    struct job *j = r->j;
    struct copy_result out = {0};
    bool versions = j->source.versioned && j->destination.versioned;
    int code = versions ? sync_versions(j, &out, err) : sync_current(r, &out, err);

    if (code < 0)
        return code;
    r->gone = out.outcome == COPY_ABSENT || out.outcome == COPY_REMOVED || out.source.is_marker;
    if (r->gone)
        return 0;
    struct copy c = job_copy(j);
    /* If both buckets keep versions, tags and retention are always copied, because listings of
     * versions do not show them. Without versions there is no retention. */
    if (out.outcome == COPY_SAME && (versions || out.other_tags))
        code = copy_tags(j->run->arena, &c, err);
    if (code == 0 && out.outcome == COPY_SAME && versions)
        code = copy_retention(j->run->arena, &c, err);
    bool made = out.outcome == COPY_MADE, private = made && !versions && out.source.is_private;
    if (code == 0 && !private && (made || r->things.needed & THING_OBJECT_ACL))
        code = copy_acl(j->run->arena, &c, made, err);
    return code == ERR_NOT_FOUND ? err_set(err, ERR_CONFLICT, "the object went away meanwhile")
                                 : code;
}

static const struct object_work object_work = {THINGS_OF_OBJECT, sync_object, SYNC_REQUESTS};

int job_bring_object(struct job *j, const struct job_things *things, bool absent, struct err *err)
{
    struct object_run r = {.j = j, .things = *things, .absent = absent};

    return job_lacks(things) ? run_needed(&r, &object_work, err) : 0;
}

int task_object_sync(struct task_run *run, struct err *err)
{
    return run_object(run, PAYLOAD_OBJECT, &object_work, err);
}

/* Copies one object that a listing has found. The task checks again whether both sides keep
 * versions, because that may have changed since the listing. */
int task_object_copy(struct task_run *run, struct err *err)
{
    return run_object(run, PAYLOAD_COPY, &object_work, err);
}

/* --- fixes of a check --- */

static int watch_digest(void *ctx, size_t side, uint64_t bytes, struct err *err)
{
    (void)side;
    return job_watch(ctx, bytes, err);
}

static int digest(struct job *j, size_t side, const struct object_info *info, struct str *out,
                  struct err *err)
{
    struct bucket *buckets[] = {j->source.bucket, j->destination.bucket};
    struct compare_options o = {.buckets = buckets,
                                .count = ARRAY_SIZE(buckets),
                                .keys = j->t->o.keys,
                                .watch = watch_digest,
                                .ctx = j};

    return compare_digest(out, j->run->arena, &o, side, info, err);
}

static int other_bytes(struct job *j, const struct object_info *source, bool *other,
                       struct err *err)
{
    struct bucket *to = j->destination.bucket;
    struct get_result there = {0};
    struct str x = STR_EMPTY, y = STR_EMPTY;
    int code = digest(j, 0, source, &x, err);

    if (code == 0)
        code = to->ops->head(to, j->run->arena, j->p.object, STR_EMPTY, NULL, &there, err);
    if (code == ERR_NOT_FOUND)
        code = err_set(err, ERR_CONFLICT, "the object went away meanwhile");
    if (code == 0)
        code = digest(j, 1, &there.info, &y, err);
    *other = code == 0 && !str_eq(x, y);
    return code;
}

/* Copies the object also if the ETags are equal but the bytes are not, which means that one side is
 * damaged. */
static int sync_contents(struct object_run *r, struct err *err)
{
    struct job *j = r->j;
    struct copy c = job_copy(j);
    struct copy_result out = {0};
    bool other = false;
    int code = sync_object(r, err);

    if (code < 0 || r->gone)
        return code;
    if (j->source.versioned && j->destination.versioned)
        return err_set(err, ERR_UNSUPPORTED,
                       "versions with the same ETags and other bytes are not replaced; remove the "
                       "key at the destination, and fix again");
    code = copy_object(&out, j->run->arena, &c, err);
    if (code == 0 && out.outcome == COPY_SAME)
        code = other_bytes(j, &out.source, &other, err);
    if (code == 0 && other)
        code = copy_anew(&out, j->run->arena, &c, err);
    return code < 0 || !other ? code : copy_acl(j->run->arena, &c, true, err);
}

int object_fix(struct job *j, bool contents, struct err *err)
{
    static const struct object_work by_contents = {THINGS_OF_OBJECT, sync_contents, SYNC_REQUESTS};
    struct object_run r = {.j = j, .things.needed = THINGS_OF_OBJECT};
    int code = job_lock_object(j, err);

    return code < 0 ? code : with_tries(&r, contents ? &by_contents : &object_work, err);
}

/* --- tags and ACL --- */

/* Copies tags or ACL by `fn`. If the destination does not have the object, the object is copied
 * first, unless it was deleted there since. */
static int sync_beside(struct object_run *r, int (*fn)(struct job *j, struct err *err),
                       struct err *err)
{
    struct job_things object = {.kinds = THING_OBJECT};
    struct job *j = r->j;
    struct copy_result out;
    int code = fn(j, err);

    if (code != ERR_NOT_FOUND)
        return code;
    code = job_needed(j, &object, err);
    if (code < 0 || !object.needed)
        return code;
    struct copy c = job_copy(j);
    code = copy_object(&out, j->run->arena, &c, err);
    r->gone = code == 0 && out.outcome == COPY_ABSENT;
    if (code < 0 || r->gone)
        return code;
    code = fn(j, err);
    return code == ERR_NOT_FOUND ? err_set(err, ERR_CONFLICT, "the object went away meanwhile")
                                 : code;
}

static int bring_tags(struct job *j, struct err *err)
{
    struct copy c = job_copy(j);

    return copy_tags(j->run->arena, &c, err);
}

static int bring_acl(struct job *j, struct err *err)
{
    struct copy c = job_copy(j);

    return copy_acl(j->run->arena, &c, false, err);
}

static int sync_tags(struct object_run *r, struct err *err)
{
    return sync_beside(r, bring_tags, err);
}

static int sync_acl(struct object_run *r, struct err *err)
{
    return sync_beside(r, bring_acl, err);
}

int task_object_tags(struct task_run *run, struct err *err)
{
    static const struct object_work w = {THING_OBJECT_TAGS, sync_tags, META_REQUESTS};

    return run_object(run, PAYLOAD_OBJECT, &w, err);
}

int task_object_acl(struct task_run *run, struct err *err)
{
    static const struct object_work w = {THING_OBJECT_ACL, sync_acl, META_REQUESTS};

    return run_object(run, PAYLOAD_OBJECT, &w, err);
}
