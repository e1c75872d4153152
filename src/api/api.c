/* The API's server: from a request to its route, past authentication. */
#include "api/api_int.h"
#include "http/endpoint.h"
#include "base/clock.h"
#include "replica/room.h"
#include "swarm/room.h"

static http_handler_fn handle;

/* Of calls that wait for a remote storage. */
static void end_waits(void *ctx)
{
    routes_abort(ctx);
}

/* A user of the tracker may be named by its passkey; "%73warm" is "swarm". */
static struct str log_path(const struct http_head *head)
{
    struct str users = STR("/api/v1/swarm/users/");
    bool encoded = str_chr(str_head(head->path, users.len), '%') >= 0;

    return encoded || str_starts(head->path, users) ? users : head->path;
}

static void take_rooms(struct api *api)
{
    for (size_t i = 0; i < api->o.room_count; i++) {
        const struct room_instance *r = &api->o.rooms[i];
        struct replica_room *replica = r->state;
        struct swarm_room *swarm = r->state;
        if (r->room == &replica_room)
            api->taps = replica->taps, api->store_keep = replica->store_keep;
        if (r->room == &swarm_room)
            api->swarm = &swarm->service, api->torrents = swarm->torrents;
    }
}

int api_start(struct api **out, const struct api_options *o, struct err *err)
{
    struct api *api = xcalloc(1, sizeof(*api));
    const struct conf *conf = o->conf;
    struct http_server_options server = {
        .name = "api",
        .handler = handle,
        .ctx = api,
        .log = o->log,
        .tls = o->tls,
        .pool = o->pool,
        .max_body = 1 * MIB,
        .log_path = log_path,
        .on_drop = end_waits,
        .drop_ctx = o->routes,
    };
    int code = sock_addr_parse(&server.listen, str_z(conf->api.listen), err);

    if (code == 0)
        code = endpoint_options(&server, conf, err);
    api->o = *o;
    take_rooms(api);
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
    free(api);
}

/* --- answers --- */

void api_json_begin(struct api_json *j)
{
    *j = (struct api_json){0};
    json_out_init(&j->w, &j->body);
    json_out_open(&j->w, '{');
}

void api_json_drop(struct api_json *j)
{
    if (j->body.p)
        secure_zero(j->body.p, j->body.cap);
    buf_release(&j->body);
}

int api_json_send(struct http_request *req, int status, struct api_json *j)
{
    int code;

    json_out_close(&j->w, '}');
    http_respond(req, status);
    http_respond_header(req, STR("Content-Type"), STR("application/json"));
    http_respond_header(req, STR("Cache-Control"), STR("no-store"));
    code = http_send(req, buf_str(&j->body));
    api_json_drop(j);
    return code;
}

int api_send_done(struct http_request *req)
{
    http_respond(req, 204);
    return http_send(req, STR_EMPTY);
}

static void write_error(struct http_request *req, struct buf *body, const char *code,
                        const char *message)
{
    struct json_out w;

    json_out_init(&w, body);
    json_out_open(&w, '{');
    json_out_key(&w, "error");
    json_out_open(&w, '{');
    json_out_member_str(&w, "code", str_z(code));
    json_out_member_str(&w, "message", str_z(message));
    json_out_member_str(&w, "request_id", str_z(http_request_id(req)));
    json_out_close(&w, '}');
    json_out_close(&w, '}');
}

/* With one header more, unless its name is empty. */
static int send_error_with(struct http_request *req, int status, struct http_header extra,
                           const char *code, const char *message)
{
    struct buf body = BUF_INIT(8192);
    int result;

    write_error(req, &body, code, message);
    http_respond(req, status);
    http_respond_header(req, STR("Content-Type"), STR("application/json"));
    if (extra.name.len)
        http_respond_header(req, extra.name, extra.value);
    result = http_send(req, buf_str(&body));
    buf_release(&body);
    return result;
}

int api_send_error(struct http_request *req, int status, const char *code, const char *message)
{
    return send_error_with(req, status, (struct http_header){0}, code, message);
}

int api_send_failure(struct http_request *req, int code, const struct err *err)
{
    static const struct {
        int code, status;
        const char *name;
    } rows[] = {
        {ERR_INVALID, 400, "invalid"},
        {ERR_PARSE, 400, "malformed"},
        {ERR_TYPE, 400, "invalid"},
        {ERR_NOT_FOUND, 404, "not_found"},
        {ERR_NO_BUCKET, 404, "not_found"},
        {ERR_EXISTS, 409, "exists"},
        {ERR_CONFLICT, 409, "conflict"},
        {ERR_TOO_LARGE, 413, "too_large"},
        {ERR_BUSY, 503, "busy"},
        {ERR_SHUTDOWN, 503, "shutting_down"},
        {ERR_NO_SPACE, 507, "no_space"},
        {ERR_DENIED, 403, "not_allowed"},
        {ERR_UNSUPPORTED, 501, "unsupported"},
        {ERR_UNAVAILABLE, 503, "unavailable"},
        {ERR_OFFLINE, 503, "unavailable"},
        {ERR_STORE, 503, "unavailable"},
        {ERR_CLOSED, 503, "unavailable"}, /* of the store, as the next: it may have been done */
        {ERR_TIMEOUT, 503, "unavailable"},
        {ERR_IN_USE, 409, "in_use"},
    };
    const char *text = err && *err->text ? err->text : err_text(code);

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].code == code)
            return api_send_error(req, rows[i].status, rows[i].name, text);
    log_error(http_request_log(req), "api.failed", log_z("code", err_name(code)),
              log_z("error", text));
    return api_send_error(req, 500, "internal", text);
}

static int check_auth(struct api *api, struct http_request *req)
{
    int code = auth_check(&api->auth, http_header(http_request_head(req), "Authorization"),
                          http_request_peer(req), clock_mono_ms());

    if (code == 0)
        http_request_know(req);
    return code;
}

bool api_is_admin(struct api *api, struct http_request *req)
{
    return check_auth(api, req) == 0;
}

int api_send_denied(struct http_request *req, int code)
{
    if (code == ERR_UNAVAILABLE)
        return api_send_error(req, 503, "unavailable", "the users could not be loaded yet");
    if (code == ERR_BUSY)
        return send_error_with(req, 429, (struct http_header){STR("Retry-After"), STR("1")},
                               "too_many_attempts",
                               "too many wrong keys from this address; try again later");
    return send_error_with(
        req, 401, (struct http_header){STR("WWW-Authenticate"), STR("Basic realm=\"weir\"")},
        "unauthorized", "HTTP Basic authentication with an access key and its secret is needed");
}

/* "{name}" stands for one segment. */
static bool is_path_of(struct str pattern, struct str path)
{
    struct str want, got;

    while (pattern.len && path.len) {
        str_cut(pattern, '/', &want, &pattern);
        str_cut(path, '/', &got, &path);
        if (!str_starts(want, STR("{")) && !str_eq(want, got))
            return false;
    }
    return pattern.len == path.len;
}

static int send_wrong_method(struct http_request *req)
{
    struct buf allow = BUF_INIT(256);
    int code;

    for (size_t i = 0; i < api_route_count; i++) {
        const struct route *route = &api_routes[i];
        if (is_path_of(str_z(route->pattern), http_request_head(req)->path))
            buf_appendf(&allow, "%s%s", allow.len ? ", " : "", http_method_name(route->method));
    }
    code = send_error_with(req, 405, (struct http_header){STR("Allow"), buf_str(&allow)},
                           "method_not_allowed", "this path does not take that method");
    buf_release(&allow);
    return code;
}

/* --- changes that a page of another site asks for (docs/security.md) --- */

static bool is_change(enum http_method method)
{
    return method != HTTP_GET && method != HTTP_HEAD && method != HTTP_OPTIONS;
}

/* Browsers say which site's page made a request: by Sec-Fetch-Site, older ones by Origin alone.
 * Other clients send neither. */
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

static bool is_json(const struct http_head *head)
{
    struct str type, parameters;

    str_cut(http_header(head, "Content-Type"), ';', &type, &parameters);
    return str_ieq(str_trim(type), STR("application/json"));
}

/* False: *answer is what the handler returns. A browser sends the keys that it was once told with
 * every request to this port, whichever page asks for it. Content-Type is asked for where there is
 * no body, too: a page can make a browser send a simple POST, but not one of this type. */
static bool may_change(struct http_request *req, int *answer)
{
    const struct http_head *head = http_request_head(req);

    if (is_from_another_site(head)) {
        *answer =
            api_send_error(req, 403, "cross_site", "a page of another site asked for this change");
        return false;
    }
    if (!is_json(head)) {
        *answer = api_send_error(req, 415, "not_json",
                                 "a change needs the header Content-Type: application/json, also "
                                 "without a body");
        return false;
    }
    return true;
}

/* One that cannot be asked is the handler's to tell of. */
static int known_or_away(struct api *api, struct err *err)
{
    int code = store_is_known(api->o.config, err);

    return code == ERR_STORE ? code : 0;
}

/* What works while the store is not the known one: health, and what an administrator needs to say
 * what the store is. */
static bool is_always_served(const struct route *route)
{
    struct str path = str_z(route->pattern);

    if (route->open)
        return !str_starts(path, STR("/notify/"));
    return str_eq(path, STR("/api/v1")) || str_eq(path, STR("/api/v1/version")) ||
           str_starts(path, STR("/api/v1/store"));
}

/* A change is made in the store that is known, and in no other: it is asked before, as its last
 * word may be a second old. */
static int check_store(struct api *api, struct http_request *req, const struct route *route,
                       struct err *err)
{
    if (is_always_served(route))
        return 0;
    int code = store_may_serve(api->o.config, err);
    if (code < 0 || route->method == HTTP_GET)
        return code;
    return http_may_block(req) ? known_or_away(api, err) : ERR_AGAIN;
}

/* A path under /api that does not exist is told only to those who may know. */
static int handle(struct http_request *req, void *ctx)
{
    struct api *api = ctx;
    const struct http_head *head = http_request_head(req);
    const struct route *route = NULL;
    struct route_params params;
    struct err err = {0};
    int found = route_match(&route, &params, api_routes, api_route_count, req, &err);
    bool open = found == 0 ? route->open : !str_starts(head->path, STR("/api"));
    int code = 0;

    if (!open)
        code = check_auth(api, req);
    if (code < 0)
        return api_send_denied(req, code);
    if (found == ERR_UNSUPPORTED)
        return send_wrong_method(req);
    if (found == ERR_NOT_FOUND)
        return api_send_error(req, 404, "not_found", "there is nothing at this path");
    if (found < 0)
        return api_send_failure(req, found, &err);
    /* Open routes do not go by keys that a browser keeps. */
    if (!route->open && is_change(head->method) && !may_change(req, &code))
        return code;
    code = check_store(api, req, route, &err);
    if (code == ERR_AGAIN)
        return code;
    return code < 0 ? api_send_failure(req, code, &err) : route->fn(req, &params, api);
}
