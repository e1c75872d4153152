/* The parts of the server that do background work: the queue, replications, capture, the worker. */
#include "server/server_int.h"
#include "base/clock.h"
#include "coord/lease.h"
#include "replica/first.h"
#include "replica/keeper.h"
#include "replica/switch/sides.h"
#include "meta/keyring.h"

#include <limits.h>

enum {
    GRACE_MS = 1000, /* what is not done by then runs again after the next start */
    SETTLE_MS = 5000,
    LEASE_WAIT_MS = 1000,
};

struct handlers {
    struct task_handler *items;
    size_t len, cap;
};

static void list_queues(struct server *s)
{
    for (size_t i = 0; i < tasks_queue_count; i++)
        vec_push(&s->queues, tasks_queues[i]);
    vec_push(&s->queues, ((struct queue_weight){TORRENT_QUEUE, TORRENT_QUEUE_WEIGHT}));
}

static int open_queue(struct server *s, struct err *err)
{
    struct locks_options locks = {.store = s->stores[LOCK_DB], .log = &s->log};
    struct replications_options replications = {
        .app = s->stores[APP_DB],
        .queue = s->stores[QUEUE_DB],
        .config = s->stores[CONFIG_DB],
        .seen = installation_seen(s->installation),
        .log = &s->log,
    };
    list_queues(s);
    s->queue = queue_new(s->stores[QUEUE_DB]);
    queue_number_steps(s->queue, installation_seen(s->installation));
    int code = locks_open(&s->locks, &locks, err);

    if (code < 0)
        return err_wrap(err, code, "locks");
    if (s->joined)
        code = replications_open(&s->replications, &replications, err);
    return code < 0 ? err_wrap(err, code, "replications") : 0;
}

int server_start_queue(struct server *s, struct err *err)
{
    int code = open_queue(s, err);

    if (code < 0)
        server_stop_queue(s);
    return code;
}

void server_stop_queue(struct server *s)
{
    replications_close(s->replications);
    if (s->locks)
        locks_close(s->locks);
    queue_free(s->queue);
    vec_release(&s->queues);
}

/* --- capture of changes --- */

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

/* Every process sends words; without replication they say only that the process lives. */
static void make_lease(struct server *s)
{
    s->lease = lease_new(&(struct lease_options){
        .config = s->stores[CONFIG_DB],
        .installation = s->installation,
        .needed = s->replications && s->conf->store.engine == CONF_ENGINE_REDIS,
        .log = &s->log,
    });
    if (s->replications)
        lease_read_first(s->lease, read_replications, s->replications);
    if (s->remotes)
        lease_read_first(s->lease, read_remotes, s->remotes);
    lease_read_first(s->lease, read_routes, s->routes);
}

static int open_taps(struct server *s, struct err *err)
{
    struct buf journal = {0};
    struct taps_options o = {
        .replications = s->replications,
        .queue = s->queue,
        .first = tasks_first,
        .locks = s->locks,
        .routes = s->routes,
        .config = s->stores[CONFIG_DB],
        .lease = s->lease,
        .log = &s->log,
    };

    if (s->conf->store.engine != CONF_ENGINE_REDIS) {
        o.boot = str_z(s->boot);
        buf_appendf(&journal, "%s/intents", s->conf->data);
        o.journal = journal.p;
    }
    int code = taps_open(&s->taps, &o, err);
    buf_release(&journal);
    return code < 0 ? err_wrap(err, code, "capture of changes") : 0;
}

/* In every process, as each may write: a gateway, a worker by lifecycle rules. */
int server_start_taps(struct server *s, struct err *err)
{
    make_lease(s);
    int code = s->replications ? open_taps(s, err) : 0;

    if (code == 0)
        code = lease_start(s->lease, err);
    if (code < 0) {
        server_stop_taps(s);
        return code;
    }
    if (!s->replications)
        return 0;
    /* Without a lease the first changes would be refused. A store that does not answer does not
     * hold up the start. */
    lease_await(s->lease, clock_mono_ns() + (uint64_t)LEASE_WAIT_MS * 1000 * 1000);
    s->sides = sides_new(&(struct sides_options){.replications = s->replications,
                                                 .routes = s->routes,
                                                 .taps = s->taps,
                                                 .app = s->stores[APP_DB],
                                                 .config = s->stores[CONFIG_DB]});
    return 0;
}

void server_stop_taps(struct server *s)
{
    sides_free(s->sides);
    lease_stop(s->lease);
    taps_close(s->taps);
    lease_free(s->lease);
}

/* --- the worker --- */

/* Of tasks that wait for a remote storage. */
static void end_waits(void *ctx)
{
    routes_abort(ctx);
}

static struct storage *find_storage(void *ctx, struct str name)
{
    struct server *s = ctx;
    struct storage *storage = routes_storage(s->routes, name);

    return storage && taps_owns(s->taps, storage) ? storage : NULL;
}

static void limits_of(void *ctx, struct str name, struct storage_limits *out)
{
    struct server *s = ctx;
    const struct storage *storage = routes_storage(s->routes, name);

    if (!storage)
        return;
    out->requests_per_second = (double)atomic_load(&storage->requests_per_minute) / 60;
    out->bytes_per_second = (double)atomic_load(&storage->bytes_per_second);
}

static struct str main_storage(void *ctx)
{
    struct server *s = ctx;

    return routes_main_name(s->routes);
}

/* P3. What cannot be asked is not known. */
static bool all_know(void *ctx, const struct replication_id *id)
{
    struct server *s = ctx;
    uint64_t contact = lease_contact(s->lease);
    bool known = false;

    return contact && replication_is_known(s->replications, id, &known, NULL) == 0 && known &&
           lease_contact(s->lease) == contact;
}

static bool unsure(void *ctx)
{
    const struct server *s = ctx;

    return installation_is_unsure(s->installation);
}

static uint64_t contact(void *ctx)
{
    const struct server *s = ctx;

    return lease_contact(s->lease);
}

/* S10. */
static int settle(void *ctx, struct storage *storage, struct err *err)
{
    struct server *s = ctx;
    uint64_t deadline = clock_mono_ns() + (uint64_t)SETTLE_MS * 1000 * 1000;

    return s->taps ? taps_settle(s->taps, storage, deadline, err) : 0;
}

static void open_tasks(struct server *s)
{
    struct buf path = BUF_INIT(PATH_MAX);

    buf_appendf(&path, "%s/encryption.keys", s->conf->data);
    s->task_keys = keyring_new(path.p);
    buf_release(&path);
    s->tasks = tasks_new(&(struct tasks_options){
        .replications = s->replications,
        .app = s->stores[APP_DB],
        .lock = s->stores[LOCK_DB],
        .queue = s->queue,
        .locks = s->locks,
        .keys = s->task_keys,
        .find = find_storage,
        .limits = limits_of,
        .is_known = all_know,
        .settle = settle,
        .main = main_storage,
        .ctx = s,
        .pause_retry_s = (int64_t)(s->conf->replication.pause_retry_ms + 999) / 1000,
    });
    s->switcher = (struct switcher){.replications = s->replications,
                                    .config = s->stores[CONFIG_DB],
                                    .queue = s->queue,
                                    .locks = s->locks,
                                    .keys = s->task_keys,
                                    .find = find_storage,
                                    .main = main_storage,
                                    .settle = settle,
                                    .unsure = unsure,
                                    .contact = contact,
                                    .ctx = s};
    s->cleaner = (struct cleaner){s->replications, s->stores[APP_DB], s->queue};
}

/* Every task that this process can run. */
static void list_handlers(struct server *s, struct handlers *out)
{
    const struct task_handler own[] = {
        {INTENT_TYPE, taps_intent_run, s->taps},
        {USER_TYPE, taps_user_run, s->taps},
        {"replication:clean", clean_handle, &s->cleaner},
        {"replication:resync", resync_handle, &s->cleaner},
        {SWITCH_LIVE_TYPE, switch_live_handle, &s->switcher},
        {SWITCH_DOWN_TYPE, switch_down_handle, &s->switcher},
    };

    if (s->torrents)
        vec_push(out, ((struct task_handler){TORRENT_TASK_TYPE, torrents_handle, s->torrents}));
    if (!s->replications)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        vec_push(out, own[i]);
    vec_grow(out, TASKS_HANDLERS);
    out->len += tasks_handlers(s->tasks, out->items + out->len);
}

static int start_worker(struct server *s, struct err *err)
{
    struct handlers handlers = {0};

    list_handlers(s, &handlers);
    struct worker_options options = {
        .queue = s->queue,
        .queues = s->queues.items,
        .queue_count = s->queues.len,
        .handlers = handlers.items,
        .handler_count = handlers.len,
        .threads = s->conf->worker.threads,
        .grace_ms = GRACE_MS,
        .on_end = end_waits,
        .end_ctx = s->routes,
        .log = &s->log,
    };
    int code = worker_start(&s->worker, &options, err);

    vec_release(&handlers);
    return code < 0 ? err_wrap(err, code, "worker") : 0;
}

static int start_keeper(struct server *s, struct err *err)
{
    const struct keeper_options o = {.replications = s->replications,
                                     .queue = s->queue,
                                     .locks = s->locks,
                                     .interval_ms = s->conf->replication.check_interval_ms,
                                     .log = &s->log};
    int code = keeper_start(&s->keeper, &o, err);

    return code < 0 ? err_wrap(err, code, "keeper") : 0;
}

int server_start_worker(struct server *s, struct err *err)
{
    int code = 0;

    if (!(s->roles & ROLE_WORKER))
        return 0;
    if (s->replications)
        open_tasks(s);
    code = start_worker(s, err);
    if (code == 0 && s->replications)
        code = start_keeper(s, err);
    if (code < 0)
        server_stop_worker(s);
    return code;
}

void server_stop_worker(struct server *s)
{
    keeper_stop(s->keeper);
    worker_stop(s->worker);
    tasks_free(s->tasks);
    keyring_free(s->task_keys);
}
