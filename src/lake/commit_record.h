/* Adds a commit that another repository has, from its record, for tools that move histories. No ref
 * changes. */
#ifndef LAKE_COMMIT_RECORD_H
#define LAKE_COMMIT_RECORD_H

#include "lake/lake.h"

/* Adds the record. ERR_INVALID: the id does not match the record, a parent or the root of the tree
 * is missing in the repository, or the generation is not one more than the greatest generation of
 * the parents. ERR_EXISTS: the repository has the commit. ERR_BUSY: a collection is under way and
 * may be about to remove the tree. ERR_DENIED: the repository is read-only, and `force` is not
 * set. */
int lake_commit_add_record(struct lake *l, struct arena *a, const struct lake_repo *r,
                           const struct lake_commit *c, bool force, struct err *err) MUST_CHECK;

#endif
