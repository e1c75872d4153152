/* Starts the pool of threads and the endpoints: S3 and the API. */
#include "server/server_int.h"
#include "base/clock.h"
#include "http/endpoint.h"
#include "os/tls.h"

#include <limits.h>

enum { POOL_STACK = 512 * 1024, POOL_END_MS = 1000 };

/* --- the pool --- */

int server_start_pool(struct server *s, struct err *err)
{
    (void)err;
    s->services.pool = pool_new("pool", s->conf->http.threads, s->conf->http.waiting, POOL_STACK);
    return 0;
}

/* Stops the pool of threads. The function waits, because a thread may still be about to log its
 * request after the endpoints have stopped. */
void server_stop_pool(struct server *s)
{
    uint64_t soon = clock_mono_ns() + POOL_END_MS * NS_PER_MS;

    if (!pool_stop(s->services.pool,
                   s->services.deadline_ns > soon ? s->services.deadline_ns : soon))
        server_stop_by_force(s);
    pool_free(s->services.pool);
}

/* Opens the TLS context of an endpoint; *out stays NULL for plain HTTP. */
static int open_tls(struct tls_context **out, const struct conf_tls *tls, struct err *err)
{
    return *tls->cert ? tls_server_context(out, tls->cert, tls->key, err) : 0;
}

/* --- the S3 endpoint --- */

/* Makes requests stop waiting for remote storages. */
static void abort_request_waits(void *ctx)
{
    routes_abort(ctx);
}

static int listen_s3(struct server *s, struct tls_context *tls, struct err *err)
{
    const struct conf *conf = s->start;
    struct http_server_options options = {
        .name = "s3",
        .handler = gateway_handle,
        .ctx = s->gateway,
        .log = &s->log,
        .tls = tls,
        .pool = s->services.pool,
        .on_drop = abort_request_waits,
        .drop_ctx = s->services.routes,
    };
    int code = sock_addr_parse(&options.listen, str_z(conf->s3.listen), err);

    if (code == 0)
        code = endpoint_options(&options, conf, err);
    return code < 0 ? code : http_server_start(&s->services.s3, &options, err);
}

int server_start_s3(struct server *s, struct err *err)
{
    struct tls_context *tls = NULL;
    struct buf keys = BUF_INIT(PATH_MAX);
    int code;

    if (!*s->conf->s3.listen || !services_has_role(&s->services, "gateway"))
        return 0;
    services_path(&s->services, "encryption.keys", &keys);
    s->gateway = gateway_new(&(struct gateway_options){
        .routes = s->services.routes,
        .users = s->services.users,
        .store = s->services.stores[CONFIG_DB],
        .region = str_z(s->conf->s3.region),
        .domain = str_z(s->conf->s3.domain),
        .website_domain = str_z(s->conf->s3.website_domain),
        .notify = s->services.notify,
        .access_log = s->services.access_log,
        .capture = s->services.hooks.capture,
        .sides = s->services.hooks.sides,
        .torrents = s->services.hooks.torrents,
        .url = str_z(s->start->s3.url),
        .allow_v2 = s->conf->s3.signature_v2,
        .document_memory = s->conf->s3.document_memory,
        .storage_classes = str_z(s->start->s3.storage_classes),
        .key_file = keys.p,
        .max_buckets = s->conf->s3.max_buckets,
        .sse_c_over_http = s->conf->s3.sse_c_over_http,
        .log = &s->log,
    });
    buf_release(&keys);
    code = open_tls(&tls, &s->conf->s3.tls, err);
    if (code == 0)
        code = listen_s3(s, tls, err);
    tls_context_unref(tls);
    if (code < 0)
        gateway_free(s->gateway);
    else
        services_add_server(&s->services, "s3", s->services.s3);
    return code < 0 ? services_blame_key(&s->services, "s3.listen", code, err) : 0;
}

void server_stop_s3(struct server *s)
{
    if (!s->services.s3)
        return;
    if (!http_server_stop(s->services.s3, s->services.deadline_ns))
        server_stop_by_force(s);
    services_remove_server(&s->services, s->services.s3);
    http_server_free(s->services.s3);
    s->services.s3 = NULL;
    gateway_free(s->gateway);
}

/* --- the API --- */

int server_start_api(struct server *s, struct err *err)
{
    struct api_options options = {
        .conf = s->start,
        .db = s->db,
        .users = s->services.users,
        .routes = s->services.routes,
        .remotes = s->services.remotes,
        .notify = s->services.notify,
        .access_log = s->services.access_log,
        .s3 = s->services.s3,
        .lifecycle = s->lifecycle,
        .app = s->services.stores[APP_DB],
        .queue = s->services.queue,
        .queues = s->queues.items,
        .queue_count = s->queues.len,
        .config = s->services.stores[CONFIG_DB],
        .replications = s->services.replications,
        .installation = s->services.installation,
        .worker = s->worker,
        .services = &s->services,
        .rooms = s->rooms.items,
        .room_count = s->rooms.len,
        .pool = s->services.pool,
        .ready = &s->ready,
        .admin = &s->admin,
        .log = &s->log,
    };
    struct tls_context *tls = NULL;
    int code;

    if (!*s->conf->api.listen)
        return 0;
    code = open_tls(&tls, &s->conf->api.tls, err);
    if (code < 0)
        return services_blame_key(&s->services, "api.tls.cert", code, err);
    options.tls = tls;
    code = api_start(&s->api, &options, err);
    tls_context_unref(tls);
    return code < 0 ? services_blame_key(&s->services, "api.listen", code, err) : 0;
}

void server_stop_api(struct server *s)
{
    if (s->api && !api_stop(s->api, s->services.deadline_ns))
        server_stop_by_force(s);
    api_free(s->api);
    s->api = NULL;
}

int server_reload_tls(struct tls_context **out, const char *name, const struct conf_tls *start,
                      const struct conf_tls *next, struct err *err)
{
    if (!*next->cert != !*start->cert)
        return err_set(err, ERR_INVALID, "TLS of %s cannot be turned on or off while running",
                       name);
    return open_tls(out, next, err);
}
