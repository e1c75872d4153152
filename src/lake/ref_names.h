/* The names of a repository's visible refs (tags, and branches that are not hidden) in the order of
 * `<name>/`, which is the order of S3 keys that begin with these names. It differs from the order
 * of names: `a-b/` comes before `a/`, although `a` comes before `a-b`.
 *
 * The key-value store has the names in their own order. So a name waits on a stack until the longer
 * names that come before it were returned. The stack is at most as deep as a name is long.
 *
 * The object belongs to one thread. */
#ifndef LAKE_REF_NAMES_H
#define LAKE_REF_NAMES_H

#include "lake/lake_int.h"

struct ref_names;

/* Opens a list of the names that begin with `prefix`. The names are in the arena. */
int ref_names_open(struct ref_names **out, struct lake *l, struct arena *a,
                   const struct lake_repo *r, struct str prefix, struct err *err) MUST_CHECK;
void ref_names_close(struct ref_names *n); /* NULL is fine */
/* Moves to the first name for which `<name>/` is at or after `from`. */
int ref_names_seek(struct ref_names *n, struct str from, struct err *err) MUST_CHECK;
/* Gives the next name. ERR_END: there are no more. */
int ref_names_next(struct ref_names *n, struct str *name, struct err *err) MUST_CHECK;

#endif
