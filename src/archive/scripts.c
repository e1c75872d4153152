/* The table of the Lua scripts of archive/. */
#include "archive/scripts.h"

#include <pthread.h>

#define SCRIPT(name, flags) extern const char lua_##name[];
#include "archive/scripts.def"
#undef SCRIPT

static struct script scripts[ARCHIVE_SCRIPTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void archive_scripts_init(void)
{
    static const struct script_row rows[] = {
#define SCRIPT(name, flags) {#name, lua_##name, flags},
#include "archive/scripts.def"
#undef SCRIPT
    };

    scripts_init(scripts, rows, ARCHIVE_SCRIPTS);
}

int archive_eval(struct store *s, struct arena *a, struct reply **out, enum archive_script which,
                 const struct str *args, size_t count, struct err *err)
{
    pthread_once(&once, archive_scripts_init);
    return script_eval(s, a, out,
                       &(struct script_run){.script = &scripts[which], .args = {args, count}}, err);
}
