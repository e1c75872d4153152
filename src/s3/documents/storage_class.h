/* Names of storage classes. What a class costs or how fast it is, no storage of weir's knows: a
 * class is a label that is kept beside a version (docs/lifecycle.md). */
#ifndef S3_DOCUMENTS_STORAGE_CLASS_H
#define S3_DOCUMENTS_STORAGE_CLASS_H

#include "base/str.h"

/* Those of S3, for a gateway that is not told which. */
#define STORAGE_CLASSES                                                                            \
    "STANDARD,STANDARD_IA,ONEZONE_IA,INTELLIGENT_TIERING,GLACIER,DEEP_ARCHIVE,GLACIER_IR,"         \
    "REDUCED_REDUNDANCY"

/* Whether `name` is in the list, which has commas between its names, or STANDARD. */
bool storage_class_known(struct str list, struct str name);

/* As it is kept: STANDARD is empty. */
static inline struct str storage_class_kept(struct str name)
{
    return str_eq(name, STR("STANDARD")) ? STR_EMPTY : name;
}

/* As it is shown where it always is. */
static inline struct str storage_class_shown(struct str kept)
{
    return kept.len ? kept : STR("STANDARD");
}

#endif
