/* The table of the Lua scripts of coord/. */
#include "coord/scripts.h"

#include <pthread.h>

#define SCRIPT(name, flags) extern const char lua_##name[];
#include "coord/scripts.def"
#undef SCRIPT

static struct script scripts[COORD_SCRIPTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void coord_scripts_init(void)
{
    static const struct script_row rows[] = {
#define SCRIPT(name, flags) {#name, lua_##name, flags},
#include "coord/scripts.def"
#undef SCRIPT
    };

    scripts_init(scripts, rows, COORD_SCRIPTS);
}

const struct script *coord_script(enum coord_script which)
{
    pthread_once(&once, coord_scripts_init);
    return &scripts[which];
}

int coord_eval(struct store *s, struct arena *a, struct reply **out, enum coord_script which,
               const struct str *args, size_t count, struct err *err)
{
    struct script_run run = {.script = coord_script(which), .args = {args, count}};

    return script_eval(s, a, out, &run, err);
}
