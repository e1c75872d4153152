/* The names of all repositories, in memory. */
#include "lake/repo_names.h"

#include <stdlib.h>

void repo_map_add(struct map *names, struct str name)
{
    char *copy;

    if (map_get(names, name))
        return;
    copy = str_dup(name);
    map_put(names, str_n(copy, name.len), copy);
}

void repo_map_release(struct map *names)
{
    size_t at = 0;
    struct str name;
    void *copy;

    while (map_next(names, &at, &name, &copy))
        free(copy);
    map_release(names);
}

void repo_names_init(struct repo_names *n)
{
    *n = (struct repo_names){0};
    mutex_init(&n->lock, "lake.names");
    map_init(&n->names);
}

void repo_names_release(struct repo_names *n)
{
    repo_map_release(&n->names);
    mutex_release(&n->lock);
}

bool repo_names_has(struct repo_names *n, struct str name)
{
    mutex_lock(&n->lock);
    bool has = map_get(&n->names, name) != NULL;
    mutex_unlock(&n->lock);
    return has;
}

size_t repo_names_count(struct repo_names *n)
{
    mutex_lock(&n->lock);
    size_t count = n->names.len;
    mutex_unlock(&n->lock);
    return count;
}

uint64_t repo_names_changes(struct repo_names *n)
{
    mutex_lock(&n->lock);
    uint64_t changes = n->changes;
    mutex_unlock(&n->lock);
    return changes;
}

bool repo_names_set(struct repo_names *n, struct str name, bool there, uint64_t seen)
{
    mutex_lock(&n->lock);
    bool fits = n->changes == seen;
    n->changes += fits;
    if (fits && there)
        repo_map_add(&n->names, name);
    else if (fits)
        free(map_remove(&n->names, name));
    mutex_unlock(&n->lock);
    return fits;
}

bool repo_names_replace(struct repo_names *n, struct map *loaded, uint64_t seen)
{
    mutex_lock(&n->lock);
    bool fits = n->changes == seen;
    n->changes += fits;
    if (fits) {
        struct map old = n->names;
        n->names = *loaded;
        *loaded = old;
    }
    mutex_unlock(&n->lock);
    return fits;
}
