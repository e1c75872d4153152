/* API calls for users and their keys. */
#include "api/api_int.h"
#include "coord/replication.h"
#include "room/services.h"
#include "route/users.h"

static rest_fn user_list, user_show, user_add, user_remove, user_key_add, user_key_remove;

#define USER_FIELDS                                                                                \
    {"name", "The user's name."}, {"id", "What owns buckets and stands in ACLs."},                 \
        {"display_name", "The name that S3 shows."}, {"email", "An e-mail address, or empty."},    \
        {"admin", "May use every bucket and this API.", REST_BOOLEAN},                             \
    {                                                                                              \
        "keys", "The access keys.", REST_STRINGS                                                   \
    }
#define KEY_FIELDS                                                                                 \
    {"access_key", "The access key."},                                                             \
    {                                                                                              \
        "secret_key", "The secret key, which no other call answers.", .secret = true               \
    }

static const struct rest_field user_path[] = {{"name", "The user's name."}, {0}};

static const struct rest_row user_rows[] = {
    {HTTP_GET, "/api/v1/users", REST_ADMIN,
     "All users, without their secrets: the first administrator, those of the configuration file, "
     "then the others by name.",
     user_list, .quick = true, .list = "users", .by_place = true,
     .items = REST_FIELDS(USER_FIELDS)},
    {HTTP_POST, "/api/v1/users", REST_ADMIN,
     "Add a user. Only this answer and that of adding a key hold a secret key.", user_add,
     .status = 201,
     .body =
         REST_FIELDS({"name", "The user's name.", .required = true},
                     {"id", "What owns buckets and stands in ACLs; random when left out."},
                     {"display_name", "The name that S3 shows; the name when left out."},
                     {"email", "An e-mail address, for grants by address."},
                     {"admin", "May the user use every bucket and this API?", REST_BOOLEAN},
                     {"access_key", "The first access key; random when left out."},
                     {"secret_key", "The secret key that goes with access_key.", .secret = true}),
     .answer = REST_FIELDS(USER_FIELDS, KEY_FIELDS)},
    {HTTP_GET, "/api/v1/users/{name}", REST_ADMIN, "One user, without secrets.", user_show,
     .quick = true, .in_path = user_path, .answer = REST_FIELDS(USER_FIELDS)},
    {HTTP_DELETE, "/api/v1/users/{name}", REST_ADMIN,
     "Remove the user and its keys; its buckets stay.", user_remove, .status = 204,
     .in_path = user_path},
    {HTTP_POST, "/api/v1/users/{name}/keys", REST_ADMIN, "Add an access key.", user_key_add,
     .status = 201, .in_path = user_path,
     .body =
         REST_FIELDS({"access_key", "The access key; random when left out."},
                     {"secret_key", "The secret key that goes with access_key.", .secret = true}),
     .answer = REST_FIELDS(KEY_FIELDS)},
    {HTTP_DELETE, "/api/v1/users/{name}/keys/{access}", REST_ADMIN, "Remove an access key.",
     user_key_remove, .status = 204,
     .in_path = REST_FIELDS({"name", "The user's name."}, {"access", "The access key."})},
};
const struct rest_table api_user_rows = {REST_ROWS(user_rows)};

static void user_write(struct json_out *w, const struct user *u)
{
    json_out_member_str(w, "name", u->name);
    json_out_member_str(w, "id", u->id);
    json_out_member_str(w, "display_name", u->display_name);
    json_out_member_str(w, "email", u->email);
    json_out_member_bool(w, "admin", u->admin);
    json_out_key(w, "keys");
    json_out_open(w, '[');
    for (size_t i = 0; i < u->key_count; i++)
        json_out_str(w, u->keys[i].access);
    json_out_close(w, ']');
}

/* Writes a key with its secret. */
static void user_key_write(struct json_out *w, const struct user_key *key)
{
    json_out_member_str(w, "access_key", key->access);
    json_out_member_str(w, "secret_key", key->secret);
}

static int user_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct user *list;
    size_t count;
    int code = users_list(api->o.users, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (rest_item(c, STR_EMPTY)) {
            user_write(c->w, &list[i]);
            rest_item_end(c);
        }
    return code;
}

static int user_show(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct user user;
    int code = users_by_name(api->o.users, c->arena, rest_text(c, "name"), &user, err);

    if (code == 0)
        user_write(c->w, &user);
    return code;
}

static int user_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct user_key key = {rest_text(c, "access_key"), rest_text(c, "secret_key")};
    struct user made, wanted = {
                          .name = rest_text(c, "name"),
                          .id = rest_text(c, "id"),
                          .display_name = rest_text(c, "display_name"),
                          .email = rest_text(c, "email"),
                          .admin = rest_bool(c, "admin"),
                          .keys = &key,
                          .key_count = key.access.len || key.secret.len,
                      };
    int code = users_add(api->o.users, c->arena, &wanted, &made, err);

    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "user.added", log_s("user", made.name),
             log_s("id", made.id));
    user_write(c->w, &made);
    user_key_write(c->w, &made.keys[0]);
    return 0;
}

static int user_forget_keys(struct api *api, struct str id, struct err *err)
{
    struct err why = {0};
    int code = remotes_forget_user(api->o.remotes, id, &why);

    return code < 0 ? err_set(err, code,
                              "the user " STR_FMT
                              " is removed, but its keys on remote storages are not: %s",
                              STR_ARG(id), *why.text ? why.text : err_text(code))
                    : 0;
}

/* Refuses to remove a user whose buckets are replicated. The replication uses the user's keys, and
 * it cannot be removed any more after the user. */
static int user_check_replications(struct api *api, const struct user *user, struct err *err)
{
    const struct replication *const *all;
    struct replication_view *view = NULL;
    int code = api->o.replications ? replications_view(api->o.replications, &view, err) : 0;
    size_t count = view ? replication_view_all(view, &all) : 0;

    for (size_t i = 0; code == 0 && i < count; i++)
        if (str_eq(all[i]->id.user, user->id))
            code = err_set(err, ERR_CONFLICT,
                           "buckets of user " STR_FMT " are replicated, " STR_FMT
                           " to storage " STR_FMT " for one; remove these replications first "
                           "(weir replicate list --user " STR_FMT ")",
                           STR_ARG(user->name),
                           STR_ARG(all[i]->id.bucket.len ? all[i]->id.bucket : STR("all")),
                           STR_ARG(all[i]->id.to), STR_ARG(user->name));
    replication_view_unref(view);
    return code;
}

static int user_check_rooms(struct api *api, const struct user *user, struct err *err)
{
    const struct room_hooks *h = &api->o.services->hooks;

    return h->user_needed ? h->user_needed(h->user_needed_ctx, user, err) : 0;
}

static int user_remove(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name");
    struct user user;
    bool known = users_by_name(api->o.users, c->arena, name, &user, NULL) == 0;
    int code = known ? user_check_replications(api, &user, err) : 0;

    if (code == 0 && known)
        code = user_check_rooms(api, &user, err);
    if (code == 0)
        code = users_remove(api->o.users, name, err);
    /* The keys are removed last. So if the user may not be removed, the keys stay. */
    if (code == 0 && known)
        code = user_forget_keys(api, user.id, err);
    if (code == 0)
        log_info(http_request_log(c->req), "user.removed", log_s("user", name));
    return code;
}

static int user_key_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct user_key wanted = {rest_text(c, "access_key"), rest_text(c, "secret_key")};
    struct str name = rest_text(c, "name");
    struct user_key made = {0};
    int code = users_add_key(api->o.users, c->arena, name, &wanted, &made, err);

    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "user.key_added", log_s("user", name),
             log_s("access_key", made.access));
    user_key_write(c->w, &made);
    return 0;
}

static int user_key_remove(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name"), access = rest_text(c, "access");
    int code = users_remove_key(api->o.users, name, access, err);

    if (code == 0)
        log_info(http_request_log(c->req), "user.key_removed", log_s("user", name),
                 log_s("access_key", access));
    return code;
}
