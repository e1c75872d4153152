/* Names of buckets that are reserved for sharding (shard/names.h): the shards of a bucket, and the
 * bucket that keeps its map. No client can make such a bucket or address it, and no listing for
 * clients shows it. */
#ifndef OBJECT_PART_NAMES_H
#define OBJECT_PART_NAMES_H

#include "base/str.h"

/* Whether the name ends like `-weir-<12 of a-z2-7>-map` or `-weir-<12 of a-z2-7>-<4 of
 * a-z2-7>-<number without leading zeros, at most 6 digits>`. */
bool bucket_name_is_part(struct str name);

#endif
