/* Names of storage classes. For weir a class is only a label that is stored with a version
 * (docs/lifecycle.md): it changes neither cost nor speed. */
#ifndef S3_DOCUMENTS_STORAGE_CLASS_H
#define S3_DOCUMENTS_STORAGE_CLASS_H

#include "base/str.h"

/* The classes that a gateway accepts by default: those of S3, comma-separated. */
#define STORAGE_CLASSES                                                                            \
    "STANDARD,STANDARD_IA,ONEZONE_IA,INTELLIGENT_TIERING,GLACIER,DEEP_ARCHIVE,GLACIER_IR,"         \
    "REDUCED_REDUNDANCY"

/* Whether `name` is STANDARD or in the comma-separated list. */
bool storage_class_known(struct str list, struct str name);

/* Returns the stored form of a name: STANDARD is stored as an empty string. */
static inline struct str storage_class_kept(struct str name)
{
    return str_eq(name, STR("STANDARD")) ? STR_EMPTY : name;
}

/* Returns the name of a stored form: an empty string is STANDARD. */
static inline struct str storage_class_shown(struct str kept)
{
    return kept.len ? kept : STR("STANDARD");
}

#endif
