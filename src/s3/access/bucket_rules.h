/* The rules of a bucket that decide about access to it, read from its documents: policy, ACL,
 * PublicAccessBlock and OwnershipControls. They are for callers outside of the gateway, which ask
 * now and then; nothing is kept between two calls, so no rule is out of date.
 *
 * Any thread may call; reading waits for the storage. */
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

/* Reads the rules into the arena. An error of a document is an error of the call. A storage with
 * credentials of its own decides about access itself: of its buckets only `info` is read. */
int bucket_rules_read(struct bucket_rules *out, struct arena *a, struct bucket *b,
                      struct err *err) MUST_CHECK;

/* Returns the question of access_allowed(), without an object. */
struct access_request bucket_rules_ask(const struct bucket_rules *rules,
                                       const struct policy_request *ask);
/* Whether the rules allow what is asked. `object` (NULL: none) is the object with its owner and its
 * ACL. */
bool bucket_rules_allow(const struct bucket_rules *rules, const struct policy_request *ask,
                        const struct object_info *object);

#endif
