/* Translates entries of the lake to S3's objects and back: headers, tags and checksums. */
#include "lake/bucket_int.h"
#include "object/names.h"

#include <stdlib.h>

#define USER_META "x-amz-meta-"

static int pair_order(const void *a, const void *b)
{
    const struct str_pair *l = a, *r = b;

    return str_cmp(l->key, r->key);
}

/* Sorts the pairs. If two pairs have the same key, the pair that was added later stays. */
static void pairs_sort(struct str_pairs *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->count; i++) {
        size_t k = 0;
        while (k < kept && !str_eq(p->pairs[k].key, p->pairs[i].key))
            k++;
        p->pairs[k] = p->pairs[i];
        kept += k == kept;
    }
    p->count = kept;
    if (kept)
        qsort(p->pairs, kept, sizeof(*p->pairs), pair_order);
}

static void pairs_add(struct str_pairs *p, struct str key, struct str value)
{
    p->pairs[p->count++] = (struct str_pair){key, value};
}

int lake_entry_take_meta(struct lake_entry *e, struct arena *a, const struct object_meta *meta,
                         struct err *err)
{
    e->content_type = STR_EMPTY;
    e->metadata.count = e->headers.count = 0;
    e->metadata.pairs = arena_array(a, meta->header_count + 1, sizeof(struct str_pair));
    e->headers.pairs = arena_array(a, meta->header_count + 1, sizeof(struct str_pair));
    if (!e->metadata.pairs || !e->headers.pairs)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < meta->header_count; i++) {
        struct str name = arena_lower(a, meta->headers[i].name), value = meta->headers[i].value;
        if (str_eq(name, STR("content-type")))
            e->content_type = value;
        else if (header_is_user_meta(name))
            pairs_add(&e->metadata, str_skip(name, sizeof(USER_META) - 1), value);
        else
            pairs_add(&e->headers, name, value);
    }
    pairs_sort(&e->metadata);
    pairs_sort(&e->headers);
    e->tags = meta->tags;
    e->storage_class = meta->storage_class;
    e->owner = meta->owner;
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Adds a header, unless its name is not valid in HTTP. Entries that did not come through S3 may
 * have such names. */
static void meta_give_header(struct object_meta *m, struct str name, struct str value)
{
    if (http_field_is_valid(name, value))
        m->headers[m->header_count++] = (struct http_header){name, value};
}

static int meta_give_headers(const struct lake_entry *e, struct arena *a, struct object_meta *m,
                             struct err *err)
{
    size_t most = 1 + e->metadata.count + e->headers.count;

    m->headers = arena_array(a, most, sizeof(*m->headers));
    if (!m->headers)
        return err_code(err, ERR_NO_MEMORY);
    if (e->content_type.len)
        meta_give_header(m, STR("content-type"), e->content_type);
    for (size_t i = 0; i < e->metadata.count; i++)
        meta_give_header(m, arena_fmt(a, USER_META STR_FMT, STR_ARG(e->metadata.pairs[i].key)),
                         e->metadata.pairs[i].value);
    for (size_t i = 0; i < e->headers.count; i++)
        meta_give_header(m, e->headers.pairs[i].key, e->headers.pairs[i].value);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Returns the entry's checksum. The algorithm and type are numbers of a record, so they are checked
 * before use. */
static struct object_checksum entry_checksum(const struct lake_entry *e)
{
    if (e->checksum_type == CHECKSUM_NONE || e->checksum_type > CHECKSUM_COMPOSITE ||
        e->checksum_kind >= DIGEST_KINDS || e->checksum.len == 0)
        return (struct object_checksum){0};
    return (struct object_checksum){(enum checksum_type)e->checksum_type,
                                    (enum digest_kind)e->checksum_kind, e->checksum};
}

int lake_entry_info(const struct lake_entry *e, struct arena *a, struct str key, bool listed,
                    struct object_info *out, struct err *err)
{
    *out = (struct object_info){.key = key,
                                .version = STR("null"),
                                .is_latest = true,
                                .size = e->size,
                                .modified_ms = e->modified_ms,
                                .etag = e->etag,
                                .part_count = (uint32_t)e->part_count,
                                .is_private = true};
    out->meta.owner = e->owner;
    out->meta.storage_class = e->storage_class;
    out->meta.checksum = entry_checksum(e);
    if (listed)
        return 0;
    out->meta.tags = e->tags;
    return meta_give_headers(e, a, &out->meta, err);
}
