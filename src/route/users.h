/* Users and their access keys.
 *
 * Kept in configDB (see docs/security.md for the keys), secrets encrypted with the data folder's
 * key file; all of them are also held in memory, so that finding one never waits. A change made
 * through another weir on the same store is seen within a second (a published message). Any thread.
 */
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

/* The first administrator is not stored: it is added by users_set_root(). `key_file` holds 32
 * bytes, made (0600) when absent. A store that is down is no error: until it is back every call but
 * finding the first administrator is ERR_UNAVAILABLE. ERR_CORRUPT: the key file is not the one that
 * the stored secrets are sealed with. */
int users_open(struct users **out, struct store *config, const char *key_file,
               const struct log *log, struct err *err) MUST_CHECK;
void users_set_root(struct users *u, struct str access, struct str secret);
/* Logs a warning when the weir of this store that was started before this one, elsewhere, has other
 * keys of the first administrator. Silent while the store cannot be asked. */
void users_compare_root(struct users *u);
/* One of the configuration file: not stored, not changed by the calls below. Its id is its name
 * when it has none; it has one key. Before any other thread uses the users. ERR_EXISTS. */
int users_add_fixed(struct users *u, const struct user *wanted, struct err *err) MUST_CHECK;
void users_close(struct users *u);

/* ERR_NOT_FOUND. Never wait; without secrets but the one of the key that was asked for. */
int users_by_key(struct users *u, struct arena *a, struct str access, struct user *out,
                 struct str *secret, struct err *err) MUST_CHECK;
int users_by_id(struct users *u, struct arena *a, struct str id, struct user *out,
                struct err *err) MUST_CHECK;
int users_by_name(struct users *u, struct arena *a, struct str name, struct user *out,
                  struct err *err) MUST_CHECK;
int users_by_email(struct users *u, struct arena *a, struct str email, struct user *out,
                   struct err *err) MUST_CHECK;

/* Management; durable, and seen by the calls above, when they return. Empty id: a random one; no
 * keys: one is made and returned in *out, the only time its secret is shown. ERR_EXISTS: name, id,
 * email or access key taken. ERR_INVALID: one of them cannot be that. Adding a key: `wanted` NULL
 * or empty makes one. ERR_TOO_LARGE: past USER_KEYS_MAX. */
int users_add(struct users *u, struct arena *a, const struct user *wanted, struct user *out,
              struct err *err) MUST_CHECK;
int users_remove(struct users *u, struct str name, struct err *err) MUST_CHECK;
int users_add_key(struct users *u, struct arena *a, struct str name, const struct user_key *wanted,
                  struct user_key *out, struct err *err) MUST_CHECK;
int users_remove_key(struct users *u, struct str name, struct str access,
                     struct err *err) MUST_CHECK;
/* The first administrator, those of the file, then by name; secrets left out. */
int users_list(struct users *u, struct arena *a, struct user **out, size_t *count,
               struct err *err) MUST_CHECK;

#endif
