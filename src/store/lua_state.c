/* A Lua state in which scripts can do no harm: it limits memory and time, gives no access to files
 * or bytecode, and protects the tables of the library from changes. */
#include "store/lua_int.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

/* Lua instructions between two checks of the time; they take well under a millisecond. */
enum { HOOK_EVERY = 100000 };

/* The state of drand48() before it is seeded. */
static const uint64_t random_start = 0x1234abcd330e;

static void *allocate(void *ud, void *p, size_t old, size_t size)
{
    struct lua_vm *vm = ud;
    void *fresh;

    if (size == 0) {
        vm->bytes -= old;
        free(p);
        return NULL;
    }
    if (size > old && vm->bytes + (size - old) > LUA_LIMIT_BYTES)
        vm->out_of_memory = true;
    fresh = vm->out_of_memory && size > old ? NULL : realloc(p, size);
    if (fresh)
        vm->bytes += size - old;
    return fresh;
}

struct lua_vm *lua_vm_of(lua_State *L)
{
    void *ud;
    lua_getallocf(L, &ud);
    return ud;
}

/* Ends a script that has passed its deadline. From then on every instruction fails, so the script
 * cannot go on inside a pcall. */
static void check_time(lua_State *L, lua_Debug *ar)
{
    struct lua_vm *vm = lua_vm_of(L);

    if (!vm->timed_out && clock_mono_ns() < vm->deadline_ns)
        return;
    vm->timed_out = true;
    lua_sethook(L, check_time, LUA_MASKCOUNT, 1);
    luaL_error(L, "script ran out of time");
}

static int readonly_error(lua_State *L)
{
    return luaL_error(L, "Attempt to modify a readonly table");
}

static int missing_global(lua_State *L)
{
    return luaL_error(L, "Script attempted to access nonexistent global variable '%s'",
                      lua_tostring(L, 2));
}

/* Replaces the table on top of the stack by an empty table that cannot be written. Reads from the
 * empty table go to the replaced one. */
static void push_readonly(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, readonly_error);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

static bool is_readonly(lua_State *L, int index)
{
    bool yes;

    if (!luaL_getmetafield(L, index, "__newindex"))
        return false;
    yes = lua_tocfunction(L, -1) == readonly_error;
    lua_pop(L, 1);
    return yes;
}

static int refuse_readonly(lua_State *L)
{
    lua_pushliteral(L, "Attempt to modify a readonly table");
    return lua_error(L);
}

static int safe_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    if (is_readonly(L, 1))
        return refuse_readonly(L);
    lua_settop(L, 3);
    lua_rawset(L, 1);
    return 1;
}

static int safe_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, lua_isnoneornil(L, 2) || lua_istable(L, 2), 2, "nil or table expected");
    if (is_readonly(L, 1))
        return refuse_readonly(L);
    if (luaL_getmetafield(L, 1, "__metatable"))
        return luaL_error(L, "cannot change a protected metatable");
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

static int safe_loadstring(lua_State *L)
{
    size_t len;
    const char *source = luaL_checklstring(L, 1, &len);
    const char *name = luaL_optstring(L, 2, source);

    if (len && source[0] == LUA_SIGNATURE[0]) {
        lua_pushnil(L);
        lua_pushliteral(L, "bytecode is not allowed");
        return 2;
    }
    if (luaL_loadbuffer(L, source, len, name) == 0)
        return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

/* pcall() for scripts: an error table becomes its text, as scripts for Redis expect. */
static int safe_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    if (lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0) == 0) {
        lua_pushboolean(L, 1);
        lua_insert(L, 1);
        return lua_gettop(L);
    }
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "err");
        if (lua_isstring(L, -1))
            lua_replace(L, -2);
        else
            lua_pop(L, 1);
    }
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

/* collectgarbage() for scripts: only "count" has an effect, because the state outlives the
 * script. */
static int safe_collectgarbage(lua_State *L)
{
    bool count = strcmp(luaL_optstring(L, 1, "collect"), "count") == 0;
    lua_pushnumber(L, count ? (lua_Number)lua_gc(L, LUA_GCCOUNT, 0) : 0);
    return 1;
}

static uint32_t random_next(struct lua_vm *vm)
{
    vm->random = (vm->random * 0x5deece66d + 0xb) & 0xffffffffffff;
    return (uint32_t)(vm->random >> 17);
}

static int math_random(lua_State *L)
{
    lua_Number r = (lua_Number)(random_next(lua_vm_of(L)) % INT32_MAX) / (lua_Number)INT32_MAX;
    lua_Number low = 1, high;

    if (lua_gettop(L) == 0) {
        lua_pushnumber(L, r);
        return 1;
    }
    if (lua_gettop(L) > 2)
        return luaL_error(L, "wrong number of arguments");
    if (lua_gettop(L) == 2)
        low = luaL_checkint(L, 1);
    high = luaL_checkint(L, lua_gettop(L));
    luaL_argcheck(L, low <= high, lua_gettop(L), "interval is empty");
    lua_pushnumber(L, floor(r * (high - low + 1)) + low);
    return 1;
}

static int math_randomseed(lua_State *L)
{
    lua_vm_of(L)->random = ((uint64_t)(uint32_t)luaL_checkint(L, 1) << 16) + 0x330e;
    return 0;
}

static const struct {
    const char *table; /* NULL: the function is global */
    const char *name;
    lua_CFunction fn; /* NULL: the function is removed */
} changes[] = {
    {NULL, "dofile", NULL},
    {NULL, "loadfile", NULL},
    {NULL, "load", NULL},
    {NULL, "print", NULL},
    {NULL, "newproxy", NULL},
    {NULL, "getfenv", NULL},
    {NULL, "setfenv", NULL},
    {NULL, "loadstring", safe_loadstring},
    {NULL, "pcall", safe_pcall},
    {NULL, "rawset", safe_rawset},
    {NULL, "setmetatable", safe_setmetatable},
    {NULL, "collectgarbage", safe_collectgarbage},
    {"math", "random", math_random},
    {"math", "randomseed", math_randomseed},
};

static const struct {
    const char *name;
    lua_CFunction open;
} libraries[] = {
    {"", luaopen_base},
    {LUA_TABLIBNAME, luaopen_table},
    {LUA_STRLIBNAME, luaopen_string},
    {LUA_MATHLIBNAME, luaopen_math},
};

static void open_libraries(lua_State *L)
{
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
        lua_pushcfunction(L, libraries[i].open);
        lua_pushstring(L, libraries[i].name);
        lua_call(L, 1, 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        if (changes[i].table)
            lua_getglobal(L, changes[i].table);
        else
            lua_pushvalue(L, LUA_GLOBALSINDEX);
        if (changes[i].fn)
            lua_pushcfunction(L, changes[i].fn);
        else
            lua_pushnil(L);
        lua_setfield(L, -2, changes[i].name);
        lua_pop(L, 1);
    }
}

static void protect_libraries(lua_State *L)
{
    static const char *const tables[] = {"string", "table", "math", "coroutine", "redis"};

    lua_pushliteral(L, "");
    /* The metatable of all strings is hidden, or scripts could change `string` through it. */
    if (lua_getmetatable(L, -1)) {
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        lua_getglobal(L, tables[i]);
        push_readonly(L);
        lua_setglobal(L, tables[i]);
    }
}

/* Gives scripts an empty global table, whose reads go to the real global table. To read a name that
 * the real table does not have is an error. */
static void protect_globals(lua_State *L, struct lua_vm *vm)
{
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    vm->globals = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    lua_newtable(L);
    lua_pushcfunction(L, missing_global);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    push_readonly(L);
    lua_pushvalue(L, -1);
    lua_setglobal(L, "_G");
    lua_replace(L, LUA_GLOBALSINDEX);
}

static int vm_prepare(lua_State *L)
{
    struct lua_vm *vm = lua_touserdata(L, 1);

    open_libraries(L);
    lua_push_redis(L);
    lua_setglobal(L, "redis");
    protect_libraries(L);
    protect_globals(L, vm);
    lua_newtable(L);
    vm->compiled = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

struct lua_vm *lua_vm_new(void)
{
    struct lua_vm *vm = xcalloc(1, sizeof(*vm));

    arena_init(&vm->scratch, 0);
    vm->random = random_start;
    vm->L = lua_newstate(allocate, vm);
    if (!vm->L || lua_cpcall(vm->L, vm_prepare, vm) != 0) {
        lua_vm_free(vm);
        return NULL;
    }
    lua_sethook(vm->L, check_time, LUA_MASKCOUNT, HOOK_EVERY);
    return vm;
}

void lua_vm_free(struct lua_vm *vm)
{
    if (!vm)
        return;
    if (vm->L) {
        lua_sethook(vm->L, NULL, 0, 0);
        lua_close(vm->L);
    }
    arena_release(&vm->scratch);
    free(vm);
}
