/* Opens, lists, makes and removes buckets by the names that clients use: the overlay's buckets
 * first, then the storage's own. Names that are reserved for shards (part_names.h) do not exist
 * here. */
#include "object/overlay.h"

#include "object/part_names.h"

int storage_open_bucket(struct bucket **out, struct storage *s, struct str user, struct str name,
                        struct err *err)
{
    struct overlay *o = storage_overlay_of(s, name);
    struct bucket *plain = NULL;
    int code;

    if (bucket_name_is_part(name))
        return err_code(err, ERR_NO_BUCKET);
    if (o)
        return o->ops->open(o, s, user, name, out, err);
    code = s->ops->open_bucket(&plain, s, user, name, err);
    /* The overlay may have taken over the bucket after the check above. */
    o = code == 0 ? storage_overlay_of(s, name) : NULL;
    if (o) {
        plain->ops->unref(plain);
        return o->ops->open(o, s, user, name, out, err);
    }
    if (code == 0)
        *out = plain;
    return code;
}

/* Lists one page of the storage with its logical buckets. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int list_page(struct storage *s, struct arena *a, struct str owner, struct str after,
                     size_t limit, struct bucket_info **out, size_t *count, struct err *err)
{
    struct overlay *o = storage_overlay(s);

    return o ? o->ops->list(o, s, a, owner, after, limit, out, count, err)
             : s->ops->list_buckets(s, a, owner, after, limit, out, count, err);
}

/* Drops the reserved names from the page, and returns how many buckets are left. */
static size_t drop_parts(struct bucket_info *page, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (!bucket_name_is_part(page[i].name))
            page[kept++] = page[i];
    return kept;
}

/* If names are dropped from a page, the page is filled up from the following pages, because callers
 * take a short page for the last one. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
int storage_list_buckets(struct storage *s, struct arena *a, struct str owner, struct str after,
                         size_t limit, struct bucket_info **out, size_t *count, struct err *err)
{
    struct bucket_info *page = NULL, *all = NULL;
    size_t got = 0, kept = 0;
    int code = list_page(s, a, owner, after, limit, &page, &got, err);

    while (code == 0 && got) {
        bool last = got < limit;
        after = page[got - 1].name;
        got = size_min(drop_parts(page, got), limit - kept);
        if (!all && (last || got == limit)) {
            *out = page;
            *count = got;
            return 0;
        }
        if (!all && !(all = arena_array(a, limit, sizeof(*all))))
            return err_code(err, ERR_NO_MEMORY);
        memcpy(all + kept, page, got * sizeof(*all));
        kept += got;
        if (last || kept == limit)
            break;
        code = list_page(s, a, owner, after, limit, &page, &got, err);
    }
    if (code == 0) {
        *out = all;
        *count = kept;
    }
    return code;
}

int storage_create_bucket(struct storage *s, const struct bucket_info *info, struct err *err)
{
    struct overlay *o = storage_overlay(s);

    if (bucket_name_is_part(info->name))
        return err_set(err, ERR_INVALID, "the name " STR_FMT " is reserved for sharding",
                       STR_ARG(info->name));
    return o ? o->ops->make(o, s, info, err) : s->ops->create_bucket(s, info, err);
}

int storage_remove_bucket(struct storage *s, struct str user, struct str name, struct err *err)
{
    struct overlay *o = storage_overlay_of(s, name);

    if (bucket_name_is_part(name))
        return err_code(err, ERR_NO_BUCKET);
    return o ? o->ops->remove(o, s, user, name, err) : s->ops->remove_bucket(s, user, name, err);
}
