/* The table `redis` that scripts see, and the conversion between Lua values and replies. */
#include "store/lua_int.h"

#include <math.h>
#include <stdio.h>

enum { REPLY_MAX_DEPTH = 200 }; /* levels of nested tables in a script's result */

/* --- converting replies to Lua values --- */

static void push_field(lua_State *L, const char *field, struct str s)
{
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, s.len ? s.p : "", s.len);
    lua_setfield(L, -2, field);
}

static void push_reply(lua_State *L, const struct reply *r)
{
    luaL_checkstack(L, 4, "reply too deep");
    switch (r->type) {
    case REPLY_NIL:
        lua_pushboolean(L, 0);
        break;
    case REPLY_STATUS:
        push_field(L, "ok", r->str);
        break;
    case REPLY_ERROR:
        push_field(L, "err", r->str);
        break;
    case REPLY_INTEGER:
        lua_pushnumber(L, (lua_Number)r->integer);
        break;
    case REPLY_BULK:
        lua_pushlstring(L, r->str.len ? r->str.p : "", r->str.len);
        break;
    case REPLY_ARRAY:
        lua_createtable(L, (int)size_min(r->count, INT32_MAX), 0);
        for (size_t i = 0; i < r->count; i++) {
            push_reply(L, &r->items[i]);
            lua_rawseti(L, -2, (int)(i + 1));
        }
        break;
    }
}

/* --- converting Lua values to replies --- */

static int64_t to_integer(lua_Number n)
{
    return n >= -9223372036854775808.0 && n < 9223372036854775808.0 ? (int64_t)n : INT64_MIN;
}

/* Copies a text without the line ends at its end. Line ends inside it become blanks, because a
 * reply of one line cannot hold them. */
static struct str one_line(struct arena *a, struct str s)
{
    char *p;

    while (s.len && (s.p[s.len - 1] == '\n' || s.p[s.len - 1] == '\r'))
        s.len--;
    p = arena_z(a, s);
    for (size_t i = 0; p && i < s.len; i++)
        if (p[i] == '\n' || p[i] == '\r')
            p[i] = ' ';
    return p ? str_n(p, s.len) : STR_EMPTY;
}

void lua_answer_error(struct call *c, struct reply *out, struct str text)
{
    *out = (struct reply){.type = REPLY_ERROR, .str = one_line(c->arena, text)};
}

static struct str string_at(lua_State *L, int index)
{
    size_t len;
    const char *p = lua_tolstring(L, index, &len);
    return str_n(p, p ? len : 0);
}

/* Converts a table {err=...}, {ok=...} or {double=...} to a reply. The table is on top of the stack
 * and stays there. False: it has none of these fields. */
static bool field_to_reply(lua_State *L, struct call *c, struct reply *out)
{
    bool found = false;

    lua_pushliteral(L, "err");
    lua_rawget(L, -2);
    if ((found = lua_type(L, -1) == LUA_TSTRING))
        lua_answer_error(c, out, string_at(L, -1));
    lua_pop(L, 1);
    if (found)
        return true;
    lua_pushliteral(L, "ok");
    lua_rawget(L, -2);
    if ((found = lua_type(L, -1) == LUA_TSTRING))
        *out = as_status(one_line(c->arena, string_at(L, -1)));
    lua_pop(L, 1);
    if (found)
        return true;
    lua_pushliteral(L, "double");
    lua_rawget(L, -2);
    if ((found = lua_type(L, -1) == LUA_TNUMBER))
        *out = as_bulk(double_print(c->arena, lua_tonumber(L, -1)));
    lua_pop(L, 1);
    return found;
}

static void table_to_reply(lua_State *L, struct call *c, struct reply *out, int depth)
{
    struct items items = {0};

    if (depth > REPLY_MAX_DEPTH || !lua_checkstack(L, 4)) {
        lua_answer_error(c, out, STR("ERR reached lua stack limit"));
        return;
    }
    if (field_to_reply(L, c, out))
        return;
    for (int i = 1; !c->arena->failed; i++) {
        struct reply item = as_nil();
        lua_rawgeti(L, -1, i);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            break;
        }
        lua_to_reply(L, c, &item, depth + 1);
        items_push(c, &items, item);
    }
    *out = (struct reply){.type = REPLY_ARRAY, .items = items.p, .count = items.len};
}

void lua_to_reply(lua_State *L, struct call *c, struct reply *out, int depth)
{
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        *out = as_bulk(arena_str(c->arena, string_at(L, -1)));
        break;
    case LUA_TNUMBER:
        *out = as_int(to_integer(lua_tonumber(L, -1)));
        break;
    case LUA_TBOOLEAN:
        *out = lua_toboolean(L, -1) ? as_int(1) : as_nil();
        break;
    case LUA_TTABLE:
        table_to_reply(L, c, out, depth);
        break;
    default:
        *out = as_nil();
    }
    lua_pop(L, 1);
}

/* --- redis.call and redis.pcall --- */

/* Pushes an error table with the code ERR and this text. */
static int push_error(lua_State *L, const char *text)
{
    lua_createtable(L, 0, 1);
    lua_pushfstring(L, "ERR %s", text);
    lua_setfield(L, -2, "err");
    return 1;
}

/* Returns the arguments of redis.call() from the stack. Numbers are printed, strings are borrowed
 * from Lua. NULL: an argument is neither a number nor a string, or the arena is full. */
static struct str *script_arguments(lua_State *L, struct arena *a, size_t argc)
{
    struct str *argv = arena_array(a, argc, sizeof(*argv));

    for (size_t i = 0; argv && i < argc; i++) {
        int type = lua_type(L, (int)i + 1);
        if (type == LUA_TNUMBER)
            argv[i] = arena_fmt(a, "%.17g", lua_tonumber(L, (int)i + 1));
        else if (type == LUA_TSTRING)
            argv[i] = string_at(L, (int)i + 1);
        else
            return NULL;
    }
    return argv;
}

/* Returns why the script may not call the command; NULL: it may. */
static const char *forbidden(const struct call *c, const struct lua_vm *vm)
{
    if (!c->command)
        return "Unknown Redis command called from script";
    if (!cmd_arity_ok(c->command, c->argc))
        return "Wrong number of args calling Redis command from script";
    if (c->command->flags & CMD_SCRIPT)
        return "This Redis command is not allowed from script";
    if (vm->script->readonly && c->command->flags & (CMD_WRITE | CMD_PUBLISH))
        return "Write commands are not allowed from read-only scripts.";
    return NULL;
}

/* Runs the command whose arguments are on the stack, and leaves its reply there. True: the reply is
 * an error. */
static bool call_command(lua_State *L)
{
    struct lua_vm *vm = lua_vm_of(L);
    struct run *run = vm->call->run;
    struct reply reply = as_nil();
    struct call c = {.run = run, .arena = &vm->scratch, .reply = &reply};
    const char *refusal;

    c.argc = (size_t)lua_gettop(L);
    if (c.argc == 0)
        return push_error(L, "Please specify at least one argument for this redis lib call");
    arena_reset(&vm->scratch);
    c.argv = script_arguments(L, &vm->scratch, c.argc);
    if (!c.argv)
        return push_error(L, "Lua redis lib command arguments must be strings or integers");
    c.command = cmd_lookup(c.argv[0]);
    refusal = forbidden(&c, vm);
    if (refusal)
        return push_error(L, refusal);
    if (run->code == 0)
        c.command->fn(&c);
    if (run->code == 0 && vm->scratch.failed)
        run_fail(run, err_code(run->err, ERR_NO_MEMORY));
    if (run->code < 0)
        return push_error(L, "the store failed");
    push_reply(L, &reply);
    return reply.type == REPLY_ERROR;
}

static int redis_call(lua_State *L)
{
    return call_command(L) ? lua_error(L) : 1;
}

static int redis_pcall(lua_State *L)
{
    call_command(L);
    return 1;
}

/* --- other functions of the table `redis` --- */

static bool one_string(lua_State *L)
{
    if (lua_gettop(L) == 1 && lua_type(L, 1) == LUA_TSTRING)
        return true;
    push_error(L, "wrong number or type of arguments");
    return false;
}

static int redis_status_reply(lua_State *L)
{
    if (one_string(L))
        push_field(L, "ok", string_at(L, 1));
    return 1;
}

/* redis.error_reply(text) returns an error table. The text is "CODE text", "-CODE text", or one
 * word, which gets the code ERR. */
static int redis_error_reply(lua_State *L)
{
    struct str text;

    if (!one_string(L))
        return 1;
    text = string_at(L, 1);
    if (str_starts(text, STR("-")))
        text = str_skip(text, 1);
    while (text.len && (text.p[text.len - 1] == '\n' || text.p[text.len - 1] == '\r'))
        text.len--;
    if (str_chr(text, ' ') < 0)
        lua_pushliteral(L, "ERR ");
    else
        lua_pushliteral(L, "");
    lua_pushlstring(L, text.p, text.len);
    lua_concat(L, 2);
    push_field(L, "err", string_at(L, -1));
    return 1;
}

static int redis_sha1hex(lua_State *L)
{
    char hex[41];

    if (lua_gettop(L) != 1) {
        push_error(L, "wrong number of arguments");
        return lua_error(L);
    }
    script_digest(string_at(L, 1), hex);
    lua_pushstring(L, hex);
    return 1;
}

static int redis_log(lua_State *L)
{
    struct lua_vm *vm = lua_vm_of(L);
    const char *problem = NULL;

    if (lua_gettop(L) < 2)
        problem = "redis.log() requires two arguments or more.";
    else if (!lua_isnumber(L, 1))
        problem = "First argument must be a number (log level).";
    else if (lua_tonumber(L, 1) < 0 || lua_tonumber(L, 1) > 3)
        problem = "Invalid log level.";
    if (problem) {
        push_error(L, problem);
        return lua_error(L);
    }
    log_debug(vm->call->run->e->log, "store.script.log", log_s("text", string_at(L, 2)));
    return 0;
}

static int redis_replicate_commands(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

static int redis_nothing(lua_State *L)
{
    return 0;
}

static int redis_setresp(lua_State *L)
{
    if (lua_gettop(L) == 1 && lua_tonumber(L, 1) == 2)
        return 0;
    push_error(L, "RESP version must be 2.");
    return lua_error(L);
}

static const luaL_Reg functions[] = {
    {"call", redis_call},
    {"pcall", redis_pcall},
    {"status_reply", redis_status_reply},
    {"error_reply", redis_error_reply},
    {"sha1hex", redis_sha1hex},
    {"log", redis_log},
    {"replicate_commands", redis_replicate_commands},
    {"set_repl", redis_nothing},
    {"breakpoint", redis_nothing},
    {"debug", redis_nothing},
    {"setresp", redis_setresp},
    {NULL, NULL},
};

static const struct {
    const char *name;
    int value;
} constants[] = {
    {"LOG_DEBUG", 0},  {"LOG_VERBOSE", 1},
    {"LOG_NOTICE", 2}, {"LOG_WARNING", 3},
    {"REPL_NONE", 0},  {"REPL_AOF", 1},
    {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2},
    {"REPL_ALL", 3},   {"REDIS_VERSION_NUM", 0x0007000f},
};

void lua_push_redis(lua_State *L)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    for (size_t i = 0; i < ARRAY_SIZE(constants); i++) {
        lua_pushnumber(L, constants[i].value);
        lua_setfield(L, -2, constants[i].name);
    }
    lua_pushliteral(L, "7.0.15");
    lua_setfield(L, -2, "REDIS_VERSION");
}
