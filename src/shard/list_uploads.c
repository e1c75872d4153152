/* Listings of the uploads of a sharded bucket, by the walk over its segments. */
#include "shard/list_int.h"

/* Merges the page's uploads and common prefixes into one list in key order. */
static int uploads_ask(struct bucket *shard, struct arena *a, const struct list_options *o,
                       struct listed_page *out, struct err *err)
{
    struct upload_list list;
    size_t uploads = 0, prefixes = 0;
    int code = shard->ops->list_uploads(shard, a, o, &list, err);

    if (code < 0)
        return code;
    *out = (struct listed_page){.more = list.more};
    out->entries = arena_array(a, list.count + list.prefix_count + 1, sizeof(*out->entries));
    if (!out->entries)
        return err_code(err, ERR_NO_MEMORY);
    while (uploads < list.count || prefixes < list.prefix_count) {
        const struct upload_info *u = uploads < list.count ? &list.uploads[uploads] : NULL;
        const struct str *p = prefixes < list.prefix_count ? &list.prefixes[prefixes] : NULL;
        bool is_prefix =
            uploads >= list.count || (prefixes < list.prefix_count && str_cmp(*p, u->key) < 0);
        out->entries[out->count++] =
            is_prefix ? (struct listed){.key = *p, .is_prefix = true}
                      : (struct listed){.key = u->key, .version = u->id, .upload = u};
        uploads += !is_prefix;
        prefixes += is_prefix;
    }
    return 0;
}

static int uploads_fill(const struct listing *l, struct upload_list *out, struct err *err)
{
    out->uploads = arena_array(l->a, l->found.len + 1, sizeof(*out->uploads));
    out->prefixes = arena_array(l->a, l->found.len + 1, sizeof(*out->prefixes));
    if (!out->uploads || !out->prefixes)
        return err_code(err, ERR_NO_MEMORY);
    vec_each (&l->found, const struct listed *, e) {
        if (e->is_prefix)
            out->prefixes[out->prefix_count++] = e->key;
        else
            out->uploads[out->count++] = *e->upload;
        out->next_key = e->key;
        out->next_id = e->version;
    }
    out->more = l->more;
    return 0;
}

int sharded_list_uploads(struct bucket *b, struct arena *a, const struct list_options *o,
                         struct upload_list *out, struct err *err)
{
    struct listing l = {.b = sharded_bucket_of(b),
                        .ask = uploads_ask,
                        .a = a,
                        .o = o,
                        .by_version = true,
                        .limit = size_min(o->limit, OBJECT_LIST_MAX)};
    int code = listing_run(&l, err);

    *out = (struct upload_list){0};
    if (code == 0)
        code = uploads_fill(&l, out, err);
    vec_release(&l.found);
    return code;
}
