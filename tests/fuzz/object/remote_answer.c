/* Documents in a remote peer's answers: the first byte chooses the kind. Whatever is accepted keeps
 * what remote_int.h promises: a page is in order, under its prefix, behind where it begins and
 * within its limit, and leads on (M7). */
#include "object/remote/remote_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct list_options pages[] = {
    {.limit = 3},
    {.limit = 1000, .prefix = {"a", 1}},
    {.limit = 2, .prefix = {"a", 1}, .delimiter = {"/", 1}, .after = {"a/", 2}},
    {.limit = 10, .after = {"b", 1}, .after_version = {"v", 1}},
};

static void check_page(const struct list_result *r, const struct list_options *o)
{
    BUG_ON(r->count > o->limit || (r->more && r->count == 0));
    for (size_t i = 0; i < r->count; i++) {
        struct str key = r->entries[i].info.key;
        BUG_ON(key.len == 0 || key.len > OBJECT_KEY_MAX || !str_starts(key, o->prefix));
        BUG_ON(i && str_cmp(r->entries[i - 1].info.key, key) > 0);
        BUG_ON(r->entries[i].is_prefix && str_eq(key, o->after));
        BUG_ON(!r->entries[i].is_prefix && str_cmp(key, o->after) < 0);
    }
    if (!r->more)
        return;
    /* Forward, or back to the common prefix that holds where it began; never to where it began. */
    BUG_ON(str_eq(r->next, o->after) && str_eq(r->next_version, o->after_version));
    BUG_ON(str_cmp(r->next, o->after) < 0 &&
           (str_ends(o->after, o->delimiter) || !str_starts(o->after, r->next)));
}

static void list(struct arena *a, struct str in, const struct list_options *o)
{
    struct list_result r;

    if (remote_read_list(&r, a, in, o, NULL) == 0)
        check_page(&r, o);
}

static void versions(struct arena *a, struct str in, const struct list_options *o)
{
    struct list_result r;

    if (remote_read_versions(&r, a, in, o, NULL) == 0)
        check_page(&r, o);
}

static void uploads(struct arena *a, struct str in, const struct list_options *o)
{
    struct upload_list r;

    if (remote_read_uploads(&r, a, in, o, NULL) < 0)
        return;
    BUG_ON(r.count + r.prefix_count > o->limit);
    BUG_ON(r.more && str_eq(r.next_key, o->after) && str_eq(r.next_id, o->after_version));
}

static void parts(struct arena *a, struct str in, const struct list_options *o)
{
    struct part_list r;
    uint32_t last = 2;

    if (remote_read_parts(&r, a, in, last, o->limit, NULL) < 0)
        return;
    BUG_ON(r.count > o->limit || (r.more && r.count == 0));
    for (size_t i = 0; i < r.count; last = r.parts[i++].number)
        BUG_ON(r.parts[i].number <= last || r.parts[i].number > OBJECT_MAX_PARTS);
}

static void result(struct arena *a, struct str in, const struct list_options *o)
{
    static const char *const roots[] = {"CopyObjectResult", "CopyPartResult",
                                        "CompleteMultipartUploadResult"};
    struct put_result r;

    for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
        if (remote_read_result(&r, a, in, roots[i], NULL) == 0)
            BUG_ON(r.size != 0 || r.version.len != 0);
    (void)o;
}

static void others(struct arena *a, struct str in, const struct list_options *o)
{
    struct remote_bucket_page page;
    struct str text;

    if (remote_read_upload_id(&text, a, in, NULL) == 0)
        BUG_ON(text.len == 0);
    if (remote_read_tags(&text, a, in, NULL) == 0)
        BUG_ON(text.len > HTTP_MAX_HEAD);
    if (remote_read_buckets(&page, a, in, NULL) == 0)
        for (size_t i = 0; i < page.count; i++)
            BUG_ON(page.buckets[i].name.len == 0);
    (void)o;
}

/* Whatever a document says under a status that is not 404, it never says "absent" (M1). */
static void error(struct arena *a, struct str in, const struct list_options *o)
{
    struct remote_error said = remote_read_error(a, in);
    static const int statuses[] = {200, 301, 400, 403, 405, 409, 500, 503};
    struct err err;

    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        int code = remote_error_of(statuses[i], said.code, said.message, &err);
        BUG_ON(code >= 0 || code == ERR_NOT_FOUND || code == ERR_NO_BUCKET);
    }
    BUG_ON(remote_error_of(404, said.code, said.message, &err) >= 0);
    (void)o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(struct arena *, struct str, const struct list_options *) = {
        list, versions, uploads, parts, result, others, error};
    struct arena a = ARENA_INIT(0);

    if (size == 0)
        return 0;
    uint8_t choice = data[0];
    kinds[choice % ARRAY_SIZE(kinds)](&a, str_n(data + 1, size - 1),
                                      &pages[choice / ARRAY_SIZE(kinds) % ARRAY_SIZE(pages)]);
    arena_release(&a);
    return 0;
}
