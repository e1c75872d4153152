/* The dialect of lakeFS's API: how callers are identified, and the JSON forms of errors and
 * pages. */
#include "lake/rest/web.h"
#include "meta/error.h"

/* --- errors --- */

/* Codes of weir whose HTTP status here differs from the usual one. Columns: the code; the
 * status. */
static const struct {
    int code, status;
} web_statuses[] = {
    {ERR_NOT_MODIFIED, 400}, /* lakeFS's "no changes" */
    {ERR_IN_USE, 400},       /* the namespace belongs to a repository */
    {ERR_GONE, 410},         {ERR_PRECONDITION, 412}, {ERR_RANGE, 416},
    {ERR_BUSY, 429},         {ERR_VERSION, 503},
};

static int web_status(int code)
{
    if (code <= S3_FIRST_CODE)
        return s3_code_status(code);
    for (size_t i = 0; i < ARRAY_SIZE(web_statuses); i++)
        if (web_statuses[i].code == code)
            return web_statuses[i].status;
    return 0;
}

static void web_write_error(struct json_out *w, const char *code, const char *message,
                            const char *id)
{
    (void)code;
    (void)id;
    json_out_member_str(w, "message", str_z(message));
}

/* --- pages --- */

enum { WEB_PAGE_USUAL = 100, WEB_BODY_MAX = 4 * MIB };

static const struct rest_field web_paging[] = {
    {"after", "The page begins behind this name."},
    {"amount", "How many results to answer at most; default: 100.", REST_INTEGER},
    {0},
};

static void web_write_page(struct json_out *w, const struct rest_page *page, struct str next)
{
    json_out_key(w, "pagination");
    json_out_open(w, '{');
    json_out_member_bool(w, "has_more", page->more);
    json_out_member_str(w, "next_offset", next);
    json_out_member_u64(w, "results", page->written);
    json_out_member_u64(w, "max_per_page", LAKE_LIST_MAX);
    json_out_close(w, '}');
}

/* --- who calls --- */

static int web_unauthorized(struct rest_call *c)
{
    rest_refuse(c, 401, "unauthorized", "error authenticating request", (struct http_header){0});
    return ERR_DENIED;
}

/* Checks an access key and its secret. For an unknown access key the check takes as long as for a
 * known key with a wrong secret. */
static int web_check_keys(struct rest_call *c, struct str access, struct str secret,
                          struct user *out)
{
    struct str real = STR("nobody's secret, which is compared all the same");
    int code = users_by_key(web_of(c)->services->users, c->arena, access, out, &real, NULL);
    bool same = guesses_same(real, secret);

    if (code < 0)
        return code == ERR_NOT_FOUND ? ERR_DENIED : code;
    secure_zero((char *)(uintptr_t)real.p, real.len);
    return same ? 0 : ERR_DENIED;
}

int web_login(struct rest_call *c, struct str access, struct str secret, struct user *out,
              struct err *err)
{
    struct guesses *g = &web_of(c)->guesses;
    const struct sock_addr *peer = http_request_peer(c->req);

    if (!guesses_allowed(g, peer, clock_mono_ms()))
        return err_set(err, ERR_BUSY, "too many wrong keys from this address; try again later");
    int code = web_check_keys(c, access, secret, out);
    if (code == ERR_DENIED) {
        guesses_count(g, peer, clock_mono_ms());
        return web_unauthorized(c);
    }
    return code < 0 ? err_set(err, code, "the users have not been loaded yet") : 0;
}

/* Finds the caller by the token. The token names the access key for which it was made, and is valid
 * only as long as that key exists. */
static int web_by_token(struct rest_call *c, struct str token, struct user *out, struct err *err)
{
    struct lake_web *w = web_of(c);
    struct user_key key = {0};
    struct str id = STR_EMPTY;
    int code = web_token_access(c->arena, token, &key.access);

    if (code == 0)
        code = users_by_key(w->services->users, c->arena, key.access, out, &key.secret, err);
    if (code == 0) {
        code = web_token_user(w, c->arena, token, &key, clock_wall_ms(), &id);
        secure_zero((char *)(uintptr_t)key.secret.p, key.secret.len);
    }
    if (code == 0 && !str_eq(id, out->id))
        code = ERR_DENIED;
    return code == ERR_DENIED || code == ERR_NOT_FOUND ? web_unauthorized(c) : code;
}

static int web_by_basic(struct rest_call *c, struct str header, struct user *out, struct err *err)
{
    struct basic keys;

    if (!basic_read(&keys, header))
        return web_unauthorized(c);
    int code = web_login(c, keys.user, keys.password, out, err);
    basic_release(&keys);
    return code;
}

static int web_admit(struct rest_call *c, struct err *err)
{
    struct str header = http_header(http_request_head(c->req), "Authorization"), scheme, token;
    struct user *user = arena_new(c->arena, struct user);
    int code;

    if (c->row->access == REST_ANYONE)
        return 0;
    if (!user)
        return err_code(err, ERR_NO_MEMORY);
    str_cut(header, ' ', &scheme, &token);
    if (str_ieq(scheme, STR("bearer")))
        code = web_by_token(c, str_trim(token), user, err);
    else
        code = web_by_basic(c, header, user, err);
    if (code < 0)
        return code;
    c->caller = user;
    http_request_know(c->req);
    return 0;
}

const struct user *web_user(const struct rest_call *c)
{
    return c->caller;
}

int web_need_admin(struct rest_call *c, struct err *err)
{
    return web_user(c)->admin ? 0 : web_forbidden(c, err);
}

int web_forbidden(struct rest_call *c, struct err *err)
{
    rest_refuse(c, 401, "denied", "insufficient permissions", (struct http_header){0});
    return err_code(err, ERR_DENIED);
}

const struct rest_dialect lake_dialect = {
    .admit = web_admit,
    .status = web_status,
    .write_error = web_write_error,
    .paging = web_paging,
    .page_usual = WEB_PAGE_USUAL,
    .page_max = LAKE_LIST_MAX,
    .write_page = web_write_page,
    .body_max = WEB_BODY_MAX,
    .below = "/api/v1/repositories",
    .no_path = "invalid API endpoint",
    .lenient = true,
};
