/* Bucket policies: JSON, checked and compiled once, then asked.
 *
 * A compiled policy lives in the arena that it was compiled into, does not change, and may be asked
 * by any number of threads. Asking allocates only for policy variables, in the request's arena;
 * values of the request come from a callback, which is called only for what a statement asks for.
 *
 * Principals: weir has users and no accounts, so each user is an account of its own with the
 * user's id. "arn:aws:iam::ID:root" and a bare ID are the user with that id, "arn:aws:iam::ID:user/
 * NAME" (ID may be empty) the one whose id or name is NAME. Roles and federated identities match
 * nobody. Whether the users that a policy names exist is checked when the policy is set, not when
 * it is compiled: a user may be removed later. */
#ifndef S3_ACCESS_POLICY_H
#define S3_ACCESS_POLICY_H

#include "base/arena.h"
#include "meta/error.h"
#include "s3/access/policy_table.h"

/* S3's limit on the size of a policy; and the size up to which one is compiled and asked on threads
 * where nothing may wait. */
enum { POLICY_MAX_BYTES = 20 * 1024, POLICY_FAST_BYTES = 4 * 1024 };

/* aws:userid and aws:PrincipalAccount of anonymous requests. */
#define POLICY_ANONYMOUS "anonymous"

struct policy;

enum policy_effect { POLICY_NONE, POLICY_ALLOW, POLICY_DENY };

struct policy_who {
    struct str id;      /* empty: anonymous */
    struct str name;    /* of the user */
    struct str service; /* not empty: a service of weir itself ("logging.s3.amazonaws.com") */
};

struct policy_values {
    const struct str *items;
    size_t count;
};

struct policy_request {
    struct policy_who who;
    enum s3_action action;
    struct str bucket, key; /* key: empty for an action on the bucket */
    /* The request's values of a condition key; false when it has none. `suffix`: of
     * ExistingObjectTag/<suffix> and the like. Both are borrowed for the call. */
    bool (*value)(void *ctx, enum policy_key key, struct str suffix, struct policy_values *out);
    void *ctx;
    struct arena *arena; /* for policy variables; when it is full the answer is POLICY_DENY */
};

/* For `bucket`: MalformedPolicy, in the words of S3. */
int policy_compile(struct policy **out, struct arena *a, struct str json, struct str bucket,
                   struct err *err) MUST_CHECK;

/* Looks for a user by id, or by id or name; with an account, that is the user's id. 0,
 * ERR_NOT_FOUND, or a failure. */
typedef int policy_find_fn(void *ctx, struct str account, struct str name, bool by_name,
                           struct err *err);

/* MalformedPolicy when the policy names a user that does not exist: denying that user would have no
 * effect. In a statement that allows, roles and accounts ("...:root", where Ceph has tenants) may
 * be unknown. */
int policy_check_principals(const struct policy *p, policy_find_fn *find, void *ctx,
                            struct err *err) MUST_CHECK;

/* MalformedPolicy when a condition can never hold, or a variable never has a value, because no
 * request to weir has the key: a denial with it would have no effect. Checked when a policy is set;
 * policies that were stored before are applied as they are. */
int policy_check_keys(const struct policy *p, struct err *err) MUST_CHECK;

/* Whether compiling or asking the policy takes too long for fast workers. */
bool policy_is_large(const struct policy *p);

/* Whether a statement allows `who` the action for some resource under some conditions. If not, the
 * policy allows no request of `who` for the action. */
bool policy_may_allow(const struct policy *p, const struct policy_who *who, enum s3_action action);

/* DENY when any statement denies, else ALLOW when one allows, else NONE. */
enum policy_effect policy_evaluate(const struct policy *p, const struct policy_request *r);

/* Whether the policy allows something to everybody, without a condition that limits who they are
 * (S3: "The meaning of public"). */
bool policy_is_public(const struct policy *p);

#endif
