/* The Lua scripts of swarm/, by name. */
#ifndef SWARM_SCRIPTS_H
#define SWARM_SCRIPTS_H

#include "store/store.h"

enum swarm_script {
#define SCRIPT(name, flags) SCRIPT_##name,
#include "swarm/scripts.def"
#undef SCRIPT
    SWARM_SCRIPTS
};

/* Runs a script. An error reply becomes ERR_INVALID with the reply's text. Any thread may call
 * this. */
int swarm_eval(struct store *s, struct arena *a, enum swarm_script which,
               const struct store_args *args, struct reply **out, struct err *err) MUST_CHECK;

#endif
