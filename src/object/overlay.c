/* Opens, lists, makes and removes buckets by the names that clients use: the overlay's buckets
 * first, then the storage's own. */
#include "object/overlay.h"

int storage_open_bucket(struct bucket **out, struct storage *s, struct str user, struct str name,
                        struct err *err)
{
    struct overlay *o = storage_overlay_of(s, name);

    return o ? o->ops->open(o, s, user, name, out, err)
             : s->ops->open_bucket(out, s, user, name, err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
int storage_list_buckets(struct storage *s, struct arena *a, struct str owner, struct str after,
                         size_t limit, struct bucket_info **out, size_t *count, struct err *err)
{
    struct overlay *o = storage_overlay(s);

    return o ? o->ops->list(o, s, a, owner, after, limit, out, count, err)
             : s->ops->list_buckets(s, a, owner, after, limit, out, count, err);
}

int storage_create_bucket(struct storage *s, const struct bucket_info *info, struct err *err)
{
    struct overlay *o = storage_overlay(s);

    return o ? o->ops->make(o, s, info, err) : s->ops->create_bucket(s, info, err);
}

int storage_remove_bucket(struct storage *s, struct str user, struct str name, struct err *err)
{
    struct overlay *o = storage_overlay_of(s, name);

    return o ? o->ops->remove(o, s, user, name, err) : s->ops->remove_bucket(s, user, name, err);
}
