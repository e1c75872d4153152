/* Access control lists of objects and buckets, in one form for all storages. Storages that keep any
 * text hold our own form (meta/acl.h), the others S3's XML. */
#ifndef COPY_GRANTS_H
#define COPY_GRANTS_H

#include "object/bucket.h"
#include "meta/acl.h"

/* Whose list is meant. */
struct grants_of {
    struct bucket *bucket;
    struct str key; /* empty: the bucket's own list */
};

/* The list of the current version. ERR_UNSUPPORTED, ERR_DENIED: the storage does not give it. Else
 * errors are those of object/bucket.h. */
int grants_read(struct acl *out, struct arena *a, const struct grants_of *of,
                struct err *err) MUST_CHECK;
int grants_write(struct arena *a, const struct grants_of *of, const struct acl *acl,
                 struct err *err) MUST_CHECK;

/* The same grants for another owner. `known_only`: without grants to users other than the owner. */
int grants_map(struct acl *out, struct arena *a, const struct acl *from, struct str owner,
               bool known_only, struct err *err) MUST_CHECK;
/* The same grants in any order; owners are not compared. */
bool grants_same(const struct acl *a, const struct acl *b);

#endif
