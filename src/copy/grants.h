/* Access control lists of objects and buckets, in one form for all storages. Storages that keep any
 * text hold weir's own form (meta/acl.h), the others S3's XML. */
#ifndef COPY_GRANTS_H
#define COPY_GRANTS_H

#include "object/bucket.h"
#include "meta/acl.h"

/* The object or bucket whose list is meant. */
struct grants_of {
    struct bucket *bucket;
    struct str key; /* empty: the bucket's own list */
};

/* Reads the list of the current version or of the bucket. ERR_UNSUPPORTED, ERR_DENIED: the storage
 * does not give it. Other errors are those of object/bucket.h. */
int grants_read(struct acl *out, struct arena *a, const struct grants_of *of,
                struct err *err) MUST_CHECK;
int grants_write(struct arena *a, const struct grants_of *of, const struct acl *acl,
                 struct err *err) MUST_CHECK;

/* Makes a list with the same grants for another owner. `known_only`: leaves out grants to users
 * other than the owner. */
int grants_map(struct acl *out, struct arena *a, const struct acl *from, struct str owner,
               bool known_only, struct err *err) MUST_CHECK;
/* Whether both lists have the same grants, in any order. Owners are not compared. */
bool grants_same(const struct acl *a, const struct acl *b);

#endif
