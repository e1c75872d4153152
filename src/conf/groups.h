/* The groups of the configuration file whose members have names that the user chooses: storages,
 * users and forges. groups.c has an example. */
#ifndef CONF_GROUPS_H
#define CONF_GROUPS_H

#include "conf/conf.h"

struct conf_problems;

/* A place in the configuration file, and the list to which problems at that place are added. */
struct conf_where {
    const char *file;
    size_t line;
    struct str name; /* dotted name of the key */
    struct conf_problems *problems;
};

/* Sets the value if the key belongs to storages, users or forges, and returns whether it does. A
 * wrong value is reported as a problem. */
bool conf_group_value(struct conf *c, const struct conf_where *w, struct str value);
/* Reports fields that are missing or contradict each other. Of `w`, only the file and the problems
 * are used. */
void conf_groups_check(struct conf *c, const struct conf_where *w);
/* Overwrites the secrets of storages, users and forges. Call this before the arena is released. */
void conf_groups_release(struct conf *c);

/* Calls `row` once for each key. Its arguments are the key's prefix (such as "storages.NAME."), the
 * key's name (such as "url"), and a sentence about the key. */
void conf_groups_document(void (*row)(void *ctx, const char *prefix, const char *name,
                                      const char *doc),
                          void *ctx);

#endif
