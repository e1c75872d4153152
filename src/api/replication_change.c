/* Pausing, resuming, repeating and removing replications. */
#include "api/replications.h"
#include "replica/first.h"

static int finish(struct http_request *req, const struct route_params *params, const char *event,
                  int code, const struct err *err)
{
    if (code < 0)
        return api_send_failure(req, code, err);
    log_info(http_request_log(req), event, log_s("replication", route_param(params, "id")));
    return api_send_done(req);
}

static int pause_one(struct http_request *req, const struct route_params *params, struct api *api,
                     bool paused)
{
    struct replication p = {0};
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code =
        api_find_replication(api, http_request_arena(req), route_param(params, "id"), &p, &err);
    if (code == 0 && !p.id.bucket.len)
        code = err_set(&err, ERR_INVALID,
                       "a user's policy makes replications and does nothing else; pause those of "
                       "its buckets, or remove it");
    if (code == 0)
        code = replication_pause(api->o.replications, &p.id, paused, &err);
    return finish(req, params, paused ? "replication.paused" : "replication.resumed", code, &err);
}

int api_put_pause_replication(struct http_request *req, const struct route_params *params,
                              void *ctx)
{
    return pause_one(req, params, ctx, true);
}

int api_put_resume_replication(struct http_request *req, const struct route_params *params,
                               void *ctx)
{
    return pause_one(req, params, ctx, false);
}

/* --- removing --- */

enum { CLEAN_LATER_S = 60 };

/* The cleaning is queued before what it cleans is gone, so that a crash leaves nothing behind; it
 * does no harm to one that is not. */
static int remove_bucket(struct api *api, struct arena *a, const struct replication *p,
                         struct err *err)
{
    struct task t = first_task_clean(a, &p->id);
    struct queue *q = api->o.queue;
    int code = arena_error(a);

    if (code == 0)
        code = queue_add(q, &t, CLEAN_LATER_S, err);
    bool added = code == 0;
    if (code == ERR_EXISTS) /* of one that was removed a moment ago */
        code = 0;
    if (code == 0)
        code = replication_remove(api->o.replications, &p->id, err);
    /* Should one of these fail, it runs in a minute. */
    if (code == 0)
        (void)!queue_run_now(q, t.queue, t.id, NULL);
    else if (added)
        (void)!queue_delete(q, t.queue, t.id, NULL);
    return code;
}

static int remove_one(struct api *api, struct arena *a, const struct replication *p,
                      struct err *err)
{
    int code = p->id.bucket.len ? remove_bucket(api, a, p, err)
                                : replication_remove(api->o.replications, &p->id, err);

    if (code == 0)
        api_notify_undo(api, p);
    return code;
}

/* Those of a user's buckets that go the same way as its policy; *removed: how many. */
static int remove_of_buckets(struct api *api, struct arena *a, const struct replication_id *policy,
                             size_t *removed, struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    int code = replications_view(api->o.replications, &view, err);
    size_t count = code == 0 ? replication_view_all(view, &all) : 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        const struct replication_id *id = &all[i]->id;
        if (!id->bucket.len || id->to_bucket.len || !str_eq(id->user, policy->user) ||
            !str_eq(id->from, policy->from) || !str_eq(id->to, policy->to))
            continue;
        code = remove_one(api, a, all[i], err);
        *removed += code == 0;
        if (code == ERR_NOT_FOUND)
            code = 0;
    }
    replication_view_unref(view);
    return code;
}

/* The policy, which may have been removed before, and what it has made. */
static int remove_with_buckets(struct api *api, struct arena *a, const struct replication *policy,
                               bool there, struct err *err)
{
    size_t removed = 0;
    int code = there ? remove_one(api, a, policy, err) : 0;

    if (code == 0)
        code = remove_of_buckets(api, a, &policy->id, &removed, err);
    return code == 0 && !there && !removed
               ? err_set(err, ERR_NOT_FOUND,
                         "there is neither such a policy nor a replication of "
                         "a bucket that it may have made")
               : code;
}

int api_delete_replication(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct arena *a = http_request_arena(req);
    struct replication p = {0};
    struct str buckets;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = api_query(req, "buckets", &buckets, &err);
    if (code == 0)
        code = api_find_replication(api, a, route_param(params, "id"), &p, &err);
    bool with = p.id.user.len && !p.id.bucket.len && str_eq(buckets, STR("true"));
    if (with && (code == 0 || code == ERR_NOT_FOUND))
        code = remove_with_buckets(api, a, &p, code == 0, &err);
    else if (code == 0)
        code = remove_one(api, a, &p, &err);
    return finish(req, params, "replication.removed", code, &err);
}

/* --- repeating --- */

static int resync(struct api *api, struct arena *a, const struct replication *p, struct err *err)
{
    struct task t = first_task_resync(a, &p->id);
    int code = arena_error(a);

    return code < 0 ? err_code(err, code)
                    : replication_resync(api->o.replications, &p->id, &t, false, err);
}

int api_post_resync(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct arena *a = http_request_arena(req);
    struct replication p = {0};
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    json_decref(object);
    code = api_find_replication(api, a, route_param(params, "id"), &p, &err);
    if (code == 0 && !p.id.bucket.len)
        code = err_set(&err, ERR_INVALID,
                       "a user's policy has nothing to compare; name one of its buckets");
    if (code == 0)
        code = resync(api, a, &p, &err);
    return finish(req, params, "replication.resync", code, &err);
}
