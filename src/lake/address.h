/* Addresses of objects' bodies. A body is stored below the namespace of its repository, at
 * `data/<hour>/<id>`. The hour is written so that newer folders come first in a listing; a search
 * for old bodies seeks past the new folders. The entry of an imported object has a full address
 * instead: s3://BUCKET/KEY. */
#ifndef LAKE_ADDRESS_H
#define LAKE_ADDRESS_H

#include "lake/place.h"

/* Makes a new address below a namespace: "data/<hour>/<id>". */
struct str lake_new_address(struct arena *a);
/* Returns the folder of the bodies that are put at that time: "data/<hour>/". */
struct str lake_address_folder(struct arena *a, int64_t time_ms);

/* Whether the entry's address is below the namespace. */
bool lake_address_is_relative(const struct lake_entry *e);
/* Opens the place of the entry's body, as the owner of the repository. A caller that reads the
 * object must call lake_address_check() before it uses any byte or property of the object.
 * ERR_AGAIN: `use` is PLACE_READ_NOW, which forbids waiting, but the entry has a full address,
 * whose check may wait; the caller tries again with PLACE_READ. */
int lake_address_open(struct object_place *out, struct lake *l, struct arena *a,
                      const struct lake_repo *r, const struct lake_entry *e, enum place_use use,
                      struct err *err) MUST_CHECK;
/* Checks that the object in the place is the object that the entry describes. If the entry has a
 * full address, this also checks that the owner of the repository may read the object now. For that
 * it reads the bucket's rules anew each time, and may wait. ERR_GONE: a check failed. */
int lake_address_check(const struct object_place *p, const struct lake_entry *e,
                       const struct object_info *info, struct err *err) MUST_CHECK;

#endif
