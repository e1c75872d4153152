/* The parts of the shard room:
 * - "table" finds the sharded buckets of every storage that can have some, and gives the overlay to
 * the routes. It starts before the parts of other rooms, because these open buckets.
 * - "mover" moves keys, and begins splits and merges. */
#include "shard/room.h"

#include "base/clock.h"
#include "os/file.h"
#include "route/route.h"
#include "shard/discover.h"
#include "sign/hmac.h"

#include <limits.h>

enum { LOOK_AGAIN_MS = MS_PER_S, HOUSE_BYTES = 8 };

/* --- functions that the table, the mover and the plan call --- */

static int room_recover(void *ctx, struct sharded *x, bool *serves, struct err *err)
{
    const struct shard_room *r = ctx;

    return mover_recover(r->mover, x, serves, err);
}

static int room_remove(void *ctx, struct sharded *x, struct str user, struct err *err)
{
    const struct shard_room *r = ctx;

    return mover_remove(r->mover, x, user, err);
}

static bool room_rests(void *ctx, const struct sharded *x)
{
    const struct room_hooks *hooks = &((const struct shard_room *)ctx)->services->hooks;

    return hooks->rests && hooks->rests(hooks->rests_ctx, x->home, x->name);
}

static bool room_moves(void *ctx, const struct storage *storage, struct str bucket)
{
    const struct shard_room *r = ctx;
    struct sharded *x = shards_find(r->shards, storage, bucket);
    bool works = x && mover_works(r->mover, x);

    sharded_unref(x);
    return works;
}

static void room_plain(void *ctx, struct sharded *x)
{
    const struct shard_room *r = ctx;

    shards_plain(r->shards, x);
}

static void room_gone(void *ctx, struct sharded *x)
{
    const struct shard_room *r = ctx;

    shards_gone(r->shards, x);
}

static void room_each(void *ctx, void (*each)(void *arg, struct sharded *x), void *arg)
{
    const struct shard_room *r = ctx;
    struct shards_item *list;
    size_t count = shards_list(r->shards, &list);

    for (size_t i = 0; i < count; i++)
        if (list[i].sharded)
            each(arg, list[i].sharded);
    shards_list_free(list, count);
}

/* --- the table --- */

/* Computes the member `house` of a map, the mark of an installation of weir: a hash of the key
 * file, which all weirs of one store share (H14). */
static int room_house(const struct services *s, struct buf *out, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX), key = BUF_INIT(64 * KIB);
    unsigned char hash[SHA256_LEN];

    services_path(s, "secrets.key", &path);
    int code = file_read(path.p, &key, err);
    if (code == 0 || code == ERR_NOT_FOUND) {
        sha256(buf_str(&key), hash);
        buf_append_hex(out, hash, HOUSE_BYTES);
        code = 0;
    }
    buf_release(&path);
    buf_release(&key);
    return code;
}

/* Finds the sharded buckets of every storage that can have some. *missing: a storage's folder is
 * missing, so requests to its sharded buckets fail until it is back. */
static int room_discover(struct shard_room *r, bool *missing, struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(r->services->routes, all, ARRAY_SIZE(all));
    int code = 0;

    *missing = false;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (!place_of(all[i]))
            continue;
        code = discover_storage(r->shards, all[i], err);
        *missing |= code == ERR_OFFLINE;
        code = code == ERR_OFFLINE ? 0 : code;
    }
    return code;
}

static struct loop_sleep room_look(void *ctx)
{
    struct shard_room *r = ctx;
    struct err err = {0};
    bool missing = true;

    if (room_discover(r, &missing, &err) < 0)
        log_warn(r->services->log, "shard.not_found", log_z("error", err.text));
    return missing ? loop_sleep_ms(LOOK_AGAIN_MS) : loop_until_woken();
}

static bool table_stop(void *state, struct services *s)
{
    struct shard_room *r = state;

    if (r->looks)
        loop_stop(&r->looker);
    s->hooks.moves = NULL;
    routes_set_overlay(s->routes, NULL);
    mover_free(r->mover);
    shards_free(r->shards);
    r->mover = NULL;
    r->shards = NULL;
    return true;
}

static int table_start(void *state, struct services *s, struct err *err)
{
    struct shard_room *r = state;
    struct mover_options mover = {
        .log = s->log, .rests = room_rests, .plain = room_plain, .gone = room_gone, .ctx = r};
    struct loop_options looker = {
        .name = "shard-looker", .step = room_look, .ctx = r, .first = loop_sleep_ms(LOOK_AGAIN_MS)};
    struct buf house = BUF_INIT(64);
    bool missing = false;
    int code = room_house(s, &house, err);

    r->services = s;
    struct shards_options o = {.routes = s->routes,
                               .house = buf_str(&house),
                               .recover = room_recover,
                               .remove = room_remove,
                               .ctx = r,
                               .log = s->log};
    r->shards = shards_new(&o);
    r->mover = mover_new(&mover);
    buf_release(&house);
    if (code == 0)
        code = room_discover(r, &missing, err);
    if (code == 0)
        routes_set_overlay(s->routes, shards_overlay(r->shards));
    s->hooks.moves = room_moves;
    s->hooks.moves_ctx = r;
    if (code == 0 && missing) {
        code = loop_start(&r->looker, &looker, err);
        r->looks = code == 0;
    }
    if (code < 0)
        table_stop(state, s);
    return code < 0 ? err_wrap(err, code, "the sharded buckets") : 0;
}

/* --- the mover --- */

static bool moves_stop(void *state, struct services *s)
{
    struct shard_room *r = state;

    plan_stop(r->plan);
    plan_free(r->plan);
    r->plan = NULL;
    mover_stop(r->mover);
    return true;
}

static int moves_start(void *state, struct services *s, struct err *err)
{
    struct shard_room *r = state;
    struct plan_options o = {.mover = r->mover,
                             .log = s->log,
                             .list = room_each,
                             .ctx = r,
                             .threshold = s->conf->shard.threshold,
                             .automatic = s->conf->shard.automatic};
    int code = mover_start(r->mover, err);

    atomic_store(&r->threshold, s->conf->shard.threshold);
    if (code < 0)
        return code;
    r->plan = plan_new(&o);
    code = plan_start(r->plan, err);
    if (code < 0) {
        plan_free(r->plan);
        r->plan = NULL;
        mover_stop(r->mover);
    }
    return code;
}

static void moves_reload(void *state, const struct conf *next)
{
    struct shard_room *r = state;

    atomic_store(&r->threshold, next->shard.threshold);
    plan_configure(r->plan, next->shard.threshold, next->shard.automatic);
}

/* --- the room --- */

static const struct room_part shard_parts[] = {
    {ROOM_STORAGES, table_start, table_stop},
    {ROOM_WORK, moves_start, moves_stop},
};

static const struct rest_table *const shard_rest_tables[] = {&shard_routes, NULL};
static const struct command *const shard_command_tables[] = {shard_commands, NULL};

const struct room shard_room = {
    .name = "shard",
    .state_size = sizeof(struct shard_room),
    ROOM_ROWS(part, shard_parts),
    .routes = shard_rest_tables,
    .commands = shard_command_tables,
    ROOM_ROWS(metric, shard_metrics),
    .count = shard_count,
    .reload = moves_reload,
};
