/* Compares two objects by what storages say about them (copy/same.h). */
#include "copy/same.h"

#include "http/wire.h"

enum { TAGS_MAX = 64 };

static const struct str unknown_types[] = {
    {"binary/octet-stream", 19},
    {"application/octet-stream", 24},
};

bool same_bytes(const struct object_info *source, const struct object_info *copy)
{
    const struct object_checksum *x = &source->meta.checksum, *y = &copy->meta.checksum;
    bool sums = x->type == CHECKSUM_FULL_OBJECT && y->type == CHECKSUM_FULL_OBJECT &&
                x->kind == y->kind && x->value.len && y->value.len;

    if (source->is_marker || copy->is_marker)
        return source->is_marker == copy->is_marker;
    if (source->size != copy->size)
        return false;
    if (sums)
        return str_eq(x->value, y->value);
    return source->etag.len && str_eq(source->etag, copy->etag);
}

static const struct http_header *meta_header(const struct object_meta *meta, struct str name)
{
    for (size_t i = 0; i < meta->header_count; i++)
        if (str_ieq(meta->headers[i].name, name))
            return &meta->headers[i];
    return NULL;
}

static bool is_type(struct str name)
{
    return str_ieq(name, STR("content-type"));
}

static bool same_type(const struct object_meta *source, const struct object_meta *copy)
{
    const struct http_header *x = meta_header(source, STR("content-type")),
                             *y = meta_header(copy, STR("content-type"));

    if (x && y)
        return str_eq(x->value, y->value);
    if (x)
        return str_eq(x->value, unknown_types[0]);
    for (size_t i = 0; y && i < ARRAY_SIZE(unknown_types); i++)
        if (str_eq(y->value, unknown_types[i]))
            return true;
    return !y;
}

static size_t count_others(const struct object_meta *meta)
{
    size_t count = 0;

    for (size_t i = 0; i < meta->header_count; i++)
        count += !is_type(meta->headers[i].name);
    return count;
}

bool same_headers(const struct object_meta *source, const struct object_meta *copy)
{
    if (count_others(source) != count_others(copy) || !same_type(source, copy))
        return false;
    for (size_t i = 0; i < source->header_count; i++) {
        const struct http_header *x = &source->headers[i], *y = meta_header(copy, x->name);
        if (!is_type(x->name) && (!y || !str_eq(str_trim(x->value), str_trim(y->value))))
            return false;
    }
    return true;
}

bool same_object(const struct object_info *source, const struct object_info *copy)
{
    return same_bytes(source, copy) && same_headers(&source->meta, &copy->meta);
}

/* --- tags --- */

static bool decoded_eq(struct str a, struct str b)
{
    struct buf x = BUF_INIT(HTTP_MAX_HEAD), y = BUF_INIT(HTTP_MAX_HEAD);
    bool eq = str_eq(a, b) || (url_decode(&x, a, true) == 0 && url_decode(&y, b, true) == 0 &&
                               str_eq(buf_str(&x), buf_str(&y)));

    buf_release(&x);
    buf_release(&y);
    return eq;
}

static bool has_tag(struct str tags, struct str name, struct str value)
{
    struct str n, v;

    while (url_query_next(&tags, &n, &v))
        if (decoded_eq(n, name))
            return decoded_eq(v, value);
    return false;
}

static size_t tags_count(struct str tags)
{
    struct str n, v;
    size_t count = 0;

    while (url_query_next(&tags, &n, &v))
        count++;
    return count;
}

bool same_tags(struct str a, struct str b)
{
    struct str rest = a, name, value;
    size_t count = tags_count(a);

    if (count != tags_count(b) || count > TAGS_MAX)
        return count == 0 && tags_count(b) == 0;
    while (url_query_next(&rest, &name, &value))
        if (!has_tag(b, name, value))
            return false;
    return true;
}
