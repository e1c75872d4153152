/* Remote storages: added, forgotten, made the main one; and the users' credentials on them. */
#include "api/api_int.h"
#include "base/clock.h"
#include "route/users.h"

/* "1500ms", or whole seconds. */
static void write_times(struct json_out *w, struct remote_times times)
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
    write_times(w, e->times);
    json_out_member_bool(w, "fixed", e->fixed);
    json_out_member_u64(w, "users", e->user_count);
}

/* --- adding --- */

/* One of two words; the first when it is absent. */
static int choice(const json_t *object, const char *name, const char *first, const char *second,
                  bool *is_second, struct err *err)
{
    struct str value = json_get_str(object, name, str_z(first));

    *is_second = str_eq(value, str_z(second));
    if (!*is_second && !str_eq(value, str_z(first)))
        return err_set(err, ERR_INVALID, "%s must be \"%s\" or \"%s\"", name, first, second);
    return 0;
}

static int times_of(const json_t *object, struct remote_times *out, struct err *err)
{
    for (size_t i = 0; i < REMOTE_TIMEOUTS; i++) {
        const char *name = remote_timeouts[i].name;
        struct str text = json_get_str(object, name, STR_EMPTY);
        uint64_t *ms = remote_time(out, i);
        if (!json_object_get(object, name))
            continue;
        if (str_duration_ms(text, ms) < 0 || *ms == 0)
            return err_set(err, ERR_INVALID, "%s must be a duration such as 500ms, 30s or 5m",
                           name);
    }
    return 0;
}

static int credential_of(struct api *api, struct arena *a, const json_t *object,
                         struct remote_credential *out, struct err *err)
{
    struct str name = json_get_str(object, "user", STR_EMPTY);
    struct user user;
    int code;

    if (!name.len)
        return err_set(err, ERR_INVALID, "user, access_key and secret_key are needed together");
    code = users_by_name(api->o.users, a, name, &user, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "there is no user " STR_FMT, STR_ARG(name));
    if (code < 0)
        return code;
    *out = (struct remote_credential){.user = user.id,
                                      .access = json_get_str(object, "access_key", STR_EMPTY),
                                      .secret = json_get_str(object, "secret_key", STR_EMPTY)};
    if (!out->access.len || !out->secret.len)
        return err_set(err, ERR_INVALID, "access_key and secret_key are needed");
    return 0;
}

static bool has_credential(const json_t *object)
{
    return json_object_get(object, "user") || json_object_get(object, "access_key") ||
           json_object_get(object, "secret_key");
}

/* What can be refused is refused before anything is kept. */
int api_add_remote(struct api *api, const json_t *object, struct arena *a, struct err *err)
{
    static const char *const strings[] = {"name",    "url",  "region",     "style",      "ca",
                                          "framing", "user", "access_key", "secret_key", NULL};
    struct remote_credential credential = {0};
    struct remote_entry e = {
        .name = json_get_str(object, "name", STR_EMPTY),
        .url = json_get_str(object, "url", STR_EMPTY),
        .region = json_get_str(object, "region", STR_EMPTY),
        .ca = json_get_str(object, "ca", STR_EMPTY),
        .insecure = json_get_bool(object, "insecure", false),
    };
    bool as_main = json_get_bool(object, "main", false);
    int code = api_check_strings(object, strings, err);

    if (code == 0)
        code = choice(object, "style", "path", "host", &e.virtual_host, err);
    if (code == 0)
        code = choice(object, "framing", "plain", "trailer", &e.trailers, err);
    if (code == 0)
        code = times_of(object, &e.times, err);
    if (code == 0 && has_credential(object))
        code = credential_of(api, a, object, &credential, err);
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

/* 204, or what went wrong; `event` is logged. */
static int finish(struct http_request *req, int code, const struct err *err, const char *event,
                  struct str storage)
{
    if (code < 0)
        return api_send_failure(req, code, err);
    log_info(http_request_log(req), event, log_s("storage", storage));
    return api_send_done(req);
}

int api_delete_storage(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str name = route_param(params, "name");
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = api_remove_storage(req, api, name, &err);
    return finish(req, code, &err, "storage.removed", name);
}

int api_post_main(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str name = route_param(params, "name");
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = remotes_set_main(api->o.remotes, name, &err);
    return finish(req, code, &err, "storage.main", name);
}

int api_find_remote(struct api *api, struct arena *a, struct str name, struct remote_entry *out,
                    struct err *err)
{
    struct remote_entry *list;
    size_t count;
    int code = remotes_list(api->o.remotes, a, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (str_eq(list[i].name, name)) {
            *out = list[i];
            return 0;
        }
    if (code < 0)
        return code;
    return routes_storage(api->o.routes, name)
               ? err_set(err, ERR_NOT_FOUND, "the storage " STR_FMT " is not a remote one",
                         STR_ARG(name))
               : err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
}

int api_get_credentials(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct arena *a = http_request_arena(req);
    struct remote_entry e = {0};
    struct err err = {0};
    struct api_json j;

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = api_find_remote(api, a, route_param(params, "name"), &e, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "users");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < e.user_count; i++) {
        struct user user = {0};
        bool known = users_by_id(api->o.users, a, e.users[i], &user, NULL) == 0;
        json_out_open(&j.w, '{');
        json_out_member_str(&j.w, "user", known ? user.name : STR_EMPTY);
        json_out_member_str(&j.w, "id", e.users[i]);
        json_out_close(&j.w, '}');
    }
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

int api_post_credential(struct http_request *req, const struct route_params *params, void *ctx)
{
    static const char *const strings[] = {"user", "access_key", "secret_key", NULL};
    struct api *api = ctx;
    struct str name = route_param(params, "name");
    struct remote_credential c;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    code = api_check_strings(object, strings, &err);
    if (code == 0)
        code = credential_of(api, http_request_arena(req), object, &c, &err);
    if (code == 0)
        code = remotes_set_credential(api->o.remotes, name, &c, &err);
    json_decref(object);
    return finish(req, code, &err, "storage.credential_set", name);
}

/* A user that is gone is named by its id. */
int api_delete_credential(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str name = route_param(params, "name"), who = route_param(params, "user");
    struct user user = {0};
    struct err err = {0};
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    code = users_by_name(api->o.users, http_request_arena(req), who, &user, &err);
    if (code == ERR_NOT_FOUND) {
        user.id = who;
        code = 0;
    }
    if (code == 0)
        code = remotes_set_credential(api->o.remotes, name,
                                      &(struct remote_credential){.user = user.id}, &err);
    return finish(req, code, &err, "storage.credential_removed", name);
}
