/* The parts of the server, their order, and the reload. */
#include "server/server_int.h"
#include "base/clock.h"
#include "conf/keys.h"
#include "object/local/local.h"
#include "os/file.h"
#include "os/process.h"
#include "os/tls.h"
#include "replica/switch/sides.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { POOL_STACK = 512 * 1024, POOL_END_MS = 1000 };

struct part {
    int (*start)(struct server *s, struct err *err);
    void (*stop)(struct server *s);
};

static int start_folder(struct server *s, struct err *err);
static void stop_folder(struct server *s);
static int start_credentials(struct server *s, struct err *err);
static void stop_credentials(struct server *s);
static int start_db(struct server *s, struct err *err);
static void stop_db(struct server *s);
static int start_users(struct server *s, struct err *err);
static void stop_users(struct server *s);
static int start_routes(struct server *s, struct err *err);
static void stop_routes(struct server *s);
static int start_remotes(struct server *s, struct err *err);
static void stop_remotes(struct server *s);
static int start_lifecycle(struct server *s, struct err *err);
static void stop_lifecycle(struct server *s);
static int start_notify(struct server *s, struct err *err);
static void stop_notify(struct server *s);
static int start_access_log(struct server *s, struct err *err);
static void stop_access_log(struct server *s);
static int start_pool(struct server *s, struct err *err);
static void stop_pool(struct server *s);
static void stop_swarm(struct server *s);
static int start_s3(struct server *s, struct err *err);
static void stop_s3(struct server *s);
static int start_api(struct server *s, struct err *err);
static void stop_api(struct server *s);
static int keep_credentials(struct server *s, struct err *err);

/* Credentials are made early (the API needs them) and kept last: a start that fails, on a port in
 * use say, must not leave keys that nobody was ever shown. */
static const struct part parts[] = {
    {server_try_ports_first, NULL},
    {start_folder, stop_folder},
    {server_try_ports, NULL},
    {start_credentials, stop_credentials},
    {start_db, stop_db},
    {server_start_stores, server_stop_stores},
    {server_start_installation, server_stop_installation},
    {server_start_queue, server_stop_queue},
    {start_users, stop_users},
    {start_routes, stop_routes},
    {start_remotes, stop_remotes},
    {server_start_taps, server_stop_taps},
    {server_start_keeping, server_stop_keeping},
    {start_notify, stop_notify},
    {start_lifecycle, stop_lifecycle},
    {start_access_log, stop_access_log},
    {server_start_torrents, server_stop_torrents},
    {server_start_worker, server_stop_worker},
    {start_pool, stop_pool},
    {server_start_swarm, stop_swarm},
    {server_place_torrents, NULL},
    {start_s3, stop_s3},
    {start_api, stop_api},
    {keep_credentials, NULL},
};

int server_start(struct server *s, struct conf *conf, unsigned roles, struct err *err)
{
    int code = 0;

    *s = (struct server){.conf = conf, .start = conf_ref(conf), .roles = roles, .lock_fd = -1};
    s->sink = log_sink_new(STDERR_FILENO, (enum log_level)conf->log.level,
                           (enum log_format)conf->log.format);
    s->log.sink = s->sink;
    ready_init(&s->ready);
    while (s->started < ARRAY_SIZE(parts) && code == 0) {
        code = parts[s->started].start(s, err);
        if (code == 0)
            s->started++;
    }
    if (code < 0)
        server_stop(s);
    return code;
}

void server_stop(struct server *s)
{
    s->deadline_ns = clock_mono_ns() + s->conf->shutdown_timeout_ms * 1000000;
    while (s->started > 0) {
        const struct part *part = &parts[--s->started];
        if (part->stop)
            part->stop(s);
    }
    ready_release(&s->ready);
    log_sink_free(s->sink);
    conf_unref(s->conf);
    conf_unref(s->start);
}

int server_name_key(const struct server *s, const char *name, int code, struct err *err)
{
    struct buf source = BUF_INIT(1024);

    conf_source_text(s->conf, conf_key_find(str_z(name)), &source);
    err_wrap(err, code, "%s (%s)", name, source.p);
    buf_release(&source);
    return code;
}

/* --- the data folder --- */

static int start_folder(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    int code = dir_make(s->conf->data, 0700, err);

    buf_appendf(&path, "%s/lock", s->conf->data);
    if (code == 0)
        code = file_lock(&s->lock_fd, path.p, err);
    if (code == ERR_IN_USE)
        code = err_wrap(err, code, "the data folder %s is in use", s->conf->data);
    else if (code < 0)
        code = err_wrap(err, code, "the data folder %s cannot be used", s->conf->data);
    buf_release(&path);
    return code;
}

static void stop_folder(struct server *s)
{
    fd_close(&s->lock_fd);
}

/* --- credentials --- */

static int start_credentials(struct server *s, struct err *err)
{
    int code = credentials_find(&s->admin, s->conf, err);

    if (code != ERR_NOT_FOUND)
        return code;
    credentials_make(&s->admin);
    s->new_credentials = true;
    return 0;
}

static int keep_credentials(struct server *s, struct err *err)
{
    return credentials_keep(&s->admin, s->conf->data, err);
}

static void stop_credentials(struct server *s)
{
    credentials_release(&s->admin);
}

/* --- the database --- */

static int check_db_now(void *ctx, struct err *err)
{
    return db_failed(ctx, err);
}

/* The main thread sees to it (serve.c). */
static void on_db_failed(void *ctx)
{
    (void)ctx;
    process_wake();
}

/* A row of our own: a write to it shows that writes work. */
static int check_db(void *ctx, struct err *err)
{
    struct db *db = ctx;
    int64_t now = clock_wall_ms();

    return db_put(db, db_cf(db, "server"), STR("ready"), str_n(&now, sizeof(now)), DB_DURABLE, err);
}

static int start_db(struct server *s, struct err *err)
{
    struct db_cf_spec families[STORE_DATABASES + LOCAL_FAMILIES + 1];
    struct buf path = BUF_INIT(8192);
    struct db_options options = {
        .cfs = families,
        .cf_count = ARRAY_SIZE(families),
        .cache_bytes = s->conf->db.cache,
        .memtable_bytes = s->conf->db.memtable,
        .log = &s->log,
        .failed = on_db_failed,
    };
    int code;

    memcpy(families, store_cf_specs(), STORE_DATABASES * sizeof(families[0]));
    memcpy(families + STORE_DATABASES, local_cf_specs(), LOCAL_FAMILIES * sizeof(families[0]));
    families[STORE_DATABASES + LOCAL_FAMILIES] = (struct db_cf_spec){.name = "server"};
    buf_appendf(&path, "%s/db", s->conf->data);
    options.path = path.p;
    code = db_open(&s->db, &options, err);
    if (code == 0)
        ready_add(&s->ready, (struct ready_part){"db", check_db, s->db, check_db_now});
    buf_release(&path);
    return code;
}

static void stop_db(struct server *s)
{
    db_close(s->db);
}

/* --- users --- */

/* "weir.yaml:3: users.alice: ..." */
static int name_line(const struct server *s, size_t line, const char *group, const char *name,
                     struct err *err)
{
    return err_wrap(err, err->code, "%s:%zu: %s.%s", conf_file(s->conf), line, group, name);
}

static int add_file_user(struct server *s, const struct conf_user *u, struct err *err)
{
    struct user_key key = {str_z(u->access_key), str_z(u->secret_key)};
    struct user user = {.id = str_z(u->id),
                        .name = str_z(u->name),
                        .display_name = str_z(u->display_name),
                        .email = str_z(u->email),
                        .admin = u->admin,
                        .keys = &key,
                        .key_count = 1};
    int code = users_add_fixed(s->users, &user, err);

    return code < 0 ? name_line(s, u->line, "users", u->name, err) : 0;
}

static int start_users(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    int code;

    buf_appendf(&path, "%s/secrets.key", s->conf->data);
    code = users_open(&s->users, s->stores[CONFIG_DB], path.p, &s->log, err);
    if (code == 0)
        users_set_root(s->users, str_z(s->admin.access_key), str_z(s->admin.secret_key));
    if (code == 0)
        users_compare_root(s->users);
    vec_each (&s->conf->users, const struct conf_user *, u)
        if (code == 0)
            code = add_file_user(s, u, err);
    if (code < 0) {
        users_close(s->users);
        s->users = NULL;
    }
    buf_release(&path);
    return code;
}

static void stop_users(struct server *s)
{
    users_close(s->users);
}

/* --- storages and routes --- */

static int check_storage(void *ctx, struct err *err)
{
    struct storage *storage = ctx;

    return storage->ops->check(storage, err);
}

static int check_storage_now(void *ctx, struct err *err)
{
    return local_trouble(ctx, err);
}

/* One that was removed meanwhile is nobody's business any more. */
static int check_added(void *ctx, struct err *err)
{
    const struct added_storage *a = ctx;

    return routes_storage(a->routes, a->storage->name) == a->storage
               ? check_storage(a->storage, err)
               : 0;
}

static int check_added_now(void *ctx, struct err *err)
{
    const struct added_storage *a = ctx;

    return local_trouble(a->storage, err);
}

static void watch_storages(struct server *s)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(s->routes, all, ARRAY_SIZE(all));

    ready_add(&s->ready,
              (struct ready_part){"storage.local", check_storage, all[0], check_storage_now});
    for (size_t i = 1; i < count; i++) {
        struct added_storage *a = &s->added[i];
        *a = (struct added_storage){.routes = s->routes, .storage = all[i]};
        snprintf(a->part, sizeof(a->part), "storage." STR_FMT, STR_ARG(all[i]->name));
        ready_add(&s->ready, (struct ready_part){a->part, check_added, a, check_added_now});
    }
}

static int start_routes(struct server *s, struct err *err)
{
    struct buf folder = BUF_INIT(8192);
    struct local_options options = {.name = "local", .db = s->db, .log = &s->log};
    int code = routes_open(&s->routes, s->stores[CONFIG_DB], &s->log, err);

    buf_appendf(&folder, "%s/objects", s->conf->data);
    options.folder = folder.p;
    if (code == 0)
        code = routes_open_local(s->routes, &options, err);
    if (code < 0) {
        routes_close(s->routes);
        s->routes = NULL;
    } else {
        watch_storages(s);
    }
    buf_release(&folder);
    return code;
}

static void stop_routes(struct server *s)
{
    routes_close(s->routes);
}

/* --- remote storages --- */

/* Of users that are known by now: those of the file, and those in the store if it answers. */
static int add_file_credential(struct server *s, struct str storage,
                               const struct conf_credential *c, struct err *err)
{
    struct arena a = {0};
    struct user user;
    int code = users_by_name(s->users, &a, str_z(c->user), &user, err);

    if (code == 0)
        code = remotes_set_credential_fixed(
            s->remotes, storage,
            &(struct remote_credential){
                .user = user.id, .access = str_z(c->access_key), .secret = str_z(c->secret_key)},
            err);
    arena_release(&a);
    return code;
}

static int add_file_storage(struct server *s, const struct conf_storage *c, struct err *err)
{
    struct remote_entry e = {.name = str_z(c->name),
                             .url = str_z(c->url),
                             .region = str_z(c->region),
                             .ca = str_z(c->ca),
                             .virtual_host = c->virtual_host,
                             .insecure = c->insecure,
                             .trailers = c->trailers,
                             .times = {.connect_ms = c->connect_timeout_ms,
                                       .response_ms = c->response_timeout_ms,
                                       .idle_ms = c->idle_timeout_ms},
                             .limits = {.requests_per_minute = c->requests_per_minute,
                                        .bytes_per_second = c->bytes_per_second}};
    int code = remotes_add_fixed(s->remotes, &e, err);

    if (code == 0 && c->main)
        code = remotes_set_main_fixed(s->remotes, e.name, err);
    if (code < 0)
        return name_line(s, c->line, "storages", c->name, err);
    vec_each (&c->credentials, const struct conf_credential *, k) {
        if (code == 0)
            code = add_file_credential(s, e.name, k, err);
        if (code < 0)
            return name_line(s, k->line, "credentials", k->user, err);
    }
    return 0;
}

static int start_remotes(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    int code;

    buf_appendf(&path, "%s/secrets.key", s->conf->data);
    code = remotes_open(&s->remotes, s->routes, s->stores[CONFIG_DB], path.p, &s->log, err);
    vec_each (&s->conf->storages, const struct conf_storage *, c)
        if (code == 0)
            code = add_file_storage(s, c, err);
    if (code < 0) {
        remotes_close(s->remotes);
        s->remotes = NULL;
    }
    buf_release(&path);
    return code;
}

static void stop_remotes(struct server *s)
{
    remotes_close(s->remotes);
}

/* --- notifications --- */

/* The gateway alone tells, but any weir may be asked to change the webhooks. */
static int start_notify(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    struct notify_options options = {
        .db = s->db,
        .config = s->stores[CONFIG_DB],
        .region = str_z(s->start->s3.region),
        .max_age_ms = s->start->s3.notifications.max_age_ms,
        .max_pending = s->start->s3.notifications.max_pending,
        .log = &s->log,
    };
    int code;

    buf_appendf(&path, "%s/secrets.key", s->conf->data);
    options.key_file = path.p;
    code = notify_open(&s->notify, &options, err);
    buf_release(&path);
    return code < 0 ? err_wrap(err, code, "notifications") : 0;
}

static void stop_notify(struct server *s)
{
    notify_close(s->notify);
}

/* --- the lifecycle worker --- */

static bool is_switched(void *ctx, const struct storage *storage, struct str bucket)
{
    return sides_has(ctx, storage, bucket);
}

static int start_lifecycle(struct server *s, struct err *err)
{
    struct lifecycle_worker_options options = {
        .routes = s->routes,
        .notify = s->notify,
        .day_ms = (int64_t)s->conf->s3.lifecycle.day_ms,
        .interval_ms = (int64_t)s->conf->s3.lifecycle.interval_ms,
        .rests = s->sides ? is_switched : NULL,
        .ctx = s->sides,
        .log = &s->log,
    };

    return s->roles & ROLE_WORKER ? lifecycle_worker_start(&s->lifecycle, &options, err) : 0;
}

static void stop_lifecycle(struct server *s)
{
    lifecycle_worker_stop(s->lifecycle);
}

/* --- the access log --- */

/* Also where no gateway is: what an earlier one recorded is delivered. */
static int start_access_log(struct server *s, struct err *err)
{
    struct access_log_options options = {
        .db = s->db,
        .routes = s->routes,
        .notify = s->notify,
        .region = str_z(s->start->s3.region),
        .interval_ms = s->conf->s3.logging.interval_ms,
        .log = &s->log,
    };
    int code = access_log_open(&s->access_log, &options, err);

    return code < 0 ? err_wrap(err, code, "access log") : 0;
}

static void stop_access_log(struct server *s)
{
    access_log_close(s->access_log);
}

/* --- the pool --- */

static int start_pool(struct server *s, struct err *err)
{
    (void)err;
    s->pool = pool_new("pool", s->conf->http.threads, s->conf->http.waiting, POOL_STACK);
    return 0;
}

/* A request that outlives the deadline, since a disk or the store does not answer, still holds the
 * parts below it: they cannot be taken apart, and what is durable is on disk. */
static void stop_by_force(struct server *s)
{
    log_warn(&s->log, "server.stop_forced", log_u("busy", pool_stats(s->pool).busy));
    _exit(1);
}

/* Its threads may have a last word to say when the endpoints have stopped. */
static void stop_pool(struct server *s)
{
    uint64_t soon = clock_mono_ns() + POOL_END_MS * UINT64_C(1000000);

    if (!pool_stop(s->pool, s->deadline_ns > soon ? s->deadline_ns : soon))
        stop_by_force(s);
    pool_free(s->pool);
}

/* --- the tracker: server_swarm.c --- */

static void stop_swarm(struct server *s)
{
    if (!server_stop_swarm(s))
        stop_by_force(s);
}

/* *out stays NULL for plain HTTP. */
static int open_tls(struct tls_context **out, const struct conf_tls *tls, struct err *err)
{
    return *tls->cert ? tls_server_context(out, tls->cert, tls->key, err) : 0;
}

/* --- the S3 endpoint --- */

/* Of requests that wait for a remote storage. */
static void end_waits(void *ctx)
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
        .pool = s->pool,
        .on_drop = end_waits,
        .drop_ctx = s->routes,
    };
    int code = sock_addr_parse(&options.listen, str_z(conf->s3.listen), err);

    if (code == 0)
        code = endpoint_options(&options, conf, err);
    return code < 0 ? code : http_server_start(&s->s3, &options, err);
}

static int start_s3(struct server *s, struct err *err)
{
    struct tls_context *tls = NULL;
    struct buf keys = BUF_INIT(PATH_MAX);
    int code;

    if (!*s->conf->s3.listen || !(s->roles & ROLE_GATEWAY))
        return 0;
    buf_appendf(&keys, "%s/encryption.keys", s->conf->data);
    s->gateway = gateway_new(&(struct gateway_options){
        .routes = s->routes,
        .users = s->users,
        .store = s->stores[CONFIG_DB],
        .region = str_z(s->conf->s3.region),
        .domain = str_z(s->conf->s3.domain),
        .website_domain = str_z(s->conf->s3.website_domain),
        .notify = s->notify,
        .access_log = s->access_log,
        .capture = s->taps ? taps_capture(s->taps) : NULL,
        .sides = s->sides ? sides_of_buckets(s->sides) : NULL,
        .torrents = s->torrents ? torrents_of_objects(s->torrents) : NULL,
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
    return code < 0 ? server_name_key(s, "s3.listen", code, err) : 0;
}

static void stop_s3(struct server *s)
{
    if (!s->s3)
        return;
    if (!http_server_stop(s->s3, s->deadline_ns))
        stop_by_force(s);
    http_server_free(s->s3);
    gateway_free(s->gateway);
}

/* --- the API --- */

static int start_api(struct server *s, struct err *err)
{
    struct api_options options = {
        .conf = s->start,
        .db = s->db,
        .users = s->users,
        .routes = s->routes,
        .remotes = s->remotes,
        .notify = s->notify,
        .access_log = s->access_log,
        .s3 = s->s3,
        .lifecycle = s->lifecycle,
        .app = s->stores[APP_DB],
        .queue = s->queue,
        .queues = s->queues.items,
        .queue_count = s->queues.len,
        .config = s->stores[CONFIG_DB],
        .replications = s->replications,
        .installation = s->installation,
        .store_keep = s->store_keep,
        .taps = s->taps,
        .worker = s->worker,
        .swarm = &s->swarm,
        .torrents = s->torrents,
        .pool = s->pool,
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
        return server_name_key(s, "api.tls.cert", code, err);
    options.tls = tls;
    code = api_start(&s->api, &options, err);
    tls_context_unref(tls);
    return code < 0 ? server_name_key(s, "api.listen", code, err) : 0;
}

static void stop_api(struct server *s)
{
    if (s->api && !api_stop(s->api, s->deadline_ns))
        stop_by_force(s);
    api_free(s->api);
    s->api = NULL;
}

/* --- reload --- */

/* A new context for an endpoint that is there; *out stays NULL for plain HTTP. */
static int reload_tls(struct tls_context **out, const char *name, const struct conf_tls *start,
                      const struct conf_tls *next, struct err *err)
{
    if (!*next->cert != !*start->cert)
        return err_set(err, ERR_INVALID, "TLS of %s cannot be turned on or off while running",
                       name);
    return open_tls(out, next, err);
}

int server_reload(struct server *s, struct conf *next, struct err *err)
{
    struct buf kept = {0};
    struct tls_context *api_context = NULL, *s3_context = NULL;
    int code = reload_tls(&api_context, "the API", &s->start->api.tls, &next->api.tls, err);

    if (code == 0)
        code = reload_tls(&s3_context, "S3", &s->start->s3.tls, &next->s3.tls, err);
    if (code < 0) {
        conf_unref(next);
        goto out;
    }
    conf_keep_fixed(next, s->conf, &kept);
    code = server_reload_swarm(s, next, err);
    if (code < 0) {
        conf_unref(next);
        goto out;
    }
    log_sink_set(s->sink, (enum log_level)next->log.level, (enum log_format)next->log.format);
    if (api_context && s->api)
        api_tls(s->api, api_context);
    if (s3_context && s->s3)
        http_server_tls(s->s3, s3_context);
    conf_unref(s->conf);
    s->conf = next;
    if (kept.len)
        log_warn(&s->log, "config.needs_restart", log_s("keys", buf_str(&kept)));
    log_info(&s->log, "config.reloaded");
out:
    tls_context_unref(api_context);
    tls_context_unref(s3_context);
    buf_release(&kept);
    return code;
}
