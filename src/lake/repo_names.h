/* The names of all repositories, in memory. Any thread may call these functions; no call waits. */
#ifndef LAKE_REPO_NAMES_H
#define LAKE_REPO_NAMES_H

#include "base/map.h"
#include "os/thread.h"

struct repo_names {
    struct mutex lock; /* class "lake.names"; guards the members below */
    struct map names;  /* the values are copies of the names, on the heap */
    uint64_t changes;  /* counts the changes of the names */
};

void repo_names_init(struct repo_names *n);
void repo_names_release(struct repo_names *n);
bool repo_names_has(struct repo_names *n, struct str name);
size_t repo_names_count(struct repo_names *n);

/* Returns the number of changes. A caller that loads names from the key-value store asks for this
 * number first, then reads, then calls one of the functions below. These return false and change
 * nothing if the names in memory have changed since then. The caller may have read an older state
 * in that case, so it begins again. */
uint64_t repo_names_changes(struct repo_names *n);
/* Adds or removes the name. */
bool repo_names_set(struct repo_names *n, struct str name, bool there, uint64_t seen);
/* Replaces all names by those of `loaded`, which then has the old names. */
bool repo_names_replace(struct repo_names *n, struct map *loaded, uint64_t seen);

/* Adds a name to a map for repo_names_replace(), and releases such a map. */
void repo_map_add(struct map *names, struct str name);
void repo_map_release(struct map *names);

#endif
