/* The log of a bucket's maps: objects in the map bucket (names.h). They are the only durable state
 * of sharding.
 *
 * Map n is the object `map/<19 digits of 10^19 - 1 - n>`, so a listing begins with the newest map.
 * A map is written with If-None-Match: *. So if several writers know map n, one of them makes map
 * n+1, and the others learn that it exists (H2). The newest LOG_KEPT maps are kept. A writer that
 * was delayed for long could write a map whose number was pruned long ago. So a commit counts only
 * if the log has fewer than LOG_KEPT newer maps afterwards.
 *
 * The calls may wait. Any thread may call them. `b` is the map bucket. */
#ifndef SHARD_LOG_H
#define SHARD_LOG_H

#include "object/bucket.h"
#include "shard/map.h"

enum { LOG_KEPT = 16 };

/* Reads the newest map; *out is a reference. ERR_NOT_FOUND: there is no map. ERR_CORRUPT and
 * ERR_UNSUPPORTED are those of map_parse(). */
int log_head(struct bucket *b, struct shard_map **out, struct err *err) MUST_CHECK;
/* Finds the number of the newest map. ERR_NOT_FOUND: there is no map. */
int log_newest(struct bucket *b, uint64_t *number, struct err *err) MUST_CHECK;
/* Sets *out to whether the newest map has this number; false if there is no map. */
int log_is_head(struct bucket *b, uint64_t number, bool *out, struct err *err) MUST_CHECK;
/* Writes the map. If an answer leaves open whether the map was written, writes the same bytes again
 * until the outcome is certain, at most until `deadline_ns` (clock_mono_ns()). ERR_CONFLICT:
 * another writer made a map with this number. ERR_TIMEOUT: the outcome is not known; the caller
 * must read the head before it does anything else. Other errors: the storage has refused the map,
 * which was not written. */
int log_commit(struct bucket *b, const struct shard_map *m, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;
/* Prepares a damaged log for a new map: removes objects whose key is not that of a map, and sets
 * *number to the greatest number of a map; 0: there is none. The new map needs a higher number. */
int log_make_room(struct bucket *b, uint64_t *number, struct err *err) MUST_CHECK;
/* Removes maps that are older than the newest LOG_KEPT. */
int log_prune(struct bucket *b, uint64_t newest, struct err *err) MUST_CHECK;

#endif
