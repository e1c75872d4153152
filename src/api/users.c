/* Users and their keys. */
#include "api/api_int.h"
#include "route/users.h"

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

/* One object: the user, and a key with its secret, when they are given. */
static int send_user(struct http_request *req, int status, const struct user *u,
                     const struct user_key *key)
{
    struct api_json j;

    api_json_begin(&j);
    if (u)
        write_user(&j.w, u);
    if (key) {
        json_out_member_str(&j.w, "access_key", key->access);
        json_out_member_str(&j.w, "secret_key", key->secret);
    }
    return api_json_send(req, status, &j);
}

int api_get_users(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct api_json j;
    struct user *list;
    struct err err = {0};
    size_t count;
    int code = users_list(api->o.users, http_request_arena(req), &list, &count, &err);

    (void)params;
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "users");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_open(&j.w, '{');
        write_user(&j.w, &list[i]);
        json_out_close(&j.w, '}');
    }
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

int api_get_user(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct user user;
    struct err err = {0};
    int code = users_by_name(api->o.users, http_request_arena(req), route_param(params, "name"),
                             &user, &err);

    return code < 0 ? api_send_failure(req, code, &err) : send_user(req, 200, &user, NULL);
}

static int add_user(struct api *api, struct arena *a, const json_t *object, struct user *out,
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

int api_post_user(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct user made;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_read_json(req, &object, &code))
        return code;
    code = add_user(ctx, http_request_arena(req), object, &made, &err);
    json_decref(object);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "user.added", log_s("user", made.name), log_s("id", made.id));
    return send_user(req, 201, &made, &made.keys[0]);
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

int api_delete_user(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct user user;
    struct err err = {0};
    bool known;
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    known = users_by_name(api->o.users, http_request_arena(req), route_param(params, "name"), &user,
                          NULL) == 0;
    code = users_remove(api->o.users, route_param(params, "name"), &err);
    /* Behind it: a user that may not be removed keeps them. */
    if (code == 0 && known)
        code = forget_keys(api, user.id, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "user.removed", log_s("user", route_param(params, "name")));
    return api_send_done(req);
}

int api_post_key(struct http_request *req, const struct route_params *params, void *ctx)
{
    static const char *const strings[] = {"access_key", "secret_key", NULL};
    struct api *api = ctx;
    struct user_key wanted, made;
    struct str name = route_param(params, "name");
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    code = api_check_strings(object, strings, &err);
    if (code == 0) {
        wanted = (struct user_key){json_get_str(object, "access_key", STR_EMPTY),
                                   json_get_str(object, "secret_key", STR_EMPTY)};
        code = users_add_key(api->o.users, http_request_arena(req), name, &wanted, &made, &err);
    }
    json_decref(object);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "user.key_added", log_s("user", name),
             log_s("access_key", made.access));
    return send_user(req, 201, NULL, &made);
}

int api_delete_key(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str name = route_param(params, "name"), access = route_param(params, "access");
    struct err err = {0};
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    code = users_remove_key(api->o.users, name, access, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "user.key_removed", log_s("user", name),
             log_s("access_key", access));
    return api_send_done(req);
}
