/* The Lua scripts of archive/, by name. */
#ifndef ARCHIVE_SCRIPTS_H
#define ARCHIVE_SCRIPTS_H

#include "store/store.h"

enum archive_script {
#define SCRIPT(name, flags) SCRIPT_##name,
#include "archive/scripts.def"
#undef SCRIPT
    ARCHIVE_SCRIPTS
};

/* Runs a script. If its reply is an error, the result is ERR_INVALID with the reply's text. Any
 * thread may call this function. */
int archive_eval(struct store *s, struct arena *a, struct reply **out, enum archive_script which,
                 const struct str *args, size_t count, struct err *err) MUST_CHECK;

#endif
