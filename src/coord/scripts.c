/* The table of scripts. */
#include "coord/scripts.h"

#include <pthread.h>
#include <string.h>

#define SCRIPT(name, flags) extern const char lua_##name[];
#include "coord/scripts.def"
#undef SCRIPT

static struct script scripts[COORD_SCRIPTS];
static bool relaxed[COORD_SCRIPTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    static const struct {
        const char *name, *source;
        unsigned flags;
    } table[] = {
#define SCRIPT(name, flags) {#name, lua_##name, flags},
#include "coord/scripts.def"
#undef SCRIPT
    };

    for (size_t i = 0; i < COORD_SCRIPTS; i++) {
        scripts[i] = (struct script){.name = table[i].name,
                                     .source = str_z(table[i].source),
                                     .readonly = table[i].flags & SCRIPT_READS};
        relaxed[i] = table[i].flags & SCRIPT_RELAXED;
        script_init(&scripts[i]);
    }
}

const struct script *coord_script(enum coord_script which)
{
    pthread_once(&once, init);
    return &scripts[which];
}

int coord_eval(struct store *s, struct arena *a, struct reply **out, enum coord_script which,
               const struct str *args, size_t count, struct err *err)
{
    struct script_run run = {.script = coord_script(which), .args = {args, count}};

    run.relaxed = relaxed[which];
    int code = store_eval(s, a, out, &run, err);

    if (code == 0 && (*out)->type == REPLY_ERROR)
        code = err_set(err, ERR_INVALID, "script %s: " STR_FMT, coord_script(which)->name,
                       STR_ARG((*out)->str));
    return code;
}
