/* Pauses, resumes, repeats and removes replications. */
#include "replica/rest/rest.h"
#include "replica/first.h"

static rest_fn replication_remove_call, replication_pause_call, replication_resume_call,
    replication_resync_call;

static const struct rest_field replication_path[] = {{"id", "The replication's id."}, {0}};

static const struct rest_row replication_change_rows[] = {
    {HTTP_DELETE, "/api/v1/replications/{id}", REST_ADMIN,
     "Remove the replication and its state; what was copied stays.", replication_remove_call,
     .status = 204, .needs = replica_needs, .in_path = replication_path,
     .query = REST_FIELDS(
         {"buckets", "Of a user's policy: also the replications of its buckets?", REST_BOOLEAN})},
    {HTTP_PUT, "/api/v1/replications/{id}/pause", REST_ADMIN,
     "Copy nothing until it is resumed; changes are still recorded.", replication_pause_call,
     .status = 204, .needs = replica_needs, .in_path = replication_path},
    {HTTP_PUT, "/api/v1/replications/{id}/resume", REST_ADMIN, "Copy again.",
     replication_resume_call, .status = 204, .needs = replica_needs, .in_path = replication_path},
    {HTTP_POST, "/api/v1/replications/{id}/resync", REST_ADMIN,
     "List both sides again and compare every object with its copy, whatever is known of it. "
     "Objects that the source does not have are removed at the destination.",
     replication_resync_call, .status = 204, .needs = replica_needs, .in_path = replication_path},
};
const struct rest_table replica_change_routes = {REST_ROWS(replication_change_rows)};

/* Logs the event if `code` is 0. Returns `code`. */
static int replication_changed(const struct rest_call *c, const char *event, int code)
{
    if (code == 0)
        log_info(http_request_log(c->req), event, log_s("replication", rest_text(c, "id")));
    return code;
}

static int replication_set_paused(struct rest_call *c, bool paused, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct replication p = {0};
    int code = replication_by_text(room, c->arena, rest_text(c, "id"), &p, err);

    if (code == 0 && !p.id.bucket.len)
        code = err_set(err, ERR_INVALID,
                       "a user's policy copies nothing itself; pause the replications of its "
                       "buckets, or remove the policy");
    if (code == 0)
        code = replication_pause(room->services->replications, &p.id, paused, err);
    return replication_changed(c, paused ? "replication.paused" : "replication.resumed", code);
}

static int replication_pause_call(struct rest_call *c, struct err *err)
{
    return replication_set_paused(c, true, err);
}

static int replication_resume_call(struct rest_call *c, struct err *err)
{
    return replication_set_paused(c, false, err);
}

/* --- removing --- */

enum { CLEAN_LATER_S = 60 };

/* Removes a bucket's replication. The task that cleans up is queued first, so that a crash leaves
 * no data behind. That task does no harm to a replication that still exists. */
static int replication_remove_bucket(const struct replica_room *room, struct arena *a,
                                     const struct replication *p, struct err *err)
{
    struct task t = first_task_clean(a, &p->id);
    struct queue *q = room->services->queue;
    int code = arena_error(a);

    if (code == 0)
        code = queue_add(q, &t, CLEAN_LATER_S, err);
    bool added = code == 0;
    /* A replication of the same id was removed a moment ago, and its task is queued. */
    if (code == ERR_EXISTS)
        code = 0;
    if (code == 0)
        code = replication_remove(room->services->replications, &p->id, err);
    /* If one of the next calls fails, the task still runs in a minute. */
    if (code == 0)
        (void)!queue_run_now(q, t.queue, t.id, NULL);
    else if (added)
        (void)!queue_delete(q, t.queue, t.id, NULL);
    return code;
}

static int replication_remove_one(const struct replica_room *room, struct arena *a,
                                  const struct replication *p, struct err *err)
{
    int code = p->id.bucket.len ? replication_remove_bucket(room, a, p, err)
                                : replication_remove(room->services->replications, &p->id, err);

    if (code == 0)
        replication_end_notices(room, p);
    return code;
}

/* Removes the replications of a user's buckets between the two storages that the policy names. Adds
 * their number to *removed. */
static int policy_remove_buckets(const struct replica_room *room, struct arena *a,
                                 const struct replication_id *policy, size_t *removed,
                                 struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    int code = replications_view(room->services->replications, &view, err);
    size_t count = code == 0 ? replication_view_all(view, &all) : 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        const struct replication_id *id = &all[i]->id;
        if (!id->bucket.len || id->to_bucket.len || !str_eq(id->user, policy->user) ||
            !str_eq(id->from, policy->from) || !str_eq(id->to, policy->to))
            continue;
        code = replication_remove_one(room, a, all[i], err);
        *removed += code == 0;
        if (code == ERR_NOT_FOUND)
            code = 0;
    }
    replication_view_unref(view);
    return code;
}

/* Removes the policy and the replications that it has made. `there` false: the policy itself was
 * removed before. */
static int policy_remove_with_buckets(const struct replica_room *room, struct arena *a,
                                      const struct replication *policy, bool there, struct err *err)
{
    size_t removed = 0;
    int code = there ? replication_remove_one(room, a, policy, err) : 0;

    if (code == 0)
        code = policy_remove_buckets(room, a, &policy->id, &removed, err);
    return code == 0 && !there && !removed
               ? err_set(err, ERR_NOT_FOUND,
                         "there is neither such a policy nor a replication that it may have made")
               : code;
}

static int replication_remove_call(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct replication p = {0};
    int code = replication_by_text(room, c->arena, rest_text(c, "id"), &p, err);
    bool with_buckets = p.id.user.len && !p.id.bucket.len && rest_bool(c, "buckets");

    if (with_buckets && (code == 0 || code == ERR_NOT_FOUND))
        code = policy_remove_with_buckets(room, c->arena, &p, code == 0, err);
    else if (code == 0)
        code = replication_remove_one(room, c->arena, &p, err);
    return replication_changed(c, "replication.removed", code);
}

/* --- repeating the copy --- */

static int replication_start_resync(const struct replica_room *room, struct arena *a,
                                    const struct replication *p, struct err *err)
{
    struct task t = first_task_resync(a, &p->id);
    int code = arena_error(a);

    return code < 0 ? err_code(err, code)
                    : replication_resync(room->services->replications, &p->id, &t, false, err);
}

static int replication_resync_call(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct replication p = {0};
    int code = replication_by_text(room, c->arena, rest_text(c, "id"), &p, err);

    if (code == 0 && !p.id.bucket.len)
        code = err_set(err, ERR_INVALID,
                       "a user's policy has nothing to compare; name one of its buckets");
    if (code == 0)
        code = replication_start_resync(room, c->arena, &p, err);
    return replication_changed(c, "replication.resync", code);
}
