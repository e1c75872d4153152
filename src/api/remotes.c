/* API calls for remote storages: adding a storage, choosing the main storage, and users'
 * credentials. */
#include "api/api_int.h"
#include "base/clock.h"
#include "route/users.h"

static rest_fn main_set, credential_list, credential_add, credential_remove;

static const struct rest_field remote_path[] = {{"name", "The storage's name."}, {0}};

static const struct rest_row remote_rows[] = {
    {HTTP_POST, "/api/v1/storages/{name}/main", REST_ADMIN,
     "Make it the main storage, where buckets without a policy are.", main_set, .status = 204,
     .in_path = remote_path},
    {HTTP_GET, "/api/v1/storages/{name}/credentials", REST_ADMIN,
     "The users that have credentials on a remote storage.", credential_list,
     .in_path = remote_path, .list = "users", .by_place = true,
     .items = REST_FIELDS({"user", "The user's name; empty: the user was removed."},
                          {"id", "The user's id."})},
    {HTTP_POST, "/api/v1/storages/{name}/credentials", REST_ADMIN,
     "Set the keys that a user's requests to a remote storage are signed with.", credential_add,
     .status = 204, .in_path = remote_path,
     .body = REST_FIELDS({"user", "The user's name."}, {"access_key", "The access key there."},
                         {"secret_key", "The secret key there.", .secret = true})},
    {HTTP_DELETE, "/api/v1/storages/{name}/credentials/{user}", REST_ADMIN,
     "Remove a user's credentials on a remote storage.", credential_remove, .status = 204,
     .in_path = REST_FIELDS({"name", "The storage's name."},
                            {"user", "The user's name, or the id of one who was removed."})},
};
const struct rest_table api_remote_rows = {REST_ROWS(remote_rows)};

/* Writes the timeouts, as "1500ms" or in whole seconds. */
static void remote_write_times(struct json_out *w, struct remote_times times)
{
    for (size_t i = 0; i < REMOTE_TIMEOUTS; i++) {
        uint64_t ms = *remote_time(&times, i);
        char text[32];
        if (ms == 0)
            ms = remote_timeouts[i].usual_ms;
        bool whole = ms % 1000 == 0;
        snprintf(text, sizeof(text), "%llu%s", (unsigned long long)(whole ? ms / MS_PER_S : ms),
                 whole ? "s" : "ms");
        json_out_member_str(w, remote_timeouts[i].name, str_z(text));
    }
}

void api_write_remote(struct json_out *w, const struct remote_entry *e)
{
    json_out_member_str(w, "url", e->url);
    json_out_member_str(w, "region", e->region.len ? e->region : STR("us-east-1"));
    json_out_member_str(w, "style", e->virtual_host ? STR("host") : STR("path"));
    json_out_member_str(w, "framing", e->trailers ? STR("trailer") : STR("plain"));
    json_out_member_str(w, "ca", e->ca);
    json_out_member_bool(w, "insecure", e->insecure);
    remote_write_times(w, e->times);
    json_out_member_bool(w, "fixed", e->fixed);
    json_out_member_u64(w, "users", e->user_count);
}

/* --- adding --- */

static int remote_read_times(struct remote_times *out, const struct rest_call *c, struct err *err)
{
    for (size_t i = 0; i < REMOTE_TIMEOUTS; i++) {
        const char *name = remote_timeouts[i].name;
        uint64_t *ms = remote_time(out, i);
        if (!rest_given(c, name))
            continue;
        if (str_duration_ms(rest_text(c, name), ms) < 0 || *ms == 0)
            return err_set(err, ERR_INVALID, "%s must be a duration such as 500ms, 30s or 5m",
                           name);
    }
    return 0;
}

static int credential_read(struct remote_credential *out, const struct rest_call *c,
                           struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "user");
    struct user user;
    int code;

    if (!name.len)
        return err_set(err, ERR_INVALID, "user, access_key and secret_key must be given together");
    code = users_by_name(api->o.users, c->arena, name, &user, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "there is no user " STR_FMT, STR_ARG(name));
    if (code < 0)
        return code;
    *out = (struct remote_credential){.user = user.id,
                                      .access = rest_text(c, "access_key"),
                                      .secret = rest_text(c, "secret_key")};
    if (!out->access.len || !out->secret.len)
        return err_set(err, ERR_INVALID, "access_key and secret_key must both be given");
    return 0;
}

static bool has_credential(const struct rest_call *c)
{
    return rest_given(c, "user") || rest_given(c, "access_key") || rest_given(c, "secret_key");
}

/* Adds a remote storage. Everything is checked before anything is stored. */
int api_add_remote(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct remote_credential credential = {0};
    struct remote_entry e = {
        .name = rest_text(c, "name"),
        .url = rest_text(c, "url"),
        .region = rest_text(c, "region"),
        .ca = rest_text(c, "ca"),
        .insecure = rest_bool(c, "insecure"),
        .virtual_host = str_eq(rest_text(c, "style"), STR("host")),
        .trailers = str_eq(rest_text(c, "framing"), STR("trailer")),
    };
    bool as_main = rest_bool(c, "main");
    int code = remote_read_times(&e.times, c, err);

    if (code == 0 && has_credential(c))
        code = credential_read(&credential, c, err);
    if (code == 0)
        code = remotes_check_new(api->o.remotes, credential.user.len ? &credential : NULL, as_main,
                                 err);
    if (code == 0)
        code = remotes_add(api->o.remotes, &e, err);
    if (code == 0 && credential.user.len)
        code = remotes_set_credential(api->o.remotes, e.name, &credential, err);
    if (code == 0 && as_main)
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
        if (!rest_item(c, STR_EMPTY))
            continue;
        bool known = users_by_id(api->o.users, c->arena, e.users[i], &user, NULL) == 0;
        json_out_member_str(c->w, "user", known ? user.name : STR_EMPTY);
        json_out_member_str(c->w, "id", e.users[i]);
        rest_item_end(c);
    }
    return code;
}

static int credential_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct remote_credential credential;
    int code = credential_read(&credential, c, err);

    if (code == 0)
        code = remotes_set_credential(api->o.remotes, rest_text(c, "name"), &credential, err);
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
