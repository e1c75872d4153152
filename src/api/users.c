/* API calls for users and their keys. */
#include "api/api_int.h"
#include "coord/replication.h"
#include "room/services.h"
#include "route/users.h"

static rest_fn user_list, user_show, user_add, user_remove, user_key_add, user_key_remove;

/* A user, and a key with its secret: what a call that adds one of them asks for and answers. */
struct user_form {
    struct user user;
    struct user_key key;
};

#define USER_FIELDS                                                                                \
    {"name", "The user's name.", REST_AT(struct user_form, user.name)},                            \
        {"id", "What owns buckets and stands in ACLs.", REST_AT(struct user_form, user.id)},       \
        {"display_name", "The name that S3 shows.", REST_AT(struct user_form, user.display_name)}, \
        {"email", "An e-mail address, or empty.", REST_AT(struct user_form, user.email)},          \
        {"admin", "May use every bucket and this API.", REST_BOOLEAN,                              \
         REST_AT(struct user_form, user.admin)},                                                   \
    {                                                                                              \
        "keys", "The access keys.", REST_STRINGS,                                                  \
            REST_ITEMS(struct user_form, user.keys, user.key_count)                                \
    }
#define KEY_FIELDS                                                                                 \
    {"access_key", "The access key.", REST_AT(struct user_form, key.access)},                      \
    {                                                                                              \
        "secret_key", "The secret key, which no other call answers.",                              \
            .secret = true, REST_AT(struct user_form, key.secret)                                  \
    }
#define KEY_BODY                                                                                   \
    {"access_key", "The access key; random when left out.",                                        \
     REST_AT(struct user_form, key.access)},                                                       \
    {                                                                                              \
        "secret_key", "The secret key that goes with access_key.",                                 \
            .secret = true, REST_AT(struct user_form, key.secret)                                  \
    }

static const struct rest_field user_path[] = {
    {"name", "The user's name.", REST_AT(struct user_form, user.name)}, {0}};

static const struct rest_row user_rows[] = {
    {HTTP_GET, "/api/v1/users", REST_ADMIN,
     "All users, without their secrets: the first administrator, those of the configuration file, "
     "then the others by name.",
     user_list, .quick = true, .list = "users", .by_place = true, .item = sizeof(struct user_form),
     .items = REST_FIELDS(USER_FIELDS)},
    {HTTP_POST, "/api/v1/users", REST_ADMIN,
     "Add a user. Only this answer and that of adding a key hold a secret key.", user_add,
     .status = 201, .in = sizeof(struct user_form), .out = sizeof(struct user_form),
     .body = REST_FIELDS(
         {"name", "The user's name.", .required = true, REST_AT(struct user_form, user.name)},
         {"id", "What owns buckets and stands in ACLs; random when left out.",
          REST_AT(struct user_form, user.id)},
         {"display_name", "The name that S3 shows; the name when left out.",
          REST_AT(struct user_form, user.display_name)},
         {"email", "An e-mail address, for grants by address.",
          REST_AT(struct user_form, user.email)},
         {"admin", "May the user use every bucket and this API?", REST_BOOLEAN,
          REST_AT(struct user_form, user.admin)},
         KEY_BODY),
     .answer = REST_FIELDS(USER_FIELDS, KEY_FIELDS)},
    {HTTP_GET, "/api/v1/users/{name}", REST_ADMIN, "One user, without secrets.", user_show,
     .quick = true, .in_path = user_path, .out = sizeof(struct user_form),
     .answer = REST_FIELDS(USER_FIELDS)},
    {HTTP_DELETE, "/api/v1/users/{name}", REST_ADMIN,
     "Remove the user and its keys; its buckets stay.", user_remove, .status = 204,
     .in_path = user_path},
    {HTTP_POST, "/api/v1/users/{name}/keys", REST_ADMIN, "Add an access key.", user_key_add,
     .status = 201, .in = sizeof(struct user_form), .out = sizeof(struct user_form),
     .in_path = user_path, .body = REST_FIELDS(KEY_BODY), .answer = REST_FIELDS(KEY_FIELDS)},
    {HTTP_DELETE, "/api/v1/users/{name}/keys/{access}", REST_ADMIN, "Remove an access key.",
     user_key_remove, .status = 204,
     .in_path = REST_FIELDS({"name", "The user's name."}, {"access", "The access key."})},
};
const struct rest_table api_user_rows = {REST_ROWS(user_rows)};

static int user_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct user *list;
    size_t count;
    int code = users_list(api->o.users, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        rest_add(c, STR_EMPTY, &(struct user_form){.user = list[i]});
    return code;
}

static int user_show(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct user_form form = {0};
    int code = users_by_name(api->o.users, c->arena, rest_text(c, "name"), &form.user, err);

    return code < 0 ? code : rest_give(c, &form);
}

static int user_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    const struct user_form *in = rest_in(c, struct user_form);
    struct user wanted = in->user;
    struct user_form made = {0};

    wanted.keys = &in->key;
    wanted.key_count = in->key.access.len || in->key.secret.len;
    int code = users_add(api->o.users, c->arena, &wanted, &made.user, err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "user.added", log_s("user", made.user.name),
             log_s("id", made.user.id));
    made.key = made.user.keys[0];
    return rest_give(c, &made);
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
    const struct user_form *in = rest_in(c, struct user_form);
    struct user_form made = {0};
    int code = users_add_key(api->o.users, c->arena, in->user.name, &in->key, &made.key, err);

    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "user.key_added", log_s("user", in->user.name),
             log_s("access_key", made.key.access));
    return rest_give(c, &made);
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
