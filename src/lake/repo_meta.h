/* The metadata of a repository: keys and values that clients store there. All of them are one
 * record, which is changed by compare-and-set. */
#ifndef LAKE_REPO_META_H
#define LAKE_REPO_META_H

#include "lake/lake.h"

/* Writes and reads the record, the row `repo-metadata` of the repository's partition. Strings that
 * were read point into `record`. ERR_CORRUPT: the record is damaged. */
void lake_repo_meta_write(struct buf *out, const struct str_pairs *pairs);
int lake_repo_meta_read(struct str_pairs *out, struct arena *a, struct str record,
                        struct err *err) MUST_CHECK;

/* Reads the metadata. A repository without metadata has no pairs. */
int lake_repo_meta_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct str_pairs *out, struct err *err) MUST_CHECK;
/* Sets the pairs of `set` and removes the keys of `removed`; other keys stay. ERR_INVALID: the
 * result would be too much metadata. */
int lake_repo_meta_change(struct lake *l, struct arena *a, const struct lake_repo *r,
                          const struct str_pairs *set, const struct str *removed, size_t count,
                          struct err *err) MUST_CHECK;

#endif
