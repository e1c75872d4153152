/* The memory of a map; shared by the files shard/map*.c. */
#ifndef SHARD_MAP_INT_H
#define SHARD_MAP_INT_H

#include "shard/map.h"

#include <stdatomic.h>

/* A map with the memory that it owns. The strings and the lists of unclean windows are in the
 * arena. The arrays of places and segments are on the heap, so that they can grow while the map is
 * a draft. */
struct map_body {
    struct shard_map map;
    _Atomic(unsigned) refs;
    struct arena arena;
    size_t place_cap, segment_cap;
};

static inline struct map_body *map_body(struct shard_map *m)
{
    return container_of(m, struct map_body, map);
}

/* Returns an empty map with one reference. */
struct shard_map *map_new(void);
/* Returns a copy of the string or the window in the map's memory. */
struct str map_keep(struct shard_map *m, struct str s);
struct shard_window map_keep_window(struct shard_map *m, const struct shard_window *w);
/* Adds a zeroed place or segment at the end. Pointers from earlier calls become invalid. */
struct shard_place *map_push_place(struct shard_map *m);
struct shard_segment *map_push_segment(struct shard_map *m);

#endif
