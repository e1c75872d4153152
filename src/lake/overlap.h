/* Finds the repository to which a place in a bucket belongs. The files below `data/` and `_lakefs/`
 * of a namespace belong to its repository: its garbage collections remove all of them that the
 * repository's own refs do not need. So no other repository may refer to these files, and no two
 * namespaces may overlap. Only the files of src/lake/ use this header. */
#ifndef LAKE_OVERLAP_H
#define LAKE_OVERLAP_H

#include "lake/lake.h"

/* Whether two namespaces are the same, or one lies inside the other. */
bool lake_spaces_overlap(struct str a, struct str b);

/* Refuses a namespace that overlaps with that of another repository. ERR_IN_USE: the text names the
 * repository. This reads the records of all repositories. */
int lake_check_spaces(struct lake *l, const struct lake_repo *r, struct err *err) MUST_CHECK;

/* Refuses an address, or a prefix of addresses, if it can name an object of another repository.
 * ERR_INVALID: the text names the repository. This reads the records of all repositories. */
int lake_check_source(struct lake *l, const struct lake_repo *r, struct str address, bool is_prefix,
                      struct err *err) MUST_CHECK;

#endif
