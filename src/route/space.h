/* Spaces: names of buckets that are on no storage, such as the repositories of a lake.
 *
 * A space is a table of names that one part of weir adds. It has a `struct storage` of its own,
 * which opens and lists its buckets. That storage is not among routes_storages(): no policy leads
 * to it, nothing is replicated from or to it, and it is neither swept nor backed up. Spaces are
 * searched before storages, so a bucket of a space hides buckets of the same name on storages. No
 * bucket can be made on a storage under a name that a space has.
 *
 * Opening and reading a bucket of a space may wait even where a local storage would not, so
 * requests for it move to the gateway's pool of threads. Requests that read an object are an
 * exception: if the gateway has the bucket open already, it first tries to read the object without
 * waiting (get_now() in object/bucket.h). */
#ifndef ROUTE_SPACE_H
#define ROUTE_SPACE_H

#include "object/bucket.h"

struct routes;

enum { ROUTES_SPACES_MAX = 4 };

struct bucket_space {
    const char *kind; /* a word for people, such as "lake" */
    /* Opens and lists the buckets. Only its operations open_bucket, list_buckets and remove_bucket
     * are called. A bucket of the space has this storage as its `storage`, or it has NULL there and
     * this storage as its `home`. A bucket of the first kind must not depend on the user for whom
     * it was opened if the storage has `generations`, because then the gateway uses it for the
     * requests of all users. */
    struct storage *storage;
    size_t key_max; /* most bytes of a key in the space's buckets; not less than S3's limit */
    /* Returns whether the space has a bucket of this name. Every request asks this, so it must
     * answer from memory, with one look-up in a hash table, and never wait. Any thread may call
     * it. */
    bool (*has)(void *ctx, struct str name);
    /* Finds out whether the space has a bucket of this name at this moment, by asking the place
     * where the space is stored. This is needed because has() answers from memory, and may not yet
     * know of a change that another process made. May wait. NULL: has() always knows every change.
     */
    int (*look)(void *ctx, struct str name, bool *out, struct err *err);
    void *ctx;
};

/* Adds a space for the rest of the routes' life, before the first request is served. `space` and
 * its storage are borrowed until the routes are closed. ERR_TOO_LARGE: there are ROUTES_SPACES_MAX
 * spaces already. */
int routes_add_space(struct routes *r, const struct bucket_space *space,
                     struct err *err) MUST_CHECK;
/* Returns the space that has a bucket of this name; NULL: none. Never waits. */
const struct bucket_space *routes_space_of(struct routes *r, struct str bucket);
/* Finds out whether any space has a bucket of this name at this moment. Whoever makes a bucket on a
 * storage asks this after the bucket is made, and removes the bucket again if a space has its name.
 * A space does the reverse: it writes the name first, and then asks whether a storage has such a
 * bucket. So when both are made at the same time, at least one of the two finds the other. May
 * wait. */
int routes_space_has(struct routes *r, struct str bucket, bool *out, struct err *err) MUST_CHECK;
/* Finds out whether a storage has a bucket of this name: any storage that weir serves itself, or
 * the remote storage that the user's policies lead to. Spaces are not asked. May wait. */
int routes_storage_has(struct routes *r, struct str user, struct str bucket, bool *out,
                       struct err *err) MUST_CHECK;
/* Lists all spaces, at most ROUTES_SPACES_MAX; returns how many. */
size_t routes_spaces(struct routes *r, const struct bucket_space **out);

#endif
