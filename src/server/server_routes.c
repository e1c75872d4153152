/* Starts users, storages and routes: those in the store, and those of the configuration file. */
#include "server/server_int.h"
#include "base/clock.h"
#include "coord/lease.h"
#include "coord/replication.h"
#include "object/local/local.h"

#include <stdio.h>

enum { LEASE_WAIT_MS = 1000 }; /* longest time that a start waits for its first lease */

/* --- users --- */

/* Puts the place of an entry, such as "weir.yaml:3: users.alice: ", before the error's text. */
static int blame_line(const struct server *s, size_t line, const char *group, const char *name,
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
    int code = users_add_fixed(s->services.users, &user, err);

    return code < 0 ? blame_line(s, u->line, "users", u->name, err) : 0;
}

int server_start_users(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    int code;

    services_path(&s->services, "secrets.key", &path);
    code = users_open(&s->services.users, s->services.stores[CONFIG_DB], path.p, &s->log, err);
    if (code == 0)
        users_set_root(s->services.users, str_z(s->admin.access_key), str_z(s->admin.secret_key));
    if (code == 0)
        users_compare_root(s->services.users);
    vec_each (&s->conf->users, const struct conf_user *, u)
        if (code == 0)
            code = add_file_user(s, u, err);
    if (code < 0) {
        users_close(s->services.users);
        s->services.users = NULL;
    }
    buf_release(&path);
    return code;
}

void server_stop_users(struct server *s)
{
    users_close(s->services.users);
}

/* --- storages and routes --- */

static int check_storage_ready(void *ctx, struct err *err)
{
    struct storage *storage = ctx;

    return storage->ops->check(storage, err);
}

static int check_storage_trouble(void *ctx, struct err *err)
{
    return local_trouble(ctx, err);
}

/* Checks an added storage. A storage that was removed since the start counts as ready. */
static int check_added(void *ctx, struct err *err)
{
    const struct added_storage *a = ctx;

    return routes_storage(a->routes, a->storage->name) == a->storage
               ? check_storage_ready(a->storage, err)
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
    size_t count = routes_storages(s->services.routes, all, ARRAY_SIZE(all));

    ready_add(&s->ready, (struct ready_part){"storage.local", check_storage_ready, all[0],
                                             check_storage_trouble});
    for (size_t i = 1; i < count; i++) {
        struct added_storage *a = &s->added[i];
        *a = (struct added_storage){.routes = s->services.routes, .storage = all[i]};
        snprintf(a->part, sizeof(a->part), "storage." STR_FMT, STR_ARG(all[i]->name));
        ready_add(&s->ready, (struct ready_part){a->part, check_added, a, check_added_now});
    }
}

int server_start_routes(struct server *s, struct err *err)
{
    struct buf folder = BUF_INIT(8192);
    struct local_options options = {.name = "local", .db = s->db, .log = &s->log};
    int code = routes_open(&s->services.routes, s->services.stores[CONFIG_DB], &s->log, err);

    services_path(&s->services, "objects", &folder);
    options.folder = folder.p;
    if (code == 0)
        code = routes_open_local(s->services.routes, &options, err);
    if (code < 0) {
        routes_close(s->services.routes);
        s->services.routes = NULL;
    } else {
        watch_storages(s);
    }
    buf_release(&folder);
    return code;
}

void server_stop_routes(struct server *s)
{
    routes_close(s->services.routes);
}

/* --- remote storages --- */

/* Adds a credential from the configuration file. Its user must have been loaded already: from the
 * file, or from the store if the store answers. */
static int add_file_credential(struct server *s, struct str storage,
                               const struct conf_credential *c, struct err *err)
{
    struct arena a = {0};
    struct user user;
    int code = users_by_name(s->services.users, &a, str_z(c->user), &user, err);

    if (code == 0)
        code = remotes_set_credential_fixed(
            s->services.remotes, storage,
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
    int code = remotes_add_fixed(s->services.remotes, &e, err);

    if (code == 0 && c->main)
        code = remotes_set_main_fixed(s->services.remotes, e.name, err);
    if (code < 0)
        return blame_line(s, c->line, "storages", c->name, err);
    vec_each (&c->credentials, const struct conf_credential *, k) {
        if (code == 0)
            code = add_file_credential(s, e.name, k, err);
        if (code < 0)
            return blame_line(s, k->line, "credentials", k->user, err);
    }
    return 0;
}

int server_start_remotes(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    int code;

    services_path(&s->services, "secrets.key", &path);
    code = remotes_open(&s->services.remotes, s->services.routes, s->services.stores[CONFIG_DB],
                        path.p, &s->log, err);
    vec_each (&s->conf->storages, const struct conf_storage *, c)
        if (code == 0)
            code = add_file_storage(s, c, err);
    if (code < 0) {
        remotes_close(s->services.remotes);
        s->services.remotes = NULL;
    }
    buf_release(&path);
    return code;
}

void server_stop_remotes(struct server *s)
{
    remotes_close(s->services.remotes);
}

/* --- the lease --- */

static int read_replications(void *ctx, struct err *err)
{
    return replications_refresh(ctx, err);
}

static int read_remotes(void *ctx, struct err *err)
{
    return remotes_reload(ctx, err);
}

static int read_routes(void *ctx, struct err *err)
{
    return routes_reload(ctx, err);
}

/* Makes the lease, by which the other processes know that this process is alive (coord/lease.h).
 * Every process has a lease. Without replication nothing else uses it. */
int server_make_lease(struct server *s, struct err *err)
{
    struct services *v = &s->services;

    v->lease = lease_new(&(struct lease_options){
        .config = v->stores[CONFIG_DB],
        .installation = v->installation,
        .needed = v->replications && s->conf->store.engine == CONF_ENGINE_REDIS,
        .log = &s->log,
    });
    if (v->replications)
        lease_read_first(v->lease, read_replications, v->replications);
    lease_read_first(v->lease, read_remotes, v->remotes);
    lease_read_first(v->lease, read_routes, v->routes);
    return 0;
}

void server_free_lease(struct server *s)
{
    lease_free(s->services.lease);
}

/* Starts the lease and waits for it for a moment, because without a lease the first changes would
 * be refused. If the store does not answer, the start goes on without the lease. */
int server_start_lease(struct server *s, struct err *err)
{
    int code = lease_start(s->services.lease, err);

    if (code == 0 && s->services.replications)
        lease_await(s->services.lease, clock_mono_ns() + LEASE_WAIT_MS * NS_PER_MS);
    return code;
}

void server_stop_lease(struct server *s)
{
    lease_stop(s->services.lease);
}
