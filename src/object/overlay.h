/* Buckets that are cut into parts, and the four calls that open, list, make and remove buckets by
 * the names that clients use.
 *
 * A bucket may be too large for one place. Then its objects are in several buckets (its *parts*),
 * on one storage or on several, and clients see one *logical* bucket. The storage on which clients
 * made the logical bucket is its *home*. An *overlay* knows the logical buckets and opens each as a
 * `struct bucket` whose `storage` is NULL. A caller that has to name a storage names the home.
 *
 * The overlay is declared here and implemented outside object/. A process has at most one overlay,
 * and every storage of the routes points to it. Callers outside object/ use the four storage_*()
 * calls below and never the members of storage_ops, so that they see logical buckets and never
 * their parts. */
#ifndef OBJECT_OVERLAY_H
#define OBJECT_OVERLAY_H

#include "object/bucket.h"

struct overlay {
    const struct overlay_ops *ops;
};

/* `home` is the storage on which the caller wants the bucket. `user` means the same as in
 * storage_ops. */
struct overlay_ops {
    /* Whether the name is a logical bucket whose home is this storage. Every request calls this, so
     * it answers from memory and never waits. */
    bool (*has)(struct overlay *o, const struct storage *home, struct str name);
    /* The next two are called for names that has() knows. */
    /* Opens the logical bucket: *out is a new reference, whose `storage` is NULL and whose `home`
     * is this home. ERR_NO_BUCKET: there is no such bucket. Does not wait where the home's own
     * open_bucket() does not. */
    int (*open)(struct overlay *o, struct storage *home, struct str user, struct str name,
                struct bucket **out, struct err *err);
    /* Removes the logical bucket with all its parts. ERR_CONFLICT: it is not empty. To remove the
     * part with the logical bucket's own name, the overlay first forgets the name and then calls
     * the home's remove_bucket(). A local remove_bucket() refuses names that has() knows
     * (ERR_BUSY). So a removal that began before the overlay took the bucket over cannot remove
     * that part. */
    int (*remove)(struct overlay *o, struct storage *home, struct str user, struct str name,
                  struct err *err);
    /* The next two are called for all names. They call the home's own operation for buckets that
     * are not the overlay's. */
    /* Makes a bucket. ERR_EXISTS: the name is a logical bucket or a part of one. */
    int (*make)(struct overlay *o, struct storage *home, const struct bucket_info *info,
                struct err *err);
    /* Lists buckets as storage_ops.list_buckets does, with logical buckets and without their
     * parts. */
    int (*list)(struct overlay *o, struct storage *home, struct arena *a, struct str owner,
                struct str after, size_t limit, struct bucket_info **out, size_t *count,
                struct err *err);
};

static inline struct overlay *storage_overlay(const struct storage *s)
{
    return atomic_load_explicit(&s->overlay, memory_order_acquire);
}

/* Returns the overlay if `name` is one of its logical buckets with the home `s`, else NULL. Never
 * waits. */
static inline struct overlay *storage_overlay_of(const struct storage *s, struct str name)
{
    struct overlay *o = storage_overlay(s);

    return o && o->ops->has(o, s, name) ? o : NULL;
}

/* These functions do the same as the members of storage_ops with these names, but they also work
 * for logical buckets. They hide the buckets whose names are reserved for parts of other buckets
 * (object/part_names.h): opening or removing such a bucket returns ERR_NO_BUCKET, making one
 * returns ERR_INVALID, and no listing shows them. Only an overlay uses these parts; it calls the
 * members of storage_ops. */
int storage_open_bucket(struct bucket **out, struct storage *s, struct str user, struct str name,
                        struct err *err) MUST_CHECK;
int storage_list_buckets(struct storage *s, struct arena *a, struct str owner, struct str after,
                         size_t limit, struct bucket_info **out, size_t *count,
                         struct err *err) MUST_CHECK;
int storage_create_bucket(struct storage *s, const struct bucket_info *info,
                          struct err *err) MUST_CHECK;
int storage_remove_bucket(struct storage *s, struct str user, struct str name,
                          struct err *err) MUST_CHECK;

#endif
