/* The diagnosis of a lake: a tar archive that describes what the key-value store and the trees
 * hold, how long operations took, and which of them failed. It has names of repositories and
 * branches, but no paths, no contents and no secrets. A diagnosis changes nothing.
 * docs/lake-keeping.md, "Diagnosis", lists the files of the archive. */
#ifndef LAKE_DIAGNOSE_H
#define LAKE_DIAGNOSE_H

#include "lake/lake.h"
#include "lake/progress.h"

enum { LAKE_DIAGNOSIS_MAX = 64 << 20 }; /* largest archive, in bytes */

struct lake_diagnose_options {
    const char *version; /* version of the program */
    size_t users;        /* number of users that weir has */
    const struct lake_progress *progress;
};

/* Appends the archive. If a repository cannot be read, the diagnosis goes on, and the file
 * errors.json gives the reason. ERR_TOO_LARGE: the archive would be too large. */
int lake_diagnose(struct lake *l, const struct lake_diagnose_options *o, struct buf *out,
                  struct err *err) MUST_CHECK;

#endif
