/* The groups of the file whose members have names: storages and users (groups.c). */
#ifndef CONF_GROUPS_H
#define CONF_GROUPS_H

#include "conf/conf.h"

struct conf_problems;

/* A place in the file. */
struct conf_where {
    const char *file;
    size_t line;
    struct str name; /* of the key, dotted */
    struct conf_problems *problems;
};

/* Sets the value when the key belongs to one of the groups. A wrong value is reported as a problem.
 */
bool conf_group_value(struct conf *c, const struct conf_where *w, struct str value);
/* Reports members that are missing or contradict each other; `w`: file and problems. */
void conf_groups_check(struct conf *c, const struct conf_where *w);
void conf_groups_release(struct conf *c); /* overwrites secrets; before the arena is released */

/* Calls `fn` for each key: "storages.NAME.", "url", and a sentence about it. */
void conf_groups_document(void (*row)(void *ctx, const char *prefix, const char *name,
                                      const char *doc),
                          void *ctx);

#endif
