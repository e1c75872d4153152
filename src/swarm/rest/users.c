/* Routes: users and approved clients of the tracker. Passkeys are secret. The answer to adding a
 * user contains the passkey, the list of users contains passkeys only on request, and the log never
 * contains them. */
#include "swarm/rest/rest.h"
#include "base/ids.h"

static rest_fn swarm_user_list, swarm_user_add, swarm_user_remove, swarm_client_list,
    swarm_client_add, swarm_client_remove;

/* A user as it is shown, and a user who is to be added. */
struct swarm_user_view {
    struct swarm_user user;
    const char *passkey; /* NULL: it is not shown */
};
struct swarm_user_form {
    uint64_t id;
    struct str passkey;
    int64_t slots;
    double up_multiplier, down_multiplier;
};
struct swarm_client_form {
    struct str client;
};

static const struct rest_field swarm_user_fields[] = {
    {"id", "The user's id.", REST_INTEGER, REST_AT(struct swarm_user_view, user.id)},
    {"passkey", "The user's passkey; in the list only with ?passkeys=true.", .secret = true,
     .sometimes = true, REST_AT(struct swarm_user_view, passkey)},
    {"slots", "Downloads at the same time at most; -1: any number.", REST_INTEGER,
     REST_AT(struct swarm_user_view, user.slots)},
    {"slots_used", "Downloads now.", REST_INTEGER,
     REST_AT(struct swarm_user_view, user.slots_used)},
    {"snatches", "Downloads that the user completed.", REST_INTEGER,
     REST_AT(struct swarm_user_view, user.snatches)},
    {"up_multiplier", "Uploads are credited times this.", REST_NUMBER,
     REST_AT(struct swarm_user_view, user.up_multiplier)},
    {"down_multiplier", "Downloads are charged times this.", REST_NUMBER,
     REST_AT(struct swarm_user_view, user.down_multiplier)},
    {0},
};

static const struct rest_field swarm_client_fields[] = {
    {"client", "The beginning of a peer id.", REST_AT(struct swarm_client_form, client)}, {0}};

static const struct rest_row swarm_user_rows[] = {
    {HTTP_GET, "/api/v1/swarm/users", REST_ADMIN,
     "Users of the tracker's private mode, in no order.", swarm_user_list,
     .query = REST_FIELDS({"passkeys", "Show the passkeys too?", REST_BOOLEAN}), .list = "users",
     .by_place = true, .page_usual = SWARM_PAGE_USUAL, .page_max = SWARM_PAGE_MAX,
     .item = sizeof(struct swarm_user_view), .items = swarm_user_fields},
    {HTTP_POST, "/api/v1/swarm/users", REST_ADMIN,
     "Add a user. A user whose passkey is known gets the slots and multipliers.", swarm_user_add,
     .status = 201, .in = sizeof(struct swarm_user_form), .out = sizeof(struct swarm_user_view),
     .body = REST_FIELDS(
         {"id", "The user's id; the next free number when left out.", REST_INTEGER, .min = 0,
          .max = SWARM_ID_MAX, REST_AT(struct swarm_user_form, id)},
         {"passkey", "32 letters and digits; random when left out.", .secret = true,
          REST_AT(struct swarm_user_form, passkey)},
         {"slots", "Downloads at the same time at most; -1: any number.", REST_INTEGER, .min = -1,
          .max = INT64_MAX, .usual = -1, REST_AT(struct swarm_user_form, slots)},
         {"up_multiplier", "Uploads are credited times this; 1 when left out.", REST_NUMBER,
          .usual = 1, REST_AT(struct swarm_user_form, up_multiplier)},
         {"down_multiplier", "Downloads are charged times this; 1 when left out.", REST_NUMBER,
          .usual = 1, REST_AT(struct swarm_user_form, down_multiplier)}),
     .answer = swarm_user_fields},
    {HTTP_DELETE, "/api/v1/swarm/users/{id}", REST_ADMIN, "Remove the user and all of its peers.",
     swarm_user_remove, .status = 204,
     .in_path = REST_FIELDS({"id", "The user's id or its passkey.", .secret = true}),
     .missing = "there is no such user"},
    {HTTP_GET, "/api/v1/swarm/clients", REST_ADMIN, "The approved clients, in no order.",
     swarm_client_list, .list = "clients", .by_place = true, .page_usual = SWARM_PAGE_USUAL,
     .page_max = SWARM_PAGE_MAX, .item = sizeof(struct swarm_client_form),
     .items = swarm_client_fields},
    {HTTP_POST, "/api/v1/swarm/clients", REST_ADMIN, "Approve the clients whose peer id begins so.",
     swarm_client_add, .status = 201, .in = sizeof(struct swarm_client_form),
     .out = sizeof(struct swarm_client_form),
     .body = REST_FIELDS({"client", "The beginning of a peer id.", .required = true, .min = 1,
                          .max = PEER_ID_LEN, REST_AT(struct swarm_client_form, client)}),
     .answer = swarm_client_fields},
    {HTTP_DELETE, "/api/v1/swarm/clients/{client}", REST_ADMIN, "Approve these clients no longer.",
     swarm_client_remove, .status = 204, .in_path = swarm_client_fields},
};
const struct rest_table swarm_user_routes = {REST_ROWS(swarm_user_rows)};

struct cache *swarm_models(const struct rest_call *c)
{
    const struct swarm_room *room = c->ctx;

    return room->service.cache;
}

/* --- users --- */

static int swarm_user_offer(void *ctx, const struct swarm_user *u, struct err *err)
{
    struct rest_call *c = ctx;
    const char *passkey = rest_bool(c, "passkeys") ? u->passkey : NULL;

    (void)err;
    rest_add(c, STR_EMPTY, (&(struct swarm_user_view){*u, passkey}));
    return rest_full(c) ? ERR_END : 0;
}

static int swarm_user_list(struct rest_call *c, struct err *err)
{
    int code = cache_each_user(swarm_models(c), swarm_user_offer, c, err);

    return code == ERR_END ? 0 : code;
}

static bool text_is_passkey(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') ||
              ((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z')))
            return false;
    return s.len == PASSKEY_LEN;
}

static int swarm_user_wanted(struct swarm_user *out, const struct swarm_user_form *in,
                             struct err *err)
{
    if (in->passkey.len && !text_is_passkey(in->passkey))
        return err_set(err, ERR_INVALID, "passkey must be %d letters and digits", PASSKEY_LEN);
    *out = (struct swarm_user){.id = in->id,
                               .up_multiplier = in->up_multiplier,
                               .down_multiplier = in->down_multiplier,
                               .slots = in->slots};
    if (in->passkey.len)
        memcpy(out->passkey, in->passkey.p, PASSKEY_LEN);
    else
        id_hex(out->passkey);
    return 0;
}

static int swarm_user_add(struct rest_call *c, struct err *err)
{
    struct swarm_user_view view = {0};
    int code = swarm_user_wanted(&view.user, rest_in(c, struct swarm_user_form), err);

    if (code == 0)
        code = cache_add_user(swarm_models(c), &view.user, err);
    if (code == 0) {
        log_info(http_request_log(c->req), "swarm.user_added", log_u("id", view.user.id));
        view.passkey = view.user.passkey;
        code = rest_give(c, &view);
    }
    secure_zero(&view, sizeof(view));
    return code;
}

/* Removes a user by id, or by passkey for callers that do not know the id. */
static int swarm_user_remove(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "id");
    char passkey[PASSKEY_LEN + 1] = "";
    uint64_t id;
    int code = 0;

    if (text_is_passkey(name))
        memcpy(passkey, name.p, name.len);
    else if (str_u64(name, &id) < 0)
        code = err_set(err, ERR_INVALID, "name the user by its id or its passkey");
    else
        code = cache_find_passkey(swarm_models(c), id, passkey, err);
    if (code == 0)
        code = cache_remove_user(swarm_models(c), str_z(passkey), err);
    if (code == 0)
        log_info(http_request_log(c->req), "swarm.user_removed");
    return code;
}

/* --- approved clients --- */

static int swarm_client_offer(void *ctx, struct str client, struct err *err)
{
    struct rest_call *c = ctx;

    (void)err;
    rest_add(c, STR_EMPTY, &(struct swarm_client_form){client});
    return rest_full(c) ? ERR_END : 0;
}

static int swarm_client_list(struct rest_call *c, struct err *err)
{
    int code = cache_each_client(swarm_models(c), swarm_client_offer, c, err);

    return code == ERR_END ? 0 : code;
}

static int swarm_client_add(struct rest_call *c, struct err *err)
{
    const struct swarm_client_form *in = rest_in(c, struct swarm_client_form);
    int code = cache_whitelist_client(swarm_models(c), in->client, err);

    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "swarm.client_added", log_s("client", in->client));
    return rest_give(c, in);
}

static int swarm_client_remove(struct rest_call *c, struct err *err)
{
    struct str client = rest_text(c, "client");
    bool there = false;
    int code = cache_client_whitelisted(swarm_models(c), client, &there, err);

    if (code == 0 && !there)
        code = err_set(err, ERR_NOT_FOUND, "there is no such client");
    if (code == 0)
        code = cache_unwhitelist_client(swarm_models(c), client, err);
    if (code == 0)
        log_info(http_request_log(c->req), "swarm.client_removed", log_s("client", client));
    return code;
}
