/* Users and their access keys.
 *
 * Users are kept in configDB (docs/security.md has the keys), with their secrets sealed by the data
 * folder's key file. All users are also held in memory, so that finding one never waits. A change
 * that was made through another weir on the same store is seen when its message arrives, usually
 * within a second. Any thread. */
#ifndef ROUTE_USERS_H
#define ROUTE_USERS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"

struct users;
struct store;

enum { USER_KEYS_MAX = 16, USER_ID_MAX = 128 };

/* Name and id of the first administrator; nobody else can have them. */
#define USER_ROOT STR("root")

struct user_key {
    struct str access, secret;
};

/* Strings live in the arena that a call was given. */
struct user {
    struct str id; /* canonical: what owns buckets and stands in ACLs */
    struct str name;
    struct str display_name; /* empty: the name */
    struct str email;        /* may be empty */
    bool admin;              /* may use the management API and every bucket */
    const struct user_key *keys;
    size_t key_count;
};

/* The first administrator is not stored; users_set_root() adds it. `key_file` holds 32 bytes, and
 * is made with mode 0600 when it does not exist. A store that is down is no error: until it is
 * back, every call but finding the first administrator is ERR_UNAVAILABLE. ERR_CORRUPT: the stored
 * secrets are sealed with another key file. */
int users_open(struct users **out, struct store *config, const char *key_file,
               const struct log *log, struct err *err) MUST_CHECK;
void users_set_root(struct users *u, struct str access, struct str secret);
/* Logs a warning when the first administrator has other keys here than on the weir of this store
 * that was started before this one, elsewhere. Does nothing while the store cannot be asked. */
void users_compare_root(struct users *u);
/* Adds a user of the configuration file, who is not stored and whom the calls below do not change.
 * A user without an id gets the name as id. The user has one key. To be called before another
 * thread uses the users. ERR_EXISTS. */
int users_add_fixed(struct users *u, const struct user *wanted, struct err *err) MUST_CHECK;
void users_close(struct users *u);

/* These four find a user and never wait. *out has no secrets; *secret is that of the key that was
 * asked for. ERR_NOT_FOUND. */
int users_by_key(struct users *u, struct arena *a, struct str access, struct user *out,
                 struct str *secret, struct err *err) MUST_CHECK;
int users_by_id(struct users *u, struct arena *a, struct str id, struct user *out,
                struct err *err) MUST_CHECK;
int users_by_name(struct users *u, struct arena *a, struct str name, struct user *out,
                  struct err *err) MUST_CHECK;
int users_by_email(struct users *u, struct arena *a, struct str email, struct user *out,
                   struct err *err) MUST_CHECK;

/* These four change users. A change is durable, and the calls above see it, when they return. A
 * user without an id gets a random one. A user without keys gets one, which is in *out: the only
 * time that its secret is shown. users_add_key() makes a key when `wanted` is NULL or empty.
 * ERR_EXISTS: the name, id, email or access key is taken. ERR_INVALID: one of them is malformed.
 * ERR_TOO_LARGE: the user has USER_KEYS_MAX keys. */
int users_add(struct users *u, struct arena *a, const struct user *wanted, struct user *out,
              struct err *err) MUST_CHECK;
int users_remove(struct users *u, struct str name, struct err *err) MUST_CHECK;
int users_add_key(struct users *u, struct arena *a, struct str name, const struct user_key *wanted,
                  struct user_key *out, struct err *err) MUST_CHECK;
int users_remove_key(struct users *u, struct str name, struct str access,
                     struct err *err) MUST_CHECK;
/* All users without their secrets: the first administrator, then those of the configuration file,
 * then the others by name. */
int users_list(struct users *u, struct arena *a, struct user **out, size_t *count,
               struct err *err) MUST_CHECK;

#endif
