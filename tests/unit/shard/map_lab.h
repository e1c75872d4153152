/* Maps for tests. */
#ifndef TESTS_UNIT_SHARD_MAP_LAB_H
#define TESTS_UNIT_SHARD_MAP_LAB_H

#include "shard/map.h"

#define LAB_HOME   STR("home")
#define LAB_BUCKET STR("photos")
#define LAB_MARK   STR("ab27")

/* A window of two literals. */
#define WINDOW(after, upto) (&(struct shard_window){STR(after), STR(upto)})

/* The first map, with the number 1000. */
struct shard_map *map_lab_first(void);
/* Adds the place with this number, on the home. */
void map_lab_add(struct shard_map *m, uint32_t number);
/* Replaces *m by a draft of the map that follows. */
void map_lab_next(struct shard_map **m);
/* The number of the place that owns the key. */
uint32_t map_lab_owner(const struct shard_map *m, struct str key);

#endif
