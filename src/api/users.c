/* Users and their keys. */
#include "api/api_int.h"
#include "coord/replication.h"
#include "route/users.h"

static api_fn get_users, get_user, add_user, remove_user, add_key, remove_key;

API_ROUTE(api_get_users, get_users, 200, .list = "users")
API_ROUTE(api_get_user, get_user, 200)
API_ROUTE(api_post_user, add_user, 201, .takes_body = true)
API_ROUTE(api_delete_user, remove_user, 204, .waits = true)
API_ROUTE(api_post_key, add_key, 201, .takes_body = true)
API_ROUTE(api_delete_key, remove_key, 204, .waits = true)

static void write_user(struct json_out *w, const struct user *u)
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

/* With its secret. */
static void write_key(struct json_out *w, const struct user_key *key)
{
    json_out_member_str(w, "access_key", key->access);
    json_out_member_str(w, "secret_key", key->secret);
}

static int get_users(struct api_call *c, struct err *err)
{
    struct user *list;
    size_t count;
    int code = users_list(c->api->o.users, http_request_arena(c->req), &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        json_out_open(c->w, '{');
        write_user(c->w, &list[i]);
        json_out_close(c->w, '}');
    }
    return code;
}

static int get_user(struct api_call *c, struct err *err)
{
    struct user user;
    int code = users_by_name(c->api->o.users, http_request_arena(c->req),
                             route_param(c->params, "name"), &user, err);

    if (code == 0)
        write_user(c->w, &user);
    return code;
}

static int read_and_add(struct api *api, struct arena *a, const json_t *object, struct user *out,
                        struct err *err)
{
    static const char *const strings[] = {"name",       "id", "display_name", "email", "access_key",
                                          "secret_key", NULL};
    struct user_key key = {json_get_str(object, "access_key", STR_EMPTY),
                           json_get_str(object, "secret_key", STR_EMPTY)};
    struct user wanted = {
        .name = json_get_str(object, "name", STR_EMPTY),
        .id = json_get_str(object, "id", STR_EMPTY),
        .display_name = json_get_str(object, "display_name", STR_EMPTY),
        .email = json_get_str(object, "email", STR_EMPTY),
        .admin = json_get_bool(object, "admin", false),
        .keys = &key,
        .key_count = key.access.len || key.secret.len,
    };
    int code = api_check_strings(object, strings, err);

    return code < 0 ? code : users_add(api->o.users, a, &wanted, out, err);
}

static int add_user(struct api_call *c, struct err *err)
{
    struct user made;
    int code = read_and_add(c->api, http_request_arena(c->req), c->body, &made, err);

    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "user.added", log_s("user", made.name),
             log_s("id", made.id));
    write_user(c->w, &made);
    write_key(c->w, &made.keys[0]);
    return 0;
}

static int forget_keys(struct api *api, struct str id, struct err *err)
{
    struct err why = {0};
    int code = remotes_forget_user(api->o.remotes, id, &why);

    return code < 0 ? err_set(err, code,
                              "the user " STR_FMT
                              " is removed, but its keys on remote storages are not: %s",
                              STR_ARG(id), *why.text ? why.text : err_text(code))
                    : 0;
}

/* What replicates a user's buckets goes by the user's keys, and nobody could take it away. */
static int check_replications(struct api *api, const struct user *user, struct err *err)
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

static int remove_user(struct api_call *c, struct err *err)
{
    struct users *users = c->api->o.users;
    struct str name = route_param(c->params, "name");
    struct user user;
    bool known = users_by_name(users, http_request_arena(c->req), name, &user, NULL) == 0;
    int code = known ? check_replications(c->api, &user, err) : 0;

    if (code == 0)
        code = users_remove(users, name, err);
    /* Behind it: a user that may not be removed keeps them. */
    if (code == 0 && known)
        code = forget_keys(c->api, user.id, err);
    if (code == 0)
        log_info(http_request_log(c->req), "user.removed", log_s("user", name));
    return code;
}

static int add_key(struct api_call *c, struct err *err)
{
    static const char *const strings[] = {"access_key", "secret_key", NULL};
    struct user_key wanted = {json_get_str(c->body, "access_key", STR_EMPTY),
                              json_get_str(c->body, "secret_key", STR_EMPTY)};
    struct str name = route_param(c->params, "name");
    struct user_key made = {0};
    int code = api_check_strings(c->body, strings, err);

    if (code == 0)
        code =
            users_add_key(c->api->o.users, http_request_arena(c->req), name, &wanted, &made, err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "user.key_added", log_s("user", name),
             log_s("access_key", made.access));
    write_key(c->w, &made);
    return 0;
}

static int remove_key(struct api_call *c, struct err *err)
{
    struct str name = route_param(c->params, "name"), access = route_param(c->params, "access");
    int code = users_remove_key(c->api->o.users, name, access, err);

    if (code == 0)
        log_info(http_request_log(c->req), "user.key_removed", log_s("user", name),
                 log_s("access_key", access));
    return code;
}
