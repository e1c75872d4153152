/* The scripts of swarm/ by name, digests made. */
#ifndef SWARM_SCRIPTS_H
#define SWARM_SCRIPTS_H

#include "store/store.h"

enum swarm_script {
#define SCRIPT(name, flags) SCRIPT_##name,
#include "swarm/scripts.def"
#undef SCRIPT
    SWARM_SCRIPTS
};

/* Runs one. An error reply is ERR_INVALID with its text. Any thread. */
int swarm_eval(struct store *s, struct arena *a, struct reply **out, enum swarm_script which,
               const struct store_args *args, struct err *err) MUST_CHECK;

#endif
