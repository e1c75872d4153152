/* Calls about the caller: logging in with an access key, and showing the caller's own user. */
#include "lake/rest/web.h"

static rest_fn auth_login, auth_current_user, auth_capabilities;

const struct rest_field web_user_fields[] = {
    {"id", "The user's name."},
    {"creation_date", "Always 0: weir does not keep it.", REST_INTEGER},
    {"friendly_name", "The name that is shown."},
    {"email", "The user's email address.", .sometimes = true},
    {0},
};

static const struct rest_row auth_rows[] = {
    {HTTP_POST, "/api/v1/auth/login", REST_ANYONE,
     "Gives a token for an access key and its secret.", auth_login, WEB_OP("login"),
     .body =
         REST_FIELDS({"access_key_id", "The access key.", .required = true},
                     {"secret_access_key", "The secret key.", .required = true, .secret = true}),
     .answer =
         REST_FIELDS({"token", "The token, for the header Authorization: Bearer.", .secret = true},
                     {"token_expiration", "When it ends, in seconds since 1970.", REST_INTEGER})},
    {HTTP_GET, "/api/v1/user", REST_USER, "The user who calls.", auth_current_user,
     WEB_OP("getCurrentUser"), .quick = true,
     .answer = REST_FIELDS({"user", "The user.", REST_OBJECT, .members = web_user_fields})},
    {HTTP_GET, "/api/v1/auth/capabilities", REST_ANYONE,
     "Whether users can be invited by email; they cannot.", auth_capabilities,
     WEB_OP("getAuthCapabilities"), .quick = true,
     .answer = REST_FIELDS({"invite_user", "Always false.", REST_BOOLEAN},
                           {"forgot_password", "Always false.", REST_BOOLEAN})},
};
const struct rest_table web_auth_rows = WEB_ROWS(auth_rows);

static int auth_login(struct rest_call *c, struct err *err)
{
    int64_t expires_ms = clock_wall_ms() + WEB_TOKEN_MS;
    struct user_key key = {rest_text(c, "access_key_id"), rest_text(c, "secret_access_key")};
    struct user user;
    int code = web_login(c, key.access, key.secret, &user, err);

    if (code < 0)
        return code;
    struct str token = web_token(web_of(c), c->arena, &user, &key, expires_ms);
    if (!token.len)
        return err_code(err, ERR_NO_MEMORY);
    json_out_member_str(c->w, "token", token);
    json_out_member_i64(c->w, "token_expiration", expires_ms / MS_PER_S);
    return 0;
}

void web_write_user(struct json_out *w, const struct user *user)
{
    json_out_member_str(w, "id", user->name);
    json_out_member_i64(w, "creation_date", 0);
    json_out_member_str(w, "friendly_name",
                        user->display_name.len ? user->display_name : user->name);
    if (user->email.len)
        json_out_member_str(w, "email", user->email);
}

static int auth_current_user(struct rest_call *c, struct err *err)
{
    (void)err;
    json_out_key(c->w, "user");
    json_out_open(c->w, '{');
    web_write_user(c->w, web_user(c));
    json_out_close(c->w, '}');
    return 0;
}

static int auth_capabilities(struct rest_call *c, struct err *err)
{
    (void)err;
    json_out_member_bool(c->w, "invite_user", false);
    json_out_member_bool(c->w, "forgot_password", false);
    return 0;
}
