/* The diagnosis of a lake: one tar archive that says what the key-value store and the trees hold,
 * how long operations took, and which of them failed. It has names of repositories and branches,
 * but no paths, no contents and no secrets. Nothing is changed. docs/lake-keeping.md, "Diagnosis",
 * has the files of the archive. */
#ifndef LAKE_DIAGNOSE_H
#define LAKE_DIAGNOSE_H

#include "lake/lake.h"
#include "lake/progress.h"

enum { LAKE_DIAGNOSIS_MAX = 64 << 20 }; /* bytes of the archive */

struct lake_diagnose_options {
    const char *version; /* of the program */
    size_t users;        /* how many users weir has */
    const struct lake_progress *progress;
};

/* Appends the archive. A repository that cannot be read does not end the diagnosis: the file
 * errors.json says why. ERR_TOO_LARGE: the archive would be too large. */
int lake_diagnose(struct lake *l, const struct lake_diagnose_options *o, struct buf *out,
                  struct err *err) MUST_CHECK;

#endif
