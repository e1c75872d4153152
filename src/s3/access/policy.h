/* Bucket policies: the JSON is checked and compiled once; then requests are decided by it.
 *
 * A compiled policy lives in the arena that it was compiled into, does not change, and may be used
 * by any number of threads. A decision allocates only for policy variables, in the request's arena.
 * A callback gives the request's values of condition keys; it is called only for the keys that a
 * statement names.
 *
 * Principals: weir has users and no accounts, so each user is an account of its own with the user's
 * id. "arn:aws:iam::ID:root" and a bare ID stand for the user with that id.
 * "arn:aws:iam::ID:user/NAME", where ID may be empty, stands for the user whose id or name is NAME.
 * Roles and federated identities match nobody. Whether the users that a policy names exist is
 * checked when the policy is set, not when it is compiled: a user may be removed later. */
#ifndef S3_ACCESS_POLICY_H
#define S3_ACCESS_POLICY_H

#include "base/arena.h"
#include "meta/error.h"
#include "s3/access/policy_table.h"

/* POLICY_MAX_BYTES is S3's limit on the size of a policy. A policy larger than POLICY_FAST_BYTES is
 * not compiled or evaluated on a fast worker, an HTTP thread where nothing may wait
 * (http/server.h). */
enum { POLICY_MAX_BYTES = 20 * 1024, POLICY_FAST_BYTES = 4 * 1024 };

/* The value of aws:userid and aws:PrincipalAccount in anonymous requests. */
#define POLICY_ANONYMOUS "anonymous"

struct policy;

enum policy_effect { POLICY_NONE, POLICY_ALLOW, POLICY_DENY };

struct policy_who {
    struct str id;      /* the user's id; empty: an anonymous request */
    struct str name;    /* the user's name */
    struct str service; /* not empty: a service of weir itself ("logging.s3.amazonaws.com") */
};

struct policy_values {
    const struct str *items;
    size_t count;
};

struct policy_request {
    struct policy_who who;
    enum s3_action action;
    struct str bucket, key; /* `key` is empty for an action on the bucket */
    /* Gets the request's values of a condition key; false when the request has none. `suffix` is
     * the tag's name in keys such as ExistingObjectTag/<name>. `suffix` and `out` are borrowed for
     * the call. */
    bool (*value)(void *ctx, enum policy_key key, struct str suffix, struct policy_values *out);
    /* Whether the caller can know the value of a condition key. NULL: the caller knows every value.
     * If the value of a key is not known, a condition on the key counts as fulfilled in a statement
     * that denies, and as not fulfilled in a statement that allows. */
    bool (*knows)(enum policy_key key);
    void *ctx;
    struct arena *arena; /* for values of policy variables; when full, the answer is POLICY_DENY */
};

/* Compiles the policy of `bucket`. MalformedPolicy: the policy is invalid; the message is the one
 * that S3 gives. */
int policy_compile(struct policy **out, struct arena *a, struct str json, struct str bucket,
                   struct err *err) MUST_CHECK;

/* Looks for a user whose id is `name`; with `by_name` also for a user whose name is `name`.
 * `account`, if not empty, must be the user's id. Returns 0, ERR_NOT_FOUND, or a failure. */
typedef int policy_find_fn(void *ctx, struct str account, struct str name, bool by_name,
                           struct err *err);

/* Checks that the users that the policy names exist; if not, MalformedPolicy, because denying an
 * unknown user would have no effect. In a statement that allows, roles and accounts ("...:root",
 * where Ceph has tenants) may be unknown. */
int policy_check_principals(const struct policy *p, policy_find_fn *find, void *ctx,
                            struct err *err) MUST_CHECK;

/* Checks that requests to weir can have every condition key and variable that the policy uses. If
 * not, MalformedPolicy, because a denial with a key that no request has would have no effect. The
 * check is made when a policy is set; policies that were stored before are applied as they are. */
int policy_check_keys(const struct policy *p, struct err *err) MUST_CHECK;

/* Whether the policy is too large to be compiled or evaluated on a fast worker, an HTTP thread
 * where nothing may wait (http/server.h). */
bool policy_is_large(const struct policy *p);

/* Whether a statement allows `who` the action for some resource under some conditions. If not, the
 * policy allows no request of `who` for the action. */
bool policy_may_allow(const struct policy *p, const struct policy_who *who, enum s3_action action);

/* Decides the request: POLICY_DENY when any statement denies it, else POLICY_ALLOW when one allows
 * it, else POLICY_NONE. */
enum policy_effect policy_evaluate(const struct policy *p, const struct policy_request *r);

/* Whether there is a text T such that the policy denies the request's action on the key `from` + T,
 * but not on the key `to` + T. If `to` is empty: whether the policy denies the action on any key
 * that begins with `from`. Conditions about objects count as fulfilled. The answer may be true
 * although there is no such T, but it is never false if there is one. r->key has no effect. */
bool policy_denies_beyond(const struct policy *p, const struct policy_request *r, struct str from,
                          struct str to);

/* Whether one statement allows the request's action on every object whose key begins with `begin`.
 * Statements that deny are ignored. The answer may be false although all these objects are allowed,
 * but it is never true if one of them is not. r->key has no effect. */
bool policy_allows_below(const struct policy *p, const struct policy_request *r, struct str begin);

/* Whether the policy may let some user do the request's action on a key below `to`, but not on the
 * same key below `from`. "The same key" has the same bytes behind the prefix. The answer may be
 * true although there is no such key, but it is never false if there is one. r->who and r->key have
 * no effect. */
bool policy_gives_beyond(const struct policy *p, const struct policy_request *r, struct str from,
                         struct str to);

/* Whether a decision about the action may depend on the tags of the object. */
bool policy_asks_tags(const struct policy *p, enum s3_action action);

/* Whether the policy allows something to everybody, without a condition that limits who may use the
 * permission (S3: "The meaning of public"). */
bool policy_is_public(const struct policy *p);

#endif
