/* Listings: writes the options of a page as a query. remote_list_xml.c reads the page. */
#include "object/remote/remote_int.h"

/* S3's names of the parameters of a listing. */
struct listing {
    struct {
        const char *name, *value;
    } query[2];                                /* parameters that say what is listed */
    const char *after, *after_version, *limit; /* after_version may be NULL: no such parameter */
};

static const struct listing objects = {
    {{"list-type", "2"}, {"fetch-owner", "true"}}, "start-after", NULL, "max-keys"};
static const struct listing versions = {
    {{"versions", ""}}, "key-marker", "version-id-marker", "max-keys"};
static const struct listing uploads = {
    {{"uploads", ""}}, "key-marker", "upload-id-marker", "max-uploads"};

/* Whether `after` is itself a common prefix of the listing. */
static bool is_common_prefix(const struct list_options *o)
{
    struct str rest = str_skip(o->after, o->prefix.len);

    if (o->delimiter.len == 0 || !str_starts(o->after, o->prefix))
        return false;
    ptrdiff_t at = str_find(rest, o->delimiter);
    return at >= 0 && (size_t)at + o->delimiter.len == rest.len;
}

/* Returns the key after which the peer is asked to begin the listing. If `after` is a common
 * prefix, that is the prefix followed by the largest character, which sorts after all keys under
 * the prefix. After the bare prefix some peers would list the prefix again, because its keys sort
 * after it. */
static struct str begin_after(struct arena *a, const struct list_options *o)
{
    if (o->after_version.len || !is_common_prefix(o))
        return o->after;
    return arena_fmt(a, STR_FMT "\xf4\x8f\xbf\xbf", STR_ARG(o->after));
}

static void ask_page(struct ask *q, struct bucket *bucket, const struct listing *l,
                     const struct list_options *o)
{
    ask_init_bucket(q, remote_bucket_of(bucket), "GET", STR_EMPTY);
    ask_param_given(q, "prefix", o->prefix);
    ask_param_given(q, "delimiter", o->delimiter);
    ask_param(q, "encoding-type", STR("url"));
    for (size_t i = 0; i < ARRAY_SIZE(l->query) && l->query[i].name; i++)
        ask_param(q, l->query[i].name, str_z(l->query[i].value));
    ask_param_given(q, l->after, begin_after(&q->a, o));
    if (l->after_version)
        ask_param_given(q, l->after_version, o->after_version);
    ask_param_u64(q, l->limit, o->limit);
}

/* Asks the peer for a page, and gives its document in the arena. */
static int remote_list_page(struct bucket *bucket, struct arena *a, const struct listing *l,
                            const struct list_options *o, struct str *text, struct err *err)
{
    struct ask q;

    ask_page(&q, bucket, l, o);
    int code = ask_send(&q, err);
    if (code == 0)
        code = ask_text(&q, a, XML_MAX_BYTES, text, err);
    ask_release(&q);
    return code;
}

int remote_list(struct bucket *bucket, struct arena *a, const struct list_options *o,
                struct list_result *out, struct err *err)
{
    struct str text = STR_EMPTY;

    *out = (struct list_result){0};
    if (o->limit == 0)
        return 0;
    int code = remote_list_page(bucket, a, &objects, o, &text, err);
    return code < 0 ? code : remote_read_list(out, a, text, o, err);
}

int remote_list_versions(struct bucket *bucket, struct arena *a, const struct list_options *o,
                         struct list_result *out, struct err *err)
{
    struct str text = STR_EMPTY;

    *out = (struct list_result){0};
    if (o->limit == 0)
        return 0;
    int code = remote_list_page(bucket, a, &versions, o, &text, err);
    return code < 0 ? code : remote_read_versions(out, a, text, o, err);
}

int remote_list_uploads(struct bucket *bucket, struct arena *a, const struct list_options *o,
                        struct upload_list *out, struct err *err)
{
    struct str text = STR_EMPTY;

    *out = (struct upload_list){0};
    if (o->limit == 0)
        return 0;
    int code = remote_list_page(bucket, a, &uploads, o, &text, err);
    return code < 0 ? code : remote_read_uploads(out, a, text, o, err);
}
