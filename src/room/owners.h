/* Finds the user who owns a bucket, for calls that name no user. For a bucket on a local storage,
 * weir knows the owner. A remote storage is asked once with the keys of each user who has keys
 * there: has this user a bucket of this name? These functions wait for the storages. Strings are in
 * the arena of the call. */
#ifndef ROOM_OWNERS_H
#define ROOM_OWNERS_H

#include "room/services.h"

struct owner {
    struct str user;    /* the user's id */
    struct str storage; /* the storage that the bucket is on */
    /* false: the user sees the bucket, but the storage does not say who owns it */
    bool owns;
};

struct owners {
    struct owner *list;
    size_t count;
};

/* The bucket to look for. */
struct owner_of {
    struct str bucket;
    struct str storage; /* search only this storage; empty: all storages */
    /* For owners_user_id(): if several storages have such a bucket, the one on this storage is
     * chosen. */
    struct str prefer;
    bool routed; /* on a remote storage, count only users whose route leads there */
};

/* Finds all users who have such a bucket. If a storage cannot be asked, the result is an error,
 * because the bucket may be on that storage. */
int owners_find(const struct services *services, struct arena *a, const struct owner_of *of,
                struct owners *out, struct err *err) MUST_CHECK;
/* Removes from `of` the users who are not in `with`. */
void owners_meet(struct owners *of, const struct owners *with);
/* Gets the id of the only user among the owners. ERR_NO_BUCKET: there is no owner. ERR_CONFLICT:
 * there are several owners, and the error's text lists them. */
int owners_one(const struct services *services, struct arena *a, struct str bucket,
               const struct owners *o, struct str *out, struct err *err) MUST_CHECK;

/* Gets the id of the user called `name`, or of the bucket's owner if `name` is empty.
 * ERR_NOT_FOUND: there is no such user. */
int owners_user_id(const struct services *services, struct arena *a, struct str name,
                   const struct owner_of *of, struct str *out, struct err *err) MUST_CHECK;
/* Returns the user's name for messages, or the id when the user was removed. */
struct str owners_user_name(const struct services *services, struct arena *a, struct str id);

#endif
