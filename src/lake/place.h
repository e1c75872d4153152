/* Places of the lake's objects. The bytes of objects, nodes of trees and claims of namespaces are
 * stored in ordinary buckets, below the namespace of their repository. s3/place/place.h says how a
 * place is used. The bucket of a place is found by the routes of the repository's owner, as for a
 * request of the owner. */
#ifndef LAKE_PLACE_H
#define LAKE_PLACE_H

#include "lake/lake.h"
#include "s3/place/place.h"

/* Opens the place of a key in a bucket, in the name of the user whose id is `user`. The arena must
 * live until object_place_end(). */
int lake_place_open(struct object_place *out, struct lake *l, struct arena *a, struct str user,
                    struct str bucket, struct str key, enum place_use use,
                    struct err *err) MUST_CHECK;
/* Like lake_place_open(), but for a key below the repository's namespace, in the name of the
 * repository's owner. ERR_UNAVAILABLE: the bucket does not exist. ERR_DENIED: the owner may not use
 * the namespace any more (lake/right.h). */
int lake_place_open_below(struct object_place *out, struct lake *l, struct arena *a,
                          const struct lake_repo *r, struct str key, enum place_use use,
                          struct err *err) MUST_CHECK;

#endif
