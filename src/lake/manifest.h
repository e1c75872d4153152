/* The manifest of a dump of refs (docs/lake-moving.md): the file `_lakefs/refs_manifest.json` in
 * a namespace. It has the ids of the three trees of the dump (of commits, tags and branches), in
 * lakeFS's form. lake/dump.h has lake_manifest_read(). Only the files of src/lake/ use this
 * header. */
#ifndef LAKE_MANIFEST_H
#define LAKE_MANIFEST_H

#include "base/json.h"
#include "lake/dump.h"

int lake_manifest_write(struct lake *l, const struct lake_repo *r, const struct lake_refs *refs,
                        struct err *err) MUST_CHECK;

/* Reads the text of a manifest; the ids are in the arena. ERR_CORRUPT: the text is not JSON. */
int lake_manifest_parse(struct lake_refs *out, struct arena *a, struct str text,
                        struct err *err) MUST_CHECK;

/* Writes the ids of the three trees as JSON members with lakeFS's names. */
void lake_refs_json(struct json_out *w, const struct lake_refs *refs);

#endif
