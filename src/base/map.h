/* A hash table from byte strings to pointers. Its hash is SipHash with a secret key, so it is safe
 * for keys that a peer chooses. Only one thread may use it at a time; a shared table needs a lock.
 *
 * The table keeps the key's pointer, not a copy: the key must live as long as its entry, usually
 * inside the value itself. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/hash.h"

struct map_slot;

struct map {
    /* The number of slots is a power of two. NULL: there are no slots yet. */
    struct map_slot *slots;
    size_t mask, len, tombs;
    struct hash_key key;
};

void map_init(struct map *m);
void map_release(struct map *m); /* does not free the values, which the caller owns */

void *map_get(const struct map *m, struct str key); /* borrowed; NULL when absent */
/* Returns the value that was replaced, or NULL. */
void *map_put(struct map *m, struct str key, void *value);
void *map_remove(struct map *m, struct str key); /* returns the removed value, or NULL */

/* Returns the next entry, in no particular order, and false at the end. Start with *cursor = 0. The
 * entry that was just returned may be removed; no entry may be put during the iteration. */
bool map_next(const struct map *m, size_t *cursor, struct str *key, void **value);

#endif
