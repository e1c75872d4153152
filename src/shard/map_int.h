/* The inside of a map: what the files of shard/map*.c share. */
#ifndef SHARD_MAP_INT_H
#define SHARD_MAP_INT_H

#include "shard/map.h"

#include <stdatomic.h>

/* A map with the memory that it owns. The strings and the lists of unclean windows are in the
 * arena. The arrays of places and segments are on the heap, because drafts let them grow. */
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

/* Returns a map with one reference and nothing in it. */
struct shard_map *map_new(void);
/* Returns a copy of the string or the window in the map's memory. */
struct str map_keep(struct shard_map *m, struct str s);
struct shard_window map_keep_window(struct shard_map *m, const struct shard_window *w);
/* Adds a place or a segment at the end, zeroed. Pointers that earlier calls returned end here. */
struct shard_place *map_push_place(struct shard_map *m);
struct shard_segment *map_push_segment(struct shard_map *m);

#endif
