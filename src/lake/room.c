/* Starts and stops the lake's part of a running weir. It opens the lake over the key-value store of
 * the services, and adds the repositories to the routes as a space (route/space.h). It starts after
 * the capture of changes (replica/room.c), because objects of the lake may be in replicated
 * buckets. */
#include "lake/room.h"

#include "lake/actions.h"
#include "lake/claim.h"
#include "lake/commands/commands.h"

#include "meta/keyring.h"

#include "route/route.h"

#include <limits.h>
#include <stdlib.h>

/* Limits of lake_options.claim_every_ms, the time between two reads of a namespace's claim.
 * Within lake.gc.grace the claim is read several times (CLAIM_LOOKS). So if another lake runs on
 * a copy of the same records, this is noticed before any file that it has put is old enough to
 * be collected. */
enum { CLAIM_EVERY_MAX_MS = 5 * MS_PER_MINUTE, CLAIM_EVERY_MIN_MS = 100, CLAIM_LOOKS = 4 };

static uint64_t room_claim_every_ms(const struct conf *c)
{
    uint64_t every_ms = c->lake.gc_grace_ms / CLAIM_LOOKS;

    return every_ms > CLAIM_EVERY_MAX_MS   ? CLAIM_EVERY_MAX_MS
           : every_ms < CLAIM_EVERY_MIN_MS ? CLAIM_EVERY_MIN_MS
                                           : every_ms;
}

static int open_room_actions(struct lake_room *r, struct err *err)
{
    const struct services *s = r->services;
    struct lake_actions_options o = {.queue = s->queue,
                                     .hosts = str_z(s->conf->lake.hooks_hosts),
                                     .variables = str_z(s->conf->lake.hooks_variables),
                                     .before_max = (size_t)(s->conf->http.threads + 1) / 2,
                                     .behind_max = (size_t)(s->conf->worker.threads + 1) / 2,
                                     .log = s->log};
    int code = lake_actions_check_variables(o.variables, err);

    if (code < 0)
        return services_blame_key(s, "lake.hooks.variables", code, err);
    code = lake_actions_new(&r->actions, &o, err);

    return code == ERR_INVALID ? services_blame_key(s, "lake.hooks.hosts", code, err) : code;
}

static int open_room_lake(struct lake_room *r, struct err *err)
{
    const struct services *s = r->services;
    const struct conf *c = s->conf;
    struct buf folder = BUF_INIT(PATH_MAX);
    struct lake_options o = {
        .kv = s->kv,
        .routes = s->routes,
        .users = s->users,
        .capture = s->hooks.capture,
        .sides = s->hooks.sides,
        .cache = {.memory_bytes = (size_t)c->lake.memory,
                  .disk_bytes = c->lake.disk,
                  .log = s->log},
        .drop_again_ms = c->lake.drop_again_ms,
        .hook_waiters_max = (size_t)c->http.threads / 4,
        .gc_grace_ms = c->lake.gc_grace_ms,
        .gc_day_ms = c->lake.gc_day_ms,
        .claim_every_ms = room_claim_every_ms(c),
        .log = s->log,
    };

    services_path(s, "lake", &folder);
    r->folder = buf_take(&folder);
    o.cache.folder = c->lake.disk ? r->folder : NULL;
    services_path(s, "lake-gc", &folder);
    r->gc_folder = buf_take(&folder);
    o.folder = r->gc_folder;
    services_path(s, "encryption.keys", &folder);
    r->keys = keyring_new(folder.p);
    buf_release(&folder);
    o.keys = r->keys;
    int code = open_room_actions(r, err);
    if (code < 0)
        return code;
    o.hooks = lake_actions_hooks(r->actions);
    return lake_open(&r->lake, &o, err);
}

static int open_room_space(struct lake_room *r, struct err *err)
{
    const struct services *s = r->services;
    struct lake_space_options o = {.lake = r->lake, .store = s->stores[CONFIG_DB], .log = s->log};
    int code = lake_space_open(&r->space, &o, err);

    return code < 0 ? code : routes_add_space(s->routes, lake_space_buckets(r->space), err);
}

static bool lake_part_stop(void *state, struct services *s)
{
    struct lake_room *r = state;

    if (r->lake)
        lake_claims_stop(r->lake);
    lake_web_close(&r->web);
    lake_space_close(r->space);
    lake_close(r->lake);
    lake_actions_free(r->actions);
    keyring_free(r->keys);
    free(r->folder);
    free(r->gc_folder);
    r->space = NULL;
    r->lake = NULL;
    return true;
}

static int lake_part_start(void *state, struct services *s, struct err *err)
{
    struct lake_room *r = state;

    r->services = s;
    int code = open_room_lake(r, err);
    if (code == 0)
        code = open_room_space(r, err);
    if (code == 0)
        code = lake_claims_start(r->lake, err);
    if (code == 0)
        code = lake_web_open(&r->web, r->lake, s, err);
    if (code < 0)
        lake_part_stop(state, s);
    return code < 0 ? err_wrap(err, code, "the lake") : 0;
}

/* --- work in the background --- */

static int lake_work_start(void *state, struct services *s, struct err *err)
{
    struct lake_room *r = state;
    int code = 0;

    lake_tasks_init(&r->tasks, r->lake, r->actions);
    if (services_has_role(s, "worker"))
        code = lake_keeper_start(&r->keeper, r->lake, s->queue, s->conf->lake.gc_every_ms, err);
    if (code == 0)
        r->mover = lake_mover_new(r->lake);
    else
        lake_tasks_release(&r->tasks);
    return code;
}

static bool lake_work_stop(void *state, struct services *s)
{
    struct lake_room *r = state;

    lake_keeper_stop(&r->keeper);
    lake_mover_free(r->mover);
    r->mover = NULL;
    lake_actions_abort(r->actions);
    lake_tasks_release(&r->tasks);
    return true;
}

static void lake_list_tasks(void *state, room_tasks *out)
{
    struct lake_room *r = state;

    lake_tasks_list(&r->tasks, out);
}

static const struct room_part lake_parts[] = {
    {ROOM_STORAGES, lake_part_start, lake_part_stop},
    {ROOM_WORK, lake_work_start, lake_work_stop},
};

static const struct queue_weight lake_queues[] = {
    {LAKE_QUEUE, LAKE_QUEUE_WEIGHT},
};

const struct room lake_room = {
    .name = "lake",
    .state_size = sizeof(struct lake_room),
    ROOM_ROWS(part, lake_parts),
    ROOM_ROWS(queue, lake_queues),
    .tasks = lake_list_tasks,
    .routes = lake_routes,
    .commands = lake_commands,
    ROOM_ROWS(metric, lake_metrics),
    .count = lake_count,
};
