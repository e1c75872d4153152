/* The parts of the replica room, in the order of their start:
 *
 *     capture   Opens the taps (replica/tap/tap.h), in every process, because every process records
 *               the changes that it makes.
 *     keeping   Starts the thread that keeps a sealed copy of the configuration in the data folder.
 *     tasks     Registers the handlers of the room's tasks. Only in a worker process.
 *     keeper    Starts the thread that restores lost tasks of replications. Only in a worker
 *               process. */
#include "replica/room.h"

#include "base/clock.h"
#include "coord/installation.h"
#include "coord/lease.h"
#include "meta/keyring.h"
#include "replica/first.h"
#include "replica/keeper.h"
#include "replica/store_keep.h"
#include "replica/switch/sides.h"
#include "replica/tap/tap.h"
#include "replica/tasks/tasks.h"
#include "route/route.h"

#include <limits.h>

enum { SETTLE_MS = 5000 };

static bool is_shared(const struct services *s)
{
    return s->conf->store.engine == CONF_ENGINE_REDIS;
}

/* --- capture --- */

static int open_replica_taps(struct replica_room *r, struct err *err)
{
    const struct services *s = r->services;
    struct taps_options o = {
        .replications = s->replications,
        .queue = s->queue,
        .first = tasks_first,
        .locks = s->locks,
        .routes = s->routes,
        .config = s->stores[CONFIG_DB],
        .lease = s->lease,
        .log = s->log,
    };
    struct buf journal = {0};

    if (!is_shared(s)) {
        o.boot = str_z(s->boot);
        services_path(s, "intents", &journal);
        o.journal = journal.p;
    }
    int code = taps_open(&r->taps, &o, err);
    buf_release(&journal);
    return code < 0 ? err_wrap(err, code, "capture of changes") : 0;
}

static bool bucket_is_switched(void *ctx, const struct storage *storage, struct str bucket)
{
    return sides_has(ctx, storage, bucket);
}

static void open_replica_sides(struct replica_room *r, struct services *s)
{
    r->sides = sides_new(&(struct sides_options){.replications = s->replications,
                                                 .routes = s->routes,
                                                 .taps = r->taps,
                                                 .app = s->stores[APP_DB],
                                                 .config = s->stores[CONFIG_DB]});
    s->hooks.capture = taps_capture(r->taps);
    s->hooks.sides = sides_of_buckets(r->sides);
    s->hooks.rests = bucket_is_switched;
    s->hooks.rests_ctx = r->sides;
}

/* Opens the taps in every process, because each may change objects: a gateway by requests, a worker
 * by lifecycle rules. */
static int capture_start(void *state, struct services *s, struct err *err)
{
    struct replica_room *r = state;
    int code = 0;

    r->services = s;
    if (s->replications)
        code = open_replica_taps(r, err);
    if (code == 0 && s->replications)
        open_replica_sides(r, s);
    return code;
}

static bool capture_stop(void *state, struct services *s)
{
    struct replica_room *r = state;

    s->hooks.capture = NULL;
    s->hooks.sides = NULL;
    s->hooks.rests = NULL;
    sides_free(r->sides);
    taps_close(r->taps);
    return true;
}

/* --- keeping --- */

/* Starts the thread of store_keep.h. By now users and storages were read from the store, so the
 * data folder may remember this store as its own. */
static int keeping_start(void *state, struct services *s, struct err *err)
{
    struct replica_room *r = state;
    struct buf key = BUF_INIT(PATH_MAX);
    struct store_keep_options o = {
        .installation = s->installation,
        .config = s->stores[CONFIG_DB],
        .mend = {s->replications, s->queue, s->locks, s->log},
        .folder = s->conf->data,
        .shared = is_shared(s),
        .log = s->log,
    };

    services_path(s, "secrets.key", &key);
    o.key_file = key.p;
    int code = installation_keep(s->installation, err);
    if (code == 0)
        code = store_keep_start(&r->store_keep, &o, err);
    buf_release(&key);
    return code < 0 ? err_wrap(err, code, "the store's installation") : 0;
}

static bool keeping_stop(void *state, struct services *s)
{
    struct replica_room *r = state;

    store_keep_stop(r->store_keep);
    return true;
}

/* --- tasks --- */

static struct storage *find_owned_storage(void *ctx, struct str name)
{
    const struct replica_room *r = ctx;
    struct storage *storage = routes_storage(r->services->routes, name);

    return storage && taps_owns(r->taps, storage) ? storage : NULL;
}

static void read_storage_limits(void *ctx, struct str name, struct storage_limits *out)
{
    const struct replica_room *r = ctx;
    const struct storage *storage = routes_storage(r->services->routes, name);

    if (!storage)
        return;
    out->requests_per_second = (double)atomic_load(&storage->requests_per_minute) / 60;
    out->bytes_per_second = (double)atomic_load(&storage->bytes_per_second);
}

static struct str main_storage_name(void *ctx)
{
    const struct replica_room *r = ctx;

    return routes_main_name(r->services->routes);
}

/* Returns whether every gateway knows the replication (docs/replication.md, P3). Returns false
 * while the store cannot be asked. */
static bool all_gateways_know(void *ctx, const struct replication_id *id)
{
    const struct replica_room *r = ctx;
    uint64_t contact = lease_contact(r->services->lease);
    bool known = false;

    return contact && replication_is_known(r->services->replications, id, &known, NULL) == 0 &&
           known && lease_contact(r->services->lease) == contact;
}

static bool store_is_unsure(void *ctx)
{
    const struct replica_room *r = ctx;

    return installation_is_unsure(r->services->installation);
}

static bool bucket_is_moved(void *ctx, const struct storage *storage, struct str bucket)
{
    const struct room_hooks *hooks = &((const struct replica_room *)ctx)->services->hooks;

    return hooks->moves && hooks->moves(hooks->moves_ctx, storage, bucket);
}

static uint64_t store_contact(void *ctx)
{
    const struct replica_room *r = ctx;

    return lease_contact(r->services->lease);
}

/* Waits until the storage's changes are recorded (docs/replication.md, S10). */
static int settle_storage(void *ctx, struct storage *storage, struct err *err)
{
    const struct replica_room *r = ctx;
    uint64_t deadline = clock_mono_ns() + SETTLE_MS * NS_PER_MS;

    return taps_settle(r->taps, storage, deadline, err);
}

static int tasks_start(void *state, struct services *s, struct err *err)
{
    struct replica_room *r = state;
    struct buf path = BUF_INIT(PATH_MAX);

    if (!s->replications || !services_has_role(s, "worker"))
        return 0;
    services_path(s, "encryption.keys", &path);
    r->keys = keyring_new(path.p);
    buf_release(&path);
    r->tasks = tasks_new(&(struct tasks_options){
        .replications = s->replications,
        .app = s->stores[APP_DB],
        .lock = s->stores[LOCK_DB],
        .queue = s->queue,
        .locks = s->locks,
        .keys = r->keys,
        .find = find_owned_storage,
        .limits = read_storage_limits,
        .is_known = all_gateways_know,
        .settle = settle_storage,
        .main = main_storage_name,
        .ctx = r,
        .pause_retry_s = (int64_t)(s->conf->replication.pause_retry_ms + MS_PER_S - 1) / MS_PER_S,
    });
    r->switcher = (struct switcher){.replications = s->replications,
                                    .config = s->stores[CONFIG_DB],
                                    .queue = s->queue,
                                    .locks = s->locks,
                                    .keys = r->keys,
                                    .find = find_owned_storage,
                                    .main = main_storage_name,
                                    .settle = settle_storage,
                                    .moves = bucket_is_moved,
                                    .unsure = store_is_unsure,
                                    .contact = store_contact,
                                    .ctx = r};
    r->cleaner = (struct cleaner){s->replications, s->stores[APP_DB], s->queue};
    return 0;
}

static bool tasks_stop(void *state, struct services *s)
{
    struct replica_room *r = state;

    tasks_free(r->tasks);
    keyring_free(r->keys);
    return true;
}

static void list_replica_tasks(void *state, room_tasks *out)
{
    struct replica_room *r = state;
    const struct task_handler own[] = {
        {INTENT_TYPE, taps_intent_run, r->taps},
        {USER_TYPE, taps_user_run, r->taps},
        {"replication:clean", clean_handle, &r->cleaner},
        {"replication:resync", resync_handle, &r->cleaner},
        {SWITCH_LIVE_TYPE, switch_live_handle, &r->switcher},
        {SWITCH_DOWN_TYPE, switch_down_handle, &r->switcher},
    };

    if (!r->tasks)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        vec_push(out, own[i]);
    vec_grow(out, TASKS_HANDLERS);
    out->len += tasks_handlers(r->tasks, out->items + out->len);
}

/* --- keeper --- */

static int keeper_begin(void *state, struct services *s, struct err *err)
{
    struct replica_room *r = state;
    const struct keeper_options o = {.replications = s->replications,
                                     .queue = s->queue,
                                     .locks = s->locks,
                                     .interval_ms = s->conf->replication.check_interval_ms,
                                     .log = s->log};
    int code = r->tasks ? keeper_start(&r->keeper, &o, err) : 0;

    return code < 0 ? err_wrap(err, code, "keeper") : 0;
}

static bool keeper_end(void *state, struct services *s)
{
    struct replica_room *r = state;

    keeper_stop(r->keeper);
    return true;
}

static const struct room_part replica_parts[] = {
    {ROOM_STORAGES, capture_start, capture_stop},
    {ROOM_STORAGES, keeping_start, keeping_stop},
    {ROOM_WORK, tasks_start, tasks_stop},
    {ROOM_LISTEN, keeper_begin, keeper_end},
};

static const struct rest_table *const replica_routes[] = {
    &replica_list_routes, &replica_add_routes,   &replica_change_routes, &replica_switch_routes,
    &replica_diff_routes, &replica_claim_routes, &replica_store_routes,  NULL};

static const struct command *const replica_command_tables[] = {replicate_commands, switch_commands,
                                                               diff_commands, NULL};

const struct room replica_room = {
    .name = "replica",
    .state_size = sizeof(struct replica_room),
    ROOM_ROWS(part, replica_parts),
    .queues = tasks_queues,
    .queue_count = TASKS_QUEUES,
    .tasks = list_replica_tasks,
    .routes = replica_routes,
    .commands = replica_command_tables,
    ROOM_ROWS(metric, replica_metrics),
    .count = replica_count,
};
