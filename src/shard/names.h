/* Names of the buckets that sharding makes: the shards of a bucket, and the bucket that keeps its
 * map (docs/sharding.md, "Names").
 *
 *     map bucket   <name>-weir-<hash>-map
 *     shard n      <name>-weir-<hash>-<mark>-<n>
 *
 * <name> is the bucket's name, cut so that the whole has at most 63 characters, with capitals in
 * lower case and `-` for every character that is neither a letter nor a digit. Then `-` at its
 * beginning and end is dropped; if nothing is left, it is `bucket`. <hash> is 12 characters of the
 * SHA-256 of the name as it is, <mark> is SHARD_MARK_LEN random characters that were chosen when
 * the bucket was sharded, and <n> has at most six digits. object/part_names.h says which names are
 * reserved for such buckets. */
#ifndef SHARD_NAMES_H
#define SHARD_NAMES_H

#include "base/arena.h"

enum { SHARD_MARK_LEN = 4, SHARD_HASH_LEN = 12, SHARD_NUMBER_MAX = 999999 };

/* These functions return names of a sharded bucket's map bucket and shards, in the arena. */
struct str shard_map_name(struct arena *a, struct str bucket);
struct str shard_bucket_name(struct arena *a, struct str bucket, struct str mark, uint32_t number);
/* Returns a new random mark, in the arena. */
struct str shard_new_mark(struct arena *a);
/* Whether `name` is the name of a shard, with any mark, of this bucket. If so, sets *mark (which
 * points into `name`) and *number. */
bool shard_name_parse(struct str name, struct str bucket, struct str *mark, uint32_t *number);

#endif
