/* The table of the Lua scripts, and the function that runs them. */
#include "swarm/scripts.h"

#include <pthread.h>

#define SCRIPT(name, flags) extern const char lua_##name[];
#include "swarm/scripts.def"
#undef SCRIPT

static struct script scripts[SWARM_SCRIPTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void swarm_scripts_init(void)
{
    static const struct script_row rows[] = {
#define SCRIPT(name, flags) {#name, lua_##name, flags},
#include "swarm/scripts.def"
#undef SCRIPT
    };

    scripts_init(scripts, rows, SWARM_SCRIPTS);
}

int swarm_eval(struct store *s, struct arena *a, enum swarm_script which,
               const struct store_args *args, struct reply **out, struct err *err)
{
    pthread_once(&once, swarm_scripts_init);
    return script_eval(s, a, out, &(struct script_run){.script = &scripts[which], .args = *args},
                       err);
}
