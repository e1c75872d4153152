/* Users and their access keys.
 *
 * Users are kept in configDB, a database that all weirs of an installation share (docs/security.md
 * has the keys). Their secrets are sealed with the data folder's key file (route/seal.h). All users
 * are also held in memory, so that finding one never waits. A change that was made through another
 * weir on the same store is seen when its message arrives, usually within a second. Any thread may
 * call these functions. */
#ifndef ROUTE_USERS_H
#define ROUTE_USERS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"

struct users;
struct store;

enum { USER_KEYS_MAX = 16, USER_ID_MAX = 128 };

/* Name and id of the first administrator. No other user can have them. */
#define USER_ROOT STR("root")

struct user_key {
    struct str access, secret;
};

/* A user. Strings are in the arena that was passed to the call. */
struct user {
    struct str id; /* the canonical id, which owns buckets and stands in ACLs */
    struct str name;
    struct str display_name; /* empty: the name is shown */
    struct str email;        /* may be empty */
    bool admin;              /* may use the management API and every bucket */
    const struct user_key *keys;
    size_t key_count;
};

/* Opens the users of the store. The first administrator is not stored: users_set_root() adds it.
 * `key_file` holds 32 bytes, and is made with mode 0600 when it does not exist. A store that is
 * down is no error. Until it is back, only the first administrator and users of the configuration
 * file are found; every other call fails with ERR_UNAVAILABLE. ERR_CORRUPT: the stored secrets are
 * sealed with another key file. */
int users_open(struct users **out, struct store *config, const char *key_file,
               const struct log *log, struct err *err) MUST_CHECK;
void users_set_root(struct users *u, struct str access, struct str secret);
/* Logs a warning if the first administrator's keys here differ from those of the weir that was last
 * started on the same store elsewhere. Does nothing while the store cannot be asked. */
void users_compare_root(struct users *u);
/* Adds a user of the configuration file, who is not stored and whom the calls below do not change.
 * A user without an id gets the name as id. The user has one key. To be called before another
 * thread uses the users. ERR_EXISTS: the name, id or access key is in use. */
int users_add_fixed(struct users *u, const struct user *wanted, struct err *err) MUST_CHECK;
void users_close(struct users *u);

/* These four find a user and never wait. *out has no secrets; *secret is the secret of the key that
 * was asked for. ERR_NOT_FOUND: there is no such user. */
int users_by_key(struct users *u, struct arena *a, struct str access, struct user *out,
                 struct str *secret, struct err *err) MUST_CHECK;
int users_by_id(struct users *u, struct arena *a, struct str id, struct user *out,
                struct err *err) MUST_CHECK;
int users_by_name(struct users *u, struct arena *a, struct str name, struct user *out,
                  struct err *err) MUST_CHECK;
int users_by_email(struct users *u, struct arena *a, struct str email, struct user *out,
                   struct err *err) MUST_CHECK;

/* These four change users. When they return, the change is durable, and the calls above see it. A
 * user without an id gets a random one. A user without keys gets one key, which is in *out; the
 * key's secret is not shown again. users_add_key() makes a key when `wanted` is NULL or empty.
 * ERR_EXISTS: the name, id, email or access key is in use. ERR_INVALID: one of them is malformed.
 * ERR_TOO_LARGE: the user has USER_KEYS_MAX keys. ERR_NOT_FOUND: there is no such user or access
 * key. ERR_DENIED: the user is the first administrator, or one of the configuration file.
 * ERR_CONFLICT: other calls change the user all the time. */
int users_add(struct users *u, struct arena *a, const struct user *wanted, struct user *out,
              struct err *err) MUST_CHECK;
int users_remove(struct users *u, struct str name, struct err *err) MUST_CHECK;
int users_add_key(struct users *u, struct arena *a, struct str name, const struct user_key *wanted,
                  struct user_key *out, struct err *err) MUST_CHECK;
int users_remove_key(struct users *u, struct str name, struct str access,
                     struct err *err) MUST_CHECK;
/* Lists all users without their secrets: the first administrator, then the users of the
 * configuration file, then the other users by name. */
int users_list(struct users *u, struct arena *a, struct user **out, size_t *count,
               struct err *err) MUST_CHECK;

#endif
