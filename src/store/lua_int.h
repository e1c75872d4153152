/* Lua states and what scripts see: for lua*.c only. */
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
    LUA_MAX_COMPILED = 1000, /* scripts in one state; a fuller one is not used again */
};

/* One Lua state; used by one thread at a time, taken from the pool for a run. */
struct lua_vm {
    lua_State *L;
    size_t bytes;
    bool out_of_memory, timed_out; /* the state is not used again */
    int globals;                   /* registry: the real global table, behind the read-only one */
    int compiled;                  /* registry: digest -> function */
    size_t compiled_count;
    uint64_t flushes; /* the pool's count of SCRIPT FLUSH when this state began to compile */
    uint64_t random;  /* 48 bits, as drand48() */

    /* while it runs */
    struct call *call;
    const struct script_call *script;
    struct arena scratch; /* of one redis.call */
    struct owner_cache owners;
    uint64_t deadline_ns;
};

struct lua_vm *lua_vm_new(void); /* NULL when memory is out */
void lua_vm_free(struct lua_vm *vm);
struct lua_vm *lua_vm_of(lua_State *L);

/* lua_redis.c: leaves the table `redis` on the stack. */
void lua_push_redis(lua_State *L);
/* The value on top of the stack as a reply; pops it. */
void lua_to_reply(lua_State *L, struct call *c, struct reply *out, int depth);
/* An error reply in one line. */
void lua_answer_error(struct call *c, struct reply *out, struct str text);

#endif
