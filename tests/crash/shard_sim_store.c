/* A store for the simulation of sharding: weir's scripts run in Lua, over a table of keys that can
 * be emptied and taken back to an earlier moment (shard_sim.h). */
#include "crash/shard_sim.h"
#include "base/vec.h"
#include "coord/scripts.h"
#include "coord/shards.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STORE_FAST_MS = 3,
    STORE_SLOW_MS = 900,
    STORE_PATIENCE_MS = 2000,
    STORE_SLOW_PERCENT = 3,
    STORE_LOST_PERCENT = 1,
    NEWS_LOST_PERCENT = 20,
    SNAPSHOT_MS = 250,
    SNAPSHOTS = 12, /* a failover forgets at most the last SNAPSHOTS * SNAPSHOT_MS */
};

/* The commands that the scripts use. DB has the keys, NOW the time in s, RUN the server's run. */
static const char prelude[] =
    "DB, NOW, RUN, NEWS, OLD = {}, 0, 1, {}, {}\n"
    "local C = {}\n"
    "local function hash(k) local h = DB[k] if not h then h = {} DB[k] = h end return h end\n"
    "local function text(v) return type(v) == 'number' and string.format('%.17g', v) or v end\n"
    "function C.HGET(k, f) return DB[k] and DB[k][f] or false end\n"
    "function C.HEXISTS(k, f) return DB[k] and DB[k][f] and 1 or 0 end\n"
    "function C.HSET(k, ...) for i = 1, select('#', ...), 2 do local f, v = select(i, ...)\n"
    "  hash(k)[f] = text(v) end return 1 end\n"
    "function C.HDEL(k, f) if DB[k] then DB[k][f] = nil end return 1 end\n"
    "function C.HGETALL(k) local out = {} for f, v in pairs(DB[k] or {}) do\n"
    "  out[#out + 1] = f out[#out + 1] = v end return out end\n"
    "function C.HKEYS(k) local out = {} for f in pairs(DB[k] or {}) do out[#out + 1] = f end\n"
    "  return out end\n"
    "function C.HMGET(k, ...) local out = {} for i = 1, select('#', ...) do\n"
    "  out[i] = C.HGET(k, (select(i, ...))) end return out end\n"
    "function C.HINCRBY(k, f, n) local h = hash(k) h[f] = text((tonumber(h[f]) or 0) + n)\n"
    "  return tonumber(h[f]) end\n"
    "function C.GET(k) return DB[k] or false end\n"
    "function C.SET(k, v) DB[k] = text(v) return {ok = 'OK'} end\n"
    "function C.DEL(...) for i = 1, select('#', ...) do DB[(select(i, ...))] = nil end return 1 "
    "end\n"
    "function C.PUBLISH(c, m) NEWS[#NEWS + 1] = m return 0 end\n"
    "function C.SELECT() return {ok = 'OK'} end\n"
    "function C.TIME() return {text(NOW), '0'} end\n"
    "function C.INFO() return 'run_id:r' .. RUN .. '\\r\\n' end\n"
    "redis = {call = function(name, ...) return C[name](...) end}\n"
    "redis.pcall = redis.call\n"
    "function redis.error_reply(t) return {err = t} end\n"
    "function COPY(t) local out = {} for k, v in pairs(t) do\n"
    "  out[k] = type(v) == 'table' and COPY(v) or v end return out end\n"
    "function KEEP(most) table.insert(OLD, COPY(DB)) if #OLD > most then table.remove(OLD, 1) end "
    "end\n"
    "function BACK(n) DB, RUN = COPY(OLD[math.max(1, #OLD - n)]), RUN + 1 OLD = {COPY(DB)} end\n"
    "function RUN_ONE(f, argv) KEYS, ARGV = {}, argv return f() end\n"
    "function COMMAND(name, ...) return C[name](...) end\n"
    "function WORD_OF(p) return C.HGET('w:gateways', p) or '' end\n"
    "function FLUSH() DB = {} end\n"
    "function RESET() DB, RUN, NEWS, OLD = {}, 1, {}, {{}} end\n";

static lua_State *L;

/* A subscriber of the channel of the maps. */
struct store_subscription {
    store_message_fn *fn;
    void *ctx;
};
static VEC(struct store_subscription *) subscribers;

struct store *store_handle(void)
{
    return (struct store *)&world;
}

/* --- Lua --- */

static void lua_must(int code)
{
    if (code == 0)
        return;
    fprintf(stderr, "lua: %s\n", lua_tostring(L, -1));
    abort();
}

static void lua_number_call(const char *name, double number)
{
    lua_getglobal(L, name);
    lua_pushnumber(L, number);
    lua_must(lua_pcall(L, 1, 0, 0));
}

static struct reply lua_reply(struct arena *a, int at)
{
    struct reply r = {.type = REPLY_NIL};
    size_t len = 0;

    switch (lua_type(L, at)) {
    case LUA_TNUMBER:
        r = (struct reply){.type = REPLY_INTEGER, .integer = (int64_t)lua_tonumber(L, at)};
        break;
    case LUA_TSTRING: {
        const char *p = lua_tolstring(L, at, &len);
        r = (struct reply){.type = REPLY_BULK, .str = arena_str(a, str_n(p, len))};
        break;
    }
    case LUA_TTABLE:
        r = (struct reply){.type = REPLY_ARRAY, .count = lua_objlen(L, at)};
        r.items = arena_array(a, size_max(r.count, 1), sizeof(*r.items));
        for (size_t i = 0; i < r.count; i++) {
            lua_rawgeti(L, at, (int)i + 1);
            r.items[i] = lua_reply(a, lua_gettop(L));
            lua_pop(L, 1);
        }
        break;
    default:
        break;
    }
    return r;
}

static void store_start(void)
{
    L = luaL_newstate();
    luaL_openlibs(L);
    lua_must(luaL_loadbuffer(L, prelude, sizeof(prelude) - 1, "prelude"));
    lua_must(lua_pcall(L, 0, 0, 0));
}

static void store_keep(void *ctx)
{
    lua_number_call("KEEP", SNAPSHOTS);
    sim_at(sim_now() + SNAPSHOT_MS * NS_PER_MS, store_keep, NULL);
}

void store_reset(void)
{
    if (!L)
        store_start();
    lua_getglobal(L, "RESET");
    lua_must(lua_pcall(L, 0, 0, 0));
    lua_gc(L, LUA_GCCOLLECT, 0);
    subscribers.len = 0;
    sim_at(sim_now(), store_keep, NULL);
}

void store_flush(void)
{
    sim_trace("FLUSH");
    lua_getglobal(L, "FLUSH");
    lua_must(lua_pcall(L, 0, 0, 0));
}

void store_go_back(void)
{
    sim_trace("GO BACK");
    lua_number_call("BACK", (double)sim_random(SNAPSHOTS));
}

/* --- messages --- */

static void news_arrive(void *ctx)
{
    struct store_subscription *s = ctx;

    s->fn(s->ctx, SHARDS_CHANNEL, STR_EMPTY);
}

/* Passes on what the last script has published. */
static void store_deliver(void)
{
    lua_getglobal(L, "NEWS");
    size_t count = lua_objlen(L, -1);
    lua_pop(L, 1);
    if (count == 0)
        return;
    lua_newtable(L);
    lua_setglobal(L, "NEWS");
    for (size_t i = 0; i < subscribers.len; i++)
        if (!sim_chance(NEWS_LOST_PERCENT))
            sim_at(sim_now() + sim_random(20) * NS_PER_MS, news_arrive, subscribers.items[i]);
}

int __wrap_store_subscribe(struct store_subscription **out, struct store *s, struct str channel,
                           store_message_fn *fn, void *ctx, struct err *err);
int __wrap_store_subscribe(struct store_subscription **out, struct store *s, struct str channel,
                           store_message_fn *fn, void *ctx, struct err *err)
{
    struct store_subscription *sub = xzalloc(sizeof(*sub));

    *sub = (struct store_subscription){fn, ctx};
    vec_push(&subscribers, sub);
    *out = sub;
    return 0;
}

/* --- requests --- */

/* A request on its way. It outlives its sender. */
struct store_request {
    const char *source; /* of a script; NULL: a command */
    struct str *argv;
    size_t argc;
    bool answered;
    struct arena arena;
    struct reply reply;
};

/* Pushes a script's function, which is compiled once. */
static void lua_push_script(const char *source)
{
    lua_pushlightuserdata(L, (void *)source);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_isnil(L, -1))
        return;
    lua_pop(L, 1);
    lua_must(luaL_loadbuffer(L, source, strlen(source), "script"));
    lua_pushlightuserdata(L, (void *)source);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

/* Gives the question the word that the store has of the asker, so that the store never seems to
 * have forgotten it. */
static void question_forgive(struct store_request *r)
{
    lua_getglobal(L, "WORD_OF");
    lua_pushlstring(L, r->argv[3].p, r->argv[3].len);
    lua_must(lua_pcall(L, 1, 1, 0));
    r->argv[4] = arena_str(&r->arena, str_z(lua_tostring(L, -1)));
    lua_getglobal(L, "RUN");
    r->argv[5] = arena_fmt(&r->arena, "r%d", (int)lua_tointeger(L, -1));
    lua_pop(L, 2);
}

static void store_land(void *ctx)
{
    struct store_request *r = ctx;
    int count = (int)r->argc;
    uint64_t now_s = sim_now() / NS_PER_S;

    if (r->source && world.without == RULE_MEMORY &&
        r->source == coord_script(SCRIPT_shards_held)->source.p)
        question_forgive(r);
    lua_pushnumber(L, (double)now_s);
    lua_setglobal(L, "NOW");
    lua_getglobal(L, r->source ? "RUN_ONE" : "COMMAND");
    if (r->source) {
        lua_push_script(r->source);
        lua_createtable(L, count, 0);
    }
    for (int i = 0; i < count; i++) {
        lua_pushlstring(L, r->argv[i].len ? r->argv[i].p : "", r->argv[i].len);
        if (r->source)
            lua_rawseti(L, -2, i + 1);
    }
    lua_must(lua_pcall(L, r->source ? 2 : count, 1, 0));
    r->reply = lua_reply(&r->arena, lua_gettop(L));
    lua_pop(L, 1);
    store_deliver();
}

static void store_answer(void *ctx)
{
    struct store_request *r = ctx;

    r->answered = true;
    sim_wake(r);
}

static uint64_t store_delay(void)
{
    return (1 + sim_random(sim_chance(STORE_SLOW_PERCENT) ? STORE_SLOW_MS : STORE_FAST_MS)) *
           NS_PER_MS;
}

static struct reply store_reply_copy(struct arena *a, const struct reply *from)
{
    struct reply r = *from;

    r.str = arena_str(a, from->str);
    r.items = arena_array(a, size_max(r.count, 1), sizeof(*r.items));
    for (size_t i = 0; i < r.count; i++)
        r.items[i] = store_reply_copy(a, &from->items[i]);
    return r;
}

static int store_send(struct store_request *r, struct arena *a, struct reply **out, struct err *err)
{
    uint64_t deadline = sim_now() + STORE_PATIENCE_MS * NS_PER_MS;
    uint64_t lands = sim_now() + store_delay();

    if (process_is_cut_off()) {
        sim_sleep((1 + sim_random(STORE_PATIENCE_MS)) * NS_PER_MS);
        return err_set(err, ERR_UNAVAILABLE, "cut off");
    }
    sim_at(lands, store_land, r);
    if (!sim_chance(STORE_LOST_PERCENT))
        sim_at(lands + store_delay(), store_answer, r);
    while (!r->answered)
        if (!sim_wait(r, deadline) && !r->answered)
            return err_set(err, ERR_TIMEOUT, "no answer");
    *out = arena_new(a, struct reply);
    **out = store_reply_copy(a, &r->reply);
    return 0;
}

static struct store_request *store_request(const char *source, const struct str *argv, size_t argc)
{
    struct store_request *r = xzalloc(sizeof(*r));

    r->source = source;
    r->argc = argc;
    r->argv = arena_array(&r->arena, size_max(argc, 1), sizeof(*r->argv));
    for (size_t i = 0; i < argc; i++)
        r->argv[i] = arena_str(&r->arena, argv[i]);
    return r;
}

int __wrap_script_eval(struct store *s, struct arena *a, struct reply **out,
                       const struct script_run *run, struct err *err);
int __wrap_script_eval(struct store *s, struct arena *a, struct reply **out,
                       const struct script_run *run, struct err *err)
{
    struct store_request *r = store_request(run->script->source.p, run->args.argv, run->args.argc);

    /* ARGV[3] of the question who holds a map: how long the word of a process counts. */
    if (world.without == RULE_SILENT && run->script == coord_script(SCRIPT_shards_held))
        r->argv[2] = STR("1");
    return store_send(r, a, out, err);
}

int __wrap_store_command(struct store *s, struct arena *a, struct reply **out,
                         const struct str *argv, size_t argc, struct err *err);
int __wrap_store_command(struct store *s, struct arena *a, struct reply **out,
                         const struct str *argv, size_t argc, struct err *err)
{
    return store_send(store_request(NULL, argv, argc), a, out, err);
}
