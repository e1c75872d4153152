/* Places of the lake's objects: bodies, nodes of trees and claims of namespaces are in ordinary
 * buckets, below the namespace of their repository. s3/place/place.h says how a place is used; its
 * bucket is found by the same routes as for a request of the repository's owner. */
#ifndef LAKE_PLACE_H
#define LAKE_PLACE_H

#include "lake/lake.h"
#include "s3/place/place.h"

/* Opens the place of a key of a bucket, as the user whose id is `user`. The arena must live until
 * object_place_end(). */
int lake_place_open(struct object_place *out, struct lake *l, struct arena *a, struct str user,
                    struct str bucket, struct str key, enum place_use use,
                    struct err *err) MUST_CHECK;
/* As lake_place_open(), for a key below the repository's namespace, as the owner of the repository.
 * If the bucket does not exist, this returns ERR_UNAVAILABLE. ERR_DENIED: the owner may not use the
 * namespace any more (lake/right.h). */
int lake_place_open_below(struct object_place *out, struct lake *l, struct arena *a,
                          const struct lake_repo *r, struct str key, enum place_use use,
                          struct err *err) MUST_CHECK;

#endif
