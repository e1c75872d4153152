/* The files of a namespace: bodies of objects below `data/`, and nodes and the claim below
 * `_lakefs/`. Deletion and collection list and remove them. Keys are relative to the namespace
 * here, as in the addresses of entries. For the files of src/lake/ alone. */
#ifndef LAKE_FILES_H
#define LAKE_FILES_H

#include "lake/lake_int.h"
#include "object/bucket.h"

struct lake_file {
    struct str key; /* relative to the namespace */
    uint64_t size;
    int64_t modified_ms;
};

/* A page of the files whose keys begin with `prefix`, in the order of their keys. ERR_BUSY, here
 * and for uploads: the bucket is being switched to another storage (s3/place/place.h, PLACE_LIST).
 */
struct lake_files {
    struct lake_file *items; /* in the arena of the call */
    size_t count;
    bool more;
    struct str next; /* `after` of the next page */
};
int lake_files_list(struct lake *l, struct arena *a, const struct lake_repo *r, struct str prefix,
                    struct str after, struct lake_files *out, struct err *err) MUST_CHECK;

/* Removes a file; a missing file is no error. `c` has the conditions of the removal; NULL: none. */
int lake_files_remove(struct lake *l, const struct lake_repo *r, struct str key,
                      const struct object_conditions *c, struct err *err) MUST_CHECK;

/* Sets *has to whether there are uploads in parts whose keys begin with `prefix`. */
int lake_files_has_uploads(struct lake *l, const struct lake_repo *r, struct str prefix, bool *has,
                           struct err *err) MUST_CHECK;
/* Aborts all uploads in parts whose keys begin with `prefix`. */
int lake_files_abort_uploads(struct lake *l, const struct lake_repo *r, struct str prefix,
                             struct err *err) MUST_CHECK;

#endif
