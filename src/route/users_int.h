/* Declarations that the files users*.c share. */
#ifndef ROUTE_USERS_INT_H
#define ROUTE_USERS_INT_H

#include "base/map.h"
#include "base/vec.h"
#include "os/thread.h"
#include "store/reload.h"
#include "route/seal.h"
#include "route/users.h"
#include "store/store.h"

enum users_script { SCRIPT_ADD, SCRIPT_REMOVE, SCRIPT_KEYS, USERS_SCRIPTS };

/* A user of a view. The strings are in the view's arena; secrets are on the heap, so that they can
 * be overwritten. */
struct member {
    struct user user;
    struct user_key keys[USER_KEYS_MAX];
    struct str stored_keys; /* the text of the store's field "keys" when the user was read */
};

/* All users at one moment. A view never changes once it is installed. */
struct users_view {
    size_t refs; /* number of references; guarded by users.lock */
    struct arena arena;
    VEC(struct member *) members;                   /* sorted by name */
    struct map by_name, by_id, by_email, by_access; /* each maps to struct member */
    struct str version; /* the store's count of changes when the view was read */
};

struct users {
    struct store *store; /* borrowed */
    struct seal_key key;
    char *key_file;
    /* users:check:at is set in the store (users_key.c). Used only by the thread that loads. */
    bool key_told;
    struct script scripts[USERS_SCRIPTS];
    struct reload reload;

    struct mutex lock;
    struct cond loaded;
    /* A thread is loading; only one thread loads at a time, so that an older view never replaces a
     * newer one. */
    bool loading;
    struct users_view *view; /* NULL: the store could not be read yet */
    struct member *root;     /* the first administrator; NULL: none */
    /* Users of the configuration file; not changed once requests are served. */
    struct users_view *fixed;
};

extern const char *const users_script_sources[USERS_SCRIPTS];

/* The channel on which changes of users are published. */
#define USERS_CHANNEL STR("weir:users")

/* Reads all users and installs them as the new view. */
int users_load(struct users *u, struct err *err) MUST_CHECK;

/* Checks the key file. ERR_CORRUPT: the stored secrets are sealed with another key file. The
 * error's text says which file to copy. */
int users_check_key(struct users *u, struct err *err) MUST_CHECK;
/* These two set and return ERR_CORRUPT, with a text that says which file to copy. */
int users_wrong_key(struct users *u, struct err *err);
int users_missing_key(struct users *u, struct err *err);

/* Gets a reference to the newest view. ERR_UNAVAILABLE: no view was ever loaded. */
int users_view_get(struct users *u, struct users_view **out, struct err *err) MUST_CHECK;
void users_view_put(struct users *u, struct users_view *view);
void users_view_free(struct users_view *view); /* NULL is fine */
struct users_view *users_view_new(void);

/* Appends the key "user:<name>". */
void users_key_of(struct buf *out, struct str name);
/* Returns the address in lower case, in the arena, because addresses that differ only in case are
 * the same. */
struct str users_fold(struct arena *a, struct str email);

void member_free_secrets(struct member *m);
/* Copies the user into another arena, without secrets. */
int member_copy(const struct member *m, struct arena *a, struct user *out, struct err *err);

#endif
