/* An overlay over two storages. */
#include "unit/object/fake_overlay.h"

#include "base/vec.h"
#include "unit/object/fake_bucket.h"

#define FAR_SUFFIX "-far"

static struct fake_overlay *overlay_of(struct overlay *o)
{
    return container_of(o, struct fake_overlay, overlay);
}

static bool overlay_has(struct overlay *overlay, const struct storage *home, struct str name)
{
    struct fake_overlay *o = overlay_of(overlay);

    return home == o->home && fake_names_has(&o->names, name);
}

/* The name of the second part, in the arena. */
static struct str overlay_far_name(struct arena *a, struct str name)
{
    return arena_fmt(a, STR_FMT FAR_SUFFIX, STR_ARG(name));
}

static bool overlay_is_part(struct fake_overlay *o, const struct storage *s, struct str name)
{
    size_t suffix = strlen(FAR_SUFFIX);

    return s == o->second && str_ends(name, STR(FAR_SUFFIX)) &&
           fake_names_has(&o->names, str_head(name, name.len - suffix));
}

static int overlay_open(struct overlay *overlay, struct storage *home, struct str user,
                        struct str name, struct bucket **out, struct err *err)
{
    struct fake_overlay *o = overlay_of(overlay);
    struct fake_parts parts = {.count = 2, .bound = str_z(o->bound), .home = home, .tells = true};
    struct arena a = ARENA_INIT(0);
    int code = home->ops->open_bucket(&parts.buckets[0], home, user, name, err);

    parts.can = home->ops->can & o->second->ops->can;
    if (code == 0) {
        code = o->second->ops->open_bucket(&parts.buckets[1], o->second, user,
                                           overlay_far_name(&a, name), err);
        if (code < 0)
            parts.buckets[0]->ops->unref(parts.buckets[0]);
    }
    if (code == 0)
        *out = fake_bucket_new(name, &parts);
    arena_release(&a);
    return code;
}

/* ERR_CONFLICT: it holds a version, a marker or an upload. */
static int overlay_check_empty(struct bucket *b, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct list_options one = {.limit = 1};
    struct list_result objects;
    struct upload_list uploads;
    int code = b->ops->list_versions(b, &a, &one, &objects, err);

    if (code == 0)
        code = b->ops->list_uploads(b, &a, &one, &uploads, err);
    if (code == 0 && (objects.count || uploads.count))
        code = err_code(err, ERR_CONFLICT);
    arena_release(&a);
    return code;
}

static int overlay_remove(struct overlay *overlay, struct storage *home, struct str user,
                          struct str name, struct err *err)
{
    struct fake_overlay *o = overlay_of(overlay);
    struct arena a = ARENA_INIT(0);
    struct bucket *b = NULL;
    int code = overlay_open(overlay, home, user, name, &b, err);

    if (code == 0) {
        code = overlay_check_empty(b, err);
        b->ops->unref(b);
    }
    if (code == 0)
        code = o->second->ops->remove_bucket(o->second, user, overlay_far_name(&a, name), err);
    if (code == 0) {
        fake_names_remove(&o->names, name); /* a home does not remove a bucket of an overlay */
        code = home->ops->remove_bucket(home, user, name, err);
        if (code < 0)
            fake_names_add(&o->names, name);
    }
    arena_release(&a);
    return code;
}

static int overlay_make(struct overlay *overlay, struct storage *home,
                        const struct bucket_info *info, struct err *err)
{
    struct fake_overlay *o = overlay_of(overlay);
    struct arena a = ARENA_INIT(0);
    struct bucket_info far = *info;
    int code;

    if (overlay_is_part(o, home, info->name))
        return err_code(err, ERR_EXISTS);
    code = home->ops->create_bucket(home, info, err);
    if (code < 0 || home != o->home || str_starts(info->name, STR(FAKE_OVERLAY_PLAIN)))
        return code;
    far.name = overlay_far_name(&a, info->name);
    code = o->second->ops->create_bucket(o->second, &far, err);
    if (code == 0)
        fake_names_add(&o->names, info->name);
    arena_release(&a);
    return code;
}

static int overlay_list(struct overlay *overlay, struct storage *home, struct arena *a,
                        struct str owner, struct str after, size_t limit, struct bucket_info **out,
                        size_t *count, struct err *err)
{
    struct fake_overlay *o = overlay_of(overlay);
    struct bucket_info *page = NULL, *all = arena_array(a, limit + 1, sizeof(*all));
    size_t got = limit;
    int code = all ? 0 : err_code(err, ERR_NO_MEMORY);

    *count = 0;
    while (code == 0 && got == limit && *count < limit) {
        code = home->ops->list_buckets(home, a, owner, after, limit, &page, &got, err);
        for (size_t i = 0; code == 0 && i < got && *count < limit; i++)
            if (!overlay_is_part(o, home, page[i].name))
                all[(*count)++] = page[i];
        if (code == 0 && got)
            after = page[got - 1].name;
    }
    *out = all;
    return code;
}

static const struct overlay_ops overlay_ops = {.has = overlay_has,
                                               .open = overlay_open,
                                               .remove = overlay_remove,
                                               .make = overlay_make,
                                               .list = overlay_list};

void fake_overlay_open(struct fake_overlay *o, struct storage *home, struct storage *second,
                       const char *bound)
{
    *o = (struct fake_overlay){
        .overlay = {&overlay_ops}, .home = home, .second = second, .bound = bound};
    fake_names_init(&o->names);
}

void fake_overlay_close(struct fake_overlay *o)
{
    fake_names_release(&o->names);
}
