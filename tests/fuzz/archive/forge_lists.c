/* Lists of forges: pages of gists, releases with their files or links, and answers of LFS servers.
 * The first byte chooses the list. Every item that is read has the form that its user relies on:
 * ids that can be part of a key, URLs of gists on allowed hosts, and headers that frame nothing. */
#include "archive/extras_int.h"
#include "archive/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool id_is_safe(struct str id)
{
    for (size_t i = 0; i < id.len; i++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_", id.p[i]))
            return false;
    return id.len > 0 && id.len < 32;
}

static void check_gists(struct str text)
{
    const struct forge forge = {.host = STR("forge.example"), .git = STR("https://forge.example")};
    struct arena a = ARENA_INIT(MIB);
    struct err err = {0};
    struct scan s;

    scan_init(&s, text);
    scan_open(&s, '[');
    while (scan_more(&s)) {
        struct forge_gist g;
        arena_reset(&a);
        if (!forge_read_gist(&s, &a, &forge, &g))
            continue;
        BUG_ON(!id_is_safe(g.id));
        BUG_ON(!link_same_origin(g.url, g.foreign ? STR("https://gist.forge.example") : forge.git));
    }
    BUG_ON(scan_end(&s, &err) < 0 && !err.text[0]);
    arena_release(&a);
}

static int check_asset(void *ctx, const struct extras_asset *asset, struct err *err)
{
    (void)ctx, (void)err;
    BUG_ON(!id_is_safe(asset->id) || !asset->name.len || !asset->url.len);
    BUG_ON(asset->name.len > FORGE_TEXT_MAX || asset->url.len > FORGE_TEXT_MAX);
    BUG_ON(asset->is_link && asset->size);
    return 0;
}

static int check_item(void *ctx, const struct lfs_item *item, struct err *err)
{
    (void)ctx, (void)err;
    BUG_ON(item->oid.len > 64 || item->header_count > LFS_HEADERS_MAX);
    BUG_ON(item->error && (item->error < 400 || item->error > 599));
    for (size_t i = 0; i < item->header_count; i++) {
        const struct http_header *h = &item->headers[i];
        BUG_ON(!http_field_is_valid(h->name, h->value));
        BUG_ON(str_ieq(h->name, STR("content-length")) || str_ieq(h->name, STR("host")));
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT(MIB);
    struct err err = {0};
    bool malformed = false;
    int code = 0;

    if (size == 0)
        return 0;
    struct str text = str_n(data + 1, size - 1);
    if (data[0] % 3 == 0)
        check_gists(text);
    else if (data[0] % 3 == 1)
        code = extras_each_asset(text, &a, check_asset, NULL, &malformed, &err);
    else
        code = lfs_each_item(text, &a, check_item, NULL, &malformed, &err);
    BUG_ON(malformed != (code == ERR_PARSE) || (code < 0 && !err.text[0]));
    arena_release(&a);
    return 0;
}
