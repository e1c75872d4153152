/* Listings: the options of a page as a query, the page read by remote_list_xml.c. */
#include "object/remote_int.h"

/* `after` is itself a common prefix of the listing. */
static bool is_common_prefix(const struct list_options *o)
{
    struct str rest = str_skip(o->after, o->prefix.len);

    if (o->delimiter.len == 0 || !str_starts(o->after, o->prefix))
        return false;
    ptrdiff_t at = str_find(rest, o->delimiter);
    return at >= 0 && (size_t)at + o->delimiter.len == rest.len;
}

/* Where the peer is to begin. Peers differ in what follows a common prefix: some list it again,
 * since keys under it are behind it. So they are told to begin behind all of them: the largest
 * character stands for the last key. */
static struct str begin_after(struct arena *a, const struct list_options *o)
{
    if (o->after_version.len || !is_common_prefix(o))
        return o->after;
    return arena_fmt(a, STR_FMT "\xf4\x8f\xbf\xbf", STR_ARG(o->after));
}

static void ask_listing(struct ask *q, struct bucket *bucket, const struct list_options *o)
{
    ask_init_bucket(q, remote_bucket_of(bucket), "GET", STR_EMPTY);
    ask_param_given(q, "prefix", o->prefix);
    ask_param_given(q, "delimiter", o->delimiter);
    ask_param(q, "encoding-type", STR("url"));
}

static int read_document(struct ask *q, struct arena *a, struct str *text, struct err *err)
{
    int code = ask_send(q, err);

    if (code == 0)
        code = ask_text(q, a, XML_MAX_BYTES, text, err);
    ask_release(q);
    return code;
}

int remote_list(struct bucket *bucket, struct arena *a, const struct list_options *o,
                struct list_result *out, struct err *err)
{
    struct ask q;
    struct str text = STR_EMPTY;

    *out = (struct list_result){0};
    if (o->limit == 0)
        return 0;
    ask_listing(&q, bucket, o);
    ask_param(&q, "list-type", STR("2"));
    ask_param(&q, "fetch-owner", STR("true"));
    ask_param_given(&q, "start-after", begin_after(&q.a, o));
    ask_param_u64(&q, "max-keys", o->limit);
    int code = read_document(&q, a, &text, err);
    return code < 0 ? code : remote_read_list(out, a, text, o, err);
}

int remote_list_versions(struct bucket *bucket, struct arena *a, const struct list_options *o,
                         struct list_result *out, struct err *err)
{
    struct ask q;
    struct str text = STR_EMPTY;

    *out = (struct list_result){0};
    if (o->limit == 0)
        return 0;
    ask_listing(&q, bucket, o);
    ask_param(&q, "versions", STR_EMPTY);
    ask_param_given(&q, "key-marker", begin_after(&q.a, o));
    ask_param_given(&q, "version-id-marker", o->after_version);
    ask_param_u64(&q, "max-keys", o->limit);
    int code = read_document(&q, a, &text, err);
    return code < 0 ? code : remote_read_versions(out, a, text, o, err);
}

int remote_list_uploads(struct bucket *bucket, struct arena *a, const struct list_options *o,
                        struct upload_list *out, struct err *err)
{
    struct ask q;
    struct str text = STR_EMPTY;

    *out = (struct upload_list){0};
    if (o->limit == 0)
        return 0;
    ask_listing(&q, bucket, o);
    ask_param(&q, "uploads", STR_EMPTY);
    ask_param_given(&q, "key-marker", begin_after(&q.a, o));
    ask_param_given(&q, "upload-id-marker", o->after_version);
    ask_param_u64(&q, "max-uploads", o->limit);
    int code = read_document(&q, a, &text, err);
    return code < 0 ? code : remote_read_uploads(out, a, text, o, err);
}
