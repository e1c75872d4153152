/* Remote storages of this weir, and the credentials that users have on them. There are two kinds of
 * remote storages. Those that were added while weir ran are kept in configDB, a database that all
 * weirs of an installation share (docs/security.md has the keys). Those of the configuration file
 * are called *fixed*. Both are added to the storages of route.h.
 *
 * Secrets are sealed with the data folder's key file (route/seal.h). A change that was made through
 * another weir is seen when its message arrives. Until the store has been read once, looking for a
 * bucket fails with ERR_UNAVAILABLE (route.h), because the bucket might be on a storage that was
 * not read yet. Any thread may call these functions. */
#ifndef ROUTE_REMOTES_H
#define ROUTE_REMOTES_H

#include "object/remote/remote.h"
#include "route/route.h"

struct remotes;

enum { REMOTES_USERS_MAX = 10000 /* most users with credentials on one storage */ };

/* The most that replication may ask of a storage, summed over all workers of the store; 0: no
 * limit. */
struct remote_limits {
    uint64_t requests_per_minute, bytes_per_second;
};

/* A remote storage. Strings that a call returns are in the call's arena. */
struct remote_entry {
    struct str name;
    struct str url;    /* http[s]://host[:port] */
    struct str region; /* empty: us-east-1 */
    struct str ca;     /* path of a file with CA certificates; empty: the system's certificates */
    bool virtual_host; /* buckets are addressed as bucket.host instead of host/bucket */
    bool insecure;     /* the storage's certificate is not checked */
    bool trailers; /* the storage accepts STREAMING-UNSIGNED-PAYLOAD-TRAILER (docs/forward.md) */
    struct remote_times times;
    struct remote_limits limits; /* used by remotes_add_fixed() only; see remotes_set_limits() */
    bool fixed;        /* the storage is in the configuration file, and cannot be changed here */
    struct str *users; /* ids of the users with credentials, sorted */
    size_t user_count;
};

/* Opens the remote storages that the store knows. `key_file` must exist. ERR_CORRUPT: the store's
 * secrets are sealed with another key file. */
int remotes_open(struct remotes **out, struct routes *routes, struct store *config,
                 const char *key_file, const struct log *log, struct err *err) MUST_CHECK;
void remotes_close(struct remotes *r); /* to be called before routes_close(); NULL is fine */

/* Reads the storages from the store again. When it returns, every change that was made before the
 * call is seen. */
int remotes_reload(struct remotes *r, struct err *err) MUST_CHECK;

/* These two add a storage of the configuration file, and a user's credentials on it. Neither is
 * stored. Call them only while weir starts. */
int remotes_add_fixed(struct remotes *r, const struct remote_entry *e, struct err *err) MUST_CHECK;
int remotes_set_credential_fixed(struct remotes *r, struct str storage,
                                 const struct remote_credential *c, struct err *err) MUST_CHECK;

/* Adds a remote storage. When this call or one of the changes below returns, the change is durable,
 * and the calls of route.h see it. These calls have the following errors in common. ERR_EXISTS: the
 * name is in use. ERR_INVALID: the name or the URL is not valid, or the storage is fixed.
 * ERR_NOT_FOUND: there is no such remote storage. */
int remotes_add(struct remotes *r, const struct remote_entry *e, struct err *err) MUST_CHECK;
/* Checks a storage that is yet to be added: returns the errors that remotes_set_credential() and
 * remotes_set_main() would return for it. `c` NULL: no credential is to be set. */
int remotes_check_new(struct remotes *r, const struct remote_credential *c, bool as_main,
                      struct err *err) MUST_CHECK;
/* Removes the storage from weir. The storage keeps its objects, and policies that name it stay.
 * ERR_IN_USE: the storage is the main one. */
int remotes_remove(struct remotes *r, struct str name, struct err *err) MUST_CHECK;
/* Returns the errors that remotes_remove() would return, and removes nothing. */
int remotes_check_removal(struct remotes *r, struct str name, struct err *err) MUST_CHECK;
/* Sets a user's credential on the storage, or removes it if the secret is empty. ERR_DENIED: the
 * storage is fixed. */
int remotes_set_credential(struct remotes *r, struct str storage, const struct remote_credential *c,
                           struct err *err) MUST_CHECK;
/* Removes the user's credentials on all storages that are not fixed. */
int remotes_forget_user(struct remotes *r, struct str user, struct err *err) MUST_CHECK;
/* Makes a storage, local or remote, the main storage, where buckets without a policy are.
 * ERR_INVALID: the configuration file chooses the main storage. ERR_CONFLICT: a replication or a
 * switch relies on the present main storage. */
int remotes_set_main(struct remotes *r, struct str name, struct err *err) MUST_CHECK;
/* Sets the limits of a storage, local or remote. When this returns, struct storage has the limits.
 * ERR_NOT_FOUND: there is no such storage. ERR_INVALID: the limits are too large, or the storage is
 * fixed. */
int remotes_set_limits(struct remotes *r, struct str name, const struct remote_limits *limits,
                       struct err *err) MUST_CHECK;
int remotes_check_limits(const struct remote_limits *limits, struct err *err) MUST_CHECK;
/* Makes the configuration file's choice the main storage. The store's choice is then ignored. */
int remotes_set_main_fixed(struct remotes *r, struct str name, struct err *err) MUST_CHECK;

/* Appends the token that a storage sends when it notifies weir of changes (POST /notify/<name>).
 * The token is computed from the key file and the name, so it is the same on every weir of the
 * store. */
void remotes_notify_token(struct remotes *r, struct str name, struct buf *out);

/* Lists all remote storages, sorted by name. */
int remotes_list(struct remotes *r, struct arena *a, struct remote_entry **out, size_t *count,
                 struct err *err) MUST_CHECK;

#endif
