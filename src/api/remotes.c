/* API calls for remote storages: adding a storage, choosing the main storage, and users'
 * credentials. */
#include "api/api_int.h"
#include "route/users.h"

static rest_fn main_set, credential_list, credential_add, credential_remove;

static const struct rest_field remote_path[] = {
    {"name", "The storage's name.", REST_AT(struct credential_form, storage)}, {0}};

/* A user with credentials on a remote storage. */
struct credential_view {
    struct str user, id;
};

static const struct rest_row remote_rows[] = {
    {HTTP_POST, "/api/v1/storages/{name}/main", REST_ADMIN,
     "Make it the main storage, where buckets without a policy are.", main_set, .status = 204,
     .in_path = remote_path},
    {HTTP_GET, "/api/v1/storages/{name}/credentials", REST_ADMIN,
     "The users that have credentials on a remote storage.", credential_list,
     .in_path = remote_path, .list = "users", .by_place = true,
     .item = sizeof(struct credential_view),
     .items = REST_FIELDS({"user", "The user's name; empty: the user was removed.",
                           REST_AT(struct credential_view, user)},
                          {"id", "The user's id.", REST_AT(struct credential_view, id)})},
    {HTTP_POST, "/api/v1/storages/{name}/credentials", REST_ADMIN,
     "Set the keys that a user's requests to a remote storage are signed with.", credential_add,
     .status = 204, .in = sizeof(struct credential_form), .in_path = remote_path,
     .body = REST_FIELDS(
         {"user", "The user's name.", REST_AT(struct credential_form, user)},
         {"access_key", "The access key there.", REST_AT(struct credential_form, access)},
         {"secret_key", "The secret key there.", .secret = true,
          REST_AT(struct credential_form, secret)})},
    {HTTP_DELETE, "/api/v1/storages/{name}/credentials/{user}", REST_ADMIN,
     "Remove a user's credentials on a remote storage.", credential_remove, .status = 204,
     .in_path = REST_FIELDS({"name", "The storage's name."},
                            {"user", "The user's name, or the id of one who was removed."})},
};
const struct rest_table api_remote_rows = {REST_ROWS(remote_rows)};

/* --- adding --- */

static int credential_read(struct remote_credential *out, const struct rest_call *c,
                           const struct credential_form *in, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = in->user;
    struct user user;
    int code;

    if (!name.len)
        return err_set(err, ERR_INVALID, "user, access_key and secret_key must be given together");
    code = users_by_name(api->o.users, c->arena, name, &user, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "there is no user " STR_FMT, STR_ARG(name));
    if (code < 0)
        return code;
    *out = (struct remote_credential){.user = user.id, .access = in->access, .secret = in->secret};
    if (!out->access.len || !out->secret.len)
        return err_set(err, ERR_INVALID, "access_key and secret_key must both be given");
    return 0;
}

static bool has_credential(const struct rest_call *c)
{
    return rest_given(c, "user") || rest_given(c, "access_key") || rest_given(c, "secret_key");
}

/* Adds a remote storage. Everything is checked before anything is stored. */
int api_add_remote(struct rest_call *c, const struct storage_form *in, struct err *err)
{
    struct api *api = c->ctx;
    struct remote_credential credential = {0};
    struct remote_entry e = in->remote;
    int code = 0;

    e.virtual_host = in->style == 1;
    e.trailers = in->framing == 1;
    if (has_credential(c))
        code = credential_read(&credential, c, &in->keys, err);
    if (code == 0)
        code = remotes_check_new(api->o.remotes, credential.user.len ? &credential : NULL, in->main,
                                 err);
    if (code == 0)
        code = remotes_add(api->o.remotes, &e, err);
    if (code == 0 && credential.user.len)
        code = remotes_set_credential(api->o.remotes, e.name, &credential, err);
    if (code == 0 && in->main)
        code = remotes_set_main(api->o.remotes, e.name, err);
    return code;
}

/* --- the calls --- */

/* Logs the event if `code` is 0. Returns `code`. */
static int remote_changed(const struct rest_call *c, const char *event, int code)
{
    if (code == 0)
        log_info(http_request_log(c->req), event, log_s("storage", rest_text(c, "name")));
    return code;
}

static int main_set(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;

    return remote_changed(c, "storage.main",
                          remotes_set_main(api->o.remotes, rest_text(c, "name"), err));
}

static int credential_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct remote_entry e = {0};
    int code = services_find_remote(api->o.services, c->arena, rest_text(c, "name"), &e, err);

    for (size_t i = 0; code == 0 && i < e.user_count; i++) {
        struct user user = {0};
        bool known = users_by_id(api->o.users, c->arena, e.users[i], &user, NULL) == 0;
        rest_add(c, STR_EMPTY,
                 (&(struct credential_view){known ? user.name : STR_EMPTY, e.users[i]}));
    }
    return code;
}

static int credential_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    const struct credential_form *in = rest_in(c, struct credential_form);
    struct remote_credential credential;
    int code = credential_read(&credential, c, in, err);

    if (code == 0)
        code = remotes_set_credential(api->o.remotes, in->storage, &credential, err);
    return remote_changed(c, "storage.credential_set", code);
}

/* Removes a user's credential. If the user does not exist any more, the call names the user's
 * id. */
static int credential_remove(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct user user = {0};
    int code = users_by_name(api->o.users, c->arena, rest_text(c, "user"), &user, err);

    if (code == ERR_NOT_FOUND) {
        user.id = rest_text(c, "user");
        code = 0;
    }
    if (code == 0)
        code = remotes_set_credential(api->o.remotes, rest_text(c, "name"),
                                      &(struct remote_credential){.user = user.id}, err);
    return remote_changed(c, "storage.credential_removed", code);
}
