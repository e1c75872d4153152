/* Remote storages of this weir: those added while running, which are kept in configDB and are the
 * same on every weir of one store (docs/security.md has the keys), and those of the configuration
 * file. They are put among the storages of route.h, with the credentials that users have on them.
 *
 * Secrets are sealed with the data folder's key file. A change made through another weir is seen
 * when its message arrives. While the store could not be asked yet, finding a bucket is
 * ERR_UNAVAILABLE (route.h): it might be on a storage that is not known yet. Any thread. */
#ifndef ROUTE_REMOTES_H
#define ROUTE_REMOTES_H

#include "object/remote/remote.h"
#include "route/route.h"

struct remotes;

enum { REMOTES_USERS_MAX = 10000 /* with credentials on one storage */ };

/* What replication may ask of a storage, all workers of the store together; 0: no limit. */
struct remote_limits {
    uint64_t requests_per_minute, bytes_per_second;
};

/* Strings that a call returns are in its arena. */
struct remote_entry {
    struct str name;
    struct str url;    /* http[s]://host[:port] */
    struct str region; /* empty: us-east-1 */
    struct str ca;     /* a file of certificates; empty: the system's */
    bool virtual_host; /* bucket.host */
    bool insecure;     /* do not check the certificate */
    bool trailers;     /* takes STREAMING-UNSIGNED-PAYLOAD-TRAILER (docs/forward.md) */
    struct remote_times times;
    struct remote_limits limits; /* for remotes_add_fixed() alone: see remotes_set_limits() */
    bool fixed;                  /* from the file: cannot be changed here */
    struct str *users;           /* ids of those with credentials, sorted */
    size_t user_count;
};

/* `key_file` must be there. ERR_CORRUPT: it is not the one that secrets are sealed with. */
int remotes_open(struct remotes **out, struct routes *routes, struct store *config,
                 const char *key_file, const struct log *log, struct err *err) MUST_CHECK;
void remotes_close(struct remotes *r); /* before routes_close(); NULL is fine */

/* Reads them again: all that was changed before is seen when it returns. */
int remotes_reload(struct remotes *r, struct err *err) MUST_CHECK;

/* One of the file, and a user's credentials on it: not stored. For the start alone. */
int remotes_add_fixed(struct remotes *r, const struct remote_entry *e, struct err *err) MUST_CHECK;
int remotes_set_credential_fixed(struct remotes *r, struct str storage,
                                 const struct remote_credential *c, struct err *err) MUST_CHECK;

/* Durable, and seen by route.h, when they return. ERR_EXISTS: the name. ERR_INVALID: name or URL,
 * or the storage is of the file. ERR_NOT_FOUND: no such remote storage. */
int remotes_add(struct remotes *r, const struct remote_entry *e, struct err *err) MUST_CHECK;
/* What remotes_set_credential() and remotes_set_main() would refuse of a storage that is yet to be
 * added; `c` NULL: none. */
int remotes_check_new(struct remotes *r, const struct remote_credential *c, bool as_main,
                      struct err *err) MUST_CHECK;
/* What it holds stays where it is; policies that name it stay too. ERR_IN_USE: it is the main one.
 */
int remotes_remove(struct remotes *r, struct str name, struct err *err) MUST_CHECK;
/* Its errors alone. */
int remotes_check_removal(struct remotes *r, struct str name, struct err *err) MUST_CHECK;
/* An empty secret removes. ERR_DENIED: the storage is of the file. */
int remotes_set_credential(struct remotes *r, struct str storage, const struct remote_credential *c,
                           struct err *err) MUST_CHECK;
/* Removes the user's credentials on all storages but those of the file. */
int remotes_forget_user(struct remotes *r, struct str user, struct err *err) MUST_CHECK;
/* Any storage, local ones too: where buckets without a policy are. */
int remotes_set_main(struct remotes *r, struct str name, struct err *err) MUST_CHECK;
/* Of any storage, local ones too; they are in struct storage when it returns. ERR_NOT_FOUND: no
 * such storage. ERR_INVALID: past what limits can be, or the storage is of the file. */
int remotes_set_limits(struct remotes *r, struct str name, const struct remote_limits *limits,
                       struct err *err) MUST_CHECK;
int remotes_check_limits(const struct remote_limits *limits, struct err *err) MUST_CHECK;
/* The file's word: the store's is not looked at. */
int remotes_set_main_fixed(struct remotes *r, struct str name, struct err *err) MUST_CHECK;

/* What a storage shows when it tells weir of changes (POST /notify/<name>), appended: made from the
 * key file and the name, so that every weir of the store has the same. */
void remotes_notify_token(struct remotes *r, struct str name, struct buf *out);

/* By name. */
int remotes_list(struct remotes *r, struct arena *a, struct remote_entry **out, size_t *count,
                 struct err *err) MUST_CHECK;

#endif
