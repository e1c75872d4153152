/* Users and approved clients of the tracker. Passkeys are secrets: the answer to adding a user has
 * one, the list on demand alone, the log never. */
#include "api/swarm.h"
#include "base/ids.h"

#include <math.h>

static api_fn get_users, add_user, remove_user, get_clients, add_client, remove_client;

SWARM_ROUTE(api_get_swarm_users, get_users, 200, .list = "users")
SWARM_ROUTE(api_post_swarm_user, add_user, 201, .takes_body = true)
SWARM_ROUTE(api_delete_swarm_user, remove_user, 204, .missing = "there is no such user")
SWARM_ROUTE(api_get_swarm_clients, get_clients, 200, .list = "clients")
SWARM_ROUTE(api_post_swarm_client, add_client, 201, .takes_body = true)
SWARM_ROUTE(api_delete_swarm_client, remove_client, 204)

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

/* --- users --- */

static void write_user(struct json_out *w, const struct swarm_user *u, bool passkey)
{
    json_out_member_u64(w, "id", u->id);
    if (passkey)
        json_out_member_str(w, "passkey", str_z(u->passkey));
    json_out_member_i64(w, "slots", u->slots);
    json_out_member_i64(w, "slots_used", u->slots_used);
    json_out_member_u64(w, "snatches", u->snatches);
    json_out_member_f64(w, "up_multiplier", u->up_multiplier);
    json_out_member_f64(w, "down_multiplier", u->down_multiplier);
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

static int get_users(struct api_call *c, struct err *err)
{
    struct user_list list = {.w = c->w};
    struct str passkeys;
    int code = api_query(c->req, "passkeys", &passkeys, err);

    if (code == 0)
        code =
            api_query_number(c->req, "limit", SWARM_LIST_DEFAULT, SWARM_LIST_MAX, &list.left, err);
    if (code < 0)
        return code;
    list.passkeys = str_eq(passkeys, STR("true"));
    code = cache_each_user(c->cache, list_user, &list, err);
    return code == ERR_END ? 0 : code;
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

static int add_user(struct api_call *c, struct err *err)
{
    struct swarm_user user;
    int code = read_user(c->body, &user, err);

    if (code == 0)
        code = cache_add_user(c->cache, &user, err);
    if (code == 0) {
        log_info(http_request_log(c->req), "swarm.user_added", log_u("id", user.id));
        write_user(c->w, &user, true);
    }
    secure_zero(&user, sizeof(user));
    return code;
}

/* By id; or by passkey, for who knows nothing else of it. */
static int remove_user(struct api_call *c, struct err *err)
{
    struct str name = route_param(c->params, "id");
    char passkey[PASSKEY_LEN + 1] = "";
    uint64_t id;
    int code = 0;

    if (is_passkey(name))
        memcpy(passkey, name.p, name.len);
    else if (str_u64(name, &id) < 0)
        code = err_set(err, ERR_INVALID, "a user is named by its id or its passkey");
    else
        code = cache_find_passkey(c->cache, passkey, id, err);
    if (code == 0)
        code = cache_remove_user(c->cache, str_z(passkey), err);
    if (code == 0)
        log_info(http_request_log(c->req), "swarm.user_removed");
    return code;
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

static int get_clients(struct api_call *c, struct err *err)
{
    return cache_each_client(c->cache, list_client, c->w, err);
}

static int add_client(struct api_call *c, struct err *err)
{
    struct str client = json_get_str(c->body, "client", STR_EMPTY);
    int code;

    if (client.len == 0 || client.len > PEER_ID_LEN)
        return err_set(err, ERR_INVALID, "client is the beginning of a peer id: 1 to 20 bytes");
    code = cache_whitelist_client(c->cache, client, err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "swarm.client_added", log_s("client", client));
    json_out_member_str(c->w, "client", client);
    return 0;
}

static int remove_client(struct api_call *c, struct err *err)
{
    struct str client = route_param(c->params, "client");
    bool there = false;
    int code = cache_client_whitelisted(c->cache, &there, client, err);

    if (code == 0 && !there)
        code = err_set(err, ERR_NOT_FOUND, "there is no such client");
    if (code == 0)
        code = cache_unwhitelist_client(c->cache, client, err);
    if (code == 0)
        log_info(http_request_log(c->req), "swarm.client_removed", log_s("client", client));
    return code;
}
