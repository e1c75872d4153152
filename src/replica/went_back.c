/* Begins the copies of all replications again after the store has lost changes, because it is not
 * known which buckets the lost changes belong to. */
#include "replica/went_back.h"
#include "coord/switch.h"
#include "replica/first.h"

#define MEND_LOCK STR("lk:w:mend") /* not a lock of an object, because no storage is called `w` */

static int went_back_resync(const struct went_back *w, const struct replication_id *id,
                            struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct task first = first_task_resync(&a, id);
    int code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY)
                                   : replication_resync(w->replications, id, &first, true, err);

    arena_release(&a);
    return code;
}

/* Stops the switch of a bucket. A switch with downtime is aborted: nothing was written since the
 * bucket was blocked, and the route is as before. In a switch without downtime both sides were
 * written to, and for the last moments nobody knows which side is newer. So the replication is
 * paused until a person has compared both sides. */
static int stop_switch(const struct went_back *w, const struct replication_id *id, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct bucket_switch s;
    int code = switch_read(w->replications, &a, id->user, id->bucket, &s, err);

    if (code == 0 && switch_is_live(&s)) {
        code = replication_pause(w->replications, &s.id, true, err);
        log_error(
            w->log, "replica.switch_held", log_s("bucket", id->bucket), log_s("from", id->from),
            log_s("to", id->to),
            log_z("what", "compare both sides (weir diff check), then weir replicate resume"));
    } else if (code == 0) {
        code = switch_abort(w->replications, id->user, id->bucket, err);
        log_error(w->log, "replica.switch_given_up", log_s("bucket", id->bucket),
                  log_s("from", id->from), log_s("to", id->to));
        if (code == 0)
            code = went_back_resync(w, id, err);
    }
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int mend_bucket(const struct went_back *w, const struct replication *r, struct err *err)
{
    int code = went_back_resync(w, &r->id, err);

    /* ERR_CONFLICT: the bucket cannot be copied again, because the replication is archived or the
     * bucket is in a switch. */
    if (code == ERR_CONFLICT)
        code = r->switching || r->blocked ? stop_switch(w, &r->id, err) : 0;
    else if (code == 0)
        log_warn(w->log, "replica.copied_anew", log_s("bucket", r->id.bucket),
                 log_s("from", r->id.from), log_s("to", r->id.to));
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Queues the task that gives replications to those of the user's buckets that have none, because
 * the store may have forgotten their replications. */
static int mend_user(const struct went_back *w, const struct replication *r, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct task t = first_task_user(&a, &r->id);
    int code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY) : queue_add(w->queue, &t, 0, err);

    arena_release(&a);
    return code;
}

static int mend_all(const struct went_back *w, const struct lock *lock, struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    int code = replications_refresh(w->replications, err);

    if (code == 0)
        code = replications_view(w->replications, &view, err);
    size_t count = code == 0 ? replication_view_all(view, &all) : 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (!lock_held(lock))
            code = err_set(err, ERR_BUSY, "beginning all copies anew took too long");
        else
            code = all[i]->id.bucket.len ? mend_bucket(w, all[i], err) : mend_user(w, all[i], err);
    }
    replication_view_unref(view);
    return code;
}

int went_back_mend(const struct went_back *w, struct err *err)
{
    struct lock *lock = NULL;
    int code = lock_take(&lock, w->locks, MEND_LOCK, err);

    if (code == 0)
        code = mend_all(w, lock, err);
    lock_release(lock);
    return code;
}
