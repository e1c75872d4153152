/* The parts of the archive room, in the order of their start:
 * - "engine" runs in every process, because the API of any process shows accounts, and a worker
 *   runs the archive's tasks. It opens forges, satellites and the schedule.
 * - "runner" syncs accounts in a process with the role "archive". In other processes it has no
 *   threads. */
#include "archive/room.h"

#include "archive/account.h"
#include "archive/forges.h"
#include "archive/move.h"
#include "archive/rebuild.h"
#include "archive/restores.h"
#include "archive/satellites.h"
#include "archive/saved.h"
#include "base/clock.h"
#include "base/hex.h"
#include "http/client.h"
#include "meta/keyring.h"
#include "os/file.h"

#include <limits.h>
#include <unistd.h>

/* --- functions that the parts call --- */

static int room_bucket(void *ctx, struct arena *a, struct str host, struct str *out,
                       struct err *err)
{
    struct archive *x = ctx;

    return forges_bucket(x->forges, a, host, out, err);
}

static void room_table_changed(void *ctx, const struct slots *table)
{
    struct archive *x = ctx;
    struct err err = {0};

    if (x->schedule && schedule_map(x->schedule, table, &err) < 0)
        log_warn(x->log, "archive.map", log_z("why", err.text));
    if (x->runner)
        runner_kick(x->runner);
}

/* Whether the archive has tracked accounts. An administrator may add some to `tracked` by hand
 * before weir has a table of slots. */
static bool room_is_used(struct archive *x)
{
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};
    bool used = store_call(x->app, &a, &reply, &err, STR("EXISTS"), STR("tracked")) == 0 &&
                reply->type == REPLY_INTEGER && reply->integer > 0;

    arena_release(&a);
    return used;
}

/* Copies the table of slots, for the runner. If there is no table yet but accounts are tracked, the
 * first table is made. */
static void room_table(void *ctx, struct slots *out)
{
    struct archive *x = ctx;
    struct err err = {0};

    satellites_table(x->satellites, out);
    if (out->epoch == 0 && room_is_used(x) &&
        satellites_current(x->satellites, out, true, &err) < 0)
        log_warn(x->log, "archive.no_table", log_z("why", err.text));
}

static int room_hosts(void *ctx, struct arena *a, struct str **out, size_t *count, struct err *err)
{
    struct archive *x = ctx;
    struct forge *forges = NULL;
    int code = forges_list(x->forges, a, &forges, count, err);

    if (code < 0)
        return code;
    *out = arena_array(a, *count + 1, sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < *count; i++)
        (*out)[i] = forges[i].host;
    return 0;
}

/* Lists the hosts for the rebuild of a slot. The forges are read from the store again: a process
 * that started while the store was down or halted knows only those of the configuration file, and
 * a slot that was rebuilt without a forge would lack its accounts for good. */
static int room_hosts_anew(void *ctx, struct arena *a, struct str **out, size_t *count,
                           struct err *err)
{
    struct archive *x = ctx;
    int code = forges_reload(x->forges, err);

    return code < 0 ? code : room_hosts(ctx, a, out, count, err);
}

/* Lists a page of a slot for the rebuild. The prefix is the slot's folder. */
static int room_list(void *ctx, struct arena *a, const struct schedule_set *where,
                     const struct list_options *o, struct list_result *out, struct err *err)
{
    struct archive *x = ctx;
    unsigned char slot;
    struct slot_ask ask = {
        .satellite = where->satellite, .host = where->host, .after = o->after, .limit = o->limit};

    if (!hex_parse(str_head(o->prefix, 2), &slot, 1))
        return err_set(err, ERR_INVALID, "the prefix is not a slot");
    ask.slot = slot;
    return satellites_list_slot(x->satellites, a, &ask, out, err);
}

/* For one host, adds the ready sets of all satellites that are up. */
static void room_host_sets(struct archive *x, struct str host, const struct slots *table,
                           struct schedule_set *out, size_t *count)
{
    for (size_t i = 0; i < table->count && *count < SCHEDULE_SETS_MAX; i++)
        if (satellites_is_up(x->satellites, str_z(table->names[i])))
            out[(*count)++] = (struct schedule_set){host, str_z(table->names[i])};
}

/* Lists the ready sets from which runners may claim: those of hosts that do not rest, on satellites
 * that are up. */
static int room_sets(void *ctx, struct arena *a, struct schedule_set **out, size_t *count,
                     uint64_t *retry_ms, struct err *err)
{
    enum { LOOK_AGAIN_MS = 5000 };
    struct archive *x = ctx;
    struct slots *table = arena_new(a, struct slots);
    struct str *hosts = NULL;
    size_t host_count = 0;
    int64_t now = clock_wall_ms();
    int code = room_hosts(x, a, &hosts, &host_count, err);

    *out = arena_array(a, SCHEDULE_SETS_MAX, sizeof(**out));
    *count = 0;
    *retry_ms = LOOK_AGAIN_MS;
    if (code == 0 && (!table || !*out))
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        satellites_table(x->satellites, table);
    for (size_t i = 0; i < host_count && code == 0; i++) {
        int64_t until = 0;
        code = forges_rests(x->forges, hosts[i], &until, err);
        if (code == 0 && until <= now)
            room_host_sets(x, hosts[i], table, *out, count);
        else if (code == 0 && (uint64_t)(until - now) < *retry_ms)
            *retry_ms = (uint64_t)(until - now);
    }
    return code;
}

static int room_user_needed(void *ctx, const struct user *user, struct err *err)
{
    struct archive *x = ctx;

    return satellites_user_needed(x->satellites, user, err);
}

/* --- the engine --- */

static void engine_settings(struct archive *x, const struct conf *c)
{
    char host[64] = "weir";

    gethostname(host, sizeof(host) - 1);
    snprintf(x->worker, sizeof(x->worker), "%s:%ld", host, (long)getpid());
    x->check = (struct pack_options){
        .walk = c->archive.check == CONF_ARCHIVE_WALK,
        .limits = {.pack = c->archive.max_pack,
                   .object = UINT64_C(32) << 30,
                   .inflated = UINT64_C(64) << 30,
                   .inflated_times = 200},
    };
    large_room_init(&x->large);
    x->timeout_ms = c->archive.timeout_ms;
    x->scratch_max = c->archive.scratch;
    x->resync_after_ms = c->archive.resync_after_ms;
    x->lock_ms = c->archive.lock_ms;
    x->look_ms = c->archive.look_ms;
    x->repos_at_once = (size_t)c->archive.at_once;
}

static int engine_folder(struct archive *x, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);

    services_path(x->services, "archive", &path);
    x->scratch = buf_take(&path);
    /* Removes the folders of git processes that ran when weir was killed. */
    int code = dir_remove_tree(x->scratch, err);
    return code < 0 ? code : dir_make(x->scratch, 0700, err);
}

static int engine_forges(struct archive *x, struct err *err)
{
    const struct services *s = x->services;
    struct buf keys = BUF_INIT(PATH_MAX);

    services_path(s, "secrets.key", &keys);
    struct forges_options o = {.rate = (unsigned)s->conf->archive.rate,
                               .config = s->stores[CONFIG_DB],
                               .app = x->app,
                               .key_file = keys.p,
                               .conf = s->conf,
                               .ca_file = *s->conf->archive.ca ? s->conf->archive.ca : NULL,
                               .timeout_ms = s->conf->archive.timeout_ms,
                               .log = x->log};
    int code = forges_open(&x->forges, &o, err);
    buf_release(&keys);
    return code;
}

static int engine_satellites(struct archive *x, struct err *err)
{
    const struct services *s = x->services;
    struct satellites_options o = {.users = s->users,
                                   .remotes = s->remotes,
                                   .env = x->places,
                                   .app = x->app,
                                   .bucket = room_bucket,
                                   .hosts = room_hosts,
                                   .changed = room_table_changed,
                                   .ctx = x,
                                   .first = s->conf->archive.satellites,
                                   .log = x->log};

    return satellites_open(&x->satellites, &o, err);
}

static int engine_schedule(struct archive *x, struct err *err)
{
    struct schedule_options o = {.app = x->app, .log = x->log, .lock_ms = x->lock_ms};
    struct slots *table = xzalloc(sizeof(*table));
    int code = schedule_open(&x->schedule, &o, err);

    if (code == 0)
        satellites_table(x->satellites, table);
    if (code == 0 && table->epoch)
        code = schedule_map(x->schedule, table, err);
    free(table);
    return code;
}

static int engine_moves(struct archive *x, struct err *err)
{
    struct moves_options o = {.satellites = x->satellites,
                              .schedule = x->schedule,
                              .queue = x->queue,
                              .keeps = services_has_role(x->services, "worker"),
                              .log = x->log};

    return moves_open(&x->moves, &o, err);
}

static int engine_rebuild(struct archive *x, struct err *err)
{
    struct rebuild_options o = {.schedule = x->schedule,
                                .queue = x->queue,
                                .list = room_list,
                                .hosts = room_hosts_anew,
                                .table = room_table,
                                .ctx = x,
                                .log = x->log};

    return rebuild_open(&x->rebuild, &o, err);
}

static void engine_close(struct archive *x)
{
    rebuild_close(x->rebuild);
    moves_close(x->moves);
    schedule_close(x->schedule);
    satellites_close(x->satellites);
    forges_close(x->forges);
    client_free(x->client);
    keyring_free(x->keys);
    free(x->scratch);
    *x = (struct archive){0};
}

static bool engine_stop(void *state, struct services *s)
{
    struct archive_room *r = state;

    s->hooks.user_needed = NULL;
    engine_close(&r->archive);
    return true;
}

static int engine_ready(void *ctx, struct err *err)
{
    return satellites_ready(ctx, err);
}

static void engine_init(struct archive *x, const struct services *s)
{
    struct buf keys = BUF_INIT(PATH_MAX);
    struct client_options client = {
        .ca_file = *s->conf->archive.ca ? s->conf->archive.ca : NULL,
        .user_agent = "git/weir",
        /* Behind a proxy weir could not check the addresses (docs/archive.md, G4). */
        .direct = true,
    };

    x->services = s;
    x->log = s->log;
    x->app = s->stores[APP_DB];
    x->queue = s->queue;
    services_path(s, "encryption.keys", &keys);
    x->keys = keyring_new(keys.p);
    buf_release(&keys);
    x->places = (struct place_env){.routes = s->routes,
                                   .sides = s->hooks.sides,
                                   .capture = s->hooks.capture,
                                   .keys = x->keys,
                                   .users = s->users};
    x->client = client_new(&client);
    engine_settings(x, s->conf);
}

static int engine_start(void *state, struct services *s, struct err *err)
{
    struct archive_room *r = state;
    struct archive *x = &r->archive;
    int code;

    engine_init(x, s);
    guesses_init(&r->guesses);
    code = engine_folder(x, err);
    if (code == 0)
        code = engine_forges(x, err);
    if (code == 0)
        code = engine_satellites(x, err);
    if (code == 0)
        code = engine_schedule(x, err);
    if (code == 0)
        code = engine_moves(x, err);
    if (code == 0)
        code = engine_rebuild(x, err);
    if (code < 0) {
        engine_close(x);
        return err_wrap(err, code, "the archive");
    }
    s->hooks.user_needed = room_user_needed;
    s->hooks.user_needed_ctx = x;
    ready_add(s->ready, (struct ready_part){"archive", engine_ready, x->satellites});
    return 0;
}

static void archive_list_tasks(void *state, room_tasks *out)
{
    struct archive_room *r = state;

    vec_push(out, ((struct task_handler){AUDIT_TASK_TYPE, audit_handle, &r->archive}));
    vec_push(out, ((struct task_handler){TIDY_TASK_TYPE, tidy_handle, &r->archive}));
    vec_push(out, ((struct task_handler){RESTORE_TASK_TYPE, restores_handle, &r->archive}));
    vec_push(out, ((struct task_handler){REBUILD_TASK_TYPE, rebuild_handle, r->archive.rebuild}));
    vec_push(out, ((struct task_handler){MOVE_TASK, moves_run, r->archive.moves}));
}

/* --- the runner --- */

static int archive_runner_start(void *state, struct services *s, struct err *err)
{
    struct archive_room *r = state;
    struct archive *x = &r->archive;
    struct runner_options o = {.schedule = x->schedule,
                               .app = x->app,
                               .rebuild = x->rebuild,
                               .threads = (size_t)s->conf->archive.workers,
                               .resync_after_ms = x->resync_after_ms,
                               .sync = account_sync,
                               .sets = room_sets,
                               .table = room_table,
                               .found = account_announce,
                               .ctx = x,
                               .log = x->log};
    int code;

    if (!services_has_role(s, "archive"))
        return 0;
    code = runner_start(&x->runner, &o, err);
    return code < 0 ? err_wrap(err, code, "the archive") : 0;
}

static bool archive_runner_stop(void *state, struct services *s)
{
    struct archive_room *r = state;

    if (!runner_stop(r->archive.runner, s->deadline_ns))
        return false;
    r->archive.runner = NULL;
    return true;
}

/* --- reload --- */

static void archive_reload(void *state, const struct conf *next)
{
    struct archive_room *r = state;

    if (r->archive.runner)
        runner_change(r->archive.runner, next->archive.resync_after_ms);
}

/* --- the room --- */

static const struct room_part archive_parts[] = {
    {ROOM_WORK, engine_start, engine_stop},
    {ROOM_LISTEN, archive_runner_start, archive_runner_stop},
};

static const struct queue_weight archive_queues[] = {
    {ARCHIVE_QUEUE, ARCHIVE_QUEUE_WEIGHT},
};

static const struct rest_table *const archive_routes[] = {
    &archive_account_routes, &archive_repo_routes,
    &archive_status_routes,  &archive_satellite_routes,
    &archive_forge_routes,   &archive_giving_routes,
    &archive_git_routes,     &archive_restore_routes,
    &archive_option_routes,  NULL};

static const struct command *const archive_command_tables[] = {
    archive_commands,        archive_satellite_commands, archive_forge_commands,
    archive_giving_commands, archive_restore_commands,   NULL};

const struct room archive_room = {
    .name = "archive",
    .role = "archive",
    .state_size = sizeof(struct archive_room),
    ROOM_ROWS(part, archive_parts),
    ROOM_ROWS(queue, archive_queues),
    .tasks = archive_list_tasks,
    .routes = archive_routes,
    .commands = archive_command_tables,
    ROOM_ROWS(metric, archive_metrics),
    .count = archive_count,
    .reload = archive_reload,
};
