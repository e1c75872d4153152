/* The log of a bucket's maps: objects in the map bucket (names.h), which are the only durable state
 * of sharding.
 *
 * Map n is the object `map/<19 digits of 10^19 - 1 - n>`, so that a listing begins with the newest.
 * A map is written with If-None-Match: *, so of several writers who know map n one makes map n+1,
 * and the others learn of it (H2). The newest LOG_KEPT maps are kept. A writer that slept for long
 * could make the number of a map again that was removed since; so a commit counts only if fewer
 * than LOG_KEPT newer maps are there after it.
 *
 * The calls may wait. Any thread may call them. `b` is the map bucket, opened with the rights of
 * the bucket's owner. */
#ifndef SHARD_LOG_H
#define SHARD_LOG_H

#include "object/bucket.h"
#include "shard/map.h"

enum { LOG_KEPT = 16 };

/* Reads the newest map; *out is a reference. ERR_NOT_FOUND: there is no map. ERR_CORRUPT,
 * ERR_UNSUPPORTED: as map_parse(). */
int log_head(struct bucket *b, struct shard_map **out, struct err *err) MUST_CHECK;
/* Whether the newest map has this number. If there is no map, it has not. */
int log_is_head(struct bucket *b, uint64_t number, bool *out, struct err *err) MUST_CHECK;
/* Writes the map. After an answer that leaves open whether it was written, the same bytes are
 * written again until the outcome is certain, until `deadline_ns` (clock_mono_ns()). ERR_CONFLICT:
 * another writer made a map with this number. ERR_TIMEOUT: the outcome is not known; the caller
 * must read the head before it does anything else. Other errors: the storage has refused the map,
 * which was not written. */
int log_commit(struct bucket *b, const struct shard_map *m, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;
/* Makes the log ready for a map above all that is in it, after a damage: removes what has not the
 * key of a map, and sets *number to the greatest number of a map; 0: there is none. */
int log_make_room(struct bucket *b, uint64_t *number, struct err *err) MUST_CHECK;
/* Removes maps that are older than the newest LOG_KEPT. */
int log_prune(struct bucket *b, uint64_t newest, struct err *err) MUST_CHECK;

#endif
