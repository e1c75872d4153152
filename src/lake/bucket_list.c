/* Lists the objects of the lake's buckets. */
#include "lake/bucket_int.h"

/* Translates `after`, which is a whole key, to a path of one ref. All whole keys of that ref begin
 * with `start`: "<ref>/", or nothing in the bucket of a ref. Returns false if `after` is greater
 * than all of them. */
static bool list_after(struct str after, struct str start, struct str *out)
{
    *out = STR_EMPTY;
    if (str_starts(after, start))
        *out = str_skip(after, start.len);
    else if (str_cmp(after, start) > 0)
        return false;
    return true;
}

static int list_fill(struct lake_bucket *b, struct arena *a, struct str ref,
                     const struct lake_objects *from, struct list_result *out, struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < from->count; i++) {
        struct list_entry *e = &out->entries[out->count++];
        struct str key = lake_bucket_key(b, a, ref, from->items[i].path);
        *e = (struct list_entry){.is_prefix = from->items[i].is_prefix, .info.key = key};
        if (!e->is_prefix)
            code = lake_entry_info(&from->items[i].entry, a, key, true, &e->info, err);
    }
    out->more = from->more;
    if (out->more)
        out->next = lake_bucket_key(b, a, ref, from->next);
    return code;
}

/* Lists the paths of one ref. A ref that does not exist has no paths. */
static int list_ref(struct lake_bucket *b, struct arena *a, const struct list_options *o,
                    struct list_result *out, struct err *err)
{
    struct lake_at at = lake_bucket_at(b, o->prefix);
    struct str start = str_head(o->prefix, o->prefix.len - at.path.len);
    struct lake_list_options inner = {
        .prefix = at.path, .delimiter = o->delimiter, .limit = o->limit};
    struct lake_objects found = {0};

    if (!list_after(o->after, start, &inner.after))
        return 0;
    int code = lake_list(b->lake, a, &b->repo, at.ref, &inner, &found, err);
    if (code == ERR_NOT_FOUND || code == ERR_INVALID)
        return 0;
    return code < 0 ? code : list_fill(b, a, at.ref, &found, out, err);
}

int lake_bucket_list(struct bucket *bucket, struct arena *a, const struct list_options *o,
                     struct list_result *out, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct list_options own = *o;
    int code;

    own.limit = size_min(o->limit, OBJECT_LIST_MAX);
    *out = (struct list_result){.entries = arena_array(a, own.limit + 1, sizeof(*out->entries))};
    if (!out->entries)
        return err_code(err, ERR_NO_MEMORY);
    if (own.limit == 0)
        return 0;
    if (b->ref.len || str_chr(o->prefix, '/') >= 0)
        code = list_ref(b, a, &own, out, err);
    else
        code = lake_bucket_list_root(b, a, &own, out, err);
    for (size_t i = 0; code == 0 && i < out->count; i++)
        if (!out->entries[i].is_prefix && !out->entries[i].info.meta.owner.len)
            out->entries[i].info.meta.owner = b->repo.owner;
    return code == 0 && arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

/* Lists versions: every object has one version, "null". */
int lake_bucket_list_versions(struct bucket *bucket, struct arena *a, const struct list_options *o,
                              struct list_result *out, struct err *err)
{
    int code = lake_bucket_list(bucket, a, o, out, err);

    if (code == 0 && out->more && out->count && !out->entries[out->count - 1].is_prefix)
        out->next_version = STR("null");
    return code;
}
