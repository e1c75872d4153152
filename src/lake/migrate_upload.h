/* Copies the table gateway_multiparts of an old lakeFS. Only the files migrate*.c use this
 * header. */
#ifndef LAKE_MIGRATE_UPLOAD_H
#define LAKE_MIGRATE_UPLOAD_H

#include "lake/migrate_int.h"

/* Copies all rows and compares them; *count is their number. If the source has no such table, the
 * count is 0. */
int migrate_uploads(struct lake *l, struct source *s, uint64_t *count, struct err *err) MUST_CHECK;

#endif
