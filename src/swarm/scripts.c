/* The table of scripts. */
#include "swarm/scripts.h"

#include <pthread.h>

#define SCRIPT(name, flags) extern const char lua_##name[];
#include "swarm/scripts.def"
#undef SCRIPT

static struct script scripts[SWARM_SCRIPTS];
static bool relaxed[SWARM_SCRIPTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    static const struct {
        const char *name, *source;
        unsigned flags;
    } table[] = {
#define SCRIPT(name, flags) {#name, lua_##name, flags},
#include "swarm/scripts.def"
#undef SCRIPT
    };

    for (size_t i = 0; i < SWARM_SCRIPTS; i++) {
        scripts[i] = (struct script){.name = table[i].name,
                                     .source = str_z(table[i].source),
                                     .readonly = table[i].flags & SWARM_READS};
        relaxed[i] = table[i].flags & SWARM_RELAXED;
        script_init(&scripts[i]);
    }
}

int swarm_eval(struct store *s, struct arena *a, struct reply **out, enum swarm_script which,
               const struct store_args *args, struct err *err)
{
    pthread_once(&once, init);
    struct script_run run = {.script = &scripts[which], .args = *args, .relaxed = relaxed[which]};
    int code = store_eval(s, a, out, &run, err);

    if (code == 0 && (*out)->type == REPLY_ERROR)
        code = err_set(err, ERR_INVALID, "script %s: " STR_FMT, scripts[which].name,
                       STR_ARG((*out)->str));
    return code;
}
