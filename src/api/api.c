/* The server of the API: finds the row for a request, checks that the caller may call it, and runs
 * the row's function. */
#include "api/api_int.h"
#include "api/describe.h"
#include "http/endpoint.h"
#include "base/clock.h"
#include "room/room.h"

static http_handler_fn api_handle;

/* Makes API calls stop waiting for remote storages. */
static void api_end_waits(void *ctx)
{
    routes_abort(ctx);
}

/* Returns the path to log. The path of a tracker user's call may contain the user's passkey, which
 * must not be logged. The path is decoded first, because an escape can hide such a path: "%73warm"
 * is "swarm". */
static struct str api_log_path(const struct http_head *head)
{
    struct str users = STR("/api/v1/swarm/users/");
    bool encoded = str_chr(str_head(head->path, users.len), '%') >= 0;

    return encoded || str_starts(head->path, users) ? users : head->path;
}

static void api_add_table(struct api *api, const struct rest_table *table, void *ctx)
{
    BUG_ON(api->table_count == API_TABLES_MAX);
    api->tables[api->table_count] = *table;
    api->tables[api->table_count++].ctx = ctx;
}

static void api_add_tables(struct api *api)
{
    for (size_t i = 0; i < api_own_group_count; i++)
        for (const struct rest_table *const *t = api_own_groups[i].tables; *t; t++)
            api_add_table(api, *t, api);
    for (size_t i = 0; i < api->o.room_count; i++) {
        const struct room_instance *r = &api->o.rooms[i];
        for (const struct rest_table *const *t = r->room->routes; t && *t; t++)
            api_add_table(api, *t, r->state);
    }
}

/* Writes the OpenAPI document, which does not change while weir runs. */
static void api_describe(struct api *api)
{
    const struct room **rooms = xcalloc(api->o.room_count + 1, sizeof(*rooms));

    for (size_t i = 0; i < api->o.room_count; i++)
        rooms[i] = api->o.rooms[i].room;
    api_openapi(&api->openapi, rooms, api->o.room_count);
    free(rooms);
}

int api_start(struct api **out, const struct api_options *o, struct err *err)
{
    struct api *api = xcalloc(1, sizeof(*api));
    const struct conf *conf = o->conf;
    struct http_server_options server = {
        .name = "api",
        .handler = api_handle,
        .ctx = api,
        .log = o->log,
        .tls = o->tls,
        .pool = o->pool,
        .log_path = api_log_path,
        .on_drop = api_end_waits,
        .drop_ctx = o->routes,
    };
    int code = sock_addr_parse(&server.listen, str_z(conf->api.listen), err);

    if (code == 0)
        code = endpoint_options(&server, conf, err);
    api->o = *o;
    api_add_tables(api);
    api_describe(api);
    api->started_mono_ms = clock_mono_ms();
    api->started_wall_ms = clock_wall_ms();
    auth_init(&api->auth, o->admin, o->users);
    if (code == 0)
        code = http_server_start(&api->server, &server, err);
    if (code < 0) {
        api_free(api);
        return code;
    }
    *out = api;
    return 0;
}

void api_address(struct api *api, struct sock_addr *out)
{
    http_server_address(api->server, out);
}

void api_tls(struct api *api, struct tls_context *tls)
{
    http_server_tls(api->server, tls);
}

bool api_stop(struct api *api, uint64_t deadline_ns)
{
    return http_server_stop(api->server, deadline_ns);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    http_server_free(api->server);
    buf_release(&api->openapi);
    free(api);
}

static int api_check_auth(struct api *api, struct http_request *req)
{
    int code = auth_check(&api->auth, http_header(http_request_head(req), "Authorization"),
                          http_request_peer(req), clock_mono_ms());

    if (code == 0)
        http_request_know(req);
    return code;
}

bool api_is_admin(struct api *api, struct http_request *req)
{
    return api_check_auth(api, req) == 0;
}

int api_send_denied(struct http_request *req, int code)
{
    static const struct http_header none;
    struct http_header retry = {STR("Retry-After"), STR("1")};
    struct http_header basic = {STR("WWW-Authenticate"), STR("Basic realm=\"weir\"")};

    if (code == ERR_UNAVAILABLE)
        return rest_send_error(req, 503, "unavailable", "the users have not been loaded yet", none);
    if (code == ERR_BUSY)
        return rest_send_error(req, 429, "too_many_attempts",
                               "too many wrong keys from this address; try again later", retry);
    return rest_send_error(req, 401, "unauthorized",
                           "this call needs HTTP Basic authentication with an administrator's "
                           "access key and secret key",
                           basic);
}

static int send_wrong_method(struct api *api, struct http_request *req)
{
    struct buf allow = BUF_INIT(256), message = BUF_INIT(512);
    int code;

    rest_allowed(&allow, api->tables, api->table_count, req);
    buf_appendf(&message, "this path does not take that method; it takes %s", allow.p);
    code = rest_send_error(req, 405, "method_not_allowed", message.p,
                           (struct http_header){STR("Allow"), buf_str(&allow)});
    buf_release(&message);
    buf_release(&allow);
    return code;
}

/* --- changes that a page of another site asks for (docs/security.md) --- */

static bool is_change(enum http_method method)
{
    return method != HTTP_GET && method != HTTP_HEAD && method != HTTP_OPTIONS;
}

/* Whether a page of another site made the request. Browsers name the site in Sec-Fetch-Site, and
 * older browsers only in Origin. Other clients send neither header. */
static bool is_from_another_site(const struct http_head *head)
{
    struct str site = http_header(head, "Sec-Fetch-Site"), origin = http_header(head, "Origin");
    ptrdiff_t at = str_find(origin, STR("://"));

    if (site.p)
        return !str_ieq(site, STR("same-origin")) && !str_ieq(site, STR("none"));
    if (!origin.p)
        return false;
    return at < 0 || !str_ieq(str_skip(origin, (size_t)at + 3), http_header(head, "Host"));
}

static bool request_is_json(const struct http_head *head)
{
    struct str type, parameters;

    str_cut(http_header(head, "Content-Type"), ';', &type, &parameters);
    return str_ieq(str_trim(type), STR("application/json"));
}

/* Whether a page of another site made the request. If so, the request is refused, and *answer is
 * the result for the handler to return. The reason: a browser that has stored keys for this port
 * sends them with every request to it, even with requests that a page of another site causes. */
static bool refuse_other_site(const struct rest_match *match, struct http_request *req, int *answer)
{
    bool other = is_from_another_site(http_request_head(req));

    if (other)
        *answer = rest_match_refuse(match, req, 403, "cross_site",
                                    "a page of another site asked for this change");
    return other;
}

/* Whether a change may be made. If not, *answer is the result for the handler to return. A
 * Content-Type is required even without a body: a page of another site can make a browser send a
 * simple POST, but not a POST with this type. Calls of a dialect may have bodies of other types. */
static bool may_change(const struct rest_match *match, struct http_request *req, int *answer)
{
    if (refuse_other_site(match, req, answer))
        return false;
    if (match->dialect || request_is_json(http_request_head(req)))
        return true;
    *answer = rest_send_error(req, 415, "not_json",
                              "a change needs the header Content-Type: application/json, also "
                              "without a body",
                              (struct http_header){0});
    return false;
}

/* Asks the store whether it is the one that weir has used before. A store that does not answer is
 * not an error here, because the row's function will get that error. */
static int store_known_or_away(struct api *api, struct err *err)
{
    int code = store_is_known(api->o.config, err);

    return code == ERR_STORE ? code : 0;
}

/* Refuses calls while the store is not the one that weir has used before. The last answer to this
 * question may be a second old, so the store is asked again before a change. */
static int api_check_store(struct api *api, struct http_request *req, const struct rest_row *row,
                           struct err *err)
{
    if (row->storeless)
        return 0;
    int code = store_may_serve(api->o.config, err);
    if (code < 0 || row->method == HTTP_GET)
        return code;
    return http_may_block(req) ? store_known_or_away(api, err) : ERR_AGAIN;
}

static int send_not_found(struct api *api, struct http_request *req, int code,
                          const struct err *err)
{
    if (code == ERR_UNSUPPORTED)
        return send_wrong_method(api, req);
    if (code == ERR_NOT_FOUND)
        return rest_send_error(req, 404, "not_found",
                               "there is no call with this path; GET /api/v1 lists the calls",
                               (struct http_header){0});
    return rest_send_failure(req, code, err);
}

/* Answers a request for a path of a dialect that has no row. `found` is the result of rest_find().
 */
static int send_no_path(const struct rest_dialect *d, struct http_request *req, int found,
                        const struct err *err)
{
    struct rest_match match = {.dialect = d};

    if (found == ERR_NOT_FOUND)
        return rest_match_refuse(&match, req, 404, "not_found", d->no_path);
    if (found == ERR_UNSUPPORTED)
        return rest_match_refuse(&match, req, 405, "method_not_allowed", "method not allowed");
    return rest_match_fail(&match, req, found, err);
}

/* Whether only administrators may call the row. This includes a row whose access is not set. The
 * rows of a dialect are not included, because the dialect checks their callers itself. */
static bool is_for_admins(const struct rest_match *match)
{
    enum rest_access access = match->row->access;

    return !match->dialect && access != REST_ANYONE && access != REST_TOKEN;
}

/* Handles a request. Under /api only administrators can learn which paths do not exist; under the
 * paths of a dialect every caller can. */
static int api_handle(struct http_request *req, void *ctx)
{
    struct api *api = ctx;
    const struct http_head *head = http_request_head(req);
    struct rest_match match;
    struct err err = {0};
    int found = rest_find(&match, api->tables, api->table_count, req, &err);
    const struct rest_dialect *other =
        found < 0 ? rest_dialect_of(api->tables, api->table_count, head->path) : NULL;

    if (other)
        return send_no_path(other, req, found, &err);
    bool admin = found == 0 ? is_for_admins(&match) : str_starts(head->path, STR("/api"));
    int code = admin ? api_check_auth(api, req) : 0;

    if (code < 0)
        return api_send_denied(req, code);
    if (found < 0)
        return send_not_found(api, req, found, &err);
    /* A browser may send the keys of these routes by itself, so only they need the check. */
    if ((admin || match.dialect) && is_change(head->method) && !may_change(&match, req, &code))
        return code;
    code = api_check_store(api, req, match.row, &err);
    if (code == ERR_AGAIN)
        return code;
    return code < 0 ? rest_match_fail(&match, req, code, &err) : rest_run(&match, req);
}
