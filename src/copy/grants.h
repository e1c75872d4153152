/* Reads and writes the access control lists of objects and buckets, in one form for all storages. A
 * storage that can keep any text has weir's own form (meta/acl.h); other storages have S3's XML. */
#ifndef COPY_GRANTS_H
#define COPY_GRANTS_H

#include "object/bucket.h"
#include "meta/acl.h"

/* Names the object or bucket whose access control list is read or written. */
struct grants_of {
    struct bucket *bucket;
    struct str key; /* empty: the bucket's own list */
};

/* Reads the list of an object's current version, or of the bucket. ERR_UNSUPPORTED, ERR_DENIED: the
 * storage does not give the list. Other errors are those of object/bucket.h. */
int grants_read(struct acl *out, struct arena *a, const struct grants_of *of,
                struct err *err) MUST_CHECK;
int grants_write(struct arena *a, const struct grants_of *of, const struct acl *acl,
                 struct err *err) MUST_CHECK;

/* Makes a list with the same grants for another owner. `known_only` true: grants to users other
 * than the owner are left out. */
int grants_map(struct acl *out, struct arena *a, const struct acl *from, struct str owner,
               bool known_only, struct err *err) MUST_CHECK;
/* Returns whether both lists have the same grants, in any order. Owners are not compared. */
bool grants_same(const struct acl *a, const struct acl *b);

#endif
