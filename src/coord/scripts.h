/* The Lua scripts of coord/, which the store runs. Each has a constant made from its name. */
#ifndef COORD_SCRIPTS_H
#define COORD_SCRIPTS_H

#include "store/store.h"

enum coord_script {
#define SCRIPT(name, flags) SCRIPT_##name,
#include "coord/scripts.def"
#undef SCRIPT
    COORD_SCRIPTS
};

/* Gives a script with its digest. Any thread may call it. */
const struct script *coord_script(enum coord_script which);

/* Runs a script. An error reply becomes ERR_INVALID with its text. */
int coord_eval(struct store *s, struct arena *a, struct reply **out, enum coord_script which,
               const struct str *args, size_t count, struct err *err) MUST_CHECK;

#endif
