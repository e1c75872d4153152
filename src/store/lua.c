/* Running scripts: the pool of Lua states, compiled scripts, and the sources known by digest. */
#include "store/lua_int.h"

#include "base/clock.h"
#include "base/map.h"

#include <stdlib.h>

enum { SLOTS = 8, KNOWN_MAX = 10000, KNOWN_MAX_BYTES = 64 * 1024 * 1024 };

/* A place for an idle Lua state. It fills a cache line, so that threads that use different slots do
 * not slow each other down. */
struct slot {
    _Atomic(struct lua_vm *) vm;
    char apart[64 - sizeof(void *)];
};

struct known {
    char sha1[41];
    struct str source;
    char bytes[];
};

struct lua_pool {
    /* The idle states. A thread always looks into the same slot first, so that a state stays in one
     * CPU's cache. */
    struct slot idle[SLOTS];
    _Atomic(uint64_t) limit_ms;
    /* Number of SCRIPT FLUSH commands so far. A state that last ran under another number is
     * freed. */
    _Atomic(uint64_t) flushes;
    struct mutex lock; /* guards the members below */
    struct map known;  /* maps a digest to a struct known */
    size_t known_bytes;
};

static void forget_all(struct lua_pool *pool)
{
    size_t cursor = 0;
    struct str key;
    void *known;

    while (map_next(&pool->known, &cursor, &key, &known)) {
        map_remove(&pool->known, key);
        free(known);
    }
    pool->known_bytes = 0;
}

struct lua_pool *lua_pool_new(void)
{
    struct lua_pool *pool = xcalloc(1, sizeof(*pool));

    mutex_init(&pool->lock, "store.lua");
    map_init(&pool->known);
    atomic_init(&pool->limit_ms, LUA_LIMIT_MS);
    return pool;
}

void lua_pool_free(struct lua_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        lua_vm_free(atomic_load(&pool->idle[i].vm));
    forget_all(pool);
    map_release(&pool->known);
    mutex_release(&pool->lock);
    free(pool);
}

void embedded_limit_scripts(struct store *s, uint64_t ms)
{
    atomic_store(&embedded_of(s)->lua->limit_ms, ms);
}

/* Returns the i-th slot that this thread looks into. A thread always begins with the same slot. */
static struct slot *slot_at(struct lua_pool *pool, size_t i)
{
    static _Atomic(size_t) threads;
    static _Thread_local size_t self;

    if (self == 0)
        self = 1 + atomic_fetch_add(&threads, 1);
    return &pool->idle[(self + i) % SLOTS];
}

static struct lua_vm *take_vm(struct lua_pool *pool)
{
    uint64_t flushes = atomic_load(&pool->flushes);
    struct lua_vm *vm = NULL;

    for (size_t i = 0; i < SLOTS && !vm; i++) {
        vm = atomic_exchange(&slot_at(pool, i)->vm, NULL);
        if (vm && vm->flushes != flushes) {
            lua_vm_free(vm);
            vm = NULL;
        }
    }
    if (!vm)
        vm = lua_vm_new();
    if (vm)
        vm->flushes = flushes;
    return vm;
}

/* Puts a state back into the pool. The state is freed if it ran into a limit, has compiled too many
 * scripts, finds no empty slot, or holds too much memory, which would count against the limit of
 * the next script. */
static void give_vm(struct lua_pool *pool, struct lua_vm *vm)
{
    bool keep = !vm->out_of_memory && !vm->timed_out && vm->bytes <= LUA_KEEP_BYTES &&
                vm->compiled_count < LUA_MAX_COMPILED;

    arena_reset(&vm->scratch);
    vm->call = NULL;
    vm->script = NULL;
    for (size_t i = 0; i < SLOTS && keep; i++) {
        struct lua_vm *none = NULL;
        if (atomic_compare_exchange_strong(&slot_at(pool, i)->vm, &none, vm))
            return;
    }
    lua_vm_free(vm);
}

/* --- the known sources of scripts --- */

void script_digest(struct str source, char sha1[41])
{
    struct script script = {.source = source};
    script_init(&script);
    memcpy(sha1, script.sha1, sizeof(script.sha1));
}

void script_remember(struct embedded *e, const struct script_call *s)
{
    struct lua_pool *pool = e->lua;
    struct known *known;
    size_t size = sizeof(*known) + s->source.len;

    mutex_lock(&pool->lock);
    if (!map_get(&pool->known, str_n(s->sha1, 40)) && pool->known.len < KNOWN_MAX &&
        size <= KNOWN_MAX_BYTES - pool->known_bytes) {
        known = xzalloc(size);
        memcpy(known->sha1, s->sha1, sizeof(known->sha1));
        if (s->source.len)
            memcpy(known->bytes, s->source.p, s->source.len);
        known->source = str_n(known->bytes, s->source.len);
        map_put(&pool->known, str_n(known->sha1, 40), known);
        pool->known_bytes += size;
    }
    mutex_unlock(&pool->lock);
}

bool script_known(struct embedded *e, struct str sha1)
{
    bool known;

    mutex_lock(&e->lua->lock);
    known = map_get(&e->lua->known, sha1) != NULL;
    mutex_unlock(&e->lua->lock);
    return known;
}

void script_flush(struct embedded *e)
{
    mutex_lock(&e->lua->lock);
    atomic_fetch_add(&e->lua->flushes, 1);
    forget_all(e->lua);
    mutex_unlock(&e->lua->lock);
}

static struct str known_source(struct lua_pool *pool, const struct script_call *s, struct arena *a)
{
    struct known *known;
    struct str source = STR_EMPTY;

    mutex_lock(&pool->lock);
    known = map_get(&pool->known, str_n(s->sha1, 40));
    if (known)
        source = arena_str(a, known->source);
    mutex_unlock(&pool->lock);
    return source;
}

/* --- compiling scripts --- */

/* Compiles a script and leaves its function on the stack. False: the stack has the error message
 * instead. */
static bool compile(lua_State *L, struct str source)
{
    if (source.len && source.p[0] == LUA_SIGNATURE[0]) {
        lua_pushliteral(L, "user_script: bytecode is not allowed");
        return false;
    }
    return luaL_loadbuffer(L, source.p, source.len, "@user_script") == 0;
}

static void answer_compile_error(lua_State *L, struct call *c)
{
    struct str text =
        arena_fmt(c->arena, "ERR Error compiling script (new function): %s", lua_tostring(L, -1));
    lua_answer_error(c, c->reply, text);
}

/* Leaves the script's function on the stack, compiled if necessary. False: the call was answered
 * with an error. */
static bool push_script(lua_State *L, struct lua_vm *vm)
{
    const struct script_call *s = vm->script;
    struct str source = s->source;

    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->compiled);
    lua_getfield(L, -1, s->sha1);
    if (lua_isfunction(L, -1))
        return true;
    lua_pop(L, 1);
    if (!source.p)
        source = known_source(vm->call->run->e->lua, s, vm->call->arena);
    if (!source.p) {
        answer_error(vm->call, "NOSCRIPT No matching script. Please use EVAL.");
        return false;
    }
    if (!compile(L, source)) {
        answer_compile_error(L, vm->call);
        return false;
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, s->sha1);
    vm->compiled_count++;
    return true;
}

/* --- running scripts --- */

/* Lua's error handler: turns every error into a table that has the message and the place where the
 * error was raised. */
static int error_handler(lua_State *L)
{
    lua_Debug ar;
    bool found = lua_getstack(L, 1, &ar) && lua_getinfo(L, "Sl", &ar);

    if (found && strcmp(ar.what, "C") == 0)
        found = lua_getstack(L, 2, &ar) && lua_getinfo(L, "Sl", &ar);
    if (!lua_istable(L, 1)) {
        lua_createtable(L, 0, 3);
        lua_pushfstring(L, "ERR %s", lua_isstring(L, 1) ? lua_tostring(L, 1) : luaL_typename(L, 1));
        lua_setfield(L, -2, "err");
        lua_replace(L, 1);
    }
    lua_settop(L, 1);
    if (found) {
        lua_pushstring(L, ar.source);
        lua_setfield(L, 1, "source");
        lua_pushinteger(L, ar.currentline);
        lua_setfield(L, 1, "line");
    }
    return 1;
}

static void script_answer_failure(lua_State *L, struct lua_vm *vm)
{
    struct call *c = vm->call;
    const char *text, *source, *line;

    if (!lua_istable(L, -1)) {
        text = lua_isstring(L, -1) ? lua_tostring(L, -1) : "execution failure";
        answer_error(c, "ERR Error running script %s, %.100s", vm->script->sha1, text);
        return;
    }
    lua_getfield(L, -1, "err");
    lua_getfield(L, -2, "source");
    lua_getfield(L, -3, "line");
    text = lua_isstring(L, -3) ? lua_tostring(L, -3) : "ERR unknown error";
    source = lua_tostring(L, -2);
    line = lua_tostring(L, -1);
    if (source && line)
        lua_pushfstring(L, "%s script: %s, on %s:%s.", text, vm->script->sha1, source, line);
    else
        lua_pushstring(L, text);
    lua_answer_error(c, c->reply, str_z(lua_tostring(L, -1)));
}

static void set_strings(lua_State *L, struct lua_vm *vm, const char *name, const struct str *items,
                        size_t count)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
    lua_pushstring(L, name);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, items[i].len ? items[i].p : "", items[i].len);
        lua_rawseti(L, -2, (int)(i + 1));
    }
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* Runs the script. lua_cpcall() calls this function, because every step in it may raise a Lua
 * error. */
static int run_protected(lua_State *L)
{
    struct lua_vm *vm = lua_touserdata(L, 1);
    const struct script_call *s = vm->script;

    lua_pushcfunction(L, error_handler);
    if (!push_script(L, vm))
        return 0;
    set_strings(L, vm, "KEYS", s->keys, s->key_count);
    set_strings(L, vm, "ARGV", s->args, s->arg_count);
    if (lua_pcall(L, 0, 1, 2) != 0)
        script_answer_failure(L, vm);
    else
        lua_to_reply(L, vm->call, vm->call->reply, 0);
    return 0;
}

static void answer_limits(struct lua_vm *vm, int status)
{
    struct run *run = vm->call->run;

    if (run->code < 0)
        return;
    if (vm->timed_out)
        run_fail(run, err_set(run->err, ERR_TIMEOUT, "the script ran too long and was undone"));
    else if (vm->out_of_memory || status == LUA_ERRMEM)
        run_fail(run, err_set(run->err, ERR_NO_MEMORY, "the script used too much memory"));
    else if (status != 0)
        answer_error(vm->call, "ERR script failed");
}

/* Calls `fn` for the call `c` and the script `s`, in a Lua state from the pool. */
static void with_vm(struct call *c, const struct script_call *s, lua_CFunction fn)
{
    struct lua_pool *pool = c->run->e->lua;
    struct lua_vm *vm = take_vm(pool);

    if (!vm) {
        run_fail(c->run, err_code(c->run->err, ERR_NO_MEMORY));
        return;
    }
    vm->call = c;
    vm->script = s;
    vm->deadline_ns = clock_mono_ns() + atomic_load(&pool->limit_ms) * NS_PER_MS;
    for (size_t i = 0; i < OWNER_SLOTS; i++)
        vm->owners.slots[i].used = false;
    c->run->owners = &vm->owners;
    answer_limits(vm, lua_cpcall(vm->L, fn, vm));
    c->run->owners = NULL;
    c->run->e = c->run->home;
    lua_settop(vm->L, 0);
    give_vm(pool, vm);
}

void script_run(struct call *c, const struct script_call *s)
{
    with_vm(c, s, run_protected);
}

static int load_protected(lua_State *L)
{
    struct lua_vm *vm = lua_touserdata(L, 1);

    if (push_script(L, vm))
        *vm->call->reply = as_bulk(arena_str(vm->call->arena, str_n(vm->script->sha1, 40)));
    return 0;
}

void script_load(struct call *c, struct str source)
{
    struct script_call s = {.source = source.p ? source : STR("")};

    script_digest(source, s.sha1);
    with_vm(c, &s, load_protected);
    if (c->reply->type == REPLY_BULK)
        script_remember(c->run->e, &s);
}
