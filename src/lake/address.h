/* Addresses of objects' bodies. A body lies below the namespace of its repository, at
 * `data/<hour>/<id>`. The hour is written so that newer folders come first in a listing: whoever
 * looks for old bodies begins with a seek. An entry may also have a full address, s3://BUCKET/KEY,
 * of an object that was imported. */
#ifndef LAKE_ADDRESS_H
#define LAKE_ADDRESS_H

#include "lake/place.h"

/* Makes a new address below a namespace: "data/<hour>/<id>". */
struct str lake_new_address(struct arena *a);
/* Returns the folder in which bodies of that time lie: "data/<hour>/". */
struct str lake_address_folder(struct arena *a, int64_t time_ms);

/* Whether the entry's address is below the namespace. */
bool lake_address_is_relative(const struct lake_entry *e);
/* Opens the place of the entry's body, as the owner of the repository. Whoever opens it to read
 * calls lake_address_check() before any byte or property of the object is used. ERR_AGAIN: with
 * LAKE_PLACE_READ_NOW, and the address is a full one. */
int lake_address_open(struct lake_place *out, struct lake *l, struct arena *a,
                      const struct lake_repo *r, const struct lake_entry *e,
                      enum lake_place_use use, struct err *err) MUST_CHECK;
/* Checks that the object in the place is the one that the entry describes. If the entry has a full
 * address, it also checks that the owner of the repository may read the object now. It reads the
 * rules of the bucket anew each time, and may wait for them. ERR_GONE: one of the two is not so. */
int lake_address_check(const struct lake_place *p, const struct lake_entry *e,
                       const struct object_info *info, struct err *err) MUST_CHECK;

#endif
