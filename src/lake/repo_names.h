/* The names of all repositories, in memory. Any thread may call these functions; no call waits. */
#ifndef LAKE_REPO_NAMES_H
#define LAKE_REPO_NAMES_H

#include "base/map.h"
#include "os/thread.h"

struct repo_names {
    struct mutex lock; /* class "lake.names"; guards the members below */
    struct map names;  /* the values are copies of the names, on the heap */
    uint64_t changes;  /* number of changes of the names so far */
};

void repo_names_init(struct repo_names *n);
void repo_names_release(struct repo_names *n);
bool repo_names_has(struct repo_names *n, struct str name);
size_t repo_names_count(struct repo_names *n);

/* Returns the number of changes so far. To load names from the key-value store, first call this
 * function, then read the names, then call one of the two functions below with the number as
 * `seen`. They change nothing and return false if the number has grown since then: the names may
 * have been read before that change, so the caller begins again. */
uint64_t repo_names_changes(struct repo_names *n);
/* Adds the name if `there` is true; otherwise removes it. */
bool repo_names_set(struct repo_names *n, struct str name, bool there, uint64_t seen);
/* Exchanges the names in memory with those of `loaded`. */
bool repo_names_replace(struct repo_names *n, struct map *loaded, uint64_t seen);

/* These fill and release a map for repo_names_replace(). */
void repo_map_add(struct map *names, struct str name);
void repo_map_release(struct map *names);

#endif
