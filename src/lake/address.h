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
/* Opens the place of the entry's body, as the owner of the repository. */
int lake_address_open(struct lake_place *out, struct lake *l, struct arena *a,
                      const struct lake_repo *r, const struct lake_entry *e,
                      enum lake_place_use use, struct err *err) MUST_CHECK;

#endif
