/* Users and approved clients of the tracker. Passkeys are secrets: the answer to adding a user has
 * one, the list on demand alone, the log never. */
#include "api/swarm.h"
#include "base/ids.h"

#include <math.h>

bool api_swarm(struct api *api, struct http_request *req, struct cache **out, int *answer)
{
    *out = api->o.swarm ? api->o.swarm->cache : NULL;
    *answer = 0;
    if (!http_may_block(req))
        *answer = ERR_AGAIN;
    else if (!*out)
        *answer = api_send_error(req, 501, "unsupported", "this weir has no tracker");
    else
        return true;
    return false;
}

int api_swarm_factor(const json_t *object, const char *name, double *out, struct err *err)
{
    const json_t *value = json_object_get(object, name);

    if (!value)
        return 0;
    if (!json_is_number(value) || !isfinite(json_number_value(value)) ||
        json_number_value(value) < 0)
        return err_set(err, ERR_INVALID, "%s is a number that is not below 0", name);
    *out = json_number_value(value);
    return 0;
}

void api_swarm_member_f64(struct json_out *w, const char *name, double v)
{
    json_out_key(w, name);
    json_out_f64(w, v);
}

/* --- users --- */

static void write_user(struct json_out *w, const struct swarm_user *u, bool passkey)
{
    json_out_member_u64(w, "id", u->id);
    if (passkey)
        json_out_member_str(w, "passkey", str_z(u->passkey));
    json_out_member_i64(w, "slots", u->slots);
    json_out_member_i64(w, "slots_used", u->slots_used);
    json_out_member_u64(w, "snatches", u->snatches);
    api_swarm_member_f64(w, "up_multiplier", u->up_multiplier);
    api_swarm_member_f64(w, "down_multiplier", u->down_multiplier);
}

struct user_list {
    struct json_out *w;
    size_t left;
    bool passkeys;
};

static int list_user(void *ctx, const struct swarm_user *u, struct err *err)
{
    struct user_list *list = ctx;

    (void)err;
    if (list->left-- == 0)
        return ERR_END;
    json_out_open(list->w, '{');
    write_user(list->w, u, list->passkeys);
    json_out_close(list->w, '}');
    return 0;
}

int api_get_swarm_users(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct user_list list = {0};
    struct str passkeys;
    struct cache *cache;
    struct api_json j;
    struct err err = {0};
    int code;

    (void)params;
    if (!api_swarm(ctx, req, &cache, &code))
        return code;
    code = api_query(req, "passkeys", &passkeys, &err);
    if (code == 0)
        code = api_query_number(req, "limit", SWARM_LIST_DEFAULT, SWARM_LIST_MAX, &list.left, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    list.w = &j.w;
    list.passkeys = str_eq(passkeys, STR("true"));
    json_out_key(&j.w, "users");
    json_out_open(&j.w, '[');
    code = cache_each_user(cache, list_user, &list, &err);
    json_out_close(&j.w, ']');
    if (code == 0 || code == ERR_END)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, &err);
}

static bool is_passkey(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') ||
              ((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z')))
            return false;
    return s.len == PASSKEY_LEN;
}

static int read_user(const json_t *object, struct swarm_user *out, struct err *err)
{
    static const char *const strings[] = {"passkey", NULL};
    struct str passkey = json_get_str(object, "passkey", STR_EMPTY);
    int64_t id = json_get_i64(object, "id", 0);
    int code = api_check_strings(object, strings, err);

    *out = (struct swarm_user){.id = (uint64_t)id,
                               .up_multiplier = 1,
                               .down_multiplier = 1,
                               .slots = json_get_i64(object, "slots", -1)};
    if (code == 0 && passkey.len && !is_passkey(passkey))
        code = err_set(err, ERR_INVALID, "a passkey is %d letters and digits", PASSKEY_LEN);
    if (code == 0 && (id < 0 || out->slots < -1))
        code = err_set(err, ERR_INVALID, "id is not below 0, and slots not below -1");
    if (code == 0)
        code = api_swarm_factor(object, "up_multiplier", &out->up_multiplier, err);
    if (code == 0)
        code = api_swarm_factor(object, "down_multiplier", &out->down_multiplier, err);
    if (passkey.len == PASSKEY_LEN)
        memcpy(out->passkey, passkey.p, PASSKEY_LEN);
    else
        id_hex(out->passkey);
    return code;
}

int api_post_swarm_user(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct cache *cache;
    struct swarm_user user;
    struct api_json j;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_swarm(ctx, req, &cache, &code) || !api_read_json(req, &object, &code))
        return code;
    code = read_user(object, &user, &err);
    json_decref(object);
    if (code == 0)
        code = cache_add_user(cache, &user, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "swarm.user_added", log_u("id", user.id));
    api_json_begin(&j);
    write_user(&j.w, &user, true);
    secure_zero(&user, sizeof(user));
    return api_json_send(req, 201, &j);
}

/* By id; or by passkey, for who knows nothing else of it. */
int api_delete_swarm_user(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct str name = route_param(params, "id");
    char passkey[PASSKEY_LEN + 1] = "";
    struct cache *cache;
    struct err err = {0};
    uint64_t id;
    int code;

    if (!api_swarm(ctx, req, &cache, &code))
        return code;
    if (is_passkey(name))
        memcpy(passkey, name.p, name.len);
    else if (str_u64(name, &id) < 0)
        code = err_set(&err, ERR_INVALID, "a user is named by its id or its passkey");
    else
        code = cache_find_passkey(cache, passkey, id, &err);
    if (code == 0)
        code = cache_remove_user(cache, str_z(passkey), &err);
    if (code == ERR_NOT_FOUND)
        return api_send_error(req, 404, "not_found", "there is no such user");
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "swarm.user_removed");
    return api_send_done(req);
}

/* --- approved clients --- */

static int list_client(void *ctx, struct str client, struct err *err)
{
    struct json_out *w = ctx;

    (void)err;
    json_out_open(w, '{');
    json_out_member_str(w, "client", client);
    json_out_close(w, '}');
    return 0;
}

int api_get_swarm_clients(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct cache *cache;
    struct api_json j;
    struct err err = {0};
    int code;

    (void)params;
    if (!api_swarm(ctx, req, &cache, &code))
        return code;
    api_json_begin(&j);
    json_out_key(&j.w, "clients");
    json_out_open(&j.w, '[');
    code = cache_each_client(cache, list_client, &j.w, &err);
    json_out_close(&j.w, ']');
    if (code == 0)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, &err);
}

int api_post_swarm_client(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct cache *cache;
    struct str client;
    struct api_json j;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_swarm(ctx, req, &cache, &code) || !api_read_json(req, &object, &code))
        return code;
    client = arena_str(http_request_arena(req), json_get_str(object, "client", STR_EMPTY));
    json_decref(object);
    if (client.len == 0 || client.len > PEER_ID_LEN)
        return api_send_error(req, 400, "invalid",
                              "client is the beginning of a peer id: 1 to 20 bytes");
    code = cache_whitelist_client(cache, client, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "swarm.client_added", log_s("client", client));
    api_json_begin(&j);
    json_out_member_str(&j.w, "client", client);
    return api_json_send(req, 201, &j);
}

int api_delete_swarm_client(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct str client = route_param(params, "client");
    struct cache *cache;
    struct err err = {0};
    bool there = false;
    int code;

    if (!api_swarm(ctx, req, &cache, &code))
        return code;
    code = cache_client_whitelisted(cache, &there, client, &err);
    if (code == 0 && !there)
        return api_send_error(req, 404, "not_found", "there is no such client");
    if (code == 0)
        code = cache_unwhitelist_client(cache, client, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "swarm.client_removed", log_s("client", client));
    return api_send_done(req);
}
