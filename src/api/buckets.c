/* Buckets: which there are, where they are, and where they shall be. */
#include "api/owners.h"
#include "object/overlay.h"
#include "base/clock.h"
#include "object/bucket.h"
#include "route/route.h"
#include "route/users.h"

void api_write_bucket(struct json_out *w, const struct bucket_info *info, struct str storage)
{
    static const char *const versions[] = {
        [VERSIONS_NEVER] = "never", [VERSIONS_ON] = "on", [VERSIONS_SUSPENDED] = "suspended"};
    char created[CLOCK_ISO_LEN + 1] = "";

    if (info->created_ms)
        clock_iso(info->created_ms, created);
    json_out_member_str(w, "name", info->name);
    json_out_member_str(w, "storage", storage);
    json_out_member_str(w, "owner", info->owner);
    json_out_member_str(w, "created", str_z(created));
    json_out_member_str(w, "versions", str_z(versions[info->versions]));
    json_out_member_bool(w, "object_lock", info->object_lock);
}

static int list_buckets(struct http_request *req, struct storage *s, struct str after,
                        struct err *err)
{
    struct bucket_info *list;
    struct api_json j;
    size_t count;
    int code = storage_list_buckets(s, http_request_arena(req), STR_EMPTY, after, OBJECT_LIST_MAX,
                                    &list, &count, err);

    if (code < 0)
        return api_send_failure(req, code, err);
    api_json_begin(&j);
    json_out_key(&j.w, "buckets");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_open(&j.w, '{');
        api_write_bucket(&j.w, &list[i], s->name);
        json_out_close(&j.w, '}');
    }
    json_out_close(&j.w, ']');
    json_out_member_bool(&j.w, "more", count == OBJECT_LIST_MAX);
    return api_json_send(req, 200, &j);
}

/* All that one user has on a remote storage. */
static int write_remote(struct json_out *w, struct storage *s, struct str user, struct arena *a,
                        struct err *err)
{
    struct bucket_info *list = NULL;
    struct str after = STR_EMPTY;
    size_t count = 0;
    int code;

    do {
        code = storage_list_buckets(s, a, user, after, OBJECT_LIST_MAX, &list, &count, err);
        for (size_t i = 0; code == 0 && i < count; i++) {
            list[i].owner = user;
            after = list[i].name;
            json_out_open(w, '{');
            api_write_bucket(w, &list[i], s->name);
            json_out_close(w, '}');
        }
    } while (code == 0 && count == OBJECT_LIST_MAX);
    return code;
}

/* What its users see there, one after the other: nobody there sees all. */
static int list_remote(struct http_request *req, struct api *api, struct storage *s,
                       struct err *err)
{
    struct arena *a = http_request_arena(req);
    struct remote_entry e = {0};
    struct api_json j;
    int code = api_find_remote(api, a, s->name, &e, err);

    api_json_begin(&j);
    json_out_key(&j.w, "buckets");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < e.user_count && code == 0; i++)
        code = write_remote(&j.w, s, e.users[i], a, err);
    json_out_close(&j.w, ']');
    json_out_member_bool(&j.w, "more", false);
    if (code == 0)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, err);
}

int api_get_buckets(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str storage = STR_EMPTY, after = STR_EMPTY;
    struct storage *s;
    struct err err = {0};
    int code;

    (void)params;
    if (!http_may_block(req))
        return ERR_AGAIN;
    code = api_query(req, "storage", &storage, &err);
    if (code == 0)
        code = api_query(req, "after", &after, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    s = storage.len ? routes_storage(api->o.routes, storage) : routes_main(api->o.routes);
    if (!s)
        return api_send_error(req, 404, "not_found", "there is no such storage");
    return storage_can(s, STORAGE_CREDENTIALS) ? list_remote(req, api, s, &err)
                                               : list_buckets(req, s, after, &err);
}

/* --- routes --- */

/* A user that was removed since has no name any more. */
static void write_policy(struct json_out *w, struct api *api, struct arena *a,
                         const struct route_policy *p)
{
    struct user user = {0};

    if (p->user.len && users_by_id(api->o.users, a, p->user, &user, NULL) < 0)
        user.name = STR_EMPTY;
    json_out_open(w, '{');
    json_out_member_str(w, "user", user.name);
    json_out_member_str(w, "user_id", p->user);
    json_out_member_str(w, "bucket", p->bucket);
    json_out_member_str(w, "storage", p->storage);
    json_out_member_bool(w, "blocked", p->blocked);
    json_out_close(w, '}');
}

int api_get_policies(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct route_policy *list;
    struct api_json j;
    struct err err = {0};
    size_t count;
    int code = route_list(api->o.routes, http_request_arena(req), &list, &count, &err);

    (void)params;
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "policies");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++)
        write_policy(&j.w, api, http_request_arena(req), &list[i]);
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

static int set_route(struct api *api, struct arena *a, struct str bucket, struct str user,
                     const json_t *object, struct err *err)
{
    const json_t *blocked = json_object_get(object, "blocked");
    struct str storage = json_get_str(object, "storage", STR_EMPTY), id = STR_EMPTY;
    int code;

    if (!json_is_string(json_object_get(object, "storage")))
        return err_set(err, ERR_INVALID, "storage must be a string");
    if (blocked && !json_is_boolean(blocked))
        return err_set(err, ERR_INVALID, "blocked must be true or false");
    if (blocked && bucket.len)
        return route_block(api->o.routes, storage, bucket, json_is_true(blocked), err);
    code =
        api_user_id(api, a, user, &(struct owner_of){.bucket = bucket, .routed = true}, &id, err);
    return code < 0 ? code : route_set(api->o.routes, id, bucket, storage, err);
}

static int post_route(struct http_request *req, struct api *api, struct str bucket, struct str user)
{
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    code = set_route(api, http_request_arena(req), bucket,
                     user.len ? user : json_get_str(object, "user", STR_EMPTY), object, &err);
    json_decref(object);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "route.changed", log_s("bucket", bucket), log_s("user", user));
    return api_send_done(req);
}

int api_post_bucket_route(struct http_request *req, const struct route_params *params, void *ctx)
{
    return post_route(req, ctx, route_param(params, "name"), STR_EMPTY);
}

int api_post_user_route(struct http_request *req, const struct route_params *params, void *ctx)
{
    return post_route(req, ctx, STR_EMPTY, route_param(params, "name"));
}
