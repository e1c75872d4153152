/* Whose bucket it is, where the caller names no user. A local storage says who owns a bucket; on a
 * remote one each user that has keys there is asked whether it has a bucket of the name. Waits for
 * the storages. Strings are in the arena of the call. */
#ifndef API_OWNERS_H
#define API_OWNERS_H

#include "api/api_int.h"

struct owner {
    struct str user, storage; /* its id; where the bucket is */
    bool owns;                /* else the storage does not say whose it is, but the user sees it */
};

struct owners {
    struct owner *list;
    size_t count;
};

struct owner_of {
    struct str bucket;
    struct str storage; /* empty: on any */
    struct str prefer;  /* of several: those on this one, if there are any; for api_user_id() */
    bool routed;        /* a remote storage counts only for users whose route leads there */
};

/* A storage that cannot be asked is an error, as the bucket may be there. */
int api_owners(struct api *api, struct arena *a, const struct owner_of *of, struct owners *out,
               struct err *err) MUST_CHECK;
/* Leaves in `of` the users that are in `with` too. */
void api_owners_meet(struct owners *of, const struct owners *with);
/* The only user among them. ERR_NO_BUCKET: there is none. ERR_CONFLICT: there are several, which
 * the text lists. */
int api_owners_one(struct api *api, struct arena *a, struct str bucket, const struct owners *o,
                   struct str *out, struct err *err) MUST_CHECK;

/* The id of the user of that name (ERR_NOT_FOUND); without a name the owner of the bucket. */
int api_user_id(struct api *api, struct arena *a, struct str name, const struct owner_of *of,
                struct str *out, struct err *err) MUST_CHECK;
/* For messages: the user's name, or the id of one that is gone. */
struct str api_user_name(struct api *api, struct arena *a, struct str id);

#endif
