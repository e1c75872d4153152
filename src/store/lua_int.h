/* Lua states, and the functions that scripts see. Only for lua*.c. */
#ifndef STORE_LUA_INT_H
#define STORE_LUA_INT_H

#include "store/embedded_int.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

enum {
    LUA_LIMIT_BYTES = 64 * 1024 * 1024,
    LUA_KEEP_BYTES = 4 * 1024 * 1024, /* a state that holds more when its script ends is freed */
    LUA_LIMIT_MS = 5000,
    LUA_MAX_COMPILED = 1000, /* scripts that one state may compile; then it is freed */
};

/* One Lua state. A thread takes it from the pool to run a script, and no other thread uses it
 * meanwhile. */
struct lua_vm {
    lua_State *L;
    size_t bytes;
    bool out_of_memory, timed_out; /* a limit was reached; the state is freed after the run */
    /* Lua registry index of the real global table, which scripts see through a read-only table. */
    int globals;
    int compiled; /* Lua registry index of a table from digest to function */
    size_t compiled_count;
    uint64_t flushes; /* the pool's `flushes` when this state was last taken from it */
    uint64_t random;  /* state of math.random(): 48 bits, as drand48() has */

    /* These members are set while a script runs. */
    struct call *call;
    const struct script_call *script;
    struct arena scratch; /* memory for one redis.call() */
    struct owner_cache owners;
    uint64_t deadline_ns;
};

struct lua_vm *lua_vm_new(void); /* NULL: out of memory */
void lua_vm_free(struct lua_vm *vm);
struct lua_vm *lua_vm_of(lua_State *L);

/* Leaves the table `redis` on the stack (lua_redis.c). */
void lua_push_redis(lua_State *L);
/* Converts the value on top of the stack to a reply, and pops it. `depth` is the number of tables
 * around the value. */
void lua_to_reply(lua_State *L, struct call *c, struct reply *out, int depth);
/* Makes *out an error reply with the text, whose line ends become blanks. */
void lua_answer_error(struct call *c, struct reply *out, struct str text);

#endif
