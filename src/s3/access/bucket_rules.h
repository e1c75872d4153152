/* The rules of a bucket that decide about access to it, read from its documents: policy, ACL,
 * PublicAccessBlock and OwnershipControls. They are for callers outside of the gateway. Such
 * callers rarely need the rules, so each call reads them from the storage, and they are never out
 * of date. That may wait.
 *
 * Any thread may call. */
#ifndef S3_ACCESS_BUCKET_RULES_H
#define S3_ACCESS_BUCKET_RULES_H

#include "object/bucket.h"
#include "s3/access/access.h"

struct bucket_rules {
    struct bucket_info info;
    struct policy *policy; /* NULL: the bucket has none */
    bool policy_binds_owner;
    struct acl *acl; /* NULL: the bucket has none */
    struct public_block block;
    enum ownership ownership;
};

/* Reads the rules into the arena. If one of the documents cannot be read, the call fails. A storage
 * with STORAGE_CREDENTIALS decides about access itself, so only `info` of its buckets is read. */
int bucket_rules_read(struct bucket_rules *out, struct arena *a, struct bucket *b,
                      struct err *err) MUST_CHECK;

/* Returns the argument of access_allowed() for these rules, without an object. */
struct access_request bucket_rules_ask(const struct bucket_rules *rules,
                                       const struct policy_request *ask);
/* Whether the rules allow the request. `object` is the object with its owner and its ACL; NULL: the
 * request is about no object. */
bool bucket_rules_allow(const struct bucket_rules *rules, const struct policy_request *ask,
                        const struct object_info *object);

#endif
