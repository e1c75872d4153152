/* Access control lists between storages: local's kept form, and S3's XML of a remote one. */
#ifndef COPY_GRANTS_H
#define COPY_GRANTS_H

#include "object/bucket.h"
#include "meta/acl.h"

/* Whose list is meant. */
struct grants_of {
    struct bucket *bucket;
    struct str key; /* empty: the bucket's own list */
};

/* Of the current version. ERR_NOT_FOUND, ERR_NO_BUCKET; ERR_UNSUPPORTED, ERR_DENIED: the storage
 * tells none. */
int grants_read(struct acl *out, struct arena *a, const struct grants_of *of,
                struct err *err) MUST_CHECK;
int grants_write(struct arena *a, const struct grants_of *of, const struct acl *acl,
                 struct err *err) MUST_CHECK;

/* The same grants for another owner. `known_only`: without those to users other than the owner. */
int grants_map(struct acl *out, struct arena *a, const struct acl *from, struct str owner,
               bool known_only, struct err *err) MUST_CHECK;
/* The same grants in any order; owners are not compared. */
bool grants_same(const struct acl *a, const struct acl *b);

#endif
