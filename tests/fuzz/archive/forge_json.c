/* JSON of forges, each kind: what jansson reads the reader without a tree reads too, and a page of
 * repositories gives only names that can be stored, and clone URLs on the forge's own origin. The
 * first byte chooses the kind. */
#include "archive/forge_int.h"
#include "archive/link.h"
#include "archive/names.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_page(struct str text, enum forge_kind kind)
{
    const struct forge forge = {.host = STR("forge.example"),
                                .api = STR("https://forge.example/api"),
                                .git = STR("https://forge.example"),
                                .kind = kind};
    struct arena a = ARENA_INIT(MIB);
    struct err err = {0};
    struct scan s;

    scan_init(&s, text);
    scan_open(&s, '[');
    while (scan_more(&s)) {
        struct forge_repo r;
        arena_reset(&a);
        int code = forge_read_repo(&s, &a, &forge, forge_row(kind), &r);
        if (s.wrong || code < 0)
            continue;
        BUG_ON(!archive_repo_ok(r.name) || !r.id.len);
        BUG_ON(r.clone_url.len && !link_same_origin(r.clone_url, forge.git));
    }
    (void)!scan_end(&s, &err);
    arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    json_t *tree = NULL;
    struct scan s;

    if (size == 0)
        return 0;
    struct str text = str_n(data + 1, size - 1);
    check_page(text, (enum forge_kind)(data[0] % FORGE_KINDS));
    scan_init(&s, text);
    scan_skip(&s, NULL);
    int code = scan_end(&s, &err);
    /* jansson takes a NUL behind the value for the end of the text. */
    if (json_read(&tree, text, &err) == 0 && !memchr(text.p, '\0', text.len))
        BUG_ON(code < 0);
    json_decref(tree);
    return 0;
}
