/* API calls for buckets and their routes. */
#include "api/api_int.h"
#include "room/owners.h"
#include "object/bucket.h"
#include "object/overlay.h"
#include "route/route.h"
#include "route/users.h"

#include <stdlib.h>

static rest_fn bucket_list, policy_list, bucket_route_set, user_route_set;

struct policy_view {
    struct route_policy policy;
    struct str user; /* the user's name */
};

/* Where a bucket, or with an empty `bucket` all buckets of a user, are to lead. */
struct route_form {
    struct str bucket, user, storage;
    struct rest_known blocked;
};

static const struct rest_row bucket_rows[] = {
    {HTTP_GET, "/api/v1/buckets", REST_ADMIN, "Buckets of one storage, by name.", bucket_list,
     .query = REST_FIELDS({"storage", "The storage's name; left out: the main storage."}),
     .list = "buckets", .page_max = OBJECT_LIST_MAX, .item = sizeof(struct bucket_view),
     .items = REST_FIELDS(BUCKET_FIELDS)},
    {HTTP_GET, "/api/v1/policies", REST_ADMIN,
     "The routing policies of users and buckets, and the buckets that are blocked.", policy_list,
     .quick = true, .list = "policies", .by_place = true, .item = sizeof(struct policy_view),
     .items = REST_FIELDS(
         {"user", "The user's name; empty: the user was removed.",
          REST_AT(struct policy_view, user)},
         {"user_id", "The user's id; empty: the bucket is blocked for everybody.",
          REST_AT(struct policy_view, policy.user)},
         {"bucket",
          "The bucket; empty: the policy is for all buckets of the user that have no policy of "
          "their own.",
          REST_AT(struct policy_view, policy.bucket)},
         {"storage", "Where the policy leads, or where the bucket is blocked.",
          REST_AT(struct policy_view, policy.storage)},
         {"blocked", "Is this a block and not a policy?", REST_BOOLEAN,
          REST_AT(struct policy_view, policy.blocked)})},
    {HTTP_POST, "/api/v1/buckets/{name}/route", REST_ADMIN,
     "Route a bucket to a storage, or block it on a storage.", bucket_route_set, .status = 204,
     .in = sizeof(struct route_form),
     .in_path = REST_FIELDS({"name", "The bucket's name.", REST_AT(struct route_form, bucket)}),
     .body = REST_FIELDS(
         {"storage", "The storage's name; empty: remove the policy.", .required = true,
          REST_AT(struct route_form, storage)},
         {"user", "The user whose route is set; left out: the bucket's owner.",
          REST_AT(struct route_form, user)},
         {"blocked",
          "Instead of a route: refuse the bucket on the storage (true) or no longer (false).",
          REST_BOOLEAN, REST_AT(struct route_form, blocked)})},
    {HTTP_POST, "/api/v1/users/{name}/route", REST_ADMIN,
     "Route all buckets of the user that have no policy of their own to a storage.", user_route_set,
     .status = 204, .in = sizeof(struct route_form),
     .in_path = REST_FIELDS({"name", "The user's name.", REST_AT(struct route_form, user)}),
     .body = REST_FIELDS({"storage", "The storage's name; empty: remove the policy.",
                          .required = true, REST_AT(struct route_form, storage)})},
};
const struct rest_table api_bucket_rows = {REST_ROWS(bucket_rows)};

static void bucket_offer(struct rest_call *c, const struct storage *s,
                         const struct bucket_info *info, struct str key)
{
    rest_add(c, key, (&(struct bucket_view){.info = *info, .storage = s->name}));
}

/* Lists the buckets of a storage that can list all its buckets itself, beginning at the page of the
 * call. */
static int bucket_list_all(struct rest_call *c, struct storage *s, struct err *err)
{
    struct str after = rest_after(c);
    struct bucket_info *list;
    size_t count = OBJECT_LIST_MAX;
    int code = 0;

    while (code == 0 && count == OBJECT_LIST_MAX && !rest_full(c)) {
        code = storage_list_buckets(s, c->arena, STR_EMPTY, after, OBJECT_LIST_MAX, &list, &count,
                                    err);
        for (size_t i = 0; code == 0 && i < count; i++) {
            bucket_offer(c, s, &list[i], list[i].name);
            after = list[i].name;
        }
    }
    return code;
}

/* --- buckets on storages that show a bucket only to its users --- */

struct seen_bucket {
    struct bucket_info info;
    struct str key; /* "<bucket> <owner>", because two users may have a bucket of the same name */
};

struct seen_buckets {
    VEC(struct seen_bucket) list;
};

static int seen_by_key(const void *a, const void *b)
{
    const struct seen_bucket *x = a, *y = b;

    return str_cmp(x->key, y->key);
}

/* Adds all buckets that one user has on the storage. */
static int seen_add(struct seen_buckets *seen, struct arena *a, struct storage *s, struct str user,
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
            vec_push(&seen->list, ((struct seen_bucket){list[i], arena_fmt(a, STR_FMT " " STR_FMT,
                                                                           STR_ARG(list[i].name),
                                                                           STR_ARG(user))}));
        }
    } while (code == 0 && count == OBJECT_LIST_MAX);
    return code;
}

/* Lists the buckets that users with credentials on the storage see, because no single user sees all
 * buckets. */
static int bucket_list_seen(struct rest_call *c, struct storage *s, struct err *err)
{
    const struct api *api = c->ctx;
    struct remote_entry e = {0};
    struct seen_buckets seen = {0};
    int code = services_find_remote(api->o.services, c->arena, s->name, &e, err);

    for (size_t i = 0; i < e.user_count && code == 0; i++)
        code = seen_add(&seen, c->arena, s, e.users[i], err);
    if (code == 0 && arena_error(c->arena) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0 && seen.list.len)
        qsort(seen.list.items, seen.list.len, sizeof(*seen.list.items), seen_by_key);
    for (size_t i = 0; code == 0 && i < seen.list.len; i++)
        bucket_offer(c, s, &seen.list.items[i].info, seen.list.items[i].key);
    vec_release(&seen.list);
    return code;
}

static int bucket_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "storage");
    struct storage *s = name.len ? routes_storage(api->o.routes, name) : routes_main(api->o.routes);

    if (!s && name.len)
        return err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    if (!s)
        return err_set(err, ERR_NOT_FOUND, "there is no main storage");
    return storage_can(s, STORAGE_CREDENTIALS) ? bucket_list_seen(c, s, err)
                                               : bucket_list_all(c, s, err);
}

/* --- routes --- */

/* Lists the policies. A user who was removed has no name. */
static int policy_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct route_policy *list;
    size_t count;
    int code = route_list(api->o.routes, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        struct policy_view view = {.policy = list[i]};
        struct user user = {0};
        if (list[i].user.len && users_by_id(api->o.users, c->arena, list[i].user, &user, NULL) == 0)
            view.user = user.name;
        rest_add(c, STR_EMPTY, &view);
    }
    return code;
}

static int route_changed(struct rest_call *c, const struct route_form *in, int code)
{
    if (code == 0)
        log_info(http_request_log(c->req), "route.changed", log_s("bucket", in->bucket),
                 log_s("user", in->user));
    return code;
}

static int bucket_route_set(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    const struct route_form *in = rest_in(c, struct route_form);
    struct str id = STR_EMPTY;
    int code;

    if (in->blocked.known) {
        code = route_block(api->o.routes, in->storage, in->bucket, in->blocked.value, err);
    } else {
        code = owners_user_id(api->o.services, c->arena, in->user,
                              &(struct owner_of){.bucket = in->bucket, .routed = true}, &id, err);
        if (code == 0)
            code = route_set(api->o.routes, id, in->bucket, in->storage, err);
    }
    return route_changed(c, in, code);
}

static int user_route_set(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    const struct route_form *in = rest_in(c, struct route_form);
    struct str id = STR_EMPTY;
    int code = owners_user_id(api->o.services, c->arena, in->user, NULL, &id, err);

    if (code == 0)
        code = route_set(api->o.routes, id, STR_EMPTY, in->storage, err);
    return route_changed(c, in, code);
}
