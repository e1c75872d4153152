/* The groups of the file whose members have names: storages and users (groups.c). */
#ifndef CONF_GROUPS_H
#define CONF_GROUPS_H

#include "conf/conf.h"

struct conf_problems;

/* Where in the file. */
struct conf_where {
    const char *file;
    size_t line;
    struct str name; /* of the key, dotted */
    struct conf_problems *problems;
};

/* Takes the value when the key is of one of the groups; what is wrong with it becomes a problem. */
bool conf_group_value(struct conf *c, const struct conf_where *w, struct str value);
/* What is missing, or contradicts itself; `w`: file and problems. */
void conf_groups_check(struct conf *c, const struct conf_where *w);
void conf_groups_release(struct conf *c); /* overwrites secrets; before the arena is released */

/* Each key: "storages.NAME.", "url", a sentence. */
void conf_groups_document(void (*row)(void *ctx, const char *prefix, const char *name,
                                      const char *doc),
                          void *ctx);

#endif
