/* Lists and removes the files of a namespace. */
#include "lake/files.h"
#include "lake/names.h"
#include "lake/place.h"

/* Sets *skip to the number of bytes that come before the relative key in the whole key of a file:
 * the namespace's prefix and its slash. */
static int files_skip(const struct lake_repo *r, size_t *skip, struct err *err)
{
    struct str bucket, prefix;
    int code = lake_check_space(r->space, &bucket, &prefix, err);

    *skip = prefix.len ? prefix.len + 1 : 0;
    return code;
}

/* Lists a page of files in an open place, and closes the place. */
static int files_page(struct object_place *p, struct arena *a, struct str after, size_t skip,
                      struct lake_files *out, struct err *err)
{
    struct list_options o = {.prefix = p->key, .after = after, .limit = OBJECT_LIST_MAX};
    struct list_result list = {0};
    int code = object_place_list(p, &o, &list, err);

    code = object_place_end(p, code, err);
    out->items = arena_array(a, list.count + 1, sizeof(*out->items));
    if (code == 0 && !out->items)
        code = err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; code == 0 && i < list.count; i++) {
        const struct object_info *info = &list.entries[i].info;
        out->items[out->count++] = (struct lake_file){
            .key = str_skip(info->key, skip), .size = info->size, .modified_ms = info->modified_ms};
    }
    out->more = list.more;
    out->next = str_skip(list.next, skip);
    return code;
}

int lake_files_list(struct lake *l, struct arena *a, const struct lake_repo *r, struct str prefix,
                    struct str after, struct lake_files *out, struct err *err)
{
    struct object_place p = {0};
    size_t skip;
    int code = files_skip(r, &skip, err);

    *out = (struct lake_files){0};
    if (code == 0)
        code = lake_place_open_below(&p, l, a, r, prefix, PLACE_LIST, err);
    if (code == 0 && after.len)
        after = arena_fmt(a, STR_FMT STR_FMT, STR_ARG(str_head(p.key, skip)), STR_ARG(after));
    return code == 0 ? files_page(&p, a, after, skip, out, err) : code;
}

int lake_files_remove(struct lake *l, const struct lake_repo *r, struct str key,
                      const struct object_conditions *c, struct err *err)
{
    struct remove_options o = {0};
    struct remove_result result;
    struct arena a = {0};
    struct object_place p;
    int code = lake_place_open_below(&p, l, &a, r, key, PLACE_REMOVE, err);

    if (c)
        o.conditions = *c;
    if (code == 0) {
        code = object_place_may(&p, err);
        if (code == 0)
            code = p.bucket->ops->remove(p.bucket, &a, p.key, &o, &result, err);
        code = object_place_end(&p, code, err);
    }
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* --- uploads in parts --- */

static int files_abort_page(struct object_place *p, bool *more, struct err *err)
{
    struct list_options o = {.prefix = p->key, .limit = OBJECT_LIST_MAX};
    struct upload_list list = {0};
    int code = object_place_list_uploads(p, &o, &list, err);

    for (size_t i = 0; code == 0 && i < list.count; i++) {
        code = p->bucket->ops->upload_abort(p->bucket, &list.uploads[i], err);
        code = code == ERR_NOT_FOUND ? 0 : code;
    }
    *more = list.more && list.count > 0;
    return code;
}

int lake_files_has_uploads(struct lake *l, const struct lake_repo *r, struct str prefix, bool *has,
                           struct err *err)
{
    struct upload_list list = {0};
    struct arena a = {0};
    struct object_place p;
    int code = lake_place_open_below(&p, l, &a, r, prefix, PLACE_LIST, err);

    if (code == 0) {
        struct list_options o = {.prefix = p.key, .limit = 1};
        code = object_place_list_uploads(&p, &o, &list, err);
        code = object_place_end(&p, code, err);
    }
    *has = list.count > 0;
    arena_release(&a);
    return code;
}

int lake_files_abort_uploads(struct lake *l, const struct lake_repo *r, struct str prefix,
                             struct err *err)
{
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        struct arena a = {0};
        struct object_place p;
        code = lake_place_open_below(&p, l, &a, r, prefix, PLACE_LIST, err);
        if (code == 0)
            code = object_place_end(&p, files_abort_page(&p, &more, err), err);
        arena_release(&a);
    }
    return code;
}
