/* The manifest of a dump: the file `_lakefs/refs_manifest.json` in a namespace, with the ids of the
 * three trees, as lakeFS writes it. lake_manifest_read() is in lake/dump.h. For the files of
 * src/lake/ alone. */
#ifndef LAKE_MANIFEST_H
#define LAKE_MANIFEST_H

#include "base/json.h"
#include "lake/dump.h"

int lake_manifest_write(struct lake *l, const struct lake_repo *r, const struct lake_refs *refs,
                        struct err *err) MUST_CHECK;

/* Writes the three members, with lakeFS's names. */
void lake_refs_json(struct json_out *w, const struct lake_refs *refs);

#endif
