/* API calls for the server itself: health, readiness, metrics, the list of routes, the version,
 * backups. */
#include "api/api_int.h"
#include "room/room.h"

static rest_fn server_health, server_ready, server_metrics, server_routes, server_openapi,
    server_version, server_backup;

struct route_view {
    const char *method, *path, *doc;
    bool open, own;
};

struct version_view {
    const char *name, *version;
};

struct backup_form {
    const char *dir;
};

static const struct rest_row server_rows[] = {
    {HTTP_GET, "/healthz", REST_ANYONE, "200 as long as the process lives.", server_health,
     .quick = true, .storeless = true, .media = "text/plain"},
    {HTTP_GET, "/readyz", REST_ANYONE,
     "200 when every part of the server is ready, else 503. Only administrators are told why a "
     "part is not.",
     server_ready, .quick = true, .storeless = true, .status = 200, .other_status = 503,
     .answer = REST_FIELDS({"ready", "Is every part ready?", REST_BOOLEAN},
                           {"parts", "\"ok\" or the error of each part.", REST_MAP})},
    {HTTP_GET, "/metrics", REST_ANYONE,
     "Metrics for Prometheus. Only administrators get those of each replication.", server_metrics,
     .storeless = true, .media = "text/plain; version=0.0.4; charset=utf-8"},
    {HTTP_GET, "/api/v1", REST_ADMIN, "This list.", server_routes, .quick = true, .storeless = true,
     .list = "routes", .by_place = true, .item = sizeof(struct route_view),
     .items = REST_FIELDS(
         {"method", "The HTTP method.", REST_AT(struct route_view, method)},
         {"path", "The path, with {parameters}.", REST_AT(struct route_view, path)},
         {"open", "May anyone call it?", REST_BOOLEAN, REST_AT(struct route_view, open)},
         {"own", "Is it weir's own? Otherwise another API speaks here, as lakeFS's.", REST_BOOLEAN,
          REST_AT(struct route_view, own)},
         {"doc", "What the call does.", REST_AT(struct route_view, doc)})},
    {HTTP_GET, "/api/v1/openapi.json", REST_ADMIN,
     "This API as an OpenAPI document. Like the list of calls it is for administrators, because "
     "under /api nobody else learns which calls there are.",
     server_openapi, .quick = true, .storeless = true, .media = "application/json"},
    {HTTP_GET, "/api/v1/version", REST_ADMIN, "Name and version of the program.", server_version,
     .quick = true, .storeless = true, .out = sizeof(struct version_view),
     .answer = REST_FIELDS({"name", "\"weir\".", REST_AT(struct version_view, name)},
                           {"version", "The version.", REST_AT(struct version_view, version)})},
    {HTTP_POST, "/api/v1/backup", REST_ADMIN,
     "Copy all data, as of now, to a new folder of the server. 409 while another backup runs.",
     server_backup, .in = sizeof(struct backup_form), .out = sizeof(struct backup_form),
     .body = REST_FIELDS({"dir", "Absolute path of the folder, which must not exist.",
                          .required = true, REST_AT(struct backup_form, dir)}),
     .answer = REST_FIELDS({"dir", "The folder.", REST_AT(struct backup_form, dir)})},
};
const struct rest_table api_server_rows = {REST_ROWS(server_rows)};

static int server_health(struct rest_call *c, struct err *err)
{
    (void)err;
    return rest_send(c, STR("ok\n"));
}

/* Answers /readyz. Only administrators see why a part is not ready, because the reason names hosts
 * and folders. */
static int server_ready(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    const struct ready *ready = api->o.ready;
    struct ready_state states[READY_MAX_PARTS];
    bool all = true, detailed;
    int code = ready_get(api->o.ready, states, http_may_block(c->req));

    (void)err;
    if (code < 0)
        return code;
    detailed = api_is_admin(api, c->req);
    for (size_t i = 0; i < ready->count; i++)
        all = all && states[i].code == 0;
    json_out_member_bool(c->w, "ready", all);
    json_out_key(c->w, "parts");
    json_out_open(c->w, '{');
    for (size_t i = 0; i < ready->count; i++)
        json_out_member_str(c->w, ready->parts[i].name,
                            states[i].code == 0 ? STR("ok")
                            : detailed          ? str_z(states[i].text)
                                                : STR("failed"));
    json_out_close(c->w, '}');
    rest_status(c, all ? 200 : 503);
    return 0;
}

static void room_metrics_write(struct buf *out, const struct room_instance *r,
                               struct metric_numbers *numbers)
{
    metric_numbers_reset(numbers);
    if (r->room->count)
        r->room->count(r->state, numbers);
    metrics_text(out, r->room->metrics, r->room->metric_count, numbers);
}

static int server_metrics(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct metric_numbers numbers = {.arena = c->arena, .admin = api_is_admin(api, c->req)};
    struct named_server servers[SERVICES_SERVERS_MAX + 1] = {{"api", http_request_server(c->req)}};
    struct metrics_input in = {
        .db = api->o.db,
        .pool = api->o.pool,
        .auth = &api->auth,
        .ready = api->o.ready,
        .notify = api->o.notify,
        .access_log = api->o.access_log,
        .servers = servers,
        .server_count = 1,
        .lifecycle = api->o.lifecycle,
        .worker = api->o.worker,
        .started_mono_ms = api->started_mono_ms,
        .started_wall_ms = api->started_wall_ms,
    };
    struct buf text = {0};
    struct queue_stats *queues = NULL;
    size_t queue_count;
    int code;

    (void)err;
    /* When the store is down, the metrics lack the queues. The metric weir_ready shows that the
     * store is down. */
    if (queue_list(api->o.queue, c->arena, &queues, &queue_count, NULL) == 0)
        in.queues = queues, in.queue_count = queue_count;
    for (size_t i = 0; api->o.services && i < api->o.services->server_count; i++)
        servers[in.server_count++] = api->o.services->servers[i];
    metrics_write(&in, &text);
    for (size_t i = 0; i < api->o.room_count; i++)
        room_metrics_write(&text, &api->o.rooms[i], &numbers);
    metric_numbers_release(&numbers);
    code = rest_send(c, buf_str(&text));
    buf_release(&text);
    return code;
}

static int server_routes(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;

    (void)err;
    for (size_t i = 0; i < api->table_count; i++)
        for (size_t k = 0; k < api->tables[i].count; k++) {
            const struct rest_row *row = &api->tables[i].rows[k];
            bool open = row->access == REST_ANYONE || row->access == REST_TOKEN;
            rest_add(c, STR_EMPTY,
                     (&(struct route_view){http_method_name(row->method), row->path, row->doc, open,
                                           !api->tables[i].dialect}));
        }
    return 0;
}

static int server_openapi(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;

    (void)err;
    return rest_send(c, buf_str(&api->openapi));
}

static int server_version(struct rest_call *c, struct err *err)
{
    (void)err;
    return rest_give(c, (&(struct version_view){"weir", WEIR_VERSION}));
}

static int server_backup(struct rest_call *c, struct err *err)
{
    const struct backup_form *in = rest_in(c, struct backup_form);
    int code = api_backup(c->ctx, in->dir, err);

    if (code == ERR_BUSY)
        return rest_refuse(c, 409, "busy", err->text, (struct http_header){0});
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "backup.done", log_z("dir", in->dir));
    return rest_give(c, in);
}
